import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from obsidian_rag.errors import EmbeddingMismatch, IndexCorrupted, VaultAway
from obsidian_rag.health import file_notices
from obsidian_rag.index import Phase, Progress
from obsidian_rag.store.chunks import TABLE

if TYPE_CHECKING:
    from tests.index.conftest import World

SECTIONS = "# Garden\n\n" + "\n\n".join(
    f"## Bed {number}\n\n" + f"Bed {number} grows vegetable number {number}. " * 12
    for number in range(6)
)


def snapshot(vault: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(vault)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(vault.rglob("*"))
        if path.is_file()
    }


def test_a_first_sync_indexes_every_note_and_leaves_the_vault_as_it_was(world: "World") -> None:
    world.write({"a.md": "# A\n\nalpha", "Journal/2024-01-15.md": "#mentalhealth\nSlept well."})
    before = snapshot(world.vault)
    result = world.run("sync")
    assert (result.indexed_files, result.total_chunks, result.exit_code) == (2, 2, 0)
    assert snapshot(world.vault) == before
    row = next(row for row in world.rows() if row["source_file"].startswith("Journal"))
    assert (row["source_directory"], row["section"], row["date"], row["tags"]) == (
        "Journal", "#mentalhealth", "2024-01-15", ["#mentalhealth"],
    )  # fmt: skip


def test_a_second_sync_finds_nothing_to_do_and_opens_no_note(world: "World") -> None:
    world.write({"a.md": "# A\n\nalpha one", "b.md": "# B\n\nbeta"})
    world.run("full")
    # Other content behind the same metadata: whoever read the file would notice.
    status = (world.vault / "a.md").stat()
    (world.vault / "a.md").write_text("# A\n\nalpha two")
    os.utime(world.vault / "a.md", ns=(status.st_atime_ns, status.st_mtime_ns))
    result = world.run("sync")
    assert (result.tally.unchanged, result.tally.touched) == (2, 0)
    assert ("a.md", "# A\n\nalpha one") in world.texts()


def test_a_full_index_trusts_no_timestamp(world: "World") -> None:
    world.write({"a.md": "# A\n\nalpha one", "b.md": "# B\n\nbeta"})
    world.run("full")
    status = (world.vault / "a.md").stat()
    (world.vault / "a.md").write_text("# A\n\nalpha two")
    os.utime(world.vault / "a.md", ns=(status.st_atime_ns, status.st_mtime_ns))
    result = world.run("full")
    assert (result.tally.changed, result.tally.unchanged) == (1, 1)
    assert ("a.md", "# A\n\nalpha two") in world.texts()


def test_an_edit_embeds_only_the_chunks_that_changed_and_keeps_the_others_ids(
    world: "World",
) -> None:
    world.write({"garden.md": SECTIONS})
    first = world.run()
    before = world.ids()
    world.write({"garden.md": SECTIONS.replace("vegetable number 3", "flower number 3")})
    second = world.run()
    after = world.ids()
    assert second.tally.embedded_chunks == 1
    assert second.tally.reused_chunks == first.total_chunks - 1
    assert len(set(before.values()) & set(after.values())) == first.total_chunks - 1


def test_a_moved_folder_keeps_ids_and_vectors_and_embeds_nothing(world: "World") -> None:
    world.write({f"Old/{name}.md": f"Text of {name}." for name in ("one", "two", "three")})
    world.run()
    before = {row["chunk_id"]: row["vector"] for row in world.rows()}
    (world.vault / "Old").rename(world.vault / "New")
    result = world.run()
    after = {row["chunk_id"]: row["vector"] for row in world.rows()}
    assert (result.tally.renamed, result.tally.embedded_chunks) == (3, 0)
    assert after == before
    assert {path for path, _ in world.texts()} == {"New/one.md", "New/two.md", "New/three.md"}


def test_a_renamed_note_keeps_its_ids_and_takes_its_new_title(world: "World") -> None:
    world.write({"Untitled.md": "Feed the starter with rye.", "titled.md": "# Own\n\nStays."})
    world.run()
    ids = {row["chunk_id"] for row in world.rows()}
    (world.vault / "Untitled.md").rename(world.vault / "Sourdough.md")
    (world.vault / "titled.md").rename(world.vault / "moved.md")
    result = world.run()
    # The file name is the first note's title and part of what is embedded; the second has its own.
    assert (result.tally.renamed, result.tally.embedded_chunks) == (2, 1)
    assert {row["chunk_id"] for row in world.rows()} == ids
    assert {row["title"] for row in world.rows()} == {"Sourdough", "Own"}


