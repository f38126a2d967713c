"""Damage as people meet it: one code at every door, found by doctor and sync, and healed."""

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.fixture_types import Cli, Configure, MakeVault
from tests.integration.living import QUICK, living
from tests.transports.command_line import Done
from tests.transports.mcp_client import ALONE, envelope_of, talk

SECRET = "xyzzyplugh"
NOTES = {
    f"Folder/Note {number}.md": f"---\ntags: [{'even' if number % 2 == 0 else 'odd'}]\n---\n"
    f"# Lantern {SECRET} {number}\n\nA quiet harbour with copper number{number} and {SECRET}.\n"
    for number in range(12)
}


def table(home: Path) -> Path:
    return home / "vectors.lance" / "obsidian_chunks.lance"


def flip(file: Path, count: int, seed: int = 1) -> None:
    chance = random.Random(seed)
    data = bytearray(file.read_bytes())
    for _ in range(count):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def largest(home: Path, pattern: str) -> Path:
    return max(table(home).glob(pattern), key=lambda file: file.stat().st_size)


def code_of(done: Done) -> str | None:
    error = done.json["error"]
    return error["code"] if error else None


def found(done: Done) -> list[str]:
    return [result["source_file"] for result in done.json["data"]["results"]]


def verdicts(done: Done) -> dict[str, str]:
    return {one["check"]: one["verdict"] for one in done.json["data"]["findings"]}


def test_flipped_bytes_in_a_data_file_stop_a_search_before_it_reads_them(
    cli: Cli, vault: Path, home: Path
) -> None:
    original = largest(home, "data/*.lance").read_bytes()
    for seed in range(8):
        largest(home, "data/*.lance").write_bytes(original)
        flip(largest(home, "data/*.lance"), 20, seed)
        for arguments in (("search", "copper harbour"), ("search", "tag:even lantern")):
            done = cli(*arguments, "--json")
            assert (done.code, code_of(done)) == (2, "INDEX_CORRUPTED")
            assert SECRET not in done.err
    assert cli("reindex").code == 0
    assert code_of(cli("search", "copper harbour", "--json")) is None


def test_zeros_in_the_tag_index_are_no_answer(cli: Cli, vault: Path, home: Path) -> None:
    assert len(found(cli("search", "tag:even harbour", "--top", "20", "--json"))) == 6
    tags = largest(home, "_indices/*/bitmap_page_lookup.lance")
    tags.write_bytes(bytes(512) + tags.read_bytes()[512:])
    assert code_of(cli("search", "tag:even harbour", "--json")) == "INDEX_CORRUPTED"
    assert code_of(cli("status", "--json")) == "INDEX_CORRUPTED"
    assert cli("doctor").code == 2


