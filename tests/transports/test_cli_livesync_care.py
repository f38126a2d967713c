"""`livesync status`, `check`, `resolve`, `restore` and `unlock`: what a user sees and decides."""

import contextlib
from pathlib import Path

import pytest
from tests.fixture_types import Cli
from tests.livesync.nodes import TestNode
from tests.transports.command_line import Done
from tests.transports.livesync_site import forms_of

from obsidian_rag.config import load
from obsidian_rag.livesync.couchdb.remote import Remote
from obsidian_rag.livesync.milestone import MILESTONE_NAME
from obsidian_rag.livesync.site import node_lock, place_of
from obsidian_rag.store import Database, Links

NOTES = {"Plan.md": "a\n", "other.md": "b\n"}

pytestmark = pytest.mark.usefixtures("no_keyring")


@pytest.fixture
def vault(synced_vault: Path) -> Path:
    return synced_vault


def sync(cli: Cli) -> Done:
    done = cli("livesync", "run", "--once")
    assert done.code in (0, 1), done.err
    return done


def conflict(cli: Cli, device: TestNode, vault: Path) -> None:
    device.write("Plan.md", "theirs\n")
    device.sync()
    (vault / "Plan.md").write_text("ours\n")
    sync(cli)


def test_the_status_says_that_nothing_is_configured(cli: Cli) -> None:
    done = cli("livesync", "status")
    assert (done.code, "NOT configured" in done.out) == (0, True)
    for command in ("check", "resolve", "restore", "unlock"):
        done = cli("livesync", command, "--json")
        assert (done.code, done.json["error"]["code"]) == (2, "CONFIG_INVALID")


def test_the_status_is_a_list_and_an_envelope(cli: Cli, vault: Path, remote: Remote) -> None:
    done = cli("livesync", "status")
    lines = dict(line.split(None, 1) for line in done.out.splitlines())
    assert (lines["sync"], lines["database"]) == ("not running", remote.database)
    assert (lines["files"], lines["sent"]) == ("2", "2, deleted there 0")
    data = cli("livesync", "status", "--json").json["data"]
    assert (data["running"], data["stats"]["pushed"]) == (False, 2)
    with node_lock(load(), place_of(load()).key):
        assert "sync       running" in cli("livesync", "status").out
    for form in forms_of(remote.password or ""):
        assert form not in done.out


def test_the_status_shows_what_stopped_the_last_sync(
    cli: Cli, vault: Path, device: TestNode
) -> None:
    lock(device)
    assert cli("livesync", "run", "--once").code == 2
    done = cli("livesync", "status")
    assert (done.code, "LIVESYNC_LOCKED" in done.out) == (0, True)


def test_a_clean_check_ends_with_0(cli: Cli, vault: Path) -> None:
    done = cli("livesync", "check")
    assert (done.code, done.out) == (0, "2 files in sync, nothing left out\n")
    assert cli("livesync", "check", "--json").json["data"]["is_clean"] is True


def test_a_check_lists_everything_that_is_not_synced(
    cli: Cli, vault: Path, device: TestNode
) -> None:
    (vault / "bad:name.md").write_text("x\n")
    (vault / "what?.md").write_text("x\n")
    (vault / "latin.md").write_bytes(b"gr\xfc\xdfe")
    conflict(cli, device, vault)
    done = cli("livesync", "check")
    assert done.code == 1
    for title in ("Set aside (1)", "Changed in two places (1)", "Not synced (1)", "cannot write"):
        assert title in done.out
    assert "latin.md: " in done.out
    data = cli("livesync", "check", "--json").json["data"]
    assert [one["path"] for one in data["quarantined"]] == ["latin.md"]
    assert [one["path"] for one in data["conflicts"]] == ["Plan.md"]
    assert [one["path"] for one in data["left_out"]] == ["bad:name.md"]
    assert [one["path"] for one in data["warnings"]] == ["what?.md"]


def test_a_long_check_is_cut_unless_told_otherwise(cli: Cli, vault: Path) -> None:
    for number in range(25):
        (vault / f"bad:{number}.md").write_text("x\n")
    assert "… and 5 more; --all lists them" in cli("livesync", "check").out
    assert "bad:24.md" in cli("livesync", "check", "--all").out


