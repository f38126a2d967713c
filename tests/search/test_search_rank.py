"""Scores by hand: normalising, coverage, names, letters, and how the signals are put together."""

import pytest
from tests.search.test_search_passages import row as row_of

from obsidian_rag.search.keywords import Keywords
from obsidian_rag.search.rank import (
    MEANING,
    NO_VECTORS,
    WEAK,
    Case,
    Found,
    Ranking,
    balance_of,
    normalise,
    rank,
)
from obsidian_rag.search.words import root
from obsidian_rag.store import FoundRow, summed


def row(text: str, path: str, title: str = "Untitled") -> FoundRow:
    return row_of(title, 0, text, source_file=path)


ROWS = {
    1: row("rain garden plants", path="A.md"),
    2: row("a barrel for the rain", path="B.md"),
    3: row("the boiler is loud", path="C.md"),
}


def case(*words: str, vectors: bool = True, **options: object) -> Case:
    keywords = Keywords.of(words, 100, dict.fromkeys(words, 3))
    balance = MEANING if vectors else NO_VECTORS
    return Case(keywords, words, balance, **options)  # type: ignore[arg-type]


def order(ranking: Ranking) -> list[int]:
    return [number for number, _, _ in ranking.rows]


def test_normalised_scores_span_nought_to_one() -> None:
    assert normalise({1: 2.0, 2: 4.0, 3: 3.0}) == {1: 0.0, 2: 1.0, 3: 0.5}
    assert normalise({}) == {}
    assert normalise({7: 3.0}) == {7: 1.0}


def test_scores_that_do_not_differ_tell_nothing() -> None:
    assert normalise({1: 2.0, 2: 2.0}) == {1: 0.0, 2: 0.0}
    assert normalise({1: 0.0}) == {1: 0.0}


def test_sums_are_weighted_and_a_missing_score_is_nothing() -> None:
    parts = [(1.0, {1: 2.0, 2: 1.0}), (0.5, {2: 4.0, 3: 6.0})]
    assert summed(parts) == {1: 2.0, 2: 3.0, 3: 3.0}
    assert summed([]) == {}


def test_a_rare_word_is_more_of_a_question() -> None:
    keywords = Keywords.of(("rain", "garden"), 100, {"rain": 50, "garden": 1})
    assert keywords.share({root("garden")}) > 0.8
    assert keywords.share({"rain", root("garden")}) == pytest.approx(1.0)
    assert keywords.share({"rain"}) == pytest.approx(1 - keywords.share({root("garden")}))
    assert keywords.share(set()) == 0


def test_a_question_is_like_a_name_that_has_all_its_words_and_no_others() -> None:
    keywords = Keywords.of(("rain", "garden"), 100, {"rain": 5, "garden": 5})
    assert keywords.likeness("The rain gardens") == pytest.approx(1.0)
    assert keywords.likeness("Rain garden plants and paths") == pytest.approx(0.5)
    assert keywords.likeness("Rain vs. garden") == pytest.approx(1.0)
    assert keywords.likeness("Rain") == pytest.approx(0.5)
    assert keywords.likeness("Boiler") == 0
    assert keywords.likeness("") == 0


def test_the_parts_of_a_word_are_not_the_word() -> None:
    keywords = Keywords.of(("ours",), 100, {"ours": 2})
    ranking = rank(
        Case(keywords, ("ours",), NO_VECTORS),
        {1: row("the neighbours", path="A.md"), 2: row("this is ours", path="B.md")},
        Found({"text": {1: 1.0, 2: 1.0}}),
    )
    assert order(ranking) == [2, 1]


def test_what_a_passage_leaves_out_costs_it() -> None:
    found = Found({"text": {1: 4.0, 2: 4.0}})
    assert order(rank(case("rain", "garden", vectors=False), ROWS, found))[:2] == [1, 2]


FILLING = "and many other words stand between the one and the other of these two here " * 2


def test_words_count_more_where_they_stand_together() -> None:
    apart = row(f"rain fell {FILLING} garden", path="A.md")
    near = row(f"{FILLING} rain in the garden", path="B.md")
    found = Found({"text": {1: 4.0, 2: 4.0}})
    asked = case("rain", "garden", vectors=False, leave_out=frozenset({"letters"}))
    ranking = rank(asked, {1: apart, 2: near}, found)
    assert order(ranking) == [2, 1]
    assert ranking.rows[0][1] > 1.5 * ranking.rows[1][1]


def test_what_a_passage_is_named_goes_for_every_place_in_it() -> None:
    keywords = Keywords.of(("rain", "garden"), 100, {"rain": 5, "garden": 5})
    rain, garden = "rain", root("garden")
    assert keywords.share_together((), [(0, rain), (500, garden)]) == pytest.approx(0.5)
    assert keywords.share_together({rain}, [(0, rain), (500, garden)]) == pytest.approx(1.0)
    assert keywords.share_together((), [(0, rain), (450, rain), (500, garden)]) == pytest.approx(
        1.0
    )
    assert keywords.share_together((), []) == 0


def test_of_other_languages_what_seems_to_be_missing_costs_half() -> None:
    rows = {1: row("Regen im Garten", path="A.md"), 2: row("der Regen", path="B.md")}
    found = Found({"text": {1: 4.0, 2: 4.0}})
    shares = {
        is_english: {
            number: parts["text"]
            for number, _, parts in rank(
                case("regen", "garten", vectors=False, is_english=is_english), rows, found
            ).rows
        }
        for is_english in (True, False)
    }
    assert shares[True][2] / shares[True][1] == pytest.approx(0.5)
    assert shares[False][2] / shares[False][1] == pytest.approx(0.75)


