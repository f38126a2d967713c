"""Scores by hand: normalising, summing, coverage, letters and the balance of signals."""

import math

import pytest

from obsidian_rag.search.rank import (
    VECTORS_ONLY,
    WORDS_ONLY,
    coverage,
    covered,
    hybrid_weights,
    letter_scores,
    name_scores,
    normalised,
)
from obsidian_rag.search.words import folded, letter_groups, matched, question_words, word_query
from obsidian_rag.store import summed


def test_normalised_scores_span_nought_to_one() -> None:
    assert normalised({1: 2.0, 2: 4.0, 3: 3.0}) == {1: 0.0, 2: 1.0, 3: 0.5}


def test_a_floor_keeps_the_least_above_nought() -> None:
    assert normalised({1: 2.0, 2: 4.0}, floor=0.0) == {1: 0.5, 2: 1.0}


def test_a_score_below_the_floor_counts_nothing() -> None:
    assert normalised({1: -1.0, 2: 4.0}, floor=0.0) == {1: 0.0, 2: 1.0}


@pytest.mark.parametrize(
    ("scores", "expected"),
    [({}, {}), ({7: 3.0}, {7: 1.0}), ({1: 2.0, 2: 2.0}, {1: 1.0, 2: 1.0})],
)
def test_scores_that_do_not_differ_are_all_best(
    scores: dict[int, float], expected: dict[int, float]
) -> None:
    assert normalised(scores) == expected


def test_sums_are_weighted_and_a_missing_score_is_nothing() -> None:
    parts = [(1.0, {1: 2.0, 2: 1.0}), (0.5, {2: 4.0, 3: 6.0})]
    assert summed(parts) == {1: 2.0, 2: 3.0, 3: 3.0}
    assert summed([]) == {}


def test_coverage_counts_rare_words_more() -> None:
    texts = {1: "rain garden", 2: "rain barrel", 3: "rain coat", 4: "sun"}
    common = math.log(1 + (4 - 3 + 0.5) / (3 + 0.5))
    rare = math.log(1 + (4 - 1 + 0.5) / (1 + 0.5))
    found = coverage(["rain", "garden"], texts)
    assert found[1] == pytest.approx(1.0)
    assert found[2] == found[3] == pytest.approx(common / (common + rare))
    assert found[4] == 0.0


def test_coverage_without_words_is_nothing() -> None:
    assert coverage([], {1: "rain"}) == {1: 0.0}
    assert coverage(["rain"], {}) == {}


def test_word_scores_are_halved_where_nothing_is_covered() -> None:
    assert covered({1: 4.0, 2: 4.0, 3: 4.0}, {1: 1.0, 2: 0.5}) == {1: 4.0, 2: 3.0, 3: 2.0}


def test_letter_scores_are_bm25_of_letter_groups() -> None:
    texts = {1: "abcabc", 2: "abcxyz", 3: "uvwxyz"}
    rarity = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    twice = rarity * 2 * 2.2 / (2 + 1.2)
    once = rarity * 1 * 2.2 / (1 + 1.2)
    assert letter_scores(("abc",), texts) == {
        1: pytest.approx(twice),
        2: pytest.approx(once),
        3: 0.0,
    }


def test_letters_in_a_longer_text_count_less() -> None:
    scores = letter_scores(("abc",), {1: "abc", 2: "abc" + "z" * 97})
    rarity = math.log(1 + (2 - 2 + 0.5) / (2 + 0.5))
    mean = (3 + 100) / 2
    assert scores[1] == pytest.approx(rarity * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 3 / mean)))
    assert scores[2] == pytest.approx(rarity * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 100 / mean)))
    assert scores[1] > scores[2]


def test_no_letters_or_no_texts_score_nothing() -> None:
    assert letter_scores((), {1: "abc"}) == {}
    assert letter_scores(("abc",), {}) == {}
    assert letter_scores(("abc",), {1: ""}) == {1: 0.0}