def test_a_note_copied_over_and_deleted_is_a_rename_by_content(world: "World") -> None:
    world.write({"a.md": "# A\n\n" + "the same words " * 20})
    world.run()
    ids = set(world.ids().values())
    shutil.copy2(world.vault / "a.md", world.vault / "b.md")
    (world.vault / "a.md").unlink()
    result = world.run()
    assert (result.tally.renamed, set(world.ids().values())) == (1, ids)


def test_a_deleted_note_leaves_the_index(world: "World") -> None:
    world.write({"a.md": "alpha", "b.md": "beta"})
    world.run()
    (world.vault / "b.md").unlink()
    result = world.run()
    assert (result.tally.removed, result.indexed_files, result.total_chunks) == (1, 1, 1)
    assert world.texts() == [("a.md", "alpha")]


def test_one_bad_note_is_reported_and_stops_nothing(world: "World") -> None:
    world.write({"bad.md": b"\xff\xff", "good.md": "fine", "broken.md": "---\na: [\n---\ntext"})
    result = world.run()
    assert [(error.file, error.reason) for error in result.tally.errors] == [("bad.md", "not_utf8")]
    assert (result.exit_code, result.indexed_files) == (1, 2)
    world.write({"bad.md": "café"})
    assert (world.run().exit_code, world.run().indexed_files) == (0, 3)


def test_a_note_that_says_rag_false_is_never_indexed_and_leaves_when_it_says_so(
    world: "World",
) -> None:
    world.write({"a.md": "secret", "b.md": "---\nrag: false\n---\nsecret"})
    assert world.run().indexed_files == 1
    world.write({"a.md": "---\nrag: false\n---\nsecret"})
    world.write({"broken.md": "---\nrag: false\ntags: [a\n: x\n---\nsecret"})
    world.run()
    assert world.texts() == []


def test_a_private_note_is_indexed_and_marked(world: "World") -> None:
    world.write({"a.md": "---\nrag: private\n---\nsecret", "b.md": "open"})
    world.run()
    assert [row["is_private"] for row in world.rows()] == [True, False]


def test_an_unknown_value_of_rag_makes_a_note_private_and_is_named(world: "World") -> None:
    world.write({"a.md": "---\nrag: privat\n---\nsecret", "b.md": "open"})
    world.run()
    assert [row["is_private"] for row in world.rows()] == [True, False]
    with closing(world.engine()) as engine:
        (notice,) = file_notices(engine.vaults, engine.database)
    assert (notice.file, notice.status) == ("a.md", "warning")
    assert "'privat'" in notice.reason


def test_files_left_out_by_the_scan_are_recorded_until_they_are_let_in(world: "World") -> None:
    world.settings["indexing"] = {"max_file_mb": 0.001}
    world.write({"big.md": "x " * 2000, "small.md": "fine"})
    result = world.run()
    assert (result.tally.skipped, result.indexed_files, result.exit_code) == (1, 1, 0)
    world.write({"big.md": "small now"})
    assert (world.run().tally.skipped, world.run().indexed_files) == (0, 2)


def test_an_empty_vault_folder_does_not_wipe_the_index(world: "World", tmp_path: Path) -> None:
    world.write({"a.md": "alpha"})
    world.run()
    world.vault.rename(tmp_path / "elsewhere")
    with pytest.raises(VaultAway):
        world.run()
    world.vault.mkdir()
    for mode in ("sync", "full", "reindex"):
        with pytest.raises(VaultAway, match="0 of 1 notes are there"):
            world.run(mode)
    assert world.texts() == [("a.md", "alpha")]
    world.run("reindex", accepts_removals=True)
    assert world.texts() == []


def test_a_moved_vault_keeps_its_index(world: "World", tmp_path: Path) -> None:
    world.write({"a.md": "alpha", "b.md": "beta"})
    world.run()
    world.vault = world.vault.rename(tmp_path / "moved")
    result = world.run()
    assert (result.tally.unchanged, result.tally.touched) == (2, 0)