def test_letters_count_more_of_other_languages() -> None:
    found = Found({"text": {1: 4.0, 2: 1.0}})
    by_letters = [
        rank(case("rain", "garden", vectors=False, is_english=flag), ROWS, found).rows[0][2]
        for flag in (True, False)
    ]
    assert by_letters[0]["letters"] == pytest.approx(by_letters[0]["text"])
    assert by_letters[1]["letters"] > 2 * by_letters[1]["text"]


def test_where_words_fail_the_vectors_decide() -> None:
    found = Found({"text": {2: 4.0}}, meaning={1: 0.1, 2: 0.1, 3: 0.6})
    assert order(rank(case("noise", "heating"), ROWS, found))[0] == 3
    assert MEANING.weight(0.0) > 0.8 > 0.5 > MEANING.weight(1.0)


def test_where_words_say_it_all_the_words_decide() -> None:
    found = Found({"text": {1: 4.0, 2: 1.0}}, meaning={1: 0.30, 2: 0.1, 3: 0.35})
    assert order(rank(case("rain", "garden"), ROWS, found))[0] == 1


def test_a_passage_without_a_meaning_vector_counts_by_its_static_one() -> None:
    found = Found(static={1: 0.1, 2: 0.2, 3: 0.9}, meaning={1: 0.2, 2: 0.3})
    ranking = rank(case("noise"), ROWS, found)
    assert order(ranking)[0] == 3
    assert ranking.rows[0][2]["meaning"] > 0


@pytest.mark.parametrize("left_out", ["text", "letters", "title", "static", "meaning", "date"])
def test_what_is_left_out_has_no_share(left_out: str) -> None:
    found = Found({"text": {1: 4.0}}, {1: 0.9, 2: 0.1}, {1: 0.9, 2: 0.1}, {1: 1.0})
    rows = {**ROWS, 1: row("rain garden plants", path="rain.md", title="Rain")}
    whole = rank(case("rain"), rows, found)
    less = rank(case("rain", leave_out=frozenset({left_out})), rows, found)
    assert left_out in whole.rows[0][2]
    assert left_out not in less.rows[0][2]


def test_the_shares_add_up_to_the_score_and_the_best_score_is_the_confidence() -> None:
    found = Found({"text": {1: 4.0, 2: 2.0}}, {1: 0.3, 2: 0.2, 3: 0.1}, {1: 0.5, 3: 0.4})
    ranking = rank(case("rain", "garden"), ROWS, found)
    assert ranking.rows[0][1] == pytest.approx(ranking.confidence)
    for _, score, shares in ranking.rows:
        assert sum(shares.values()) == pytest.approx(score)
        assert 0 <= score <= 1


def test_nonsense_is_weak_and_a_plain_answer_is_not() -> None:
    nonsense = rank(case("qwxzv"), ROWS, Found(meaning={1: 0.05, 2: 0.04, 3: 0.02}))
    answer = rank(case("rain", "garden"), ROWS, Found({"text": {1: 4.0}}, meaning={1: 0.5, 2: 0.2}))
    assert nonsense.confidence < 0.1 < WEAK < 0.9 < answer.confidence
    assert rank(case("rain"), {}, Found()).confidence == 0


def test_an_answer_is_sure_when_one_passage_has_the_words_and_the_meaning() -> None:
    words = {"text": {1: 4.0}}
    one = rank(case("rain", "garden"), ROWS, Found(words, meaning={1: 0.4, 3: 0.0}))
    two = rank(case("rain", "garden"), ROWS, Found(words, meaning={1: 0.0, 3: 0.4}))
    assert one.confidence > two.confidence


def test_one_signal_alone_can_rank() -> None:
    found = Found({"text": {1: 4.0}}, static={1: 0.2, 2: 0.9})
    ranking = rank(case("rain", is_vectors_only=True), ROWS, found)
    assert order(ranking)[0] == 2
    assert ranking.rows[0][2].keys() == {"static"}


def test_weaker_embedders_weigh_less() -> None:
    hashed, builtin, transformer = map(balance_of, ("hash", "builtin", "ollama"))
    for coverage in (0.0, 0.5, 1.0):
        weights = [one.weight(coverage) for one in (hashed, builtin, transformer)]
        assert weights == sorted(weights)
        assert weights[0] >= 0
        assert weights[-1] < 1


def test_rows_are_in_one_order_whatever_order_they_come_in() -> None:
    def ranked(rows: dict[int, FoundRow]) -> list[int]:
        return order(rank(case("sun"), rows, Found()))

    assert ranked(ROWS) == ranked(dict(reversed(ROWS.items())))


def test_few_meaning_vectors_do_not_overrule_what_all_passages_have() -> None:
    found = Found(static={1: 0.1, 2: 0.2, 3: 0.9}, meaning={1: 0.2, 2: 0.1})
    few = case("quiet", meaning_share=0.05)
    assert order(rank(few, ROWS, found))[0] == 3
    all_of_them = Found(static=found.static, meaning={1: 0.9, 2: 0.1, 3: 0.2})
    assert order(rank(case("quiet"), ROWS, all_of_them))[0] == 1


def test_a_balance_goes_over_into_another_as_vectors_are_added() -> None:
    static = balance_of("builtin")
    assert MEANING.between(static, 1.0) == MEANING
    assert MEANING.between(static, 0.0) == static
    half = MEANING.between(static, 0.5)
    assert static.always < half.always < MEANING.always
