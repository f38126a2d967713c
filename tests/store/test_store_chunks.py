"""The chunk table: what goes in comes out, damage is seen, and swaps survive interruption."""

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from obsidian_rag.errors import IndexCorrupted, IndexNotFound
from obsidian_rag.notes import Chunk
from obsidian_rag.store import ChunkRow, ChunkStore, NoteRow
from obsidian_rag.store.chunks import NEXT_TABLE, TABLE

WIDTH = 8
LINK = "11111111-aaaa-4bbb-8ccc-222222222222"
ODD_PATHS = [
    "it's \"quoted\" 'twice''.md",
    "Ünï/日本語/🎉🎈.md",
    "two\nlines\tand tab.md",
    "a%_\\*?[x].md",
    "') OR 1=1 --.md",
    "e\u0301 apart.md",
    " leading and trailing .md ",
]


def rows_for(
    path: str, texts: list[str], link_id: str = LINK
) -> tuple[list[ChunkRow], NDArray[np.float32]]:
    note = NoteRow(
        link_id=link_id,
        source_file=path,
        title=f"Title of {path}",
        aliases=("Alias",),
        date="2024-01-15",
        is_private=False,
        modified_at="2024-01-15T00:00:00Z",
        indexed_at="2024-01-16T00:00:00.000000Z",
    )
    rows = [
        ChunkRow(
            note=note,
            chunk=Chunk(text, "code words", "#head", ("One", "Two"), 1, 2, ("tag", "tag/sub")),
            chunk_id=str(uuid.uuid4()),
            chunk_index=position,
            total_chunks=len(texts),
            content_hash=f"hash of {text}",
        )
        for position, text in enumerate(texts)
    ]
    vectors = np.random.default_rng(len(path)).random((len(texts), WIDTH), dtype=np.float32)
    return rows, vectors


def put(store: ChunkStore, path: str, *texts: str) -> None:
    store.replace(LINK, [path], *rows_for(path, list(texts)))


def texts_of(store: ChunkStore) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path, text, *_ in store.texts():
        found.setdefault(path, []).append(text)
    return {path: sorted(texts) for path, texts in found.items()}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "vectors.lance")


@pytest.fixture
def store(uri: str) -> ChunkStore:
    made = ChunkStore(uri)
    made.create(WIDTH)
    return made


def test_there_is_no_table_before_it_is_made(uri: str) -> None:
    store = ChunkStore(uri)
    assert not store.exists()
    for ask in (store.count, lambda: store.table):
        with pytest.raises(IndexNotFound):
            ask()


def test_the_columns_of_the_design_have_their_types(store: ChunkStore) -> None:
    text = pa.string()
    seed = {
        "vector": pa.list_(pa.float32(), WIDTH),
        "chunk_id": text,
        "chunk_text": text,
        "source_file": text,
        "source_directory": text,
        "section": text,
        "date": text,
        "tags": pa.list_(text),
        "chunk_index": pa.int32(),
        "total_chunks": pa.int32(),
        "modified_at": text,
        "indexed_at": text,
    }
    ours = {
        "link_id": text,
        "title": text,
        "heading_path": pa.list_(text),
        "start_line": pa.int32(),
        "end_line": pa.int32(),
        "content_hash": text,
    }
    schema = store.table.schema
    assert {name: schema.field(name).type for name in seed | ours} == seed | ours
    assert store.name == TABLE == "obsidian_chunks"
    assert not schema.field("chunk_id").nullable
    assert store.dimensions == WIDTH


def test_a_row_comes_back_as_it_was_written(store: ChunkStore) -> None:
    rows, vectors = rows_for("Journal/2024/x.md", ["first", "second"])
    store.replace(LINK, [], rows, vectors)
    assert store.count() == 2
    found = store.fetch(LINK, ["Journal/2024/x.md"])["Journal/2024/x.md"]
    assert [chunk.chunk_id for chunk in found] == [row.chunk_id for row in rows]
    assert [chunk.content_hash for chunk in found] == ["hash of first", "hash of second"]
    assert found[0].title == "Title of Journal/2024/x.md"
    assert found[0].heading_path == ("One", "Two")
    assert np.array_equal(np.stack([chunk.vector for chunk in found]), vectors)
    row = store.table.to_arrow().to_pylist()[0]
    del row["vector"], row["chunk_id"], row["card"]
    assert row == {
        "names": "Title of Journal/2024/x.md\nAlias\nOne\nTwo",
        "tag_keys": ["tag", "tag/sub"],
        "chunk_text": "first",
        "source_file": "Journal/2024/x.md",
        "source_directory": "Journal",
        "section": "#head",
        "date": "2024-01-15",
        "tags": ["tag", "tag/sub"],
        "chunk_index": 0,
        "total_chunks": 2,
        "modified_at": "2024-01-15T00:00:00Z",
        "indexed_at": "2024-01-16T00:00:00.000000Z",
        "link_id": LINK,
        "title": "Title of Journal/2024/x.md",
        "aliases": ["Alias"],
        "heading_path": ["One", "Two"],
        "start_line": 1,
        "end_line": 2,
        "content_hash": "hash of first",
        "words_only": "code words",
        "is_private": False,
        "dates": ["20", "202", "2024", "2024-01", "2024-01-15"],
        "is_dated": True,
    }


