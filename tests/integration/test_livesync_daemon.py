"""A real daemon that takes part in a LiveSync network, beside another device."""

import contextlib
import json
import stat
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.living import QUICK, Cli, Configure, Living, MakeVault, living
from tests.livesync.nodes import TestNode
from tests.livesync.proxy import FaultyProxy
from tests.waiting import until

from obsidian_rag.config import load
from obsidian_rag.livesync import Tweaks
from obsidian_rag.livesync.couchdb.remote import Remote
from obsidian_rag.livesync.milestone import MILESTONE_NAME
from obsidian_rag.livesync.secrets import Secrets, SecretStore
from obsidian_rag.livesync.site import place_of

PASSPHRASE = "daemon-pässphrase"
TWEAKS = Tweaks(encrypt=True, use_path_obfuscation=True)
NOTES = {"Debts.md": "# Debts\nI owe Sreenivas 40 dollars.\n", "Garden.md": "# Garden\nFerns.\n"}
Start = Callable[..., None]

pytestmark = pytest.mark.usefixtures("no_keyring")


@pytest.fixture
def device(tmp_path: Path, remote: Remote) -> Iterator[TestNode]:
    """Another device of an encrypted network, reached without the proxy."""
    node = TestNode(tmp_path / "device", remote, tweaks=TWEAKS, passphrase=PASSPHRASE)
    node.sync()
    yield node
    node.close()


@pytest.fixture
def set_up(
    make_vault: MakeVault, configure: Configure, far_remote: Remote, device: TestNode
) -> Path:
    """A vault whose daemon will sync, through the proxy."""
    vault = make_vault(NOTES)
    configure(
        vault,
        {
            **QUICK,
            "livesync.enabled": True,
            "livesync.couchdbUrl": far_remote.url,
            "livesync.couchdbUser": far_remote.user,
            "livesync.dbName": far_remote.database,
            "livesync.debounce_s": 0,
        },
    )
    config = load()
    SecretStore(config.home).put(
        place_of(config).key, Secrets(far_remote.password, PASSPHRASE), may_use_keyring=False
    )
    return vault


def sync_status(daemon: Living) -> Any:
    return daemon.door.call("obsidian_sync_status", {})


def connected(daemon: Living) -> bool:
    data = sync_status(daemon)["data"]
    return bool(data["connected"] and data["watching"])


def inotify_instances(pid: int) -> int:
    """How many times Linux is asked to watch folders for a process."""
    count = 0
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            count += str(file.readlink()) == "anon_inode:inotify"
    return count


def test_changes_travel_both_ways_and_become_searchable(set_up: Path, device: TestNode) -> None:
    with living() as daemon:
        daemon.index()
        until(lambda: connected(daemon))
        if sys.platform == "linux":
            assert inotify_instances(daemon.process.pid) == 1, "one watcher serves all"
        until(lambda: device.sync() and set(NOTES) <= set(device.files()))
        device.write("Folder/Comet.md", "# Comet\nHalley returns in 2061.\n")
        device.sync()
        until(lambda: (set_up / "Folder" / "Comet.md").exists())
        until(lambda: "Folder/Comet.md" in daemon.search("when does Halley return?"))
        (set_up / "Garden.md").write_text("# Garden\nFerns and sedge.\n")
        until(lambda: device.sync() and b"sedge" in device.files()["Garden.md"])
        told = sync_status(daemon)
        assert (told["status"], told["error"]) == ("healthy", None)
        data = told["data"]
        assert (data["configured"], data["running"], data["health"]) == (True, True, "healthy")
        assert (data["stats"]["pulled"], data["stats"]["pushed"]) == (1, 3)
        assert data["stats"]["lag"] == 0
        assert daemon.stop() == 0
    assert stat.S_IMODE((load().home / "livesync-secrets.json").stat().st_mode) == 0o600


def test_a_server_that_goes_away_is_named_and_search_stays_healthy(
    set_up: Path, device: TestNode, proxy: FaultyProxy, cli: Cli
) -> None:
    with living() as daemon:
        daemon.index()
        until(lambda: connected(daemon))
        until(lambda: daemon.call("status")["data"]["plugin_health"] == "healthy")
        proxy.refuse()
        daemon.wait_for("livesync", code="LIVESYNC_UNREACHABLE")
        told = sync_status(daemon)
        assert (told["status"], told["error"]["code"]) == ("degraded", "LIVESYNC_UNREACHABLE")
        assert (told["data"]["running"], told["data"]["connected"]) == (True, False)
        asked: dict[str, dict[str, object]] = {
            "status": {},
            "search": {"query": "notes"},
            "read": {"note": "Garden"},
            "related": {"note": "Garden"},
        }
        answers = {tool: daemon.call(tool, **arguments) for tool, arguments in asked.items()}
        told = {tool: (answer["status"], answer["error"]) for tool, answer in answers.items()}
        assert told == dict.fromkeys(asked, ("healthy", None)), "answers do not need it"
        assert answers["status"]["data"]["livesync"]["code"] == "LIVESYNC_UNREACHABLE"
        with urllib.request.urlopen(f"{daemon.door.url}/healthz") as reply:
            assert json.load(reply)["status"] == "healthy"
        (found,) = [
            one
            for one in cli("doctor", "--json").json["data"]["findings"]
            if one["check"] == "livesync"
        ]
        assert (found["verdict"], "LIVESYNC_UNREACHABLE" in found["message"]) == ("warning", True)
        assert "LIVESYNC_UNREACHABLE" in cli("status").out
        (set_up / "Meanwhile.md").write_text("written while the server was away\n")
        proxy.heal()
        daemon.wait_for("livesync", code=None)
        assert daemon.call("status")["data"]["livesync"] is None
        until(lambda: device.sync() and "Meanwhile.md" in device.files())


