"""link add, list, remove, mode, sync, status, pause and resume: alone and with a daemon."""

import json
from pathlib import Path

import pytest
from tests.fixture_types import Cli
from tests.folders import write_notes
from tests.integration.living import living
from tests.waiting import until

from obsidian_rag.transports.cli.note_names import complete_vault

LINKED = {"Rocks/Granite.md": "# Granite\n\nGranite is coarse.", "Old/Slate.md": "slate"}


NOTES = {"Pond.md": "# Pond\n\nnewts and granite"}

pytestmark = pytest.mark.usefixtures("vault")


@pytest.fixture
def stones(tmp_path: Path) -> Path:
    root = tmp_path / "elsewhere" / "Stones"
    write_notes(root, LINKED)
    return root


def test_a_vault_is_added_shown_chosen_and_removed(cli: Cli, stones: Path) -> None:
    added = cli("link", "add", str(stones), "--exclude", "Old", "--ndjson")
    lines = [json.loads(line) for line in added.out.splitlines()]
    assert {line["phase"] for line in lines if line["type"] == "progress"} >= {"scanning"}
    assert (lines[-1]["type"], lines[-1]["added"]) == ("complete", 1)
    listed = cli("link", "list").out
    assert "Primary vault\n" in listed
    assert "Stones  Linked vault (read-only)\n" in listed
    assert f"  {stones}\n  1 note, 1 chunk; up to date\n  without Old\n" in listed
    everywhere = cli("search", "granite").out
    assert "Rocks/Granite.md:1-3  in Stones  " in everywhere
    assert "Pond.md" in everywhere
    assert "Pond.md" not in cli("search", "granite", "--vault", "stones").out
    assert "coarse" in cli("read", "Granite", "--vault", "Stones").out
    assert cli("read", "Granite", "--vault", "vault").code == 2
    assert complete_vault("sto") == ["Stones"]
    removed = cli("link", "remove", "stones", "--yes")
    assert removed.out == "Removed 'Stones' from the index: 1 note, 1 chunk\n"
    assert f"Its files in {stones} are untouched." in removed.err
    assert (stones / "Rocks" / "Granite.md").is_file()
    assert "Stones" not in cli("link", "list").out


def test_an_empty_path_is_refused_and_does_not_mean_the_current_folder(
    cli: Cli, stones: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stones)
    refused = cli("link", "add", "", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (2, "INVALID_ARGUMENT")
    assert "Stones" not in cli("link", "list").out
    assert cli("link", "add", ".").code == 0


def test_an_import_can_wait(cli: Cli, stones: Path) -> None:
    added = cli("link", "add", str(stones), "--name", "Geology", "--background")
    assert added.out == f"Linked {stones} as 'Geology' (read-only)\n"
    assert "`obsidian-rag link sync Geology` imports it" in added.err
    assert "not imported yet" in cli("link", "status", "geology").out
    assert cli("link", "sync", "geology", "--json").json["data"]["added"] == 2
    assert "2 notes, 2 chunks; up to date" in cli("link", "status", "geology").out


def test_pause_mode_and_resume(cli: Cli, stones: Path) -> None:
    cli("link", "add", str(stones), "--background")
    assert cli("link", "pause", "stones").out == "Stones is paused\n"
    assert (
        "paused; `obsidian-rag link resume Stones` continues" in cli("link", "status", "stones").out
    )
    refused = cli("link", "sync", "stones", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (2, "INVALID_ARGUMENT")
    assert cli("link", "resume", "stones").out == "Stones is no longer paused\n"
    assert cli("link", "mode", "stones", "read_only").out == "Stones is read_only\n"
    assert cli("link", "mode", "stones", "read_write").err.startswith("error READ_ONLY: ")


def test_every_command_prints_its_envelope(cli: Cli, stones: Path) -> None:
    link = cli("link", "add", str(stones), "--background", "--json").json["data"]
    assert link["root_path"] == str(stones)
    for command in ("status", "pause", "resume"):
        assert cli("link", command, "stones", "--json").json["data"]["link_id"] == link["link_id"]
    assert len(cli("link", "list", "--json").json["data"]["links"]) == 2
    assert cli("link", "remove", "stones", "--json").json["data"]["files_untouched"]


def test_a_daemon_imports_and_the_command_follows_it(cli: Cli, stones: Path) -> None:
    with living():
        added = cli("link", "add", str(stones), "--json")
        assert added.code == 0, added.err
        # Of the import, which the daemon begins by itself, not of a sync after it.
        assert added.json["data"]["added"] == 2
        # The daemon may look at the files once more: its first reconcile covers the new link too.
        until(lambda: "2 notes, 2 chunks; up to date" in cli("link", "status", "stones").out)
        assert "in Stones" in cli("search", "granite coarse").out
        assert cli("link", "remove", "stones").out.startswith("Removed 'Stones'")
        assert "Stones" not in cli("link", "list").out
