"""`obsidian_sync_status` says how LiveSync is doing, with and without a daemon, and no secret."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fixture_types import MakeEngine, MakeVault
from tests.livesync.nodes import TestNode

from obsidian_rag.config import load
from obsidian_rag.engine import Bus, Engine
from obsidian_rag.engine.health import Health
from obsidian_rag.engine.jobs import Jobs
from obsidian_rag.engine.live import Live
from obsidian_rag.errors import LivesyncLocked
from obsidian_rag.livesync import LivesyncState, sync_once
from obsidian_rag.livesync.couchdb.remote import Remote
from obsidian_rag.livesync.secrets import Secrets, SecretStore
from obsidian_rag.livesync.site import node_lock, place_of
from obsidian_rag.store import Links, LivesyncRecords
from obsidian_rag.tools import OWNER, call, sync_trash

TOOL = "obsidian_sync_status"
STATS = {
    "pulled",
    "pushed",
    "deleted_here",
    "deleted_there",
    "renamed",
    "merged",
    "conflicts",
    "quarantined",
    "waiting",
    "trash",
    "last_seq",
    "last_change_at",
    "lag",
}

pytestmark = pytest.mark.usefixtures("no_keyring")


def settings_of(remote: Remote) -> dict[str, object]:
    return {
        "livesync.couchdbUrl": remote.url,
        "livesync.couchdbUser": remote.user,
        "livesync.dbName": remote.database,
    }


def status(engine: Engine) -> tuple[dict[str, Any], Any]:
    envelope = call(engine, TOOL, {})
    assert isinstance(envelope["data"], dict)
    return envelope["data"], envelope


def test_a_missing_configuration_is_stated_and_not_a_trouble(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    data, envelope = status(engine(make_vault({})))
    assert (envelope["status"], envelope["error"]) == ("healthy", None)
    assert (data["configured"], data["running"], data["health"]) == (False, False, "healthy")
    assert "NOT configured" in data["message"]
    assert set(data["stats"]) == STATS


def test_a_vault_need_not_be_chosen(home: Path) -> None:
    one = Engine(load())
    assert status(one)[0]["configured"] is False
    one.close()


def test_without_a_daemon_the_records_tell_of_the_last_sync(
    engine: MakeEngine, make_vault: MakeVault, remote: Remote, tmp_path: Path
) -> None:
    device = TestNode(tmp_path / "device", remote)
    device.write("a.md", "x\n")
    device.sync()
    vault = make_vault({"b.md": "y\n", "latin.md": b"gr\xfc\xdfe"})
    one = engine(vault, settings_of(remote))
    home = one.config.home
    SecretStore(home).put(place_of(one.config).key, Secrets(remote.password))
    sync_once(one.config)
    data, envelope = status(one)
    assert envelope["status"] == "healthy"
    assert (data["configured"], data["enabled"]) == (True, False)
    assert (data["running"], data["watching"], data["connected"]) == (False, False, False)
    assert (data["database"], data["vault"]) == (remote.database, str(vault))
    assert data["link_id"] is None, "it is synced, but was never indexed"
    link = Links(one.database).set_primary(vault)
    assert status(one)[0]["link_id"] == link.link_id
    trash: Any = sync_trash(one)["data"]
    assert trash == {"link_id": link.link_id, "files": []}
    assert data["files"] == 2
    stats = data["stats"]
    assert (stats["pulled"], stats["pushed"], stats["quarantined"]) == (1, 1, 1)
    assert stats["last_seq"]
    assert (remote.password or "") not in json.dumps(envelope, ensure_ascii=False)
    device.close()


def test_a_node_of_another_process_is_seen(engine: MakeEngine, make_vault: MakeVault) -> None:
    one = engine(make_vault({}), settings_of(Remote("http://127.0.0.1:9", "notes", "alice")))
    with node_lock(one.config, place_of(one.config).key):
        assert status(one)[0]["running"] is True
    assert status(one)[0]["running"] is False


def test_the_living_node_tells_of_itself_and_its_trouble_degrades(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    one = engine(make_vault({}), settings_of(Remote("http://127.0.0.1:9", "notes", "alice")))
    asked: list[None] = []
    bus = Bus()
    state = LivesyncState(is_running=True, is_watching=True, is_connected=True, pulled=7, lag=3)
    one.live = Live(
        bus,
        Jobs(one.config, bus),
        Health(bus),
        probe_soon=lambda: asked.append(None),
        livesync=lambda: state,
    )
    data, envelope = status(one)
    assert (data["running"], data["watching"], data["connected"]) == (True, True, True)
    assert (data["stats"]["pulled"], data["stats"]["lag"]) == (7, 3)
    assert (envelope["status"], asked) == ("healthy", [])
    locked = LivesyncLocked("The database is locked.", "Unlock it.")
    state = replace(state, is_running=False, trouble=locked)
    data, envelope = status(one)
    assert (envelope["status"], envelope["error"]["code"]) == ("degraded", "LIVESYNC_LOCKED")
    assert (data["running"], data["trouble"]) == (False, locked.body)
    assert asked == [None]


def test_progress_is_told_while_catching_up(engine: MakeEngine, make_vault: MakeVault) -> None:
    one = engine(make_vault({}), settings_of(Remote("http://127.0.0.1:9", "notes", "alice")))
    bus = Bus()
    state = LivesyncState(is_running=True, progress=("files", 200, 5000), lag=4800)
    one.live = Live(bus, Jobs(one.config, bus), Health(bus), livesync=lambda: state)
    data, _ = status(one)
    assert data["progress"] == {"phase": "files", "current": 200, "total": 5000}
    assert data["stats"]["lag"] == 4800


def test_settings_that_cannot_be_used_are_a_trouble_not_a_failure(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    one = engine(
        make_vault({}), {"livesync.couchdbUrl": "ftp://nowhere", "livesync.dbName": "notes"}
    )
    data, envelope = status(one)
    assert (envelope["status"], data["configured"], data["running"]) == ("degraded", True, False)
    assert envelope["error"]["code"] == "CONFIG_INVALID"


@pytest.mark.parametrize("word", ["", "{", "[]", '{"trouble": {}}', '{"counts": 5}'])
def test_a_damaged_state_counts_as_none(
    engine: MakeEngine, make_vault: MakeVault, word: str
) -> None:
    one = engine(make_vault({}), settings_of(Remote("http://127.0.0.1:9", "notes", "alice")))
    LivesyncRecords(one.database, place_of(one.config).key).put_fact("state", word)
    assert status(one)[0]["running"] is False


def test_an_agent_hears_how_many_files_are_not_synced_and_the_owner_which(
    engine: MakeEngine, make_vault: MakeVault, remote: Remote, tmp_path: Path
) -> None:
    device = TestNode(tmp_path / "device", remote)
    device.sync()
    device.close()
    vault = make_vault({"a:b.md": "x", "Private/secret.md": "y", "note.md": "z"})
    settings = settings_of(remote) | {"livesync.syncIgnoreRegEx": "^private/"}
    one = engine(vault, settings)
    SecretStore(one.config.home).put(
        place_of(one.config).key, Secrets(password=remote.password), may_use_keyring=False
    )
    assert sync_once(one.config).state.pushed == 1
    told = status(one)[1]
    assert told["data"]["not_synced"] == [
        {"kind": "left_out", "reason": "holds a colon", "count": 1},
        {"kind": "filtered", "reason": "matches syncIgnoreRegEx", "count": 1},
    ]
    assert "secret" not in json.dumps(told) and "a:b" not in json.dumps(told)
    data: Any = call(one, TOOL, {}, OWNER)["data"]
    assert [group["paths"] for group in data["not_synced"]] == [["a:b.md"], ["Private/secret.md"]]