@pytest.mark.parametrize("provider", ["builtin", "hash", "ollama", "onnx", "unheard of"])
@pytest.mark.parametrize(
    "similarities", [{}, {1: 0.5}, dict.fromkeys(range(9), 0.5), {n: 1 / (n + 1) for n in range(9)}]
)
def test_weights_are_shares_of_one(provider: str, similarities: dict[int, float]) -> None:
    weights = hybrid_weights(provider, similarities, "a question")
    parts = (weights.words, weights.vector, weights.letters)
    assert sum(parts) == pytest.approx(1.0)
    assert min(parts) >= 0


def test_vectors_weigh_by_how_far_the_nearest_stands_out() -> None:
    peak = {0: 1.0, 1: 0.2, 2: 0.2, 3: 0.2, 4: 0.2, 5: 0.0}
    cloud = {0: 1.0, 1: 0.99, 2: 0.99, 3: 0.99, 4: 0.99, 5: 0.0}
    all_of_it = hybrid_weights(
        "ollama", {**dict.fromkeys(range(1, 9), 0.0), 0: 1.0}, "a question"
    ).vector
    least = hybrid_weights("ollama", {}, "a question").vector
    # The fifth nearest is 0.8 of the whole range behind in the peak, 0.01 in the cloud.
    step = all_of_it - least
    assert step > 0
    assert hybrid_weights("ollama", peak, "a question").vector == pytest.approx(least + 0.8 * step)
    assert hybrid_weights("ollama", cloud, "a question").vector == pytest.approx(
        least + 0.01 * step
    )


def test_weaker_embedders_weigh_less() -> None:
    similarities = {n: 1 / (n + 1) for n in range(9)}
    hashed, builtin, transformer = (
        hybrid_weights(name, similarities, "a question").vector
        for name in ("hash", "builtin", "ollama")
    )
    assert hashed < builtin < transformer < 0.6


def test_single_signals_take_everything() -> None:
    assert (VECTORS_ONLY.words, VECTORS_ONLY.vector, VECTORS_ONLY.letters) == (0.0, 1.0, 0.0)
    assert WORDS_ONLY.vector == 0.0
    assert WORDS_ONLY.words + WORDS_ONLY.letters == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café", "cafe"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ΣΊΣΥΦΟΣ", "σισυφοσ"),
        ("Ёлка", "елка"),
        ("ﬁne", "fine"),
        ("Ｆｕｌｌ", "full"),
        ("한국어", "한국어"),
    ],
)
def test_folding_forgets_case_accents_and_width(text: str, expected: str) -> None:
    assert folded(text) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How much do I owe Sreenivas?", ("much", "owe", "sreenivas")),
        ("owe OWE owe", ("owe",)),
        ("who is it?", ("who", "is", "it")),
        ("", ()),
        ("?!", ()),
    ],
)
def test_the_words_of_a_question_are_those_that_tell(
    question: str, expected: tuple[str, ...]
) -> None:
    assert question_words(question) == expected


def test_neighbouring_words_are_looked_up_as_one_too() -> None:
    words = word_query("my mental health").split()
    assert {"mental", "health", "mentalhealth"} <= set(words)
    assert "my" not in words


def test_letter_groups_are_of_three_within_words() -> None:
    assert letter_groups(("kette", "ab")) == ("ket", "ett", "tte", "ab")
    assert letter_groups(()) == ()


def test_words_match_in_other_forms() -> None:
    assert matched(("chains", "clean", "oil"), "cleaning a chain") == ("chains", "clean")


def test_the_builtin_embedder_is_not_asked_about_scripts_it_cannot_read() -> None:
    peak = {0: 0.9, **dict.fromkeys(range(1, 9), 0.1)}
    assert hybrid_weights("builtin", peak, "京都の食べ物").vector == 0
    assert hybrid_weights("builtin", peak, "Kyoto food").vector > 0
    assert hybrid_weights("ollama", peak, "京都の食べ物").vector > 0


def test_a_question_that_is_just_a_name_scores_for_it_and_a_longer_one_does_not() -> None:
    names = {1: "rain garden\nplants", 2: "rain barrel and rain garden plans", 3: "boiler"}
    scores = name_scores(("rain", "garden"), names)
    assert scores[1] == 1.0
    assert scores[2] < 0.5
    assert scores[3] == 0.0
    asked = ("which", "plants", "like", "wet", "feet", "rain", "garden")
    assert name_scores(asked, names)[1] == 0.0