def test_a_note_in_the_root_of_the_vault_has_no_folder() -> None:
    assert rows_for("a.md", ["x"])[0][0].note.source_directory == ""


def test_replacing_a_note_touches_no_other_note(store: ChunkStore) -> None:
    put(store, "a.md", "a1", "a2")
    put(store, "b.md", "b1")
    put(store, "a.md", "a3")
    assert texts_of(store) == {"a.md": ["a3"], "b.md": ["b1"]}
    store.replace(LINK, ["b.md"], [], np.zeros((0, WIDTH), dtype=np.float32))
    assert texts_of(store) == {"a.md": ["a3"]}


def test_replacing_a_note_touches_no_other_vault(store: ChunkStore) -> None:
    put(store, "a.md", "ours")
    store.replace("other", [], *rows_for("a.md", ["theirs"], "other"))
    store.replace(LINK, ["a.md"], [], np.zeros((0, WIDTH), dtype=np.float32))
    assert texts_of(store) == {"a.md": ["theirs"]}
    assert store.fetch(LINK, ["a.md"]) == {}
    assert set(store.fetch("other", ["a.md"])) == {"a.md"}


def test_any_path_can_be_written_fetched_and_deleted(store: ChunkStore) -> None:
    for path in ODD_PATHS:
        put(store, path, path)
    assert set(store.fetch(LINK, ODD_PATHS)) == set(ODD_PATHS)
    for path in ODD_PATHS:
        assert set(store.fetch(LINK, [path])) == {path}
    kept = ODD_PATHS[::2]
    store.replace(LINK, ODD_PATHS[1::2], [], np.zeros((0, WIDTH), dtype=np.float32))
    assert texts_of(store) == {path: [path] for path in kept}


def test_more_notes_than_fit_one_question_are_all_found_and_deleted(store: ChunkStore) -> None:
    paths = [f"folder/note {number}.md" for number in range(1203)]
    rows: list[ChunkRow] = []
    for path in paths:
        rows += rows_for(path, ["x"])[0]
    store.replace(LINK, paths, rows, np.ones((len(rows), WIDTH), dtype=np.float32))
    assert set(store.fetch(LINK, paths)) == set(paths)
    store.replace(LINK, paths[1:], [], np.zeros((0, WIDTH), dtype=np.float32))
    assert store.count() == 1


def test_another_handle_sees_what_was_written(store: ChunkStore, uri: str) -> None:
    put(store, "a.md", "x")
    other = ChunkStore(uri)
    assert other.count() == 1
    before = store.table.version
    put(store, "a.md", "y")
    assert store.table.version > before
    store.close()
    assert texts_of(store) == {"a.md": ["y"]}


def test_making_a_table_again_empties_it_and_may_change_its_width(store: ChunkStore) -> None:
    put(store, "a.md", "x")
    store.create(16)
    assert (store.count(), store.dimensions) == (0, 16)
    store.drop()
    assert not store.exists()
    store.drop()


def test_maintenance_makes_word_indexes_once_and_keeps_every_row(store: ChunkStore) -> None:
    store.maintain()
    assert list(store.table.list_indices()) == []
    for number in range(5):
        put(store, f"{number}.md", f"text {number}", f"more {number}")
    before = texts_of(store)
    for window_s in (60, 0, 60):
        store.maintain(window_s=window_s)
    indexed = sorted(column for index in store.table.list_indices() for column in index.columns)
    words = ["chunk_text", "names", "words_only"]
    assert indexed == sorted([*words, "chunk_id", "dates", "link_id", "source_file", "tag_keys"])
    assert texts_of(store) == before
    put(store, "later.md", "text after the index")
    assert set(store.fetch(LINK, ["later.md", "1.md"])) == {"later.md", "1.md"}
    assert store.damage() is None


def half_way_nothing(store: ChunkStore, successor: ChunkStore) -> None:
    """Neither rename has happened."""


def half_way_retired(store: ChunkStore, successor: ChunkStore) -> None:
    """The old table has left its place, the new one has not come."""
    assert store.folder is not None
    store.folder.rename(store.folder.with_name(f"{TABLE}_retired.lance"))


