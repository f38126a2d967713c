"""Spans of time as people say them in four languages, seen from one day."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_rag.search.when import Span, find_span, without

TODAY = date(2026, 4, 15)  # a Wednesday

# phrase: first day, last day; an open end is "…"
ENGLISH = {
    "in august last year": "2025-08-01 2025-08-31",
    "last august": "2025-08-01 2025-08-31",
    "two summers ago": "2024-06-01 2024-08-31",
    "a summer ago": "2025-06-01 2025-08-31",
    "the last two summers": "2024-06-01 2025-08-31",
    "the winter before last": "2024-12-01 2025-02-28",
    "in the summer of the year before last": "2024-06-01 2024-08-31",
    "this summer": "2026-06-01 2026-08-31",
    "over the summer": "2025-06-01 2025-08-31",
    "this December": "2026-12-01 2026-12-31",
    "next March": "2027-03-01 2027-03-31",
    "week 30 of 2023": "2023-07-24 2023-07-30",
    "the 30th week of 2023": "2023-07-24 2023-07-30",
    "2023-W30": "2023-07-24 2023-07-30",
    "in the week of 3 March 2024": "2024-02-26 2024-03-03",
    "2024-01-15..2024-02-03": "2024-01-15 2024-02-03",
    "2023-Q3": "2023-07-01 2023-09-30",
    "the day before yesterday": "2026-04-13 2026-04-13",
    "last night": "2026-04-14 2026-04-14",
    "tomorrow": "2026-04-16 2026-04-16",
    "next week": "2026-04-20 2026-04-26",
    "the week before last": "2026-03-30 2026-04-05",
    "Friday last week": "2026-04-10 2026-04-10",
    "two weeks ago on friday": "2026-04-03 2026-04-03",
    "in spring 2024": "2024-03-01 2024-05-31",
    "winter 2023/24": "2023-12-01 2024-02-29",
    "winter 2023-2024": "2023-12-01 2024-02-29",
    "the first half of 2024": "2024-01-01 2024-06-30",
    "the second half of March 2024": "2024-03-16 2024-03-31",
    "H2 2024": "2024-07-01 2024-12-31",
    "the third quarter of 2023": "2023-07-01 2023-09-30",
    "in Q3": "2025-07-01 2025-09-30",
    "last quarter": "2026-01-01 2026-03-31",
    "early March": "2026-03-01 2026-03-10",
    "mid-March 2024": "2024-03-11 2024-03-20",
    "end of June": "2025-06-21 2025-06-30",
    "the end of last year": "2025-09-01 2025-12-31",
    "early 2024": "2024-01-01 2024-04-30",
    "early summer 2023": "2023-06-01 2023-06-30",
    "early last week": "2026-04-06 2026-04-07",
    "over christmas 2023": "2023-12-24 2023-12-26",
    "over Christmas": "2025-12-24 2025-12-26",
    "last christmas": "2025-12-24 2025-12-26",
    "Christmas Eve 2023": "2023-12-24 2023-12-24",
    "new year's eve 2023": "2023-12-31 2023-12-31",
    "at Easter 2024": "2024-03-29 2024-04-01",
    "Easter 2025": "2025-04-18 2025-04-21",
    "thanksgiving 2023": "2023-11-23 2023-11-23",
    "two days before Christmas in 2024": "2024-12-23 2024-12-23",
    "the day after 2024-02-28": "2024-02-29 2024-02-29",
    "the week before Christmas 2023": "2023-12-18 2023-12-24",
    "last weekend": "2026-04-11 2026-04-12",
    "over the weekend": "2026-04-11 2026-04-12",
    "on 3 May": "2025-05-03 2025-05-03",
    "May 3rd": "2025-05-03 2025-05-03",
    "on march 15": "2026-03-15 2026-03-15",
    "dec 25": "2025-12-25 2025-12-25",
    "the third of May": "2025-05-03 2025-05-03",
    "on 15 April": "2026-04-15 2026-04-15",
    "on 16 April": "2025-04-16 2025-04-16",
    "29 February": "2024-02-29 2024-02-29",
    "on the 13th": "2026-04-13 2026-04-13",
    "on the 13th of this month": "2026-04-13 2026-04-13",
    "the 5th of last month": "2026-03-05 2026-03-05",
    "12.03.2024": "2024-03-12 2024-03-12",
    "12/03/2024": "2024-03-12 2024-03-12",
    "12/25/2024": "2024-12-25 2024-12-25",
    "on 12/03": "2026-03-12 2026-03-12",
    "12.03.24": "2024-03-12 2024-03-12",
    "2024/03/15": "2024-03-15 2024-03-15",
    "in March": "2026-03-01 2026-03-31",
    "in april": "2026-04-01 2026-04-30",
    "in may": "2025-05-01 2025-05-31",
    "the month of May": "2025-05-01 2025-05-31",
    "between March and May 2024": "2024-03-01 2024-05-31",
    "between November and February 2024": "2023-11-01 2024-02-29",
    "March to May 2024": "2024-03-01 2024-05-31",
    "March–May 2024": "2024-03-01 2024-05-31",
    "from 3 to 5 May 2024": "2024-05-03 2024-05-05",
    "from March 2023 until last month": "2023-03-01 2026-03-31",
    "from 2023 to 2024": "2023-01-01 2024-12-31",
    "2023-2024": "2023-01-01 2024-12-31",
    "since March": "2026-03-01 2026-04-15",
    "since 2024": "2024-01-01 2026-04-15",
    "since Monday": "2026-04-13 2026-04-15",
    "since last summer": "2025-06-01 2026-04-15",
    "before 2022": "… 2021-12-31",
    "before March 2024": "… 2024-02-29",
    "until March 2024": "… 2024-03-31",
    "after June 2024": "2024-07-01 2026-04-15",
    "after next week": "2026-04-27 …",
    "in the past thirteen days": "2026-04-02 2026-04-15",
}  # fmt: skip
GERMAN = {
    "vor zwei Wochen": "2026-03-30 2026-04-05",
    "vor einem Jahr": "2025-01-01 2025-12-31",
    "vor ein paar Tagen": "2026-04-12 2026-04-12",
    "letzten März": "2026-03-01 2026-03-31",
    "im letzten Maerz": "2026-03-01 2026-03-31",
    "im Sommer 2023": "2023-06-01 2023-08-31",
    "im Frühjahr 2024": "2024-03-01 2024-05-31",
    "vorgestern": "2026-04-13 2026-04-13",
    "gestern Abend": "2026-04-14 2026-04-14",
    "heute": "2026-04-15 2026-04-15",
    "im August letzten Jahres": "2025-08-01 2025-08-31",
    "letztes Jahr im August": "2025-08-01 2025-08-31",
    "vor zwei Sommern": "2024-06-01 2024-08-31",
    "vorletzten Winter": "2024-12-01 2025-02-28",
    "im Sommer des vorletzten Jahres": "2024-06-01 2024-08-31",
    "KW 30 2023": "2023-07-24 2023-07-30",
    "KW30/2023": "2023-07-24 2023-07-30",
    "in KW 15": "2026-04-06 2026-04-12",
    "in der Kalenderwoche 30 von 2023": "2023-07-24 2023-07-30",
    "Anfang März": "2026-03-01 2026-03-10",
    "Mitte März 2024": "2024-03-11 2024-03-20",
    "Ende Juni": "2025-06-21 2025-06-30",
    "am 3. Mai": "2025-05-03 2025-05-03",
    "am 3.5.": "2025-05-03 2025-05-03",
    "am 3. Mai 2024": "2024-05-03 2024-05-03",
    "zwischen März und Mai 2024": "2024-03-01 2024-05-31",
    "von 2023 bis 2024": "2023-01-01 2024-12-31",
    "seit März": "2026-03-01 2026-04-15",
    "seit zwei Wochen": "2026-04-01 2026-04-15",
    "vor 2022": "… 2021-12-31",
    "vor März 2024": "… 2024-02-29",
    "nach Juni 2024": "2024-07-01 2026-04-15",
    "bis 2024": "… 2024-12-31",
    "letztes Wochenende": "2026-04-11 2026-04-12",
    "letzte Woche": "2026-04-06 2026-04-12",
    "diesen Monat": "2026-04-01 2026-04-30",
    "in den letzten drei Monaten": "2026-01-15 2026-04-15",
    "in der ersten Hälfte 2024": "2024-01-01 2024-06-30",
    "im 1. Halbjahr 2024": "2024-01-01 2024-06-30",
    "im dritten Quartal 2023": "2023-07-01 2023-09-30",
    "über Weihnachten 2023": "2023-12-24 2023-12-26",
    "an Silvester 2023": "2023-12-31 2023-12-31",
    "letzten Montag": "2026-04-13 2026-04-13",
    "am Freitag": "2026-04-10 2026-04-10",
    "im Jahr 2024": "2024-01-01 2024-12-31",
    "im Mai": "2025-05-01 2025-05-31",
    "zwei Tage vor Weihnachten 2024": "2024-12-23 2024-12-23",
}
FRENCH = {
    "l'été dernier": "2025-06-01 2025-08-31",
    "l’ete 2023": "2023-06-01 2023-08-31",
    "il y a deux ans": "2024-01-01 2024-12-31",
    "il y a sept jours": "2026-04-08 2026-04-08",
    "il y a deux étés": "2024-06-01 2024-08-31",
    "en mars 2024": "2024-03-01 2024-03-31",
    "en mars": "2026-03-01 2026-03-31",
    "avant-hier": "2026-04-13 2026-04-13",
    "hier": "2026-04-14 2026-04-14",
    "aujourd'hui": "2026-04-15 2026-04-15",
    "en août dernier": "2025-08-01 2025-08-31",
    "en août de l'année dernière": "2025-08-01 2025-08-31",
    "l'an dernier": "2025-01-01 2025-12-31",
    "l'avant-dernier hiver": "2024-12-01 2025-02-28",
    "début mars": "2026-03-01 2026-03-10",
    "mi-mars 2024": "2024-03-11 2024-03-20",
    "fin juin": "2025-06-21 2025-06-30",
    "entre mars et mai 2024": "2024-03-01 2024-05-31",
    "de 2023 à 2024": "2023-01-01 2024-12-31",
    "de mars à mai 2024": "2024-03-01 2024-05-31",
    "depuis mars": "2026-03-01 2026-04-15",
    "avant 2022": "… 2021-12-31",
    "après juin 2024": "2024-07-01 2026-04-15",
    "la semaine dernière": "2026-04-06 2026-04-12",
    "le week-end dernier": "2026-04-11 2026-04-12",
    "le mois passé": "2026-03-01 2026-03-31",
    "cette année": "2026-01-01 2026-12-31",
    "le 3 mai": "2025-05-03 2025-05-03",
    "le 1er mai 2024": "2024-05-01 2024-05-01",
    "semaine 30 de 2023": "2023-07-24 2023-07-30",
    "premier semestre 2024": "2024-01-01 2024-06-30",
    "au troisième trimestre 2023": "2023-07-01 2023-09-30",
    "à Noël 2023": "2023-12-24 2023-12-26",
    "les trois derniers mois": "2026-01-15 2026-04-15",
    "lundi dernier": "2026-04-13 2026-04-13",
}
SPANISH = {
    "el verano pasado": "2025-06-01 2025-08-31",
    "hace tres semanas": "2026-03-23 2026-03-29",
    "hace un año": "2025-01-01 2025-12-31",
    "hace dos veranos": "2024-06-01 2024-08-31",
    "en marzo de 2024": "2024-03-01 2024-03-31",
    "en marzo": "2026-03-01 2026-03-31",
    "anteayer": "2026-04-13 2026-04-13",
    "ayer": "2026-04-14 2026-04-14",
    "hoy": "2026-04-15 2026-04-15",
    "en agosto del año pasado": "2025-08-01 2025-08-31",
    "en agosto del ano pasado": "2025-08-01 2025-08-31",
    "el invierno antepasado": "2024-12-01 2025-02-28",
    "verano de 2023": "2023-06-01 2023-08-31",
    "semana 30 de 2023": "2023-07-24 2023-07-30",
    "a principios de marzo": "2026-03-01 2026-03-10",
    "a mediados de marzo de 2024": "2024-03-11 2024-03-20",
    "a finales de junio": "2025-06-21 2025-06-30",
    "entre marzo y mayo de 2024": "2024-03-01 2024-05-31",
    "de 2023 a 2024": "2023-01-01 2024-12-31",
    "desde marzo": "2026-03-01 2026-04-15",
    "desde hace dos semanas": "2026-03-30 2026-04-15",
    "antes de 2022": "… 2021-12-31",
    "después de junio de 2024": "2024-07-01 2026-04-15",
    "el 3 de mayo": "2025-05-03 2025-05-03",
    "el 3 de mayo de 2024": "2024-05-03 2024-05-03",
    "la semana pasada": "2026-04-06 2026-04-12",
    "el fin de semana pasado": "2026-04-11 2026-04-12",
    "el mes pasado": "2026-03-01 2026-03-31",
    "este año": "2026-01-01 2026-12-31",
    "las últimas dos semanas": "2026-04-01 2026-04-15",
    "los últimos tres meses": "2026-01-15 2026-04-15",
    "el lunes pasado": "2026-04-13 2026-04-13",
    "la primera mitad de 2024": "2024-01-01 2024-06-30",
    "tercer trimestre de 2023": "2023-07-01 2023-09-30",
    "la navidad de 2023": "2023-12-24 2023-12-26",
}
AROUND = {
    "what did I do {}?": ENGLISH,
    "was habe ich {} gemacht": GERMAN,
    "qu'est-ce que j'ai fait {} ?": FRENCH,
    "¿qué hice {}?": SPANISH,
}
ALL = [
    (around, phrase, *days.split())
    for around, table in AROUND.items()
    for phrase, days in table.items()
]
SOME = [phrase for table in AROUND.values() for phrase in table]


def days(span: Span | None) -> tuple[str, str]:
    assert span is not None
    first = "…" if span.first == date.min else span.first.isoformat()
    return first, "…" if span.last == date.max else span.last.isoformat()


@pytest.mark.parametrize(("around", "phrase", "first", "last"), ALL)
def test_a_phrase_means_the_same_alone_and_in_a_question(
    around: str, phrase: str, first: str, last: str
) -> None:
    assert days(find_span(phrase, TODAY)) == (first, last)
    assert days(find_span(around.format(phrase), TODAY)) == (first, last)


@pytest.mark.parametrize(("around", "phrase", "first", "last"), ALL)
def test_what_leads_to_the_time_goes_with_it(
    around: str, phrase: str, first: str, last: str
) -> None:
    question = around.format(phrase)
    span = find_span(question, TODAY)
    assert span is not None and span.phrase in question
    assert (
        without(question, span).split()
        == " ".join(around.format("").split()).replace(" ?", "?").split()
    )
    assert without(phrase, span) == ""


@pytest.mark.parametrize(
    "question",
    [
        "the 1984 novel",
        "1984 to 2001",
        "the Mars 2020 rover",
        "life on mars",
        "this may be wrong",
        "number 3 may be wrong",
        "which of the 3 may be right",
        "the second may be wrong",
        "before may I ask something",
        "march 3 miles",
        "the last march of the ents",
        "a second opinion",
        "prices fall after rain",
        "in the fall of the Roman Empire",
        "winter tyres",
        "gardening in winter",
        "what grows in the summer",
        "which birds stay before winter comes",
        "was ist hier los",
        "j'ai été malade",
        "il y a un problème",
        "hace frío en el mar",
        "vor dem Haus",
        "I am 12.5 kg",
        "version 1.2.24 of python 3.12",
        "10.0.0.1",
        "3/4 of the days",
        "24/7",
        "week 3 of the course",
        "monday meeting",
        "los lunes",
        "June Carter Cash and August Strindberg",
        "page 12 to 20",
        "one day two weeks notice",
        "the end of history",
        "first quarter results",
        "last name first",
        "31/02/2024",
        "Budget 2026",
        "room 101 in building 2024",
        "mayo sandwich",
        "which month last saw snow",
        "3rd of the 2nd",
    ],
)
def test_what_does_not_speak_of_time_names_no_span(question: str) -> None:
    assert find_span(question, TODAY) is None


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("how was work in March 2024, and who was there?", "how was work, and who was there?"),
        ("last year's budget", "budget"),
        ("notes begin 2024 in 2024", "notes begin 2024"),
        ("Yesterday I met Ann", "I met Ann"),
        ("a talk about in December 2024", "a talk about"),
        ("in 2024", ""),
    ],
)
def test_the_rest_of_a_question_is_kept(question: str, left: str) -> None:
    span = find_span(question, TODAY)
    assert span is not None
    assert without(question, span) == left


def test_a_question_that_does_not_have_the_phrase_is_left_alone() -> None:
    span = Span(date(2024, 3, 1), date(2024, 3, 31), "March 2024")
    assert without("nothing of the kind", span) == "nothing of the kind"


@pytest.mark.parametrize(
    ("today", "phrase", "first", "last"),
    [
        (date(2026, 7, 10), "two summers ago", "2024-06-01", "2024-08-31"),
        (date(2026, 7, 10), "last summer", "2025-06-01", "2025-08-31"),
        (date(2026, 7, 10), "this summer", "2026-06-01", "2026-08-31"),
        (date(2026, 1, 10), "this winter", "2025-12-01", "2026-02-28"),
        (date(2026, 1, 10), "the winter before last", "2023-12-01", "2024-02-29"),
        (date(2026, 4, 19), "last weekend", "2026-04-11", "2026-04-12"),
        (date(2026, 4, 20), "last weekend", "2026-04-18", "2026-04-19"),
        (date(2026, 12, 25), "over christmas", "2026-12-24", "2026-12-26"),
        (date(2025, 3, 1), "on 29 February", "2024-02-29", "2024-02-29"),
        (date(2026, 1, 1), "KW 53", "2020-12-28", "2021-01-03"),
        (date(2026, 3, 31), "on the 31st", "2026-03-31", "2026-03-31"),
        (date(2026, 3, 30), "on the 31st", "2026-01-31", "2026-01-31"),
    ],
)
def test_some_phrases_depend_on_the_day(today: date, phrase: str, first: str, last: str) -> None:
    assert days(find_span(phrase, today)) == (first, last)


_WORDS = sorted({word for phrase in SOME for word in phrase.split()})


@given(
    st.one_of(
        st.text(),
        st.lists(st.sampled_from(_WORDS), max_size=12).map(" ".join),
        st.lists(st.one_of(st.sampled_from(_WORDS), st.text(max_size=6)), max_size=8).map("".join),
    ),
    st.dates(),
)
def test_no_text_makes_it_fail(question: str, today: date) -> None:
    span = find_span(question, today)
    if span is not None:
        assert span.phrase and span.phrase in question
        assert span.first <= span.last
        assert len(without(question, span)) < len(question)