def test_a_changed_file_with_its_old_time_is_found_too(cli: Cli, vault: Path, home: Path) -> None:
    tags = largest(home, "_indices/*/bitmap_page_lookup.lance")
    before = tags.stat()
    with tags.open("r+b") as stream:
        stream.write(bytes(512))
    os.utime(tags, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert code_of(cli("doctor", "--deep", "--json")) == "INDEX_CORRUPTED"
    assert code_of(cli("search", "tag:even harbour", "--json")) == "INDEX_CORRUPTED"


@pytest.mark.parametrize("pattern", ["part_*_tokens.lance", "part_*_invert.lance"])
def test_a_damaged_word_index_is_found_by_doctor_and_sync(
    cli: Cli, vault: Path, home: Path, pattern: str
) -> None:
    flip(largest(home, f"_indices/*/{pattern}"), 20)
    assert code_of(cli("doctor", "--json")) == "INDEX_CORRUPTED"
    assert code_of(cli("doctor", "--deep", "--json")) == "INDEX_CORRUPTED"
    synced = cli("sync", "--json")
    assert (synced.code, code_of(synced)) == (2, "INDEX_CORRUPTED")
    assert cli("reindex").code == 0
    assert set(verdicts(cli("doctor", "--deep", "--json")).values()) == {"ok"}


@pytest.mark.parametrize("column", ["chunk_text", "tag_keys", "source_file"])
def test_doctor_asks_every_index_also_when_no_checksums_are_known(
    cli: Cli, vault: Path, home: Path, column: str
) -> None:
    for folder in table(home).glob("_indices/*"):
        if _belongs(folder, column):
            for file in folder.iterdir():
                file.write_bytes(bytes(file.stat().st_size))
    (table(home) / "checksums.txt").unlink(missing_ok=True)
    assert code_of(cli("doctor", "--json")) == "INDEX_CORRUPTED"


def _belongs(folder: Path, column: str) -> bool:
    names = {file.name for file in folder.iterdir()}
    if column == "tag_keys":
        return "bitmap_page_lookup.lance" in names
    if column == "source_file":
        return "page_lookup.lance" in names
    return "part_0_tokens.lance" in names


def test_a_title_that_is_no_text_any_more_is_not_quoted_and_sync_heals_it(
    cli: Cli, vault: Path, home: Path
) -> None:
    before = found(cli("related", "Note 3", "--json"))
    assert before
    break_titles(home)
    done = cli("sync", "--json")
    assert done.code == 0
    related = cli("related", "Note 3", "--json")
    assert (code_of(related), found(related)) == (None, before)
    assert not (home / "logs/crash.log").exists()


def break_titles(home: Path) -> None:
    """Damage that SQLite does not see: text that cannot be decoded."""
    with closing(sqlite3.connect(home / "relations.db")) as database:
        database.execute("UPDATE note SET title = CAST(x'ff' || CAST(title AS BLOB) AS TEXT)")
        database.execute("DELETE FROM meta WHERE key = 'mark'")
        database.commit()


def test_twenty_flips_in_the_relations_are_healed_by_a_reindex(
    cli: Cli, vault: Path, home: Path
) -> None:
    before = found(cli("related", "Note 3", "--json"))
    original = (home / "relations.db").read_bytes()
    for seed in range(4):
        (home / "relations.db").write_bytes(original)
        flip(home / "relations.db", 20, seed)
        assert SECRET not in cli("doctor", "--deep").out
        assert cli("reindex").code == 0
        assert found(cli("related", "Note 3", "--json")) == before


def test_damaged_relations_have_one_code_at_every_door(
    cli: Cli, make_vault: MakeVault, configure: Configure, home: Path, tmp_path: Path
) -> None:
    root = make_vault(NOTES)
    configure(root, QUICK)
    assert cli("index").code == 0
    asked = {"note": "Folder/Note 3.md"}
    break_titles(home)

    async def session(client: Client) -> Any:
        return envelope_of(await client.call_tool("obsidian_rag_related", asked))

    # Without a daemon it is healed on the way, as a command does it.
    alone = talk(session, tmp_path / "said.txt", ALONE)
    assert alone["error"] is None
    break_titles(home)
    with living() as daemon:
        by_http = daemon.call("related", **asked)
        assert by_http["error"]["code"] == "INDEX_CORRUPTED"
        assert SECRET not in str(by_http["error"])


def test_a_damaged_database_is_kept_and_what_is_in_it_is_saved(
    cli: Cli, vault: Path, home: Path
) -> None:
    stored = cli("memory", "store", "boat", "blue", "--source", "Folder/Note 3.md")
    assert stored.code == 0
    with closing(sqlite3.connect(home / "state.db")) as database:
        database.executemany(
            "INSERT INTO memory (key, value, source, created_at, updated_at)"
            " VALUES (?, ?, 'Folder/Note 3.md', '2024', '2024')",
            ((f"many{number:04}", "x" * 300) for number in range(400)),
        )
        database.commit()
        found = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'meta'")
        (root,) = found.fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    with (home / "state.db").open("r+b") as stream:
        stream.seek((root - 1) * size)
        stream.write(b"\xff" * size)
    assert code_of(cli("status", "--json")) == "INDEX_CORRUPTED"
    done = cli("reindex")
    assert done.code == 0
    (aside,) = (file for file in home.glob("state.db.damaged-*") if not file.name.endswith("wal"))
    assert str(aside) in done.out + done.err
    assert len(cli("memory", "list", "--json").json["data"]["facts"]) == 401


def test_settings_that_were_damaged_are_told_as_such(cli: Cli, vault: Path, home: Path) -> None:
    (home / "config.json").write_bytes(b"\x00\xff" + (home / "config.json").read_bytes()[:20])
    assert code_of(cli("search", "copper", "--json")) == "CONFIG_INVALID"
    (home / "daemon.json").write_bytes(b"\x00\xff")
    (home / "sync-result.json").write_bytes(b"\x00\xff")
    assert code_of(cli("status", "--json")) == "CONFIG_INVALID"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_database_that_was_cut_off_is_damaged_for_every_question(
    cli: Cli, vault: Path, home: Path, share: float
) -> None:
    data = (home / "state.db").read_bytes()
    (home / "state.db").write_bytes(data[: int(len(data) * share)])
    for question in (
        ("search", "copper"),
        ("related", "Folder/Note 3.md"),
        ("suggest", "Folder/Note 3.md"),
        ("read", "Note 3"),
        ("memory", "recall", "boat"),
        ("status",),
        ("token", "create", "--name", "one", "--vaults", "vault"),
    ):
        done = cli(*question, "--json")
        assert code_of(done) == "INDEX_CORRUPTED", question
        assert "reindex" in done.json["error"]["suggestion"], question
    assert cli("reindex").code == 0
    assert found(cli("related", "Folder/Note 3.md", "--json"))


@pytest.mark.parametrize("pattern", ["data/*.lance", "_indices/*/part_*_tokens.lance"])
def test_without_checksums_the_next_run_verifies_the_table_and_records_them(
    cli: Cli, vault: Path, home: Path, pattern: str
) -> None:
    sums = table(home) / "checksums.txt"
    sums.unlink()
    assert cli("sync").code == 0
    assert sums.exists()
    assert verdicts(cli("doctor", "--json"))["files"] == "ok"
    sums.unlink()
    file = largest(home, pattern)
    data = file.read_bytes()
    file.write_bytes(data[:-200].replace(b"copper", b"silver") + data[-200:])
    if file.read_bytes() == data:
        file.write_bytes(bytes(512) + data[512:])
    synced = cli("sync", "--json")
    assert (synced.code, code_of(synced)) == (2, "INDEX_CORRUPTED")
    assert not sums.exists(), "damage is never recorded as right"
    assert cli("reindex").code == 0
    assert verdicts(cli("doctor", "--deep", "--json"))["files"] == "ok"
