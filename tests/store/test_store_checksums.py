"""Checksums of the chunk table's files: what they notice, what they cost, what they let pass."""

import os
import shutil
from pathlib import Path

import pytest
from tests.store.test_store_chunks import LINK, WIDTH, put

from obsidian_rag.errors import IndexCorrupted
from obsidian_rag.store import ChunkStore, checksums
from obsidian_rag.store.chunks import NEXT_TABLE


@pytest.fixture
def store(tmp_path: Path) -> ChunkStore:
    made = ChunkStore(str(tmp_path / "vectors.lance"))
    made.create(WIDTH)
    for number in range(3):
        put(made, f"{number}.md", f"text {number}", "more")
    made.maintain()
    put(made, "1.md", "other text")
    return made


def folder(store: ChunkStore) -> Path:
    assert store.folder is not None
    return store.folder


def files(store: ChunkStore) -> list[Path]:
    found = (path for path in folder(store).rglob("*") if path.is_file())
    return sorted(path for path in found if "hint" not in path.name)


def test_every_file_is_recorded_and_a_sound_table_is_not_suspected(store: ChunkStore) -> None:
    record = checksums.read(folder(store))
    assert record is not None
    recorded = {folder(store) / path for path in record.files}
    assert recorded == {path for path in files(store) if path.name != checksums.NAME}
    assert {part.split("/")[0] for part in record.files} >= {"data", "_indices", "_versions"}
    assert store.damage() is None
    assert ChunkStore(store.uri).damage(is_deep=True) is None


def test_a_change_to_any_file_is_noticed(store: ChunkStore) -> None:
    for file in files(store):
        data = file.read_bytes()
        for broken in (data[:-2], data[:-5] + bytes([data[-5] ^ 1]) + data[-4:], b""):
            file.write_bytes(broken)
            assert file.name in str(ChunkStore(store.uri).damage()), file
        file.unlink()
        if file.name != checksums.NAME:
            assert file.name in str(ChunkStore(store.uri).damage())
        file.write_bytes(data)
    assert ChunkStore(store.uri).damage() is None


def test_nothing_is_read_from_a_table_that_was_damaged_while_it_was_open(store: ChunkStore) -> None:
    assert store.count() == 5
    data = max((folder(store) / "data").glob("*.lance"), key=lambda file: file.stat().st_size)
    data.write_bytes(data.read_bytes()[:-6] + b"\0" + data.read_bytes()[-5:])
    assert store.damage() is not None
    with pytest.raises(IndexCorrupted, match="damaged"):
        store.count()


def test_a_copy_of_the_folder_is_as_sound_as_the_original(
    store: ChunkStore, tmp_path: Path
) -> None:
    shutil.copytree(tmp_path / "vectors.lance", tmp_path / "copy", copy_function=shutil.copyfile)
    copy = ChunkStore(str(tmp_path / "copy"))
    assert copy.damage() is None
    put(copy, "9.md", "nine")
    record = checksums.read(folder(copy))
    assert record is not None
    # From now on the copy's own times are known.
    assert all(
        entry.inode == (folder(copy) / path).stat().st_ino for path, entry in record.files.items()
    )


def test_the_writer_never_makes_damage_right(store: ChunkStore) -> None:
    file = max((folder(store) / "data").glob("*.lance"), key=lambda one: one.stat().st_mtime_ns)
    file.write_bytes(bytes(file.stat().st_size))
    checksums.record(folder(store))
    assert "data/" in str(ChunkStore(store.uri).damage())


def test_a_writer_that_died_leaves_no_false_alarm(store: ChunkStore) -> None:
    """It committed and swept, and had no time to write down what is there now."""
    name = folder(store) / checksums.NAME
    before = name.read_bytes()
    put(store, "2.md", "new")
    name.write_bytes(before)
    assert ChunkStore(store.uri).damage() is None
    store.maintain(window_s=0)
    name.write_bytes(before)
    checksums.unsettle(folder(store))
    assert ChunkStore(store.uri).damage() is None
    store.record()
    assert ChunkStore(store.uri).damage(is_deep=True) is None
    assert {path.name for path in files(store)} > {checksums.NAME}


def test_checksums_move_with_the_table(store: ChunkStore) -> None:
    successor = ChunkStore(store.uri, NEXT_TABLE)
    successor.create(WIDTH)
    put(successor, "a.md", "a")
    store.promote(successor)
    assert store.is_recorded()
    assert store.damage(is_deep=True) is None
    assert [one.chunk_id for one in store.fetch(LINK, ["a.md"])["a.md"]]


def test_only_what_is_new_is_hashed(store: ChunkStore) -> None:
    before = checksums.read(folder(store))
    assert before is not None
    entry = next(path for path in before.files if path.startswith("data/"))
    times = (folder(store) / entry).stat()
    (folder(store) / entry).write_bytes(bytes(times.st_size))
    os.utime(folder(store) / entry, ns=(times.st_atime_ns, times.st_mtime_ns))
    checksums.record(folder(store))
    after = checksums.read(folder(store))
    assert after is not None
    assert after.files[entry] == before.files[entry]