def test_a_check_without_the_server_says_so(
    cli: Cli, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("config", "set", "livesync.couchdbUrl", "http://127.0.0.1:9").code == 0
    done = cli("livesync", "check", "--json")
    assert (done.code, done.json["error"]["code"]) == (1, "LIVESYNC_UNREACHABLE")
    assert "LIVESYNC_UNREACHABLE" in cli("livesync", "check").err


def test_answers_name_the_synced_folder_if_it_is_a_vault(
    cli: Cli, vault: Path, tmp_path: Path
) -> None:
    def told() -> set[str | None]:
        asked = (("check",), ("resolve",), ("restore",), ("restore", "--all"), ("run", "--once"))
        return {cli("livesync", *one, "--json").json["data"]["link_id"] for one in asked}

    assert told() == {None}
    with contextlib.closing(Database(load().database)) as database:
        link = Links(database).set_primary(vault)
    assert told() == {link.link_id}
    alias = tmp_path / "alias"
    alias.symlink_to(vault)
    assert cli("config", "set", "livesync.vaultPath", str(alias)).code == 0
    assert told() == {link.link_id}


def test_conflicts_are_listed_and_resolved(cli: Cli, vault: Path, device: TestNode) -> None:
    assert "No conflicts" in cli("livesync", "resolve").err
    conflict(cli, device, vault)
    listed = cli("livesync", "resolve")
    assert listed.out.startswith("Plan.md  since ")
    assert "ours    Plan (conflict" in listed.out
    (one,) = cli("livesync", "resolve", "--json").json["data"]["conflicts"]
    assert (one["path"], bool(one["kept_as"])) == ("Plan.md", True)
    done = cli("livesync", "resolve", "plan", "--keep", "ours")
    assert (done.code, done.out) == (0, "Plan.md is resolved\n")
    device.sync()
    assert device.files() == {"Plan.md": b"ours\n", "other.md": b"b\n"}
    assert "(conflict settled)" in cli("livesync", "restore").out


def test_branches_are_listed_with_their_revisions(cli: Cli, vault: Path, device: TestNode) -> None:
    assert cli("config", "set", "livesync.conflicts", "branch").code == 0
    conflict(cli, device, vault)
    sync(cli)
    listed = cli("livesync", "resolve").out.splitlines()
    assert sorted(line.split()[0] for line in listed[1:]) == ["ours", "theirs"]
    done = cli("livesync", "resolve", "Plan.md", "--keep", "both", "--json")
    (beside,) = done.json["data"]["kept_as"]
    device.sync()
    assert device.files() == {"Plan.md": b"ours\n", beside: b"theirs\n", "other.md": b"b\n"}


def test_a_conflict_can_be_resolved_while_a_node_runs(
    cli: Cli, vault: Path, device: TestNode
) -> None:
    conflict(cli, device, vault)
    with node_lock(load(), place_of(load()).key):
        assert cli("livesync", "resolve", "Plan.md", "--keep", "theirs").code == 0
    assert sorted(file.name for file in vault.iterdir()) == ["Plan.md", "other.md"]
    assert (vault / "Plan.md").read_text() == "theirs\n"


def test_a_resolved_conflict_is_sent_later_if_the_brake_holds(
    cli: Cli, vault: Path, device: TestNode
) -> None:
    for number in range(30):
        (vault / f"{number}.md").write_text("x\n")
    sync(cli)
    conflict(cli, device, vault)
    for number in range(30):
        (vault / f"{number}.md").unlink()
    done = cli("livesync", "resolve", "Plan.md", "--keep", "theirs")
    assert (done.code, "next sync" in done.err) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["Plan.md"], "INVALID_ARGUMENT"),
        (["--keep", "ours"], "INVALID_ARGUMENT"),
        (["other.md", "--keep", "ours"], "NOT_FOUND"),
        (["Plan.md", "--keep", "mine"], "INVALID_ARGUMENT"),
    ],
)
def test_a_conflict_that_cannot_be_resolved_is_an_error(
    cli: Cli, vault: Path, device: TestNode, arguments: list[str], code: str
) -> None:
    conflict(cli, device, vault)
    done = cli("livesync", "resolve", *arguments, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, code)


def test_what_was_deleted_elsewhere_is_listed_and_restored(
    cli: Cli, vault: Path, device: TestNode
) -> None:
    assert "empty" in cli("livesync", "restore").err
    (device.root / "other.md").unlink()
    device.sync()
    sync(cli)
    assert not (vault / "other.md").exists()
    (file,) = cli("livesync", "restore", "--json").json["data"]["files"]
    assert (file["path"], file["size"]) == ("other.md", 2)
    assert "other.md  (deleted" in cli("livesync", "restore").out
    done = cli("livesync", "restore", str(file["id"]))
    assert (done.code, "other.md is restored" in done.out) == (0, True)
    assert (vault / "other.md").read_text() == "b\n"
    sync(cli)
    device.sync()
    assert device.files()["other.md"] == b"b\n"
    done = cli("livesync", "restore", "other.md", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "NOT_FOUND")


def lock(device: TestNode) -> None:
    milestone = device.couch.get_local(MILESTONE_NAME)
    assert milestone is not None
    device.couch.put_local(MILESTONE_NAME, {**milestone, "locked": True})


def test_a_locked_database_is_unlocked(cli: Cli, vault: Path, device: TestNode) -> None:
    lock(device)
    assert cli("livesync", "run", "--once", "--json").json["error"]["code"] == "LIVESYNC_LOCKED"
    assert cli("livesync", "unlock", "--json").json["data"] == {"unlocked": True}
    sync(cli)
    assert sorted(file.name for file in vault.iterdir()) == ["Plan.md", "other.md"]
    assert cli("livesync", "unlock").code == 0
