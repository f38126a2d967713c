"""Measures of rankings, against values computed by hand."""

from dataclasses import astuple
from math import log2

import pytest

from obsidian_rag.search.evaluation import (
    Measures,
    hit,
    mean,
    measure,
    mildest_threshold,
    ndcg,
    recall,
    reciprocal_rank,
    share_below,
)

ONE = {"a.md": 1.0}
GRADED = {"a.md": 3.0, "b.md": 2.0, "c.md": 1.0}


@pytest.mark.parametrize(
    ("ranking", "expected"),
    [
        (["a.md"], 1.0),
        (["x.md", "a.md"], 1 / log2(3)),  # 0.6309
        (["x.md", "y.md", "a.md"], 0.5),
        (["v", "w", "x", "y", "a.md"], 1 / log2(6)),  # 0.3869
        (["u", "v", "w", "x", "y", "a.md"], 0.0),
        ([], 0.0),
    ],
)
def test_ndcg_of_one_relevant_note_is_the_discount_of_its_rank(
    ranking: list[str], expected: float
) -> None:
    assert ndcg(ranking, ONE, 5) == pytest.approx(expected)


def test_ndcg_weighs_grades_by_their_rank() -> None:
    # Ideal: 3/1 + 2/1.58496 + 1/2 = 4.76186; this one: 2/1 + 0 + 3/2 = 3.5.
    assert ndcg(["b.md", "x.md", "a.md"], GRADED, 10) == pytest.approx(0.735007, abs=1e-6)
    assert ndcg(["a.md", "b.md", "c.md"], GRADED, 10) == pytest.approx(1.0)


def test_ndcg_asks_for_no_more_than_fits_into_the_depth() -> None:
    assert ndcg(["a.md", "b.md"], GRADED, 2) == pytest.approx(1.0)
    assert ndcg(["c.md"], GRADED, 1) == pytest.approx(1 / 3)


def test_reciprocal_rank_counts_the_first_relevant_note_only() -> None:
    assert reciprocal_rank(["x.md", "y.md", "b.md", "a.md"], GRADED) == pytest.approx(1 / 3)
    assert reciprocal_rank(["x.md"], GRADED) == 0


def test_a_hit_is_a_relevant_note_within_the_depth() -> None:
    assert hit(["x.md", "a.md"], ONE, 1) == 0
    assert hit(["x.md", "a.md"], ONE, 2) == 1


def test_recall_is_the_share_of_relevant_notes_found() -> None:
    assert recall(["a.md", "x.md", "c.md"], GRADED, 10) == pytest.approx(2 / 3)
    assert recall(["a.md", "x.md", "c.md"], GRADED, 2) == pytest.approx(1 / 3)


def test_a_note_of_grade_0_is_not_relevant() -> None:
    judged = {"a.md": 1.0, "wrong.md": 0.0}
    assert astuple(measure(["wrong.md", "a.md"], judged)) == pytest.approx(
        (1 / log2(3), 1 / log2(3), 0.5, 0.0, 1.0, 1.0, 1.0)
    )


def test_nothing_relevant_measures_nothing() -> None:
    assert measure(["a.md"], {}) == Measures(0, 0, 0, 0, 0, 0, 0)


def test_the_mean_is_taken_of_each_measure() -> None:
    best, worst = measure(["a.md"], ONE), measure(["x.md"], ONE)
    assert mean([best, worst]) == Measures(0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
    assert mean([]) == Measures(0, 0, 0, 0, 0, 0, 0)


def test_a_threshold_flags_no_more_of_the_answerable_than_allowed() -> None:
    confidences = [n / 100 for n in range(40)]
    threshold = mildest_threshold(confidences, 0.05)
    assert threshold == 0.02
    assert share_below(confidences, threshold) == 0.05
    assert share_below([0.01, 0.015, 0.3, 0.4], threshold) == 0.5
    assert mildest_threshold([0.2, 0.2, 0.9], 0.05) == 0.2


def test_without_questions_there_is_no_threshold() -> None:
    assert mildest_threshold([], 0.05) == 0
    assert share_below([], 0.5) == 0
