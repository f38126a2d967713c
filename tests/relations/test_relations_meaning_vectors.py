"""Meaning vectors of notes: made of their passages', used by the whole vault at once."""

import uuid
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.relations.related_vault import DEFAULT, RelatedVault, indexed, link_of, slots

from obsidian_rag.errors import IndexCorrupted
from obsidian_rag.notes import Chunk, embedding_text
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.relations.packed import VectorKind
from obsidian_rag.relations.rows import Rows
from obsidian_rag.relations.score import MEANING_WEIGHTS, related, weights_of
from obsidian_rag.relations.signals import (
    Signal,
    Source,
    kind_of,
    meaning,
    note_source,
    text_source,
)
from obsidian_rag.relations.vectors import VectorsInUse, refresh_meaning_vectors
from obsidian_rag.store import ChunkRow, ChunkStore, MeaningStore, NoteRow, text_digest

MODEL = "a transformer"
NAMES = [f"n{number:02}.md" for number in range(20)]


def chunk_store(vault: RelatedVault, notes: dict[str, list[str]]) -> ChunkStore:
    """Passages with these texts, without anything that static vectors could tell."""
    made = ChunkStore(str(vault.folder / "vectors.lance"))
    made.create(2)
    for path, texts in notes.items():
        put_chunks(vault, made, path, texts)
    return made


def put_chunks(vault: RelatedVault, chunks: ChunkStore, path: str, texts: list[str]) -> None:
    link_id = vault.link_id
    note = NoteRow(
        link_id, path, path, (), None, False, "2024-01-15T00:00:00Z", "2024-01-16T00:00:00Z"
    )
    rows = [
        ChunkRow(note, Chunk(text, "", None, (), 1, 2, ()), chunk_id(text), at, len(texts), text)
        for at, text in enumerate(texts)
    ]
    chunks.replace(link_id, [path], rows, np.ones((len(rows), 2), dtype=np.float32))


def chunk_id(text: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, text.split(" ", 1)[0]))


def embed(store: MeaningStore, path: str, text: str, *vector: float) -> None:
    digest = text_digest(embedding_text(path, (), text))
    store.put([(chunk_id(text), digest)], np.array([vector], dtype=np.float32))


def meant(vault: RelatedVault) -> dict[str, list[float]]:
    with vault.rows() as rows:
        found = rows.database.rows("SELECT path, meaning FROM note WHERE meaning IS NOT NULL")
    return {
        str(path): VectorKind.MEANING.unpack(bytes(data)).astype(float).round(2).tolist()  # type: ignore[call-overload]
        for path, data in found
    }


@pytest.fixture
def vault(tmp_path: Path) -> RelatedVault:
    return indexed(tmp_path, {"a.md": "zuv", "b.md": "kof"})


@pytest.fixture
def chunks(vault: RelatedVault) -> ChunkStore:
    return chunk_store(vault, {"a.md": ["zuv 1", "zug 2"], "b.md": ["kof 1"]})


@pytest.fixture
def store(tmp_path: Path) -> MeaningStore:
    return MeaningStore(tmp_path / "meaning", MODEL)


def refreshed(vault: RelatedVault, chunks: ChunkStore, store: MeaningStore, **more: object) -> int:
    with vault.rows() as rows:
        return refresh_meaning_vectors(rows, chunks, link_of(rows), store, **more)  # type: ignore[arg-type]


def test_a_note_waits_until_all_its_passages_have_vectors(
    vault: RelatedVault, chunks: ChunkStore, store: MeaningStore
) -> None:
    assert refreshed(vault, chunks, store) == 0
    embed(store, "a.md", "zuv 1", 1, 0)
    embed(store, "b.md", "kof 1", 0, 1)
    assert refreshed(vault, chunks, store) == 1
    assert meant(vault) == {"b.md": [0, 1]}
    embed(store, "a.md", "zug 2", 0, 1)
    assert refreshed(vault, chunks, store, paths=["b.md"]) == 0
    assert refreshed(vault, chunks, store, paths=["a.md", "gone.md"]) == 1
    assert meant(vault) == {"a.md": [0.71, 0.71], "b.md": [0, 1]}
    assert refreshed(vault, chunks, store) == 0