def half_way_not_cleaned(store: ChunkStore, successor: ChunkStore) -> None:
    """Both renames are done; the old table still lies beside."""
    half_way_retired(store, successor)
    assert store.folder is not None
    assert successor.folder is not None
    successor.folder.rename(store.folder)


def half_way_done(store: ChunkStore, successor: ChunkStore) -> None:
    """All is done, but nobody noted it."""
    store.promote(successor)


@pytest.mark.parametrize(
    "interrupted", [half_way_nothing, half_way_retired, half_way_not_cleaned, half_way_done]
)
def test_a_swap_can_be_finished_from_wherever_it_stopped(
    store: ChunkStore, uri: str, interrupted: Callable[[ChunkStore, ChunkStore], None]
) -> None:
    put(store, "old.md", "old")
    successor = ChunkStore(uri, NEXT_TABLE)
    successor.create(16)
    rows, _ = rows_for("new.md", ["new"])
    successor.replace(LINK, [], rows, np.ones((1, 16), dtype=np.float32))
    successor.maintain(window_s=0)
    interrupted(store, successor)
    for _ in range(2):
        store.promote(ChunkStore(uri, NEXT_TABLE))
    again = ChunkStore(uri)
    assert texts_of(again) == {"new.md": ["new"]}
    assert again.dimensions == 16
    assert len(list(again.table.list_indices())) == 8
    assert [path.name for path in Path(uri).iterdir()] == [f"{TABLE}.lance"]


@pytest.mark.parametrize("pattern", ["_versions/*.manifest", "data/*.lance"])
@pytest.mark.parametrize("keep", [0, 0.5], ids=["emptied", "cut-in-half"])
def test_a_file_that_is_cut_off_is_seen_without_opening_the_table(
    store: ChunkStore, pattern: str, keep: float
) -> None:
    put(store, "a.md", "text")
    assert store.folder is not None
    assert store.damage() is None
    file = max(store.folder.glob(pattern))
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * keep)])
    assert file.name in str(store.damage())


def test_a_table_without_versions_is_seen_as_damaged(store: ChunkStore) -> None:
    assert store.folder is not None
    shutil.rmtree(store.folder / "_versions")
    assert store.damage() is not None
    with pytest.raises(IndexCorrupted):
        ChunkStore(store.uri).count()


def test_a_truncated_newest_manifest_is_told_as_damage(store: ChunkStore) -> None:
    put(store, "a.md", "text")
    assert store.folder is not None
    for file in store.folder.glob("_versions/*.manifest"):
        file.write_bytes(b"")
    with pytest.raises(IndexCorrupted):
        ChunkStore(store.uri).count()


def test_a_lost_data_file_is_told_when_it_is_read(store: ChunkStore) -> None:
    put(store, "a.md", "text")
    assert store.folder is not None
    for file in store.folder.glob("data/*.lance"):
        file.unlink()
    damaged = ChunkStore(store.uri)
    with pytest.raises(IndexCorrupted):
        damaged.fetch(LINK, ["a.md"])
    with pytest.raises(IndexCorrupted):
        list(damaged.texts())
    with pytest.raises(IndexCorrupted):
        put(damaged, "a.md", "again")


def test_a_damaged_table_can_be_made_again(store: ChunkStore) -> None:
    put(store, "a.md", "text")
    assert store.folder is not None
    shutil.rmtree(store.folder / "_versions")
    fresh = ChunkStore(store.uri)
    fresh.create(WIDTH)
    assert fresh.count() == 0
    assert fresh.damage() is None


def test_an_address_instead_of_a_folder_serves_too(tmp_path: Path) -> None:
    store = ChunkStore(f"file://{tmp_path}/remote")
    assert store.folder is None
    assert not store.exists()
    store.create(WIDTH)
    put(store, "a.md", "old")
    put(store, "a.md", "new")
    assert store.exists()
    assert texts_of(store) == {"a.md": ["new"]}
    assert store.damage() is None
    store.create(WIDTH)
    assert store.count() == 0
    store.drop()
    assert not store.exists()


def test_a_swap_at_an_address_copies_and_may_be_repeated(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/remote"
    store, successor = ChunkStore(uri), ChunkStore(uri, NEXT_TABLE)
    store.create(WIDTH)
    put(store, "old.md", "old")
    successor.create(WIDTH)
    put(successor, "new.md", "new 1", "new 2")
    store.promote(successor)
    assert texts_of(ChunkStore(uri)) == {"new.md": ["new 1", "new 2"]}
    assert not successor.exists()
    # The process may have died before it could note that the swap is done.
    store.promote(ChunkStore(uri, NEXT_TABLE))
    assert texts_of(ChunkStore(uri)) == {"new.md": ["new 1", "new 2"]}
