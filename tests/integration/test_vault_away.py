"""A vault that goes away and comes back, with a daemon that watches it or only looks."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.living import QUICK, Cli, Configure, Living, MakeVault, living

NOTES = {"Debts.md": "# Debts\nI owe Sreenivas 40 dollars.\n", "Garden.md": "# Garden\nFerns.\n"}
MANY = {f"Many/{number:03}.md": f"# Note {number}\nmoss\n" for number in range(80)}
# Only the scheduler's own look at the vault can notice anything within the patience of a test.
LOOKING = {"watcher.enabled": False, "server.probe_s": 3600, "watcher.reconcile_s": 86_400}


@pytest.fixture(params=[QUICK, LOOKING], ids=["watching", "looking"])
def daemon(
    request: pytest.FixtureRequest, make_vault: MakeVault, configure: Configure, cli: Cli
) -> Iterator[Living]:
    configure(make_vault({**NOTES, **MANY}), request.param)
    assert cli("index").code == 0
    with living() as one:
        one.wait_for("health", state="healthy")
        yield one


def docs(daemon: Living) -> object:
    return daemon.call("status")["data"]["total_docs"]


def test_a_mount_point_with_a_folder_in_it_removes_nothing_and_heals_by_itself(
    daemon: Living, tmp_path: Path, cli: Cli
) -> None:
    vault = tmp_path / "vault"
    away = vault.rename(tmp_path / "away")
    (vault / "Attachments").mkdir(parents=True)
    daemon.wait_for("health", state="degraded", code="VAULT_AWAY")
    answer = daemon.call("search", query="ferns")
    assert (answer["status"], answer["error"]["code"]) == ("degraded", "VAULT_AWAY")
    assert answer["data"]["results"][0]["source_file"] == "Garden.md"
    refused = cli("sync", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (2, "VAULT_AWAY")
    shutil.rmtree(vault)
    (away / "New.md").write_text("# New\nlichen\n")
    away.rename(vault)
    daemon.wait_for("health", state="healthy")
    # What changed while it was away is taken up without being asked for.
    while daemon.search("lichen")[0] != "New.md":
        daemon.wait_for("changes")
    assert docs(daemon) == 83
    assert daemon.call("search", query="ferns")["status"] == "healthy"


def test_a_mass_removal_waits_for_the_owners_word(daemon: Living, tmp_path: Path, cli: Cli) -> None:
    # All at once: of notes that go one by one the daemon would give up the first few.
    (tmp_path / "vault/Many").rename(tmp_path / "removed")
    refused = cli("sync", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (2, "VAULT_AWAY")
    assert "2 of 82 notes are there" in refused.json["error"]["message"]
    daemon.wait_for("health", state="degraded", code="VAULT_AWAY")
    assert docs(daemon) == 82
    # An agent cannot give that word.
    agent = daemon.call("index", mode="sync", accept_removals=True)
    assert (agent["data"], agent["error"]["code"]) == (None, "INVALID_ARGUMENT")
    assert docs(daemon) == 82
    accepted = cli("sync", "--accept-removals", "--json")
    assert (accepted.code, accepted.json["data"]["removed"]) == (0, 80), accepted.err
    assert (accepted.json["status"], accepted.json["error"]) == ("healthy", None)
    assert docs(daemon) == 2