def test_changed_settings_are_refused_until_reindex(world: "World") -> None:
    world.write({"a.md": "alpha"})
    world.run()
    world.settings["embedding"] = {"provider": "hash", "dimensions": 64}
    world.write({"b.md": "beta"})
    with pytest.raises(EmbeddingMismatch):
        world.run("sync")
    assert world.texts() == [("a.md", "alpha")]
    world.run("reindex")
    assert {len(row["vector"]) for row in world.rows()} == {64}
    assert world.run("sync").tally.touched == 0


def test_the_old_index_answers_until_the_new_one_is_complete(world: "World") -> None:
    world.write({f"{number}.md": f"note {number}" for number in range(50)})
    world.run()
    world.settings["embedding"] = {"provider": "hash", "dimensions": 32}
    counts = set()

    def look(progress: Progress) -> None:
        if progress.phase is not Phase.RELATING:  # which comes last
            reader = world.engine()
            counts.add((reader.chunks.dimensions, reader.chunks.count()))
            reader.close()

    world.run("reindex", listener=look)
    assert counts == {(256, 50)}
    assert world.engine().chunks.dimensions == 32


def test_a_lost_vector_store_is_built_again_by_the_next_sync(world: "World") -> None:
    world.write({"a.md": "alpha"})
    world.run()
    shutil.rmtree(world.home / "vectors.lance")
    assert world.run("sync").tally.added == 1
    assert world.texts() == [("a.md", "alpha")]


def test_a_damaged_table_is_told_and_reindex_repairs_it(world: "World") -> None:
    world.write({"a.md": "alpha"})
    world.run()
    for manifest in (world.home / "vectors.lance" / f"{TABLE}.lance" / "_versions").iterdir():
        manifest.write_bytes(manifest.read_bytes()[:20])
    world.write({"a.md": "alpha changed"})
    with pytest.raises(IndexCorrupted):
        world.run("sync")
    world.run("reindex")
    assert world.texts() == [("a.md", "alpha changed")]


def test_a_damaged_database_is_kept_aside_by_reindex(world: "World") -> None:
    world.write({"a.md": "alpha"})
    world.run()
    (world.home / "state.db").write_bytes(b"not a database" * 1000)
    with pytest.raises(IndexCorrupted):
        world.run("sync")
    assert world.run("reindex").indexed_files == 1
    assert list(world.home.glob("state.db.damaged-*"))
    assert world.texts() == [("a.md", "alpha")]


def test_a_database_whose_column_has_another_name_is_damaged_too(world: "World") -> None:
    world.write({"a.md": "alpha"})
    world.run()
    with closing(sqlite3.connect(world.home / "state.db", isolation_level=None)) as file:
        file.execute("PRAGMA writable_schema = ON")
        file.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'content_hash', 'content_hasi')"
            " WHERE name = 'vault_file_manifest'"
        )
    with pytest.raises(IndexCorrupted):
        world.run("sync")
    assert world.run("reindex").indexed_files == 1
    assert list(world.home.glob("state.db.damaged-*"))


def test_a_cancelled_run_keeps_what_it_did_and_the_next_one_finishes(world: "World") -> None:
    world.write({f"{number:04}.md": f"# N\n\nnote {number} " * 30 for number in range(800)})
    groups = []
    first = world.run(
        listener=lambda progress: groups.append(progress.phase),
        stop=lambda: groups.count("storing") >= 1,  # type: ignore[arg-type]  # a StrEnum is a str
    )
    assert first.exit_code == 130
    assert 0 < first.indexed_files < 800
    second = world.run()
    assert (second.indexed_files, second.exit_code) == (800, 0)
    assert len(world.texts()) == 800


