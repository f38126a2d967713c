"""Times that questions speak of, seen from one day."""

from datetime import date

import pytest

from obsidian_rag.search.when import Span, find_span

TODAY = date(2026, 4, 15)  # a Wednesday

# question, first day, last day, the words that say so
SPANS = [
    ("what did I do on 2024-01-15?", "2024-01-15", "2024-01-15", "2024-01-15"),
    ("dinner on 15 January 2024", "2024-01-15", "2024-01-15", "15 January 2024"),
    ("the 15th of January 2024", "2024-01-15", "2024-01-15", "15th of January 2024"),
    ("on January 15, 2024 we met", "2024-01-15", "2024-01-15", "January 15, 2024"),
    ("Jan 3rd 2024", "2024-01-03", "2024-01-03", "Jan 3rd 2024"),
    ("2024年3月15日の日記", "2024-03-15", "2024-03-15", "2024年3月15日"),
    ("2024年3月的支出", "2024-03-01", "2024-03-31", "2024年3月"),
    ("2024年 的支出", "2024-01-01", "2024-12-31", "2024年"),
    ("2024年13月", "2024-01-01", "2024-12-31", "2024年"),
    ("spending in March 2024", "2024-03-01", "2024-03-31", "March 2024"),
    ("Feb. 2024 bills", "2024-02-01", "2024-02-29", "Feb. 2024"),
    ("Sept 2023", "2023-09-01", "2023-09-30", "Sept 2023"),
    ("notes of 2024-02", "2024-02-01", "2024-02-29", "2024-02"),
    ("revenue in Q1 2024", "2024-01-01", "2024-03-31", "Q1 2024"),
    ("q4 2023 goals", "2023-10-01", "2023-12-31", "q4 2023"),
    ("trip in summer 2023", "2023-06-01", "2023-08-31", "summer 2023"),
    ("winter of 2023", "2023-12-01", "2024-02-29", "winter of 2023"),
    ("where was I last summer", "2025-06-01", "2025-08-31", "last summer"),
    ("how was last March", "2026-03-01", "2026-03-31", "last March"),
    ("last May", "2025-05-01", "2025-05-31", "last May"),
    ("last April", "2025-04-01", "2025-04-30", "last April"),
    ("this April", "2026-04-01", "2026-04-30", "this April"),
    ("Last April", "2025-04-01", "2025-04-30", "Last April"),
    ("how was my mental health in 2024?", "2024-01-01", "2024-12-31", "in 2024"),
    ("during 1999", "1999-01-01", "1999-12-31", "during 1999"),
    ("what did I eat yesterday", "2026-04-14", "2026-04-14", "yesterday"),
    ("Today's plan", "2026-04-15", "2026-04-15", "Today"),
    ("meetings last week", "2026-04-06", "2026-04-12", "last week"),
    ("meetings this week", "2026-04-13", "2026-04-19", "this week"),
    ("LAST WEEK", "2026-04-06", "2026-04-12", "LAST WEEK"),
    ("last month", "2026-03-01", "2026-03-31", "last month"),
    ("this month", "2026-04-01", "2026-04-30", "this month"),
    ("last year", "2025-01-01", "2025-12-31", "last year"),
    ("3 days ago", "2026-04-12", "2026-04-12", "3 days ago"),
    ("a week ago", "2026-04-06", "2026-04-12", "a week ago"),
    ("two weeks ago", "2026-03-30", "2026-04-05", "two weeks ago"),
    ("5 months ago", "2025-11-01", "2025-11-30", "5 months ago"),
    ("two years ago", "2024-01-01", "2024-12-31", "two years ago"),
    ("the last 7 days", "2026-04-08", "2026-04-15", "last 7 days"),
    ("past couple of weeks", "2026-04-01", "2026-04-15", "past couple of weeks"),
    ("what happened last Monday", "2026-04-13", "2026-04-13", "last Monday"),
    ("last wednesday", "2026-04-08", "2026-04-08", "last wednesday"),
    ("on Friday", "2026-04-10", "2026-04-10", "on Friday"),
    ("yesterday or in 2024", "2026-04-14", "2026-04-14", "yesterday"),
    ("the last week of May 2023", "2023-05-25", "2023-05-31", "last week of May 2023"),
    ("the last week in March", "2026-03-25", "2026-03-31", "last week in March"),
    ("the last week of last month", "2026-03-25", "2026-03-31", "last week of last month"),
    ("the first weekend of this month", "2026-04-04", "2026-04-05", "first weekend of this month"),
    ("the weekend of 3 May 2025", "2025-05-03", "2025-05-04", "weekend of 3 May 2025"),
    ("half a year ago", "2025-10-01", "2025-10-31", "half a year ago"),
    ("March '24", "2024-03-01", "2024-03-31", "March '24"),
    ("in the summer of ’69", "1969-06-01", "1969-08-31", "summer of ’69"),
    ("rent in 03/2024", "2024-03-01", "2024-03-31", "in 03/2024"),
    ("03/2024", "2024-03-01", "2024-03-31", "03/2024"),
    ("the first week of May 2023", "2023-05-01", "2023-05-07", "first week of May 2023"),
    ("the 2nd week of May 2023", "2023-05-08", "2023-05-14", "2nd week of May 2023"),
    ("third weekend in June 2024", "2024-06-15", "2024-06-16", "third weekend in June 2024"),
    ("last weekend of June 2024", "2024-06-29", "2024-06-30", "last weekend of June 2024"),
    ("the fourth week of May 2023", "2023-05-22", "2023-05-28", "fourth week of May 2023"),
    ("this week in May", "2026-04-13", "2026-04-19", "this week"),
    ("last month in May 2023", "2026-03-01", "2026-03-31", "last month"),
    ("the Sunday before May 3, 2023", "2023-04-30", "2023-04-30", "Sunday before May 3, 2023"),
    ("Wednesday before May 3, 2023", "2023-04-26", "2023-04-26", "Wednesday before May 3, 2023"),
    ("on Monday after 3 May 2023", "2023-05-08", "2023-05-08", "on Monday after 3 May 2023"),
    ("on Friday before the party", "2026-04-10", "2026-04-10", "on Friday"),
    (
        "am Sonntag vor dem 3. Mai 2023",
        "2023-04-30",
        "2023-04-30",
        "am Sonntag vor dem 3. Mai 2023",
    ),
    ("die letzte Woche im Mai 2023", "2023-05-25", "2023-05-31", "letzte Woche im Mai 2023"),
]
# Ranges that leave out a year or a month, and half years.
RANGES = [
    ("between May 11 and May 15 2023", "2023-05-11", "2023-05-15"),
    ("from 3 March to 9 March 2027", "2027-03-03", "2027-03-09"),
    ("between 28 December and 3 January 2024", "2023-12-28", "2024-01-03"),
    ("between March 3 and May 9", "2025-03-03", "2025-05-09"),
    ("zwischen dem 3. März und dem 9. März 2024", "2024-03-03", "2024-03-09"),
    ("entre le 3 mars et le 9 mars 2024", "2024-03-03", "2024-03-09"),
    ("entre el 3 de marzo y el 9 de marzo de 2024", "2024-03-03", "2024-03-09"),
    ("between August 11 and 15", "2025-08-11", "2025-08-15"),
    ("between August 11 and 15, 2023", "2023-08-11", "2023-08-15"),
    ("from March 3 to 9", "2026-03-03", "2026-03-09"),
    ("March 3 – 9", "2026-03-03", "2026-03-09"),
    ("March 3-9", "2026-03-03", "2026-03-09"),
    ("3-9 March 2024", "2024-03-03", "2024-03-09"),
    ("du 3 au 9 mars", "2026-03-03", "2026-03-09"),
    ("vor einem halben Jahr", "2025-10-01", "2025-10-31"),
    ("hace medio año", "2025-10-01", "2025-10-31"),
]