def test_a_changed_note_keeps_its_vector_until_the_new_text_has_one(
    vault: RelatedVault, chunks: ChunkStore, store: MeaningStore
) -> None:
    embed(store, "b.md", "kof 1", 0, 1)
    refreshed(vault, chunks, store)
    vault.write({"b.md": "mip"})
    vault.update()
    # The passage is the same one with another text, as when its heading changed.
    put_chunks(vault, chunks, "b.md", ["kof 2"])
    assert refreshed(vault, chunks, store) == 0
    assert meant(vault)["b.md"] == [0, 1]
    embed(store, "b.md", "kof 2", 1, 0)
    assert refreshed(vault, chunks, store) == 1
    assert meant(vault)["b.md"] == [1, 0]
    (vault.root / "b.md").unlink()
    vault.update()
    assert meant(vault) == {}


def test_passages_of_another_content_than_the_notes_are_left_for_later(
    vault: RelatedVault, chunks: ChunkStore, store: MeaningStore
) -> None:
    embed(store, "b.md", "kof 1", 0, 1)
    assert refreshed(vault, chunks, store, indexed=lambda paths: dict.fromkeys(paths, "old")) == 0
    assert refreshed(vault, chunks, store) == 1


def test_the_vectors_of_another_model_go(
    vault: RelatedVault, chunks: ChunkStore, store: MeaningStore, tmp_path: Path
) -> None:
    embed(store, "b.md", "kof 1", 0, 1)
    refreshed(vault, chunks, store)
    other = MeaningStore(tmp_path / "meaning", "another transformer")
    assert refreshed(vault, chunks, other) == 0
    assert meant(vault) == {}


def give(rows: Rows, kind: VectorKind, vectors: dict[str, NDArray[np.float64]]) -> None:
    if kind is VectorKind.MEANING:
        rows.expect_meanings_of(MODEL)
    with rows.changing():
        rows.put_vectors(
            link_of(rows), ((path, "h", kind.pack(one)) for path, one in vectors.items()), kind
        )


def many(tmp_path: Path, have: int) -> RelatedVault:
    """Twenty notes with static vectors that say the opposite of the meaning vectors some have."""
    vault = indexed(tmp_path, {name: f"word{name[:3]}" for name in NAMES})
    chance = np.random.default_rng(3)
    static, better = chance.standard_normal((2, 20, 8))
    static[1], better[2] = static[0] + 0.1, better[0] + 0.1
    with vault.rows() as rows:
        give(rows, VectorKind.STATIC, dict(zip(NAMES, static, strict=True)))
        give(rows, VectorKind.MEANING, dict(zip(NAMES[:have], better[:have], strict=True)))
    return vault


def first(loaded: MemoryIndex, path: str) -> str:
    return loaded.cards[
        related(loaded, note_source(loaded, slots(loaded)[path]), DEFAULT)[0].slot
    ].path


@pytest.mark.parametrize(
    ("have", "model", "kind"),
    [
        (18, MODEL, VectorKind.STATIC),
        (19, MODEL, VectorKind.MEANING),
        (20, MODEL, VectorKind.MEANING),
        (20, "another transformer", VectorKind.STATIC),
        (20, None, VectorKind.STATIC),
    ],
)
def test_the_vault_changes_over_as_a_whole(
    tmp_path: Path, have: int, model: str | None, kind: VectorKind
) -> None:
    vault = many(tmp_path, have)
    with vault.rows() as rows:
        loaded = MemoryIndex(rows, use_links=True, meanings_of=model)
        assert loaded.vectors_in_use.kind is kind
        assert first(loaded, NAMES[0]) == (NAMES[1] if kind is VectorKind.STATIC else NAMES[2])
        assert first(loaded.by_static_vectors(), NAMES[0]) == NAMES[1]