def test_a_locked_database_stops_the_node_until_the_user_has_helped(
    set_up: Path, device: TestNode, cli: Cli
) -> None:
    lock(device)
    with living() as daemon:
        daemon.wait_for("health", code="INDEX_NOT_FOUND")
        daemon.index()
        until(lambda: sync_status(daemon)["status"] == "degraded")
        until(lambda: not sync_status(daemon)["data"]["running"])
        told = sync_status(daemon)
        assert told["error"]["code"] == "LIVESYNC_LOCKED"
        assert daemon.call("status")["data"]["livesync"]["code"] == "LIVESYNC_LOCKED"
        assert daemon.search("ferns")[0] == "Garden.md"
        done = cli("livesync", "unlock")
        assert done.code == 0, done.err
        until(lambda: connected(daemon))
        assert sync_status(daemon)["status"] == "healthy"
        until(lambda: daemon.call("status")["data"]["livesync"] is None)


def test_an_emptied_vault_brakes_and_goes_on_when_it_is_back(
    set_up: Path, device: TestNode, tmp_path: Path
) -> None:
    with living() as daemon:
        until(lambda: connected(daemon))
        until(lambda: device.sync() and set(NOTES) <= set(device.files()))
        set_up.rename(tmp_path / "unplugged")
        set_up.mkdir()
        until(lambda: (sync_status(daemon)["error"] or {}).get("code") == "LIVESYNC_BRAKE")
        device.sync()
        assert set(NOTES) <= set(device.files())
        set_up.rmdir()
        (tmp_path / "unplugged").rename(set_up)
        until(lambda: connected(daemon))
        assert set(NOTES) <= {file.name for file in set_up.iterdir()}


def test_settings_that_are_not_allowed_are_named_by_status(
    set_up: Path, configure: Configure, far_remote: Remote
) -> None:
    settings = {
        "livesync.enabled": True,
        "livesync.couchdbUrl": "https://couch.invalid",
        "livesync.dbName": "notes",
    }
    configure(set_up, {**QUICK, **settings})
    with living() as daemon:
        daemon.wait_for("health", code="INDEX_NOT_FOUND")
        daemon.index()
        told = daemon.call("status")
        assert (told["status"], told["data"]["livesync"]["code"]) == ("healthy", "LIVESYNC_REFUSED")
        assert "consent" in told["data"]["livesync"]["suggestion"]
        assert daemon.stop() == 0


def test_no_secret_is_in_a_log_a_status_or_a_process(
    set_up: Path, device: TestNode, proxy: FaultyProxy, remote: Remote, home: Path, cli: Cli
) -> None:
    with living() as daemon:
        until(lambda: connected(daemon))
        proxy.answer(401)
        proxy.cut()
        until(lambda: sync_status(daemon)["status"] == "degraded")
        processes = [daemon.process.pid, daemon.worker().pid]
        shown = [" ".join(psutil.Process(pid).cmdline()) for pid in processes]
        shown += [str(sync_status(daemon)), str(daemon.call("status")), str(daemon.events)]
        shown += [cli("livesync", "status").out]
        shown += [cli("config", "show").out]
        daemon.stop()
    shown += [file.read_text(errors="replace") for file in (home / "logs").iterdir()]
    shown += [(home / "config.json").read_text()]
    for secret in (remote.password or "", PASSPHRASE):
        for form in (secret, ascii(secret)[1:-1], repr(secret.encode())[2:-1]):
            assert [text for text in shown if form in text] == []


def test_a_daemon_without_livesync_says_so_and_has_no_node(
    make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault(NOTES), QUICK)
    with living() as daemon:
        told = sync_status(daemon)
        assert (told["status"], told["data"]["configured"]) == ("healthy", False)
        assert not list(load().home.glob("livesync-*"))


def lock(device: TestNode) -> None:
    milestone = device.couch.get_local(MILESTONE_NAME)
    assert milestone is not None
    device.couch.put_local(MILESTONE_NAME, {**milestone, "locked": True})


def test_the_password_may_come_from_the_environment(
    set_up: Path, configure: Configure, far_remote: Remote, device: TestNode
) -> None:
    settings = {
        "livesync.enabled": True,
        "livesync.couchdbUrl": far_remote.url,
        "livesync.couchdbUser": far_remote.user,
        "livesync.couchdbPassword": "${COUCH}",
        "livesync.dbName": far_remote.database,
    }
    configure(set_up, {**QUICK, **settings})
    SecretStore(load().home).forget(place_of(load()).key)
    environ = {
        "COUCH": far_remote.password or "",
        "OBSIDIAN_RAG_LIVESYNC_PASSPHRASE": PASSPHRASE,
    }
    with living(environ) as daemon:
        until(lambda: connected(daemon))
