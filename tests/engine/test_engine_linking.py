"""Vaults that are linked by path: validated, indexed beside the primary one, never written to."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.folders import write_notes

from obsidian_rag import tools
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.engine.linking import (
    add_link,
    change_link,
    link_status,
    remove_link,
    sync_link,
)
from obsidian_rag.errors import InvalidArgument, NotFound, ObsidianRagError, ReadOnly, VaultAway
from obsidian_rag.index import IndexResult, Progress
from obsidian_rag.relations import similar_titles
from obsidian_rag.relations.query import memory_index
from obsidian_rag.store import Link, LinkFacts, Links, Queue
from obsidian_rag.tools import OWNER, TOOLS, run
from obsidian_rag.tools.dispatch import OWNER_TOOLS
from obsidian_rag.tools.note_files import note_files

PRIMARY = {
    "Pond.md": "# Pond\n\nThe pond has newts and water lilies. See [[Shared]].",
    "Shared.md": "# Shared\n\nOf the primary vault: rushes and sedge.",
}
LINKED = {
    "Shared.md": "# Shared\n\nOf the linked vault: granite and basalt.",
    "Rocks/Granite.md": "# Granite\n\nGranite is coarse. See [[Shared]].",
    "Rocks/Newts.md": "# Newts\n\nNewts live in the pond with water lilies.",
}
Make = Callable[[Mapping[str, str]], Path]


def call(engine: Engine, tool: str, arguments: Mapping[str, object]) -> Any:
    """The envelope of a tool; failures are raised."""
    return run(engine, tool, arguments)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    root = tmp_path / "elsewhere" / "Stones"
    write_notes(root, LINKED)
    return root


@pytest.fixture
def made(engine: Callable[..., Engine], make_vault: Make) -> Iterator[Engine]:
    one = engine(make_vault(PRIMARY))
    run_index(one, "sync")
    yield one


def found(engine: Engine, query: str, **arguments: object) -> list[tuple[str, str]]:
    envelope = call(engine, "obsidian_rag_search", {"query": query, "max_results": 20, **arguments})
    return [(one["vault"], one["source_file"]) for one in envelope["data"]["results"]]


def test_a_linked_vault_is_searchable_beside_the_primary_one(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    assert (link.name, link.mode, link.root_path) == ("Stones", "read_only", other)
    result = sync_link(made, link.link_id)
    assert isinstance(result, IndexResult)
    assert (result.tally.added, result.indexed_files) == (3, 5)
    assert ("Stones", "Rocks/Granite.md") in found(made, "coarse granite")
    assert {vault for vault, _ in found(made, "newts")} == {"vault", "Stones"}
    assert {vault for vault, _ in found(made, "newts", vaults=["Stones"])} == {"Stones"}
    assert {vault for vault, _ in found(made, "newts", vaults=[link.link_id])} == {"Stones"}
    assert {vault for vault, _ in found(made, "newts vault:vault")} == {"vault"}
    with pytest.raises(InvalidArgument) as refused:
        found(made, "newts", vaults=["Nowhere"])
    assert "'Stones'" in refused.value.suggestion


def test_links_are_read_once_until_something_changes(
    made: Engine, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, read = list[int](), Links.all

    def counted(links: Links) -> list[Link]:
        reads.append(1)
        return read(links)

    monkeypatch.setattr(Links, "all", counted)
    made.database.put("changed", "1")
    names = [[vault.name for vault in made.vaults] for _ in range(3)]
    assert len(reads) == 1
    add_link(made, str(other), name="Stones")
    assert [vault.name for vault in made.vaults] == [*names[0], "Stones"]


def test_a_sync_of_everything_covers_all_vaults(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    assert run_index(made, "sync").tally.added == 3
    (other / "New.md").write_text("# New\n\nObsidian is a glass.")
    (other / "Rocks/Newts.md").unlink()
    tally = run_index(made, "sync").tally
    assert (tally.added, tally.removed) == (1, 1)
    assert found(made, "obsidian glass")[0] == ("Stones", "New.md")
    rows = made.database.rows(
        'SELECT "exists", deleted_at IS NULL FROM vault_file_manifest'
        " WHERE link_id = ? AND rel_path = 'Rocks/Newts.md'",
        (link.link_id,),
    )
    assert rows == [(0, 0)]


def test_notes_of_one_name_are_told_apart(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    sync_link(made, link.link_id)
    for vault, text in ((None, "rushes"), ("vault", "rushes"), ("Stones", "granite")):
        arguments = {"note": "Shared.md"} | ({"vault": vault} if vault else {})
        data = call(made, "obsidian_rag_read", arguments)["data"]
        assert text in data["text"]
    data = call(made, "obsidian_rag_read", {"note": "Granite"})["data"]
    assert (data["vault"], data["vault_label"]) == ("Stones", "Linked vault (read-only)")
    with pytest.raises(NotFound, match="Nothing"):
        call(made, "obsidian_rag_read", {"note": "Pond", "vault": "Nothing"})
    assert note_files(made, "Stones").is_there("Rocks/Newts.md")


def test_links_between_notes_stay_in_their_vault(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    sync_link(made, link.link_id)
    loaded = memory_index(made.relations)
    primary = made.vaults.primary.link_id
    slots = loaded.by_path
    assert loaded.graph.outgoing[slots[primary, "Pond.md"]] == {slots[primary, "Shared.md"]}
    granite, shared = slots[link.link_id, "Rocks/Granite.md"], slots[link.link_id, "Shared.md"]
    assert loaded.graph.outgoing[granite] == {shared}


def test_related_notes_cross_vaults_unless_told_otherwise(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    sync_link(made, link.link_id)

    def related(**arguments: object) -> set[tuple[str, str]]:
        given = {"note": "Pond.md", "hide_linked": False, **arguments}
        data = call(made, "obsidian_rag_related", given)["data"]
        return {(one["vault"], one["source_file"]) for one in data["results"]}

    assert ("Stones", "Rocks/Newts.md") in related()
    assert {vault for vault, _ in related(vaults=["vault"])} <= {"vault"}
    assert {vault for vault, _ in related(vaults=["Stones"])} == {"Stones"}


def test_titles_are_looked_for_where_relations_are_written(made: Engine, other: Path) -> None:
    sync_link(made, add_link(made, str(other)).link_id)
    assert similar_titles(made.relations, "Granite", 5) == []
    assert similar_titles(made.relations, "Shared", 1) == [("Shared.md", "Shared", 1.0)]


def test_a_reindex_rebuilds_every_vault(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    sync_link(made, link.link_id)
    before = made.chunks.count()
    result = run_index(made, "reindex")
    assert (result.indexed_files, made.chunks.count()) == (5, before)
    assert len(memory_index(made.relations).by_path) == 5
    assert ("Stones", "Rocks/Granite.md") in found(made, "coarse granite")
    assert run_index(made, "sync").tally.touched == 0


def test_a_reindex_waits_for_a_linked_vault_that_is_away(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    sync_link(made, link.link_id)
    other.rename(other.with_name("Away"))
    with pytest.raises(VaultAway, match="Stones"):
        run_index(made, "reindex")
    assert len(found(made, "granite", vaults=["Stones"])) > 0


def test_a_vault_that_is_away_stops_no_other_and_loses_nothing(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    sync_link(made, link.link_id)
    other.rename(other.with_name("Away"))
    (made.vaults.primary.root / "New.md").write_text("# New\n\nA heron came.")
    result = run_index(made, "sync")
    assert result.tally.added == 1
    assert [one.reason for one in result.tally.errors] == ["VAULT_AWAY"]
    assert ("Stones", "Rocks/Granite.md") in found(made, "coarse granite")
    envelope = call(made, "obsidian_rag_status", {})
    assert (envelope["status"], envelope["error"]["code"]) == ("degraded", "VAULT_AWAY")
    assert "Stones" in envelope["error"]["message"]
    assert link_status(made, link.link_id).link.last_error is not None
    other.with_name("Away").rename(other)
    assert run_index(made, "sync").tally.errors == []
    assert call(made, "obsidian_rag_status", {})["status"] == "healthy"


def test_answers_need_no_file_of_any_vault(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    sync_link(made, link.link_id)
    root = made.vaults.primary.root
    root.rename(root.with_name("gone"))
    other.rename(other.with_name("gone too"))
    assert {vault for vault, _ in found(made, "newts in the pond")} == {"vault", "Stones"}


@pytest.mark.parametrize("place", ["same", "inside", "around", "home", "file", "missing"])
def test_a_folder_that_cannot_be_linked_is_refused(
    made: Engine, other: Path, place: str, home: Path
) -> None:
    link = add_link(made, str(other))
    (other / "a file").write_text("x")
    roots = {
        "same": other,
        "inside": other / "Rocks",
        "around": other.parent,
        "home": home,
        "file": other / "a file",
        "missing": other / "nothing",
    }
    with pytest.raises(InvalidArgument) as refused:
        add_link(made, str(roots[place]))
    if place == "same":
        assert link.link_id in refused.value.message
    assert len(made.vaults.links.all()) == 2


def test_a_relative_path_and_a_link_in_a_circle_are_refused(made: Engine, tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to(tmp_path / "round")
    for path in ("notes", str(tmp_path / "round")):
        with pytest.raises(InvalidArgument):
            add_link(made, path)


@pytest.mark.parametrize("root", ["/proc", "/proc/sys", "/dev"])
def test_a_folder_of_the_system_is_refused(made: Engine, root: str, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(root)
    for path in (root, str(alias)):
        with pytest.raises(InvalidArgument, match="belongs to the system"):
            add_link(made, path)
    assert len(made.vaults.links.all()) <= 1, "only the primary vault"


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="this machine has no /dev/shm")
def test_a_folder_in_memory_can_be_linked(made: Engine) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        assert add_link(made, folder).root_path == Path(folder)


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("INVALID_ARGUMENT", {"root_path": ""}),
        ("INVALID_ARGUMENT", {"root_path": "/tmp/a\0b"}),
        ("INVALID_ARGUMENT", {"root_path": "/tmp/\x1b[2J"}),
        ("INVALID_ARGUMENT", {"name": "a\0b"}),
        ("SECURITY_VIOLATION", {"include": ["../x"]}),
        ("SECURITY_VIOLATION", {"include": ["Rocks", "a/../../x"]}),
        ("SECURITY_VIOLATION", {"include": ["%2e%2e/x"]}),
        ("SECURITY_VIOLATION", {"include": ["Ro\0cks"]}),
        ("SECURITY_VIOLATION", {"exclude": ["../x"]}),
    ],
)
def test_a_link_that_means_nothing_or_something_outside_is_refused(
    made: Engine, other: Path, code: str, arguments: dict[str, object]
) -> None:
    envelope = tools.call(made, "obsidian_link_add", {"root_path": str(other), **arguments})
    assert envelope["error"] is not None
    assert envelope["error"]["code"] == code, envelope
    assert "\0" not in envelope["error"]["message"]
    assert "\x1b" not in envelope["error"]["message"]
    assert len(made.vaults.links.all()) <= 1, "only the primary vault"


def test_links_out_of_a_vault_and_in_circles_are_told(made: Engine, other: Path) -> None:
    (other / "out.md").symlink_to("/etc/hostname")
    (other / "Rocks" / "up").symlink_to(other)
    told = add_link(made, str(other)).warnings
    assert any(one.startswith("out.md leads out") for one in told)
    assert any(one.startswith("Rocks/up/ is a loop of symlinks") for one in told)


def test_a_vault_can_be_narrowed_to_some_folders(made: Engine, other: Path) -> None:
    write_notes(other, {"Rocks/Drafts/x.md": "# Draft\n\nslate"})
    link = add_link(made, str(other), include=["Rocks"], exclude=["Drafts"])
    sync_link(made, link.link_id)
    assert {path for _, path in found(made, "granite newts slate", vaults=["Stones"])} == {
        "Rocks/Granite.md",
        "Rocks/Newts.md",
    }


def test_a_name_that_is_taken_gets_a_number(made: Engine, other: Path, tmp_path: Path) -> None:
    second = tmp_path / "second" / "stones"
    write_notes(second, {"a.md": "x"})
    assert [add_link(made, str(root)).name for root in (other, second)] == ["Stones", "stones-2"]
    assert [vault.name for vault in made.vaults] == ["vault", "Stones", "stones-2"]


def test_a_link_that_is_removed_leaves_nothing_but_its_files(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    sync_link(made, link.link_id)
    bytes_before = contents(other)
    removed = remove_link(made, link.link_id)
    assert (removed.files, removed.relations, removed.queued) == (3, 3, 0)
    assert removed.chunks > 0
    assert contents(other) == bytes_before
    for table in ("vault_file_manifest", "vault_file_index_state", "sync_queue", "link_fact"):
        rows = made.database.rows(f"SELECT 1 FROM {table} WHERE link_id = ?", (link.link_id,))
        assert rows == []
    assert made.chunks.paths(link.link_id) == set()
    assert {vault for vault, _ in found(made, "newts granite")} == {"vault"}
    assert len(memory_index(made.relations).by_path) == 2
    with pytest.raises(NotFound):
        link_status(made, link.link_id)
    assert run_index(made, "sync").tally.touched == 0


def test_the_primary_vault_is_neither_removed_nor_paused(made: Engine) -> None:
    with pytest.raises(InvalidArgument):
        remove_link(made, "vault")
    with pytest.raises(InvalidArgument):
        change_link(made, "vault", is_paused=True)


def test_writing_is_refused_for_a_link(made: Engine, other: Path) -> None:
    with pytest.raises(ReadOnly):
        add_link(made, str(other), mode="read_write")
    link = add_link(made, str(other))
    with pytest.raises(ReadOnly):
        change_link(made, link.link_id, "read_write")
    assert change_link(made, link.link_id, "read_only").mode == "read_only"


def test_a_paused_vault_is_left_alone_by_every_process(
    made: Engine, other: Path, engine: Callable[..., Engine]
) -> None:
    link = add_link(made, str(other))
    change_link(made, link.link_id, is_paused=True)
    assert run_index(made, "sync").tally.added == 0
    again = engine(made.vaults.primary.root)
    with pytest.raises(InvalidArgument, match="paused"):
        sync_link(again, link.link_id)
    status = link_status(again, link.link_id)
    assert status.link.is_paused
    assert status.health.error is not None
    assert "resume" in status.health.error.suggestion
    change_link(again, link.link_id, is_paused=False)
    assert run_index(again, "sync").tally.added == 3


def test_a_run_ends_when_its_vault_is_paused_and_goes_on_later(
    made: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("obsidian_rag.engine.index_run._LINK_CHECK_INTERVAL_S", 0.0)
    root = tmp_path / "large"
    write_notes(root, {f"{n:04}.md": f"# Note {n}\n\nword{n}" for n in range(1200)})
    link = add_link(made, str(root))

    def listen(progress: Progress) -> None:
        if progress.phase == "storing":
            Links(made.database).set_paused(link.link_id, is_paused=True)

    result = run_index(made, "sync", listen, link_id=link.link_id)
    assert result.tally.is_cancelled
    done = result.indexed_files - 2
    assert 0 < done < 1200
    status = link_status(made, link.link_id, limit=10)
    assert (status.totals.indexed, status.totals.pending) == (done, 1200 - done)
    assert (len(status.queue), status.progress.phase) == (10, "parse")
    change_link(made, link.link_id, is_paused=False)
    again = sync_link(made, link.link_id)
    assert isinstance(again, IndexResult)
    # What is done is not done again.
    assert again.tally.added == 1200 - done
    assert link_status(made, link.link_id).health.error is None


def test_the_newest_files_of_a_new_link_come_first(made: Engine, tmp_path: Path) -> None:
    root = tmp_path / "large"
    write_notes(root, {f"{n:04}.md": f"# Note {n}\n\nword{n}" for n in range(1200)})
    newest = {f"{n:04}.md" for n in range(500, 540)}
    for path in root.iterdir():
        at = 1_700_000_000 + (path.name in newest) * 1000
        os.utime(path, (at, at))
    link = add_link(made, str(root))
    stored: list[int] = []

    def stop() -> bool:
        return bool(stored)

    def listen(progress: Progress) -> None:
        if progress.phase == "storing":
            stored.append(1)

    run_index(made, "sync", listen, stop, link_id=link.link_id)
    assert newest <= made.chunks.paths(link.link_id)


def test_an_unfinished_first_index_is_told_until_it_is_done(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    envelope = call(made, "obsidian_rag_status", {})
    assert (envelope["status"], envelope["error"]["code"]) == ("degraded", "INDEX_INCOMPLETE")
    assert "Stones" in envelope["error"]["message"]
    assert link_status(made, link.link_id).health.state == "degraded"
    sync_link(made, link.link_id)
    envelope = call(made, "obsidian_rag_status", {})
    assert envelope["status"] == "healthy"
    vaults = [(one["name"], one["label"], one["indexed"]) for one in envelope["data"]["vaults"]]
    assert vaults == [("vault", "Primary vault", 2), ("Stones", "Linked vault (read-only)", 3)]
    assert LinkFacts(made.database, link.link_id).get("first_index_unfinished") is None


def test_a_file_that_keeps_failing_is_given_up_and_told(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    broken = other / "Broken.md"
    broken.write_text("x")
    broken.chmod(0)
    if os.access(broken, os.R_OK):
        pytest.skip("root reads everything")
    for _ in range(5):
        sync_link(made, link.link_id)
    (row,) = link_status(made, link.link_id).queue
    assert (row.status, row.attempts, row.reason) == ("failed", 5, "unreadable")
    broken.chmod(0o600)
    sync_link(made, link.link_id)
    assert Queue(made.database).size(link.link_id) == 0


def test_a_fact_remembers_its_vault(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    sync_link(made, link.link_id)
    arguments = {"key": "rock", "value": "granite", "source": "Shared.md", "vault": "Stones"}
    call(made, "obsidian_rag_memory_store", arguments)
    fact = call(made, "obsidian_rag_memory_recall", {"key": "rock"})["data"]["facts"][0]
    assert (fact["source"], fact["vault"]) == ("Shared.md", "Stones")


# Tools that change notes, or would; and those that change something else.
WRITING = {
    "obsidian_rag_add_relation": {"note": "Shared", "target": "Granite", "add_missing_id": True},
}
ELSEWHERE: dict[str, dict[str, object]] = {
    "obsidian_rag_add_ids": {},
    "obsidian_rag_cancel": {},
    "obsidian_rag_index": {"mode": "sync"},
    "obsidian_rag_memory_store": {"key": "k", "value": "v", "source": "Shared.md"},
    "obsidian_rag_relation_settings": {},
    "obsidian_sync_now": {"link_id": "Stones"},
    "obsidian_link_add": {"root_path": "/nowhere"},
    "obsidian_link_set_mode": {"link_id": "Stones", "mode": "read_write"},
    "obsidian_link_remove": {"link_id": "Stones"},
}


def test_no_writing_tool_changes_a_linked_vault(made: Engine, other: Path) -> None:
    link = add_link(made, str(other))
    sync_link(made, link.link_id)
    before = contents(other)
    for tool, arguments in WRITING.items():
        with pytest.raises(ReadOnly) as refused:
            call(made, tool, {**arguments, "vault": "Stones"})
        assert "primary vault" in refused.value.suggestion
    tools = {**TOOLS, **OWNER_TOOLS}
    writing = {name for name, tool in tools.items() if not tool.is_read_only}
    assert writing == WRITING.keys() | ELSEWHERE.keys(), "every tool that writes is tried"
    # A name that only a linked vault has leads to the same answer.
    with pytest.raises(ReadOnly):
        call(made, "obsidian_rag_add_relation", {"note": "Pond", "target": "Granite"})
    assert contents(other) == before
    assert contents(made.vaults.primary.root) == {
        name: text.encode() for name, text in PRIMARY.items()
    }
    for tool, arguments in ELSEWHERE.items():
        with contextlib.suppress(ObsidianRagError):
            run(made, tool, arguments, OWNER)
        assert contents(other) == before, tool


def test_ids_are_added_to_no_linked_note(
    engine: Callable[..., Engine], make_vault: Make, other: Path
) -> None:
    one = engine(make_vault(PRIMARY), {"relations.auto_add_ids": True})
    add_link(one, str(other))
    before = contents(other)
    run_index(one, "sync")
    assert contents(other) == before
    assert all(b"id:" in data for data in contents(one.vaults.primary.root).values())


def contents(root: Path) -> dict[str, bytes]:
    return {str(f.relative_to(root)): f.read_bytes() for f in root.rglob("*") if f.is_file()}