def test_a_follower_changes_over_too(tmp_path: Path) -> None:
    vault = many(tmp_path, 18)
    with vault.rows() as rows, vault.rows() as others:
        loaded = MemoryIndex(rows, use_links=True, meanings_of=MODEL)
        assert first(loaded, NAMES[0]) == NAMES[1]
        give(others, VectorKind.MEANING, {NAMES[18]: np.arange(8.0)})
        loaded.follow()
        assert loaded.vectors_in_use == VectorsInUse(19, 20)
        assert first(loaded, NAMES[0]) == NAMES[2]
        others.expect_meanings_of("another transformer")
        loaded.follow()
        assert first(loaded, NAMES[0]) == NAMES[1]


def test_a_note_that_has_only_a_static_vector_is_compared_by_that(tmp_path: Path) -> None:
    vault = many(tmp_path, 19)
    with vault.rows() as rows:
        loaded = MemoryIndex(rows, use_links=True, meanings_of=MODEL)
        late, early = (slots(loaded)[NAMES[at]] for at in (19, 0))
        assert kind_of(loaded, note_source(loaded, late)) is VectorKind.STATIC
        static = loaded.by_static_vectors()
        asked = note_source(loaded, late)
        assert meaning(loaded, asked).tolist() == meaning(static, asked).tolist()
        # As a target: against the best, as the others are.
        asked = note_source(loaded, early)
        assert kind_of(loaded, asked) is VectorKind.MEANING
        beside = meaning(static, asked)
        beside[early] = 0
        assert meaning(loaded, asked)[late] == pytest.approx(beside[late] / beside.max())
        assert meaning(loaded, asked).max() == 1


def test_a_text_is_compared_by_the_kind_of_its_vector(tmp_path: Path) -> None:
    vault = many(tmp_path, 20)
    with vault.rows() as rows:
        loaded = MemoryIndex(rows, use_links=True, meanings_of=MODEL)

        def asked(kind: VectorKind) -> Source:
            known = loaded.vectors(kind)
            assert known is not None
            return text_source(loaded, "zuv", vector=known.of(0), vector_kind=kind)

        for kind in VectorKind:
            assert kind_of(loaded, asked(kind)) is kind
            assert int(meaning(loaded, asked(kind)).argmax()) == 0
            second = int(meaning(loaded, asked(kind)).argsort()[-2])
            assert loaded.cards[second].path == NAMES[1 if kind is VectorKind.STATIC else 2]


def test_weights_depend_on_the_vectors_unless_the_user_chose_them() -> None:
    assert weights_of(DEFAULT, VectorKind.MEANING) == MEANING_WEIGHTS
    chosen = DEFAULT.model_copy(update={"vector_weight": 0.07})
    assert {weights_of(chosen, kind)[Signal.VECTOR] for kind in VectorKind} == {0.07}


def test_vectors_are_kept_small_and_exact_enough() -> None:
    vector = np.random.default_rng(1).standard_normal(384)
    data = VectorKind.MEANING.pack(vector)
    assert data is not None and len(data) == 384
    assert float(VectorKind.MEANING.unpack(data) @ vector) / np.linalg.norm(vector) > 0.9995
    assert all(kind.pack(np.zeros(3)) is None for kind in VectorKind)
    assert len(VectorKind.MEANING.unpack(b"")) == 0


def test_bytes_that_are_no_vector_are_damage(tmp_path: Path) -> None:
    vault = many(tmp_path, 20)
    with vault.rows() as rows:
        rows.database.run("UPDATE note SET meaning = zeroblob(8) WHERE path = ?", (NAMES[3],))
        with pytest.raises(IndexCorrupted):
            first(MemoryIndex(rows, use_links=True, meanings_of=MODEL), NAMES[0])
