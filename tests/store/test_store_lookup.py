"""Looking things up in a real table: by words, phrases and vectors, with conditions."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from obsidian_rag.errors import IndexCorrupted, IndexIncomplete, IndexNotFound
from obsidian_rag.notes import Chunk
from obsidian_rag.store import ChunkRow, ChunkStore, Clause, Lookup, NoteRow

TEXTS = {
    "a.md": ("rain garden with sedge", "Water plan", ""),
    "b.md": ("garden of rain barrels", "Barrels", ""),
    "c.md": ("green roof", "Café", "zanzibar_backup()"),
    "d.md": ("抹茶アイス", "京都", ""),
}
RAIN_GARDEN = Clause("rain garden", "chunk_text", is_phrase=True)


def unit(position: int, width: int = 8) -> NDArray[np.float32]:
    vector = np.zeros(width, dtype=np.float32)
    vector[position] = 1.0
    return vector


@pytest.fixture
def chunks(tmp_path: Path) -> Iterator[ChunkStore]:
    store = ChunkStore(str(tmp_path / "vectors.lance"))
    store.create(8)
    rows = []
    for number, (path, (text, title, code)) in enumerate(TEXTS.items()):
        note = NoteRow("one", path, title, ("Other name",), "2024-01-0" + str(number + 1),
                       path == "c.md", "", "")  # fmt: skip
        chunk = Chunk(text, code, "S" if number else None, ("H", "S"), 3, 7, ("#t", "#u/v"))
        rows.append(ChunkRow(note, chunk, f"id-{number}", 0, 1, f"hash-{number}"))
    store.replace("one", [], rows, np.stack([unit(number) for number in range(len(rows))]))
    store.maintain()
    yield store
    store.close()


def found(lookup: Lookup, scores: dict[int, float]) -> list[str]:
    """The notes by score, best first."""
    rows = lookup.rows(list(scores))
    return [rows[number].source_file for number in sorted(scores, key=lambda n: -scores[n])]


@pytest.mark.parametrize(
    ("words", "column", "expected"),
    [
        ("sedge", "chunk_text", {"a.md"}),
        ("sedge barrels absent", "chunk_text", {"a.md", "b.md"}),
        ("barrel", "chunk_text", {"b.md"}),
        ("SEDGE", "chunk_text", {"a.md"}),
        ("absent", "chunk_text", set()),
        ("抹茶", "chunk_text", {"d.md"}),
        ("cafe", "names", {"c.md"}),
        ("water", "names", {"a.md"}),
        ("water", "chunk_text", set()),
        ("zanzibar_backup", "words_only", {"c.md"}),
        ("other", "names", set(TEXTS)),
    ],
)
def test_any_word_finds_its_rows(
    chunks: ChunkStore, words: str, column: str, expected: set[str]
) -> None:
    lookup = Lookup(chunks)
    scores = lookup.by_words([Clause(words, column)], None, 10)
    assert set(found(lookup, scores)) == expected
    assert all(score > 0 for score in scores.values())


def test_wrong_letters_are_admitted_when_asked(chunks: ChunkStore) -> None:
    lookup = Lookup(chunks)
    assert lookup.by_words([Clause("gardan", "chunk_text")], None, 10) == {}
    scores = lookup.by_words([Clause("gardan", "chunk_text", wrong_letters=1)], None, 10)
    assert set(found(lookup, scores)) == {"a.md", "b.md"}


def test_a_phrase_is_words_in_a_row(chunks: ChunkStore) -> None:
    lookup = Lookup(chunks)
    assert found(lookup, lookup.by_words([RAIN_GARDEN], None, 10)) == ["a.md"]
    backwards = Clause("roof green", "chunk_text", is_phrase=True)
    assert lookup.by_words([backwards], None, 10) == {}


def test_clauses_add_up_by_their_weight(chunks: ChunkStore) -> None:
    lookup = Lookup(chunks)
    clauses = [Clause("rain", "chunk_text"), Clause("barrels", "names", 0.5), RAIN_GARDEN]
    apart = [lookup.by_words([clause], None, 10) for clause in clauses]
    summed = {
        number: sum(scores.get(number, 0.0) for scores in apart)
        for number in {number for scores in apart for number in scores}
    }
    assert len(summed) == 2
    assert lookup.by_words(clauses, None, 10) == pytest.approx(summed)
    (whole,) = lookup.by_words([Clause("barrels", "names")], None, 10).values()
    assert apart[1].popitem()[1] == pytest.approx(whole / 2)


def test_the_nearest_vector_comes_with_its_similarity(chunks: ChunkStore) -> None:
    lookup = Lookup(chunks)
    question = (unit(1) * 3 + unit(2)).astype(np.float32)
    scores = lookup.begin_by_vector(question, None, 2).result()
    assert found(lookup, scores) == ["b.md", "c.md"]
    assert sorted(scores.values()) == pytest.approx([1 / 10**0.5, 3 / 10**0.5], abs=1e-5)


def test_similarities_are_true_with_a_vector_index_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("obsidian_rag.store.chunks.VECTOR_INDEX_FROM", 1000)
    vectors = np.random.default_rng(1).normal(size=(1000, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with closing(ChunkStore(str(tmp_path / "vectors.lance"))) as store:
        store.create(64)
        note = NoteRow("one", "a.md", "A", (), "", False, "", "")
        chunk = Chunk("rain", "", None, (), 1, 1, ())
        rows = [ChunkRow(note, chunk, f"{n}", n, 1000, f"hash-{n}") for n in range(1000)]
        store.replace("one", [], rows, vectors)
        store.maintain()
        assert "vector" in {one.columns[0] for one in store.table.list_indices()}
        question = vectors[0] + vectors[1]
        true = vectors @ question / np.linalg.norm(question)
        lookup = Lookup(store)
        scores = lookup.begin_by_vector(question, None, 20).result()
        found = {row.chunk_index: scores[number] for number, row in lookup.rows([*scores]).items()}
    assert found == pytest.approx({n: true[n] for n in found}, abs=1e-5)
    assert {0, 1} <= found.keys()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("source_file = 'b.md'", {"b.md"}),
        ("date >= '2024-01-03'", {"c.md", "d.md"}),
        ("array_has_any(tag_keys, ['u'])", set(TEXTS)),
        ("array_has_any(tag_keys, ['v'])", set()),
        ("false", set()),
    ],
)
def test_a_condition_holds_before_ranking(
    chunks: ChunkStore, condition: str, expected: set[str]
) -> None:
    lookup = Lookup(chunks)
    vector = lookup.begin_by_vector(unit(0), condition, 1).result()
    assert set(found(lookup, vector)) <= expected
    assert bool(vector) is bool(expected), "the limit counts only rows that fit"
    words = lookup.by_words([Clause("other", "names")], condition, 10)
    assert set(found(lookup, words)) == expected
    phrase = lookup.by_words([RAIN_GARDEN], condition, 10)
    assert set(found(lookup, phrase)) == expected & {"a.md"}


def test_what_has_begun_is_not_begun_again(chunks: ChunkStore) -> None:
    lookup = Lookup(chunks)
    begun = lookup.begin_by_vector(unit(0), None, 3)
    assert lookup.begin_by_vector(unit(0), None, 3) is begun
    others = ((unit(1), None, 3), (unit(0), "source_file = 'b.md'", 3), (unit(0), None, 2))
    assert all(lookup.begin_by_vector(*other) is not begun for other in others)


def test_limits_are_kept(chunks: ChunkStore) -> None:
    lookup = Lookup(chunks)
    assert len(lookup.by_words([Clause("other", "names")], None, 2)) == 2
    assert len(lookup.begin_by_vector(unit(0), None, 3).result()) == 3


def test_rows_are_whole(chunks: ChunkStore) -> None:
    lookup = Lookup(chunks)
    (number,) = lookup.by_words([Clause("zanzibar_backup", "words_only")], None, 5)
    (row,) = lookup.rows([number], with_words_only=True).values()
    assert (row.chunk_text, row.words_only, row.title) == (
        "green roof",
        "zanzibar_backup()",
        "Café",
    )
    assert row.names.split("\n") == ["Café", "Other name", "H", "S"]
    assert row.aliases == ("Other name",)
    assert (row.source_file, row.link_id, row.chunk_index) == ("c.md", "one", 0)
    assert (row.section, row.heading_path, row.tags) == ("S", ("H", "S"), ("#t", "#u/v"))
    assert (row.start_line, row.end_line, row.date) == (3, 7, "2024-01-03")
    assert row.is_private is True
    assert lookup.rows([number])[number].words_only == ""
    assert lookup.rows([]) == {}


def test_without_a_table_there_is_no_index(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound):
        Lookup(ChunkStore(str(tmp_path / "nothing.lance")))


def test_rows_that_cannot_be_read_are_damage(chunks: ChunkStore) -> None:
    assert chunks.folder is not None
    for file in chunks.folder.glob("data/*.lance"):
        file.write_bytes(file.read_bytes()[:40])
    chunks.close()
    fresh = ChunkStore(chunks.uri)
    with pytest.raises(IndexCorrupted):
        Lookup(fresh).begin_by_vector(unit(0), None, 3).result()


def test_a_table_of_another_version_is_said_to_be_one(chunks: ChunkStore) -> None:
    (number,) = Lookup(chunks).by_words([Clause("sedge", "chunk_text")], None, 5)
    chunks.table.drop_columns(["card"])
    chunks.close()
    with pytest.raises(IndexIncomplete, match="another version") as caught:
        Lookup(chunks).rows([number])
    assert "sync" in caught.value.suggestion


def test_the_chunks_of_notes_are_those_of_the_version_that_is_read(chunks: ChunkStore) -> None:
    notes = [("one", "b.md"), ("one", "missing.md"), ("two", "a.md"), ("one", "a.md")]
    there = {("one", "a.md"): ["id-0"], ("one", "b.md"): ["id-1"]}
    assert Lookup(chunks).chunks_of_notes(notes, 10) == there
    assert Lookup(chunks).chunks_of_notes(notes, 10) == there
    assert Lookup(chunks).chunks_of_notes([], 10) == {}
    chunks.replace("one", ["a.md"], [], np.empty((0, 8), dtype=np.float32))
    chunks.close()
    assert Lookup(chunks).chunks_of_notes(notes, 10) == {("one", "b.md"): ["id-1"]}


def test_what_was_cut_short_is_not_remembered(chunks: ChunkStore) -> None:
    note = NoteRow("one", "long.md", "Long", (), None, False, "", "")
    parts = [Chunk(text, "", None, (), 1, 2, ()) for text in ("first half", "second half")]
    rows = [ChunkRow(note, part, f"long-{at}", at, 2, f"h-{at}") for at, part in enumerate(parts)]
    chunks.replace("one", [], rows, np.stack([unit(5), unit(6)]))
    chunks.close()
    key = ("one", "long.md")
    assert len(Lookup(chunks).chunks_of_notes([key], 1)[key]) == 1
    assert len(Lookup(chunks).chunks_of_notes([key], 10)[key]) == 2