def test_many_files_are_done_a_page_at_a_time_and_counted_together(
    world: "World", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("obsidian_rag.index.run._QUEUE_PAGE_FILES", 10)
    world.write({f"{number:02}.md": f"# N\n\nnote {number}" for number in range(25)})
    world.write({"24.md": b"\xff\xfe\x00broken"})
    stored: list[tuple[int, int]] = []

    def listen(progress: Progress) -> None:
        if progress.phase is Phase.STORING:
            stored.append((progress.current, progress.total))

    first = world.run(listener=listen, stop=lambda: len(stored) == 1)
    assert (stored, first.tally.is_cancelled) == ([(10, 25)], True)
    second = world.run(listener=listen)
    assert stored[1:] == [(10, 15), (15, 15)]
    assert (second.indexed_files, len(world.texts())) == (24, 24)
    # Which page it is on depends on the order in which the file system lists files.
    errors = [*first.tally.errors, *second.tally.errors]
    assert [error.file for error in errors] == ["24.md"]


def test_the_result_is_on_file(world: "World") -> None:
    world.write({"a.md": "alpha", "bad.md": b"\xff"})
    world.run()
    found = json.loads((world.home / "sync-result.json").read_text())
    assert (found["status"], found["indexed_files"], found["total_chunks"]) == ("partial", 1, 1)
    assert found["errors"][0]["file"] == "bad.md"
    assert found["last_sync"] is not None


def test_a_year_of_small_edits_does_not_bloat_the_store(
    world: "World", monkeypatch: pytest.MonkeyPatch
) -> None:
    # In a year, no reader has an old version still open.
    monkeypatch.setattr("obsidian_rag.index.run.READER_WINDOW_S", 0.0)
    world.write({f"{number}.md": f"note {number}" for number in range(20)})
    world.run()
    for number in range(140):
        world.write({"0.md": f"edit {'x' * number}"})  # another size: the time is the same
        assert world.run().tally.changed == 1
    table = world.home / "vectors.lance" / f"{TABLE}.lance"
    assert len(list((table / "data").iterdir())) < 70
    assert len(list((table / "_versions").iterdir())) < 140
    assert len(world.texts()) == 20


def test_a_note_touched_within_the_clocks_tick_is_looked_at_again(world: "World") -> None:
    path = world.vault / "a.md"
    path.write_text("one")
    future = path.stat().st_mtime_ns + 3_600_000_000_000
    os.utime(path, ns=(future, future))
    world.run()
    path.write_text("two")
    os.utime(path, ns=(future, future))
    assert world.run().tally.changed == 1
    assert world.texts() == [("a.md", "two")]


def test_a_sync_of_some_paths_looks_at_those_only(world: "World") -> None:
    world.write({"a.md": "alpha", "Folder/b.md": "beta", "c.md": "gamma"})
    world.run()
    world.write({"a.md": "alpha changed", "c.md": "gamma changed", "Folder/new.md": "fresh"})
    result = world.run(paths=["a.md", "Folder/new.md", "Folder/nothing.md"])
    assert (result.tally.changed, result.tally.added) == (1, 1)
    assert dict(world.texts())["c.md"] == "gamma"
    assert world.run().tally.changed == 1


def test_a_sync_of_paths_knows_removed_folders_and_renames(world: "World") -> None:
    world.write({"Old/a.md": "alpha", "Old/deep/b.md": "beta", "Oldest.md": "stays", "x.md": "x"})
    world.run()
    ids = {row["chunk_id"] for row in world.rows()}
    (world.vault / "Old").rename(world.vault / "New")
    result = world.run(paths=["Old", "New/a.md", "New/deep/b.md"])
    assert (result.tally.renamed, result.tally.embedded_chunks) == (2, 0)
    assert {row["chunk_id"] for row in world.rows()} == ids
    shutil.rmtree(world.vault / "New")
    assert world.run(paths=["New"]).tally.removed == 2
    assert sorted(dict(world.texts())) == ["Oldest.md", "x.md"]


def test_a_new_folder_among_the_paths_means_a_walk(world: "World") -> None:
    world.write({"a.md": "alpha"})
    world.run()
    world.write({"Folder/b.md": "beta"})
    assert world.run(paths=["Folder"]).tally.added == 1


def test_a_sync_of_paths_obeys_the_rules(world: "World") -> None:
    world.write({"a.md": "alpha"})
    world.run()
    world.write({".obsidian/x.md": "no", "zzz-Archive/y.md": "no", "image.png": "no"})
    result = world.run(paths=[".obsidian/x.md", "zzz-Archive/y.md", "image.png", "../vault/a.md"])
    assert (result.tally.touched, len(world.texts())) == (0, 1)
