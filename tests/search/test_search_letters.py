"""Letters by hand: groups, BM25 over words and groups, and the words that nobody has."""

import math

import pytest

from obsidian_rag.search.letters import (
    blank_signs,
    group_counts,
    letter_groups,
    letter_scores,
    word_counts,
)
from obsidian_rag.search.words import folded, question_words


def texts_of(*texts: str) -> dict[int, str]:
    return {number: blank_signs(folded(text)) for number, text in enumerate(texts, start=1)}


def test_groups_are_of_four_letters_and_the_ends_of_a_word_count() -> None:
    assert letter_groups(("kette", "a")) == (" ket", "kett", "ette", "tte ", " a ")
    assert letter_groups(("京都",)) == ("京都",)
    assert letter_groups(()) == ()


def test_a_long_question_has_not_more_groups_than_can_be_looked_for() -> None:
    assert len(letter_groups([f"{number:08}" for number in range(500)])) == 160


def test_groups_are_counted_as_if_each_were_looked_for() -> None:
    beyond = "\U0001d4b3\U0001d4b4"
    texts = (
        "die Kette, Ketten und Kettenhemden",
        "",
        "京都で京都駅へ",
        "протекает крыша",
        f"the letters {beyond} twice: {beyond}",
        "ซ่อมหลังคาบ้าน",
        "a lone \ud800",
    )
    groups = letter_groups(("kette", "a", "京都", "крыша", beyond, "หลังคา"))
    plain = list(texts_of(*texts).values())
    assert group_counts(groups, plain).tolist() == [[*map(text.count, groups)] for text in plain]
    assert group_counts((" ket", "ette"), [" a ", " kette ", " ket "]).tolist() == [
        [0, 0],
        [1, 1],
        [1, 0],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a-b, c_d", " a b  c_d "),
        ("दिल्ली, भारत", " दिल्ली भारत "),
        ("", "  "),
    ],
)
def test_all_that_is_not_of_a_word_is_a_space(text: str, expected: str) -> None:
    assert blank_signs(text) == expected


def test_words_are_counted_whole_and_in_every_form() -> None:
    texts = texts_of("Invoices: an invoice, invoiced", "the voice of our neighbours", "")
    assert word_counts(("invoice", "ours"), texts) == {1: [3, 0], 2: [0, 1], 3: [0, 0]}
    assert word_counts(("ours",), texts_of("neighbours")) == {1: [0]}


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("крышу", "протекает крыша"),
        ("كتاب", "قرأت الكتاب"),
        ("किताब", "दो किताबें"),
        ("열쇠는", "열쇠를 찾다"),
        ("京都", "京都で食べる"),
        ("หลังคา", "ซ่อมหลังคาบ้าน"),
        ("cities", "a city"),
    ],
)
def test_words_are_counted_in_any_script(question: str, text: str) -> None:
    words = question_words(question)
    assert all(word_counts(words, texts_of(text))[1])


def test_scores_are_bm25_of_words_and_groups() -> None:
    texts = {1: " ab ", 2: " cd "}
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    once = 2.2 / (1 + 1.2)
    assert letter_scores(("ab",), texts) == {1: pytest.approx(4 * idf * once), 2: 0.0}


def test_letters_in_a_longer_text_count_less() -> None:
    scores = letter_scores(("abc",), {1: " abc ", 2: f" abc {'z' * 97} "})
    assert scores[1] > scores[2] > 0


def test_other_endings_compounds_and_slips_score_by_their_letters() -> None:
    texts = texts_of("Steuererklärung abgeben", "evlerinden geliyor", "nothing of it")
    assert letter_scores(("steuer",), texts)[1] > letter_scores(("steuer",), texts)[3] == 0.0
    assert letter_scores(("evlerimiz",), texts)[2] > 0
    assert letter_scores(("steurerklarung",), texts)[1] > 0


def test_no_letters_or_no_texts_score_nothing() -> None:
    assert letter_scores((), {1: " abc "}) == {}
    assert letter_scores(("abc",), {}) == {}
    assert letter_scores(("abc",), {1: "  "}) == {1: 0.0}


def test_counts_that_are_known_need_not_be_made_again() -> None:
    texts = texts_of("rain garden", "rain")
    counts = word_counts(("rain", "garden"), texts)
    assert letter_scores(("rain", "garden"), texts, counts) == letter_scores(
        ("rain", "garden"), texts
    )