@pytest.mark.parametrize(("phrase", "first", "last"), RANGES)
def test_what_a_range_leaves_out_is_that_of_its_other_end(
    phrase: str, first: str, last: str
) -> None:
    span = find_span(phrase, TODAY)
    assert span == Span(date.fromisoformat(first), date.fromisoformat(last), phrase)


def test_a_range_that_begins_on_no_day_is_none() -> None:
    span = find_span("between 29 February and 3 March 2023", TODAY)
    assert span is not None and span.phrase != "between 29 February and 3 March 2023"


@pytest.mark.parametrize(("question", "first", "last", "phrase"), SPANS)
def test_a_phrase_names_a_span_of_days(question: str, first: str, last: str, phrase: str) -> None:
    expected = Span(date.fromisoformat(first), date.fromisoformat(last), phrase)
    assert find_span(question, TODAY) == expected


@pytest.mark.parametrize(
    "question",
    [
        "",
        "1984",
        "the book 1984 by Orwell",
        "blade runner 2049",
        "room 2024",
        "may I have it",
        "march to the sea",
        "the last supper",
        "last minute ideas",
        "2024-02-31",
        "2024-13-01",
        "2024-02-30",
        "in 1884",
        "summer reading",
        "monday meeting template",
        "2024-03-15T10:00:00",
        "in 2024-25 season",
        "pages 3-9",
        "invoice 03/2024",
        "route '66",
    ],
)
def test_what_does_not_speak_of_time_names_no_span(question: str) -> None:
    assert find_span(question, TODAY) is None


@pytest.mark.parametrize(
    ("today", "question", "first", "last"),
    [
        (date(2026, 1, 10), "last month", "2025-12-01", "2025-12-31"),
        (date(2026, 1, 1), "yesterday", "2025-12-31", "2025-12-31"),
        (date(2026, 1, 1), "last week", "2025-12-22", "2025-12-28"),
        (date(2024, 3, 31), "1 month ago", "2024-02-01", "2024-02-29"),
        (date(2026, 1, 15), "13 months ago", "2024-12-01", "2024-12-31"),
        (date(2026, 12, 5), "last winter", "2025-12-01", "2026-02-28"),
    ],
)
def test_spans_cross_the_ends_of_months_and_years(
    today: date, question: str, first: str, last: str
) -> None:
    span = find_span(question, today)
    assert span is not None
    assert (span.first.isoformat(), span.last.isoformat()) == (first, last)


@pytest.mark.parametrize(
    "question",
    ["Aprıl 2024", "ſeptember 2024", "last frıday", "wınter 2023", "sıx days ago", "laſt Auguſt"],
)
def test_letters_that_only_resemble_ours_are_no_failure(question: str) -> None:
    """Without regard to case, a pattern's `i` and `s` also match Turkish ı and the long s."""
    find_span(question, TODAY)


@pytest.mark.parametrize("question", ["999 years ago", "last 999 years", "999 months ago"])
def test_a_long_way_back_is_still_a_span(question: str) -> None:
    assert find_span(question, TODAY) is not None
