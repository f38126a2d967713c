"""The meaning of whole notes: the mean of their passages, kept until their content changes."""

import uuid
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.relations.related_vault import RelatedVault, indexed, link_of

from obsidian_rag.notes import Chunk
from obsidian_rag.relations.vectors import NoteVectors, refresh_vectors
from obsidian_rag.store import ChunkRow, ChunkStore, NoteRow

NOTES = {"a.md": "zuv", "b.md": "kof", "empty.md": ""}


@pytest.fixture
def vault(tmp_path: Path) -> RelatedVault:
    return indexed(tmp_path, NOTES)


@pytest.fixture
def chunks(tmp_path: Path) -> ChunkStore:
    made = ChunkStore(str(tmp_path / "vectors.lance"))
    made.create(2)
    return made


def put(vault: RelatedVault, chunks: ChunkStore, path: str, *vectors: list[float]) -> None:
    link_id = vault.link_id
    note = NoteRow(
        link_id=link_id,
        source_file=path,
        title=path,
        aliases=(),
        date=None,
        is_private=False,
        modified_at="2024-01-15T00:00:00Z",
        indexed_at="2024-01-16T00:00:00.000000Z",
    )
    rows = [
        ChunkRow(
            note=note,
            chunk=Chunk("text", "", None, (), 1, 2, ()),
            chunk_id=str(uuid.uuid4()),
            chunk_index=position,
            total_chunks=len(vectors),
            content_hash="hash",
        )
        for position in range(len(vectors))
    ]
    chunks.replace(link_id, [path], rows, np.array(vectors, dtype=np.float32))


def vectors(vault: RelatedVault) -> dict[str, list[float]]:
    with vault.rows() as rows:
        found = rows.database.rows("SELECT path, vector FROM note WHERE vector IS NOT NULL")
    return {
        str(path): np.frombuffer(bytes(data), np.float16).astype(float).round(2).tolist()  # type: ignore[call-overload]
        for path, data in found
    }


def test_a_notes_meaning_is_the_mean_of_its_passages_with_length_one(
    vault: RelatedVault, chunks: ChunkStore
) -> None:
    put(vault, chunks, "a.md", [1, 0], [0, 1])
    put(vault, chunks, "b.md", [0, 2])
    with vault.rows() as rows:
        assert refresh_vectors(rows, chunks, link_of(rows)) == 2
    assert vectors(vault) == {"a.md": [0.71, 0.71], "b.md": [0, 1]}


def test_only_what_changed_is_read_again(vault: RelatedVault, chunks: ChunkStore) -> None:
    put(vault, chunks, "a.md", [1, 0])
    put(vault, chunks, "b.md", [0, 1])
    with vault.rows() as rows:
        refresh_vectors(rows, chunks, link_of(rows))
        assert refresh_vectors(rows, chunks, link_of(rows)) == 0
    vault.write({"a.md": "mip"})
    vault.update()
    assert vectors(vault)["a.md"] == [1, 0], "better than none until the next sync"
    put(vault, chunks, "a.md", [0, 1])
    with vault.rows() as rows:
        assert rows.without_vector(link_of(rows)).keys() == {"a.md"}
        assert refresh_vectors(rows, chunks, link_of(rows)) == 1
    assert vectors(vault)["a.md"] == [0, 1]


def test_an_emptied_note_means_nothing(vault: RelatedVault, chunks: ChunkStore) -> None:
    put(vault, chunks, "a.md", [1, 0])
    with vault.rows() as rows:
        refresh_vectors(rows, chunks, link_of(rows))
    vault.write({"a.md": ""})
    vault.update()
    assert vectors(vault) == {}
    vault.write({"a.md": "zuv"})
    vault.update()
    with vault.rows() as rows:
        assert refresh_vectors(rows, chunks, link_of(rows)) == 1


def test_a_deleted_note_takes_its_meaning_along(vault: RelatedVault, chunks: ChunkStore) -> None:
    put(vault, chunks, "a.md", [1, 0])
    with vault.rows() as rows:
        refresh_vectors(rows, chunks, link_of(rows))
    (vault.root / "a.md").unlink()
    vault.update()
    assert vectors(vault) == {}


def test_passages_that_cancel_each_other_out_mean_nothing(
    vault: RelatedVault, chunks: ChunkStore
) -> None:
    put(vault, chunks, "a.md", [1, 0], [-1, 0])
    with vault.rows() as rows:
        assert refresh_vectors(rows, chunks, link_of(rows)) == 0


def test_without_a_chunk_store_notes_are_related_by_words(
    vault: RelatedVault, tmp_path: Path
) -> None:
    with vault.rows() as rows:
        assert refresh_vectors(rows, ChunkStore(str(tmp_path / "none.lance")), link_of(rows)) == 0


def test_a_stop_leaves_the_rest_to_the_next_run(vault: RelatedVault, chunks: ChunkStore) -> None:
    put(vault, chunks, "a.md", [1, 0])
    with vault.rows() as rows:
        assert refresh_vectors(rows, chunks, link_of(rows), stop=lambda: True) == 0
        assert refresh_vectors(rows, chunks, link_of(rows)) == 1


def vector(*numbers: float) -> NDArray[np.float32]:
    return np.array(numbers, dtype=np.float32)


def seen_from_centre(rows: NDArray[np.float32], asked: NDArray[np.float32]) -> NDArray[np.float64]:
    """Cosines of what is left of the vectors without their average, never below zero."""
    centre = rows.mean(axis=0)
    away, turned = rows - centre, asked - centre
    lengths = np.linalg.norm(away, axis=1) * np.linalg.norm(turned)
    cosines: NDArray[np.float64] = np.maximum(0, away @ turned / lengths)
    return cosines


def test_meanings_are_kept_with_an_error_too_small_to_matter() -> None:
    chance = np.random.default_rng(1)
    rows = (chance.standard_normal((5000, 64)) + 1).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    made = NoteVectors(5000, 64)
    for slot, row in enumerate(rows):
        made.put(slot, row)
    found = made.alike(rows[7])
    assert np.abs(found - seen_from_centre(rows, rows[7])).max() < 0.01
    assert int(found.argmax()) == 7


def test_a_slot_without_meaning_is_like_nothing_and_does_not_count() -> None:
    made = NoteVectors(2, 2)
    made.put(0, vector(1, 0))
    made.grow(4)
    made.put(3, vector(0, 1))
    assert made.of(1) is None
    assert made.alike(vector(1, 0)).tolist() == pytest.approx([1, 0, 0, 0])
    assert made.alike(vector(0, 1)).tolist() == pytest.approx([0, 0, 0, 1])
    made.put(0, None)
    assert made.of(0) is None
    assert made.alike(vector(1, 0)).tolist()[:3] == [0, 0, 0]


def test_what_was_put_or_grown_since_counts_at_once() -> None:
    made = NoteVectors(2, 2)
    made.put(0, vector(1, 0))
    made.put(1, vector(0, 1))
    assert made.alike(vector(1, 0)).tolist() == pytest.approx([1, 0])
    made.put(0, vector(0, 1))
    made.put(1, vector(1, 0))
    assert made.alike(vector(1, 0)).tolist() == pytest.approx([0, 1])


def test_no_meanings_at_all() -> None:
    assert NoteVectors(3, 2).alike(vector(1, 0)).tolist() == [0, 0, 0]
    made = NoteVectors(1, 2)
    made.put(0, vector(0, 0))
    assert made.of(0) is None
    assert made.alike(vector(1, 0)).tolist() == [0]
