"""One score out of all signals: normalised, weighed, cut off, in order; the seed's to the digit."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.relations.related_vault import DEFAULT, SEED, RelatedVault, indexed, slots
from tests.relations.seed_scoring import SeedNote, seed_related

from obsidian_rag.config import RelationsSettings
from obsidian_rag.relations.score import (
    DEFAULT_WEIGHTS,
    SEED_WEIGHTS,
    is_hiding,
    related,
    seed_scale,
    weights_of,
)
from obsidian_rag.relations.signals import Signal, note_source, text_source

FEW = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# Made-up words, which no stemmer changes.
WORDS = ("zuv", "kof", "mip", "tiq", "bax", "日本")
TAGS = ("x", "y", "z")


def chosen(base: RelationsSettings = DEFAULT, **values: object) -> RelationsSettings:
    return RelationsSettings.model_validate(base.model_dump() | values)


def scaled(*scores: float) -> list[float]:
    found: list[float] = seed_scale(np.array(scores)).tolist()
    return found


def test_scores_above_zero_are_brought_between_zero_and_one() -> None:
    assert scaled(0, 2, 4, 3) == [0, 0, 1, 0.5]


def test_scores_that_are_all_equal_become_one_half() -> None:
    assert scaled(3, 0, 3) == [0.5, 0, 0.5]
    assert scaled(7) == [0.5]


def test_no_scores_stay_none() -> None:
    assert scaled(0, 0) == [0, 0]
    assert scaled() == []


def test_the_seeds_weights() -> None:
    assert weights_of(SEED) == SEED_WEIGHTS
    assert [*SEED_WEIGHTS.values()] == [0.40, 0.20, 0.20, 0.20]


def test_our_weights_are_of_eight_signals_and_sum_to_one() -> None:
    assert weights_of(DEFAULT) == DEFAULT_WEIGHTS
    assert set(DEFAULT_WEIGHTS) == set(Signal)
    assert sum(DEFAULT_WEIGHTS.values()) == pytest.approx(1)


def test_a_users_weight_goes_before_the_profiles_and_zero_switches_off() -> None:
    weights = weights_of(chosen(SEED, bm25_weight=0.9, graph_weight=0))
    assert weights == {Signal.BM25: 0.9, Signal.TAGS: 0.2, Signal.TERMS: 0.2}
    assert Signal.VECTOR not in weights_of(chosen(vector_weight=0))


def test_our_own_signals_have_no_weight_in_the_seeds_profile() -> None:
    assert weights_of(chosen(SEED, vector_weight=0.5, title_weight=0.5)) == SEED_WEIGHTS


@pytest.mark.parametrize(
    ("values", "asked", "expected"),
    [
        ({}, None, True),
        ({"hide_linked": False}, None, False),
        ({"profile": "seed"}, None, False),
        ({"profile": "seed"}, True, True),
        ({}, False, False),
    ],
)
def test_linked_notes_are_hidden_by_default_but_not_by_the_seed(
    values: dict[str, object], asked: bool | None, expected: bool
) -> None:
    assert is_hiding(RelationsSettings.model_validate(values), asked) is expected


SMALL = {
    "a.md": "---\ntags: [x]\n---\nzuv kof mip\n",
    "b.md": "---\ntags: [x]\n---\nzuv kof\n",
    "c.md": "---\ntags: [y]\n---\nzuv tiq\n",
    "d.md": "bax\n",
}


def test_a_result_has_the_share_of_each_signal_and_their_weighted_sum(tmp_path: Path) -> None:
    vault = indexed(tmp_path, SMALL, SEED)
    with vault.loaded() as loaded:
        (first, *_) = related(loaded, note_source(loaded, slots(loaded)["a.md"]), SEED)
        assert loaded.cards[first.slot].path == "b.md"
        assert set(first.parts) == set(SEED_WEIGHTS)
        total = sum(SEED_WEIGHTS[signal] * value for signal, value in first.parts.items())
        assert first.score == pytest.approx(total)


def test_lower_scores_than_the_threshold_are_not_shown(tmp_path: Path) -> None:
    vault = indexed(tmp_path, SMALL, SEED)
    every = vault.scores("a.md", chosen(SEED, min_score=0))
    b = every["b.md"]
    assert list(vault.scores("a.md", chosen(SEED, min_score=b))) == ["b.md"]
    assert vault.scores("a.md", chosen(SEED, min_score=min(b + 0.001, 1))) == {}
    assert "d.md" not in every


def test_no_more_than_the_most_are_shown(tmp_path: Path) -> None:
    notes = {f"{number:02}.md": f"zuv kof word{number}" for number in range(40)}
    vault = indexed(tmp_path, notes)
    every = chosen(min_score=0)
    assert len(vault.scores("00.md", every)) == 20
    assert len(vault.scores("00.md", chosen(every, max_results=3))) == 3
    with vault.loaded() as loaded:
        source = note_source(loaded, 0)
        assert len(related(loaded, source, every, limit=7)) == 7


def test_equal_scores_are_in_the_order_of_paths(tmp_path: Path) -> None:
    notes = {f"{name}.md": "zuv kof" for name in "edcba"} | {"z.md": "bax"}
    vault = indexed(tmp_path, notes)
    assert list(vault.scores("c.md")) == ["a.md", "b.md", "d.md", "e.md"]
    assert list(vault.scores("c.md", chosen(max_results=2))) == ["a.md", "b.md"]


def test_a_note_is_not_related_to_itself(tmp_path: Path) -> None:
    for profile in (SEED, DEFAULT):
        assert "a.md" not in indexed(tmp_path / profile.profile, SMALL, profile).scores("a.md")


def test_an_empty_vault_and_a_lonely_note(tmp_path: Path) -> None:
    vault = RelatedVault(tmp_path)
    vault.write({"a.md": "zuv"})
    with vault.loaded() as loaded:
        assert related(loaded, text_source(loaded, "zuv"), DEFAULT) == []
    vault.update()
    assert vault.scores("a.md") == {}


def test_what_a_note_links_to_is_hidden_unless_asked_for(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"a.md": "zuv kof [[b]]", "b.md": "zuv kof", "c.md": "zuv [[a]]"})
    assert list(vault.scores("a.md")) == ["c.md"]
    assert set(vault.scores("a.md", chosen(hide_linked=False))) == {"b.md", "c.md"}


def test_a_daily_note_counts_half_but_not_by_the_seed(tmp_path: Path) -> None:
    notes = {"a.md": "zuv kof", "2024-03-10.md": "zuv kof", "b.md": "zuv kof", "c.md": "bax"}
    vault = indexed(tmp_path, notes)
    found = vault.scores("a.md")
    assert found["2024-03-10.md"] == pytest.approx(found["b.md"] / 2)
    full = vault.scores("a.md", chosen(discount_daily=False))
    assert full["2024-03-10.md"] == pytest.approx(found["b.md"])
    seed = vault.scores("a.md", SEED)
    assert seed["2024-03-10.md"] == pytest.approx(seed["b.md"])


def test_a_score_is_never_above_one(tmp_path: Path) -> None:
    heavy = chosen(bm25_weight=1, tag_weight=1, term_weight=1, cosine_weight=1)
    found = indexed(tmp_path, SMALL).scores("a.md", heavy)
    assert max(found.values()) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"bm25_weight": -0.1},
        {"tag_weight": 1.1},
        {"min_score": 1.5},
        {"min_score": -0.1},
        {"max_results": 0},
        {"max_results": 201},
        {"ngram_size": 1},
        {"ngram_size": 6},
        {"max_chars": 10},
        {"profile": "other"},
        {"unknown": 1},
    ],
)
def test_settings_out_of_range_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RelationsSettings.model_validate(values)


Drawn = dict[str, tuple[list[str], list[str], list[str]]]
drawn = st.dictionaries(
    st.sampled_from([f"{name}.md" for name in "abcdefg"]),
    st.tuples(
        st.lists(st.sampled_from(WORDS), max_size=12),
        st.lists(st.sampled_from(TAGS), max_size=3, unique=True),
        st.lists(st.sampled_from([f"{name}.md" for name in "abcdefgh"]), max_size=2, unique=True),
    ),
    min_size=2,
)


def uid(path: str) -> str:
    return f"00000000-0000-4000-8000-{ord(path[0]):012d}"


def written(notes: Drawn) -> dict[str, str]:
    return {
        path: f"---\nid: {uid(path)}\ntags: [{', '.join(tags)}]\n"
        f"related: [{', '.join(map(uid, targets))}]\n---\n" + " ".join(words)
        for path, (words, tags, targets) in notes.items()
    }


def as_seed(notes: Drawn) -> Mapping[str, SeedNote]:
    return {
        path: SeedNote(tuple(words), frozenset(tags), tuple(targets))
        for path, (words, tags, targets) in notes.items()
    }


@FEW
@given(
    drawn,
    st.fixed_dictionaries(
        {name: st.sampled_from([0.1, 0.2, 0.4, 1.0]) for name in ("bm25", "tags", "terms", "graph")}
    ),
    st.sampled_from([0.0, 0.1, 0.3]),
    st.integers(1, 6),
)
def test_the_seeds_profile_scores_as_the_seed_does(
    notes: Drawn, weights: dict[str, float], threshold: float, most: int
) -> None:
    settings = chosen(
        SEED,
        min_score=threshold,
        max_results=most,
        bm25_weight=weights["bm25"],
        tag_weight=weights["tags"],
        term_weight=weights["terms"],
        graph_weight=weights["graph"],
    )
    with tempfile.TemporaryDirectory() as folder:
        vault = indexed(Path(folder), written(notes), settings)
        for path in notes:
            expected = seed_related(
                as_seed(notes), path, weights=weights, threshold=threshold, most=len(notes)
            )
            found = vault.scores(path)
            scores = [min(score, 1.0) for _, score in expected[:most]]
            assert list(found.values()) == pytest.approx(scores, abs=1e-9)
            assert found == pytest.approx(
                {one: min(dict(expected)[one], 1.0) for one in found}, abs=1e-9
            )


@FEW
@given(drawn)
def test_with_its_defaults_too(notes: Drawn) -> None:
    with tempfile.TemporaryDirectory() as folder:
        vault = indexed(Path(folder), written(notes), SEED)
        for path in notes:
            found = vault.scores(path)
            assert list(found.values()) == pytest.approx(
                [score for _, score in seed_related(as_seed(notes), path)], abs=1e-9
            )
