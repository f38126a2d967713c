"""Deletions and locks as a user meets them: held, accepted, refused, restored, unlocked."""

import time
from pathlib import Path

import pytest
from tests.fixture_types import Cli
from tests.livesync.nodes import TestNode
from tests.vault.killed import killed_writer

from obsidian_rag.config import load
from obsidian_rag.livesync.milestone import MILESTONE_NAME
from obsidian_rag.livesync.site import node_lock, place_of

COUNT = 30
NOTES = {f"{number:02}.md": f"note {number}\n" for number in range(COUNT)}

pytestmark = pytest.mark.usefixtures("no_keyring")


@pytest.fixture
def vault(synced_vault: Path) -> Path:
    return synced_vault


def delete_nearly_all(device: TestNode) -> None:
    for number in range(COUNT - 1):
        (device.root / f"{number:02}.md").unlink()
    device.sync(allows_deletions=True)


def count(vault: Path) -> int:
    return sum(1 for _ in vault.glob("*.md"))


def test_mass_deletions_are_held_reported_and_accepted(
    cli: Cli, vault: Path, device: TestNode
) -> None:
    delete_nearly_all(device)
    done = cli("livesync", "run", "--once", "--json")
    assert (done.code, count(vault)) == (2, COUNT)
    assert done.json["error"]["code"] == "LIVESYNC_BRAKE"
    assert "29 of 30" in done.json["error"]["message"]
    assert "--allow-deletions" in done.json["error"]["suggestion"]
    status = cli("livesync", "status", "--json").json
    assert (status["status"], status["error"]["code"]) == ("degraded", "LIVESYNC_BRAKE")
    assert cli("livesync", "run", "--once", "--allow-deletions").code == 0
    assert count(vault) == 1
    assert cli("livesync", "status", "--json").json["status"] == "healthy"


def test_everything_comes_back_at_once(cli: Cli, vault: Path, device: TestNode) -> None:
    delete_nearly_all(device)
    assert cli("livesync", "run", "--once", "--allow-deletions").code == 0
    listed = cli("livesync", "restore", "--all", "--dry-run", "--json").json["data"]
    assert (len(listed["restored"]), count(vault)) == (COUNT - 1, 1)
    done = cli("livesync", "restore", "--all")
    assert (done.code, count(vault)) == (0, COUNT)
    assert "29 files restored" in done.err
    assert cli("livesync", "run", "--once").code == 0
    device.sync()
    assert len(device.files()) == COUNT
    assert "nothing to restore" in cli("livesync", "restore", "--all").err


def test_what_was_deleted_since_a_time_comes_back(cli: Cli, vault: Path, device: TestNode) -> None:
    (device.root / "00.md").unlink()
    device.sync()
    assert cli("livesync", "run", "--once").code == 0
    tomorrow = time.strftime("%Y-%m-%d", time.localtime(time.time() + 200_000))
    assert cli("livesync", "restore", "--since", tomorrow, "--json").json["data"]["restored"] == []
    assert cli("livesync", "restore", "--since", "soon").code == 2
    assert cli("livesync", "restore", "--all", "--since", "2h").code == 2
    done = cli("livesync", "restore", "--since", "2h", "--json").json["data"]
    assert [one["path"] for one in done["restored"]] == ["00.md"]
    assert count(vault) == COUNT


def test_held_deletions_can_be_refused(cli: Cli, vault: Path, device: TestNode) -> None:
    delete_nearly_all(device)
    assert cli("livesync", "run", "--once").code == 2
    done = cli("livesync", "restore", "--all", "--json").json["data"]
    assert len(done["refused_deletions"]) == COUNT - 1
    said = cli("livesync", "restore", "--all").err
    assert said == "29 deletions refused; the next sync tells the other devices\n"
    assert cli("livesync", "run", "--once").code == 0
    device.sync()
    assert count(vault) == len(device.files()) == COUNT


def test_deletions_can_be_confirmed_while_a_node_runs(
    cli: Cli, vault: Path, device: TestNode
) -> None:
    delete_nearly_all(device)
    assert cli("livesync", "run", "--once").code == 2
    with node_lock(load(), place_of(load()).key):
        assert cli("livesync", "run", "--once").code == 2
        done = cli("livesync", "run", "--once", "--allow-deletions", "--json")
        assert done.json["data"] == {"accepted_deletions": COUNT - 1}
    assert cli("livesync", "run", "--once").code == 0
    assert count(vault) == 1


def test_a_lock_without_a_rebuild_makes_no_conflict(
    cli: Cli, vault: Path, device: TestNode
) -> None:
    milestone = device.couch.get_local(MILESTONE_NAME)
    assert milestone is not None
    # The device that made the database is accepted, we are not.
    device.couch.put_local(MILESTONE_NAME, {**milestone, "locked": True})
    assert cli("livesync", "run", "--once").code == 2
    (vault / "00.md").write_text("edited here\n")
    (vault / "02.md").unlink()
    device.write("01.md", "edited there\n")
    device.sync()
    assert cli("livesync", "unlock").code == 0
    assert cli("livesync", "run", "--once").code == 0
    device.sync()
    assert count(vault) == COUNT - 1
    assert (vault / "01.md").read_text() == "edited there\n"
    assert device.files()["00.md"] == b"edited here\n"
    assert "No conflicts" in cli("livesync", "resolve").err


def test_a_sync_and_an_index_sweep_what_a_kill_left(
    cli: Cli, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    left = killed_writer(vault, "note.md")
    monkeypatch.setattr(time, "time", lambda: real() + 3600)
    assert cli("livesync", "run", "--once").code == 0
    assert not left.exists()
    left = killed_writer(vault, "note.md")
    assert cli("config", "set", "vault_path", str(vault)).code == 0
    assert cli("index").code == 0
    assert not left.exists()
