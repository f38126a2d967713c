"""Long passages have a vector of the whole and of each part; they are kept and lost together."""

from pathlib import Path

import numpy as np
import pytest
from tests.store.test_store_meaning import HEADER, RECORD, Vectors, rows, unit_vectors

from obsidian_rag.store import MeaningStore, pack_ids

PARTS = (1, 4, 2, 1, 5)


def filled(home: Path) -> tuple[MeaningStore, list[tuple[str, bytes]], list[Vectors]]:
    """Chunks with so many vectors each as PARTS says, the whole text's first."""
    store = MeaningStore(home / "meaning", "onnx:tiny")
    named = rows(len(PARTS))
    vectors = [unit_vectors(count, seed=at) for at, count in enumerate(PARTS)]
    store.put(named, vectors)
    return store, named, vectors


def test_a_chunk_is_as_near_as_its_nearest_part(home: Path) -> None:
    store, named, vectors = filled(home)
    question = vectors[4][3]
    best = {
        chunk_id: float((some @ question).max())
        for (chunk_id, _), some in zip(named, vectors, strict=True)
    }
    found = store.nearest(question, 10)
    assert found == pytest.approx(best, abs=0.02)
    assert next(iter(found)) == named[4][0]
    assert list(store.nearest(question, 1)) == [named[4][0]]
    some = [named[1][0], named[4][0]]
    assert store.similarities(question, some) == pytest.approx(
        {chunk_id: best[chunk_id] for chunk_id in some}, abs=0.02
    )


def test_a_chunk_counts_once_and_its_vector_is_that_of_the_whole(home: Path) -> None:
    store, named, vectors = filled(home)
    assert store.count() == len(PARTS)
    assert not store.lacking(named).any()
    assert store.has(pack_ids([chunk_id for chunk_id, _ in named])).all()
    for (chunk_id, _), some in zip(named, vectors, strict=True):
        assert float(store.vectors([chunk_id])[chunk_id] @ some[0]) > 0.999


def test_parts_go_with_their_chunk(home: Path) -> None:
    store, named, vectors = filled(home)
    store.put([named[1]], [unit_vectors(1, seed=99)])
    assert store.similarities(vectors[1][2], [named[1][0]])[named[1][0]] < 0.5
    others = [chunk_id for chunk_id, _ in named if chunk_id != named[4][0]]
    assert store.keep_only([pack_ids(others)]) == 1
    assert store.similarities(vectors[4][2], [named[4][0]]) == {}
    kept = pack_ids([named[2][0]])
    assert store.keep_only([kept]) == 3
    assert list(store.nearest(vectors[2][1], 10)) == [named[2][0]]
    assert store.similarities(vectors[2][1], [named[2][0]])[named[2][0]] > 0.999


def test_a_chunk_with_the_same_text_takes_over_all_parts(home: Path) -> None:
    store, named, vectors = filled(home)
    twin = (rows(1, seed=5)[0][0], named[4][1])
    assert store.adopt([twin]) == 1
    found = store.similarities(vectors[4][3], [twin[0], named[4][0]])
    assert found[twin[0]] == found[named[4][0]] > 0.999


@pytest.mark.parametrize("lost", range(1, 1 + sum(PARTS)))
def test_what_a_kill_left_of_a_chunk_is_lacking_and_cleared_away(home: Path, lost: int) -> None:
    store, named, vectors = filled(home)
    with store.file.open("r+b") as stream:
        stream.truncate(HEADER + (sum(PARTS) - lost) * RECORD + 7)
    reader = MeaningStore(home / "meaning", "onnx:tiny")
    whole = int(np.searchsorted(np.cumsum(PARTS), sum(PARTS) - lost, side="right"))
    assert reader.lacking(named).tolist() == [at >= whole for at in range(len(PARTS))]
    reader.put(named[whole:], vectors[whole:])
    assert (reader.damaged(), reader.count()) == (0, len(PARTS))


@pytest.mark.parametrize("record", range(sum(PARTS)))
def test_a_damaged_part_is_made_again_with_its_chunk(home: Path, record: int) -> None:
    store, named, vectors = filled(home)
    content = bytearray(store.file.read_bytes())
    content[HEADER + record * RECORD + 40] ^= 0x55
    store.file.write_bytes(content)
    reader = MeaningStore(home / "meaning", "onnx:tiny")
    owner = int(np.searchsorted(np.cumsum(PARTS), record, side="right"))
    assert reader.damaged() == PARTS[owner]
    with reader.writing():
        assert reader.lacking(named).tolist() == [at == owner for at in range(len(PARTS))]
        reader.put([named[owner]], [vectors[owner]])
    assert (reader.damaged(), reader.count()) == (0, len(PARTS))
