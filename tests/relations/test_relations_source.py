"""What is asked about: a note, with or without the places of its words, or a text."""

from pathlib import Path

import numpy as np
import pytest
from tests.relations.related_vault import DEFAULT, indexed, scores, slots

from obsidian_rag.relations.score import related
from obsidian_rag.relations.signals import note_source, text_source

NOTES = {
    "a.md": "---\ntags: [x]\n---\nzuv zuv kof\n",
    "b.md": "zuv kof\n",
    "c.md": "---\ntags: [y]\n---\nmip\n",
}
EVERY = DEFAULT.model_copy(update={"min_score": 0.0})


def test_a_note_has_its_terms_in_order_and_its_tags(tmp_path: Path) -> None:
    with indexed(tmp_path, NOTES).loaded() as loaded:
        source = note_source(loaded, slots(loaded)["a.md"])
        zuv, kof = text_source(loaded, "zuv kof").sequence.tolist()
        assert source.sequence.tolist() == [zuv, zuv, kof]
        assert source.tags == {"x"}
        terms, counts = source.terms
        assert dict(zip(terms.tolist(), counts.tolist(), strict=True)) == {zuv: 2, kof: 1}


def test_without_places_a_note_has_the_same_terms_as_often(tmp_path: Path) -> None:
    settings = DEFAULT.model_copy(update={"store_positions": False})
    with indexed(tmp_path, NOTES, settings).loaded() as loaded:
        source = note_source(loaded, slots(loaded)["a.md"])
        zuv, kof = text_source(loaded, "zuv kof").sequence.tolist()
        assert sorted(source.sequence.tolist()) == sorted([zuv, zuv, kof])


@pytest.mark.parametrize("profile", ["seed", "default"])
def test_scores_are_the_same_without_places(tmp_path: Path, profile: str) -> None:
    settings = EVERY.model_copy(update={"profile": profile})
    without = settings.model_copy(update={"store_positions": False})
    with (
        indexed(tmp_path / "with", NOTES, settings).loaded() as one,
        indexed(tmp_path / "without", NOTES, without).loaded() as other,
    ):
        for path in NOTES:
            assert scores(one, path, settings) == pytest.approx(scores(other, path, without))


@pytest.mark.parametrize("tag", ["y", "#y", " Y ", "#Y"])
def test_tags_that_are_asked_for_count_as_the_sources_own(tmp_path: Path, tag: str) -> None:
    with indexed(tmp_path, NOTES).loaded() as loaded:
        source = note_source(loaded, slots(loaded)["a.md"], [tag, " ", "#"])
        assert source.tags == {"x", "y"}
        found = [loaded.cards[one.slot].path for one in related(loaded, source, EVERY)]
        assert "c.md" in found


def test_a_text_is_read_like_a_note(tmp_path: Path) -> None:
    with indexed(tmp_path, NOTES).loaded() as loaded:
        source = text_source(
            loaded, "The **Zuv**\n```\nmip\n```\n[kof](https://mip.example) unknown"
        )
        zuv, kof = text_source(loaded, "zuv kof").sequence.tolist()
        assert source.sequence.tolist() == [zuv, kof]
        assert (source.slot, source.vector, source.tags) == (None, None, frozenset())


def test_a_text_of_unknown_words_has_no_terms(tmp_path: Path) -> None:
    with indexed(tmp_path, NOTES).loaded() as loaded:
        source = text_source(loaded, "qqq www", ["y"])
        assert len(source.sequence) == 0
        found = [loaded.cards[one.slot].path for one in related(loaded, source, EVERY)]
        assert found == ["c.md"]


def test_a_text_may_speak_for_a_note(tmp_path: Path) -> None:
    """For measuring: the note's text without the link that is to be found again."""
    with indexed(tmp_path, NOTES).loaded() as loaded:
        slot = slots(loaded)["a.md"]
        source = text_source(loaded, "mip", slot=slot, without=slots(loaded)["b.md"])
        assert (source.slot, source.without) == (slot, slots(loaded)["b.md"])
        assert source.tags == {"x"}
        assert len(source.sequence) == 1


def test_a_question_adds_nothing_to_the_indexes(tmp_path: Path) -> None:
    vault = indexed(tmp_path, NOTES)
    with vault.loaded() as loaded:
        before = loaded.rows.database.rows("SELECT count(*) FROM term")
        text_source(loaded, "never seen before " * 500)
        assert loaded.rows.database.rows("SELECT count(*) FROM term") == before
        vector = np.ones(2, np.float32)
        assert text_source(loaded, "zuv", vector=vector).vector is vector
