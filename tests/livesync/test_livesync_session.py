"""From the settings to a node: where to, with what, by whose leave, and only one at a time."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.fixture_types import Configure
from tests.livesync.keyrings import MemoryKeyring
from tests.livesync.nodes import TestNode
from tests.waiting import PATIENCE_S, until

from obsidian_rag import livesync
from obsidian_rag.config import Config, load
from obsidian_rag.engine import Engine, add_link
from obsidian_rag.errors import (
    Busy,
    ConfigInvalid,
    InvalidArgument,
    LivesyncBrake,
    LivesyncIncompatible,
    LivesyncLocked,
    LivesyncRefused,
    LivesyncUnreachable,
    NotFound,
    ReadOnly,
)
from obsidian_rag.livesync import (
    Direction,
    Options,
    Tweaks,
    check_livesync,
    finish_resolving,
    livesync_state,
    resolve_conflict,
    restore_trashed,
    sync_once,
    trashed_files,
    unlock_database,
    waiting_conflicts,
)
from obsidian_rag.livesync.couchdb.remote import Remote
from obsidian_rag.livesync.milestone import MILESTONE_NAME
from obsidian_rag.livesync.secrets import Secrets, SecretStore
from obsidian_rag.livesync.site import is_node_running, node_lock, place_of, site_of, split_login
from obsidian_rag.livesync.status import LivesyncState
from obsidian_rag.store import Database, Links, LivesyncRecords

pytestmark = pytest.mark.usefixtures("no_keyring")


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    return root


@pytest.fixture
def settings(vault: Path, configure: Configure) -> Callable[..., Config]:
    """Write settings of LiveSync and read them: `settings(couchdbUrl=…)`."""

    def make(**livesync: object) -> Config:
        configure(vault, {f"livesync.{name}": value for name, value in livesync.items()})
        return load()

    return make


@pytest.fixture
def joined(settings: Callable[..., Config], remote: Remote) -> Callable[..., Config]:
    """Settings for the test's database, whose password is kept."""

    def make(**livesync: object) -> Config:
        config = settings(
            **{
                "couchdbUrl": remote.url,
                "couchdbUser": remote.user,
                "dbName": remote.database,
                **livesync,
            }
        )
        config.home.mkdir(exist_ok=True)
        SecretStore(config.home).put(
            place_of(config).key, Secrets(remote.password), may_use_keyring=False
        )
        return config

    return make


@pytest.fixture
def config(joined: Callable[..., Config]) -> Config:
    return joined()


@pytest.fixture
def device(tmp_path: Path, remote: Remote) -> Iterator[TestNode]:
    """Another device of the network, which has set the database up."""
    node = TestNode(tmp_path / "device", remote)
    node.sync()
    yield node
    node.close()


# -- where to, and with what


def test_settings_name_the_database_and_the_vault(
    settings: Callable[..., Config], vault: Path
) -> None:
    config = settings(couchdbUrl="http://localhost:5984/", couchdbUser="alice", dbName="notes")
    site = site_of(config)
    assert (site.remote.url, site.remote.database) == ("http://localhost:5984/", "notes")
    assert (site.remote.user, site.remote.password, site.passphrase) == ("alice", None, None)
    assert site.root == vault


def test_another_folder_is_taken_from_where_the_config_file_is(
    settings: Callable[..., Config], home: Path
) -> None:
    config = settings(couchdbUrl="http://localhost", dbName="n", vaultPath="../elsewhere")
    assert place_of(config).root == home.parent / "elsewhere"


@pytest.mark.parametrize("missing", ["couchdbUrl", "dbName"])
def test_without_a_database_there_is_a_next_step(
    settings: Callable[..., Config], missing: str
) -> None:
    given = {"couchdbUrl": "http://localhost", "dbName": "notes"}
    del given[missing]
    with pytest.raises(ConfigInvalid) as caught:
        site_of(settings(**given))
    assert "livesync setup" in caught.value.suggestion


def test_the_password_comes_from_the_setting_then_from_what_is_kept_then_from_the_environment(
    settings: Callable[..., Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {"couchdbUrl": "http://localhost", "dbName": "notes"}
    config = settings(**named)
    monkeypatch.setenv("OBSIDIAN_RAG_LIVESYNC_PASSWORD", "from the environment")
    monkeypatch.setenv("OBSIDIAN_RAG_LIVESYNC_PASSPHRASE", "passphrase")
    site = site_of(config)
    assert (site.remote.password, site.passphrase) == ("from the environment", "passphrase")
    SecretStore(config.home).put(site.key, Secrets("kept", "kept passphrase"))
    site = site_of(config)
    assert (site.remote.password, site.passphrase) == ("kept", "kept passphrase")
    assert site_of(settings(**named, couchdbPassword="literal")).remote.password == "literal"
    monkeypatch.setenv("COUCH", "${HOME}")
    config = settings(**named, couchdbPassword="${COUCH}")
    assert site_of(config).remote.password == "${HOME}"
    monkeypatch.delenv("COUCH")
    with pytest.raises(ConfigInvalid) as caught:
        site_of(config)
    assert "COUCH" in caught.value.message


def test_what_is_given_on_the_command_line_wins(settings: Callable[..., Config]) -> None:
    config = settings(
        couchdbUrl="http://localhost:1", couchdbUser="alice", couchdbPassword="p", dbName="notes"
    )
    options = Options(
        url="http://b%20b:s%40cret@localhost:2/couch/", database="other", passphrase="x"
    )
    site = site_of(config, options)
    assert (site.remote.url, site.remote.database) == ("http://localhost:2/couch", "other")
    assert (site.remote.user, site.remote.password, site.passphrase) == ("b b", "s@cret", "x")
    options = Options(url="http://b:c@localhost:2", user="eve", password="z")
    assert (site_of(config, options).remote.user, site_of(config, options).remote.password) == (
        "eve",
        "z",
    )
    assert "c@" not in repr(options)
    assert "'z'" not in repr(options)


def test_the_password_of_the_settings_goes_to_no_other_server(
    settings: Callable[..., Config],
) -> None:
    config = settings(
        couchdbUrl="http://localhost:1", couchdbUser="alice", couchdbPassword="p", dbName="notes"
    )
    other = site_of(config, Options(url="http://localhost:2"))
    assert (other.remote.user, other.remote.password) == (None, None)
    same = site_of(config, Options(url="http://localhost:1/", database="second"))
    assert (same.remote.user, same.remote.password) == ("alice", "p")


def test_a_server_elsewhere_needs_consent_and_local_only_does_not_matter(
    settings: Callable[..., Config],
) -> None:
    named = {"couchdbUrl": "https://couch.example.com", "dbName": "notes"}
    with pytest.raises(LivesyncRefused) as caught:
        site_of(settings(**named))
    assert "remote_consent" in caught.value.suggestion
    config = settings(**named, remote_consent=True)
    assert config.settings.security.local_only
    assert site_of(config).remote.url == "https://couch.example.com"


def test_consent_is_for_one_server(settings: Callable[..., Config]) -> None:
    config = settings(couchdbUrl="https://couch.example.com", dbName="notes", remote_consent=True)
    with pytest.raises(LivesyncRefused):
        site_of(config, Options(url="https://evil.example.com"))
    options = Options(url="https://other.example.com", has_consent=True)
    assert site_of(config, options).remote.url == "https://other.example.com"


def test_a_data_folder_in_the_synced_folder_is_refused(
    settings: Callable[..., Config], tmp_path: Path
) -> None:
    config = settings(couchdbUrl="http://localhost", dbName="notes", vaultPath=str(tmp_path))
    with pytest.raises(ConfigInvalid):
        place_of(config)


def test_a_folder_that_is_synced_cannot_be_linked(
    settings: Callable[..., Config], tmp_path: Path
) -> None:
    """A linked vault is only read, so LiveSync would have to stop."""
    synced = tmp_path / "synced"
    (synced / "Below").mkdir(parents=True)
    address = {"couchdbUrl": "http://127.0.0.1:9", "dbName": "notes"}
    with closing(Engine(settings(**address, vaultPath=str(synced)))) as engine:
        for folder in (synced, synced / "Below"):
            with pytest.raises(InvalidArgument, match="LiveSync writes into"):
                add_link(engine, str(folder))


def test_a_linked_vault_that_may_only_be_read_is_not_synced(
    settings: Callable[..., Config], tmp_path: Path
) -> None:
    """Refused before the server is asked: nothing listens at this address."""
    linked = tmp_path / "linked"
    (linked / "Below").mkdir(parents=True)
    alias = tmp_path / "alias"
    alias.symlink_to(linked)
    address = {"couchdbUrl": "http://127.0.0.1:9", "dbName": "notes"}
    plain = settings(**address)
    with closing(Database(plain.database)) as database:
        Links(database).add(linked, "read_only", "linked")
    for folder in (linked, linked / "Below", alias):
        config = settings(**address, vaultPath=str(folder))
        with pytest.raises(ReadOnly):
            sync_once(config)
        with pytest.raises(ReadOnly):
            trashed_files(config)
    assert list(linked.iterdir()) == [linked / "Below"]


def test_a_locked_keyring_is_reported(
    settings: Callable[..., Config], memory_keyring: MemoryKeyring
) -> None:
    config = settings(couchdbUrl="http://localhost", dbName="notes")
    SecretStore(config.home).put(place_of(config).key, Secrets("p"))
    assert site_of(config).remote.password == "p"
    memory_keyring.is_locked = True
    with pytest.raises(ConfigInvalid):
        site_of(config)


@pytest.mark.parametrize("url", ["http://[", "not an address", "http://u:p@", "ftp://u:p@h"])
def test_an_invalid_address_is_refused_without_quoting_it(
    settings: Callable[..., Config], url: str
) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        site_of(settings(dbName="notes"), Options(url=url))
    assert "u:p" not in caught.value.message


def test_an_address_is_split() -> None:
    assert split_login("http://host/") == ("http://host", None, None)
    assert split_login(" https://u:p@[::1]:1/x ") == ("https://[::1]:1/x", "u", "p")


# -- one at a time


def test_one_node_per_database_at_a_time(config: Config, device: TestNode) -> None:
    key = place_of(config).key
    assert not is_node_running(config, key)
    with node_lock(config, key):
        assert is_node_running(config, key)
        with pytest.raises(Busy):
            sync_once(config)
    assert not is_node_running(config, key)
    sync_once(config)


def test_the_lock_of_a_dead_process_does_not_count(config: Config) -> None:
    key = place_of(config).key
    script = (
        "import os, sys\nfrom obsidian_rag.config import load\n"
        "from obsidian_rag.livesync.site import node_lock\n"
        f"with node_lock(load(), {key!r}):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert is_node_running(config, key)
        holder.kill()
    assert not is_node_running(config, key)


# -- a sync from end to end


@pytest.fixture
def a_note_each(device: TestNode, vault: Path) -> None:
    """A note that only the device has, and one that only the vault has."""
    device.write("there.md", "from the device\n")
    device.sync()
    (vault / "here.md").write_text("from here\n")


@pytest.mark.usefixtures("a_note_each")
def test_a_sync_takes_and_sends(config: Config, device: TestNode) -> None:
    steps: list[tuple[str, int, int]] = []
    result = sync_once(config, listener=lambda *step: steps.append(step))
    assert (result.state.pulled, result.state.pushed, result.is_complete) == (1, 1, True)
    assert ("files", 2, 2) in steps
    device.sync()
    assert device.files() == {"here.md": b"from here\n", "there.md": b"from the device\n"}


@pytest.mark.usefixtures("a_note_each")
def test_each_direction_leaves_the_other_side_alone(
    config: Config, device: TestNode, vault: Path
) -> None:
    sync_once(config, Options(direction=Direction.PUSH))
    assert [file.name for file in vault.iterdir()] == ["here.md"]
    (vault / "more.md").write_text("more\n")
    sync_once(config, Options(direction=Direction.PULL))
    device.sync()
    assert sorted(device.files()) == ["here.md", "there.md"]
    assert (vault / "there.md").read_text() == "from the device\n"


def test_read_only_sends_nothing_by_setting_or_by_wish(
    joined: Callable[..., Config], device: TestNode, vault: Path
) -> None:
    (vault / "here.md").write_text("from here\n")
    sync_once(joined(), Options(is_read_only=True))
    sync_once(joined(read_only=True))
    device.sync()
    assert device.files() == {}


@pytest.mark.usefixtures("a_note_each")
def test_a_dry_run_says_what_it_would_do_and_does_nothing(
    config: Config, device: TestNode, vault: Path
) -> None:
    result = sync_once(config, Options(is_dry=True))
    assert result.planned == ("push here.md", "write there.md")
    assert [file.name for file in vault.iterdir()] == ["here.md"]
    device.sync()
    assert list(device.files()) == ["there.md"]


def test_a_missing_folder_is_not_an_empty_vault(
    config: Config, device: TestNode, vault: Path
) -> None:
    vault.rmdir()
    with pytest.raises(NotFound):
        sync_once(config)
    vault.mkdir()
    for number in range(30):
        device.write(f"{number}.md", "x\n")
    device.sync()
    sync_once(config)
    vault.rename(vault.with_name("unplugged"))
    with pytest.raises(LivesyncBrake):
        sync_once(config)
    device.sync()
    assert len(device.files()) == 30


def test_the_brake_is_released_once_when_the_user_says_so(
    config: Config, device: TestNode, vault: Path
) -> None:
    for number in range(30):
        device.write(f"{number}.md", "x\n")
    device.sync()
    sync_once(config)
    for number in range(25):
        (vault / f"{number}.md").unlink()
    with pytest.raises(LivesyncBrake):
        sync_once(config)
    result = sync_once(config, Options(allows_deletions=True))
    assert result.state.deleted_there == 25
    device.sync(allows_deletions=True)
    assert len(device.files()) == 5


def test_an_empty_database_is_set_up_only_when_asked_to(
    config: Config, remote: Remote, vault: Path, tmp_path: Path
) -> None:
    (vault / "n.md").write_text("x\n")
    with pytest.raises(LivesyncIncompatible):
        sync_once(config)
    options = Options(tweaks=Tweaks(enable_compression=True), is_init=True, passphrase="secret")
    sync_once(config, options)
    other = TestNode(tmp_path / "other", remote, passphrase="secret")
    reconciler = other.sync()
    assert reconciler.sync.member.tweaks.encrypt
    assert reconciler.sync.member.tweaks.enable_compression
    assert other.files() == {"n.md": b"x\n"}
    other.close()


def test_an_unreachable_server_is_remembered_for_the_status(
    joined: Callable[..., Config],
) -> None:
    config = joined(couchdbUrl="http://127.0.0.1:9")
    with pytest.raises(LivesyncUnreachable):
        sync_once(config)
    engine = Engine(config)
    told = status_of(engine)
    assert (told.health, told.trouble and told.trouble.code) == ("degraded", "LIVESYNC_UNREACHABLE")
    assert not told.is_running
    engine.close()


def test_files_of_another_folder_do_not_count_as_deleted(
    joined: Callable[..., Config], device: TestNode, vault: Path, tmp_path: Path
) -> None:
    for number in range(30):
        device.write(f"{number}.md", "x\n")
    device.sync()
    sync_once(joined())
    other = tmp_path / "other"
    other.mkdir()
    (other / "0.md").write_text("another\n")
    with pytest.raises(NotFound):
        sync_once(joined(vaultPath=str(tmp_path / "typo")))
    sync_once(joined(vaultPath=str(other)))
    assert len(list(other.iterdir())) == 31, "what was there is kept beside"
    device.sync()
    assert len(device.files()) == 31
    (vault / "5.md").unlink()
    sync_once(joined())
    assert (vault / "5.md").exists(), "nobody remembers that it was there"


# -- the trash


def trash(config: Config, device: TestNode, vault: Path) -> None:
    """Take a file, and have it deleted by another device."""
    device.write("Folder/gone.md", "keep me\n")
    device.write("stays.md", "x\n")
    device.sync()
    sync_once(config)
    (device.root / "Folder" / "gone.md").unlink()
    device.sync()
    sync_once(config)
    assert not (vault / "Folder").exists()


@pytest.mark.parametrize("by", ["number", "path"])
def test_what_another_device_deleted_comes_back(
    config: Config, device: TestNode, vault: Path, by: str
) -> None:
    trash(config, device, vault)
    (file,) = trashed_files(config)
    assert (file.path, file.size) == ("Folder/gone.md", 8)
    done = restore_trashed(config, str(file.trash_id) if by == "number" else file.path)
    assert done.path == "Folder/gone.md"
    assert (vault / "Folder" / "gone.md").read_text() == "keep me\n"
    assert trashed_files(config) == ()
    assert list((config.home / "livesync-trash").glob("*")) == []
    sync_once(config)
    device.sync()
    assert device.files()["Folder/gone.md"] == b"keep me\n"


def test_a_restored_file_does_not_replace_a_new_one(
    config: Config, device: TestNode, vault: Path
) -> None:
    trash(config, device, vault)
    (vault / "Folder").mkdir()
    (vault / "Folder" / "gone.md").write_text("another one\n")
    done = restore_trashed(config, "Folder/gone.md")
    assert (vault / done.path).read_text() == "keep me\n"
    assert (vault / "Folder" / "gone.md").read_text() == "another one\n"


def test_the_trash_moves_with_the_data_folder(
    config: Config,
    device: TestNode,
    vault: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trash(config, device, vault)
    moved = config.home.rename(config.home.with_name("moved"))
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(moved))
    restore_trashed(load(), "Folder/gone.md")
    assert (vault / "Folder" / "gone.md").read_text() == "keep me\n"


def test_what_the_trash_does_not_have_is_not_found(
    config: Config, device: TestNode, vault: Path
) -> None:
    trash(config, device, vault)
    with pytest.raises(NotFound):
        restore_trashed(config, "never.md")


def test_old_files_leave_the_trash_for_good(
    joined: Callable[..., Config], device: TestNode, vault: Path
) -> None:
    config = joined(trash_days=7)
    trash(config, device, vault)
    with_key = place_of(config).key
    database = Database(config.database)
    records = LivesyncRecords(database, with_key)
    old = (datetime.now(UTC) - timedelta(days=8)).isoformat()
    folder = config.home / "livesync-trash"
    (folder / "old").write_text("old\n")
    records.add_trash("old.md", str(folder / "old"), 4, old, "deleted")
    records.add_trash("lost.md", str(folder / "lost"), 4, old, "deleted")
    database.close()
    sync_once(config)
    assert [file.path for file in trashed_files(config)] == ["Folder/gone.md"]
    assert not (folder / "old").exists()


# -- by hand


def test_a_locked_database_is_unlocked_and_nothing_is_deleted(
    config: Config, device: TestNode, vault: Path
) -> None:
    device.write("a.md", "x\n")
    device.sync()
    sync_once(config)
    milestone = device.couch.get_local(MILESTONE_NAME)
    assert milestone is not None
    device.couch.put_local(MILESTONE_NAME, {**milestone, "locked": True})
    with pytest.raises(LivesyncLocked):
        sync_once(config)
    (vault / "b.md").write_text("made meanwhile\n")
    with node_lock(config, place_of(config).key), pytest.raises(Busy):
        unlock_database(config)
    unlock_database(config)
    sync_once(config)
    assert sorted(file.name for file in vault.iterdir()) == ["a.md", "b.md"]


def conflicted(config: Config, device: TestNode, vault: Path) -> None:
    (vault / "Folder").mkdir()
    (vault / "Folder" / "n.md").write_text("a\n")
    sync_once(config)
    device.sync()
    device.write("Folder/n.md", "theirs\n")
    device.sync()
    (vault / "Folder" / "n.md").write_text("ours\n")
    sync_once(config)


@pytest.mark.parametrize("note", ["Folder/n.md", "folder/N", "n"])
def test_a_conflict_is_listed_and_settled(
    config: Config, device: TestNode, vault: Path, note: str
) -> None:
    conflicted(config, device, vault)
    (waiting,) = waiting_conflicts(config)
    assert waiting.conflict.path == "Folder/n.md"
    assert resolve_conflict(config, note, "ours").path == "Folder/n.md"
    finish_resolving(config)
    device.sync()
    assert device.files() == {"Folder/n.md": b"ours\n"}
    assert waiting_conflicts(config) == ()


def test_a_note_without_a_conflict_is_not_found(config: Config, device: TestNode) -> None:
    sync_once(config)
    with pytest.raises(NotFound):
        resolve_conflict(config, "n.md", "ours")


def test_a_name_that_several_conflicts_have_is_not_enough(config: Config, device: TestNode) -> None:
    database = Database(config.database)
    records = LivesyncRecords(database, place_of(config).key)
    records.add_conflict("a/n.md", "a/n.md", ("1-a",))
    records.add_conflict("b/n.md", "b/n.md", ("1-a",))
    database.close()
    with pytest.raises(InvalidArgument):
        resolve_conflict(config, "n", "ours")


def test_a_check_lists_what_is_not_synced(config: Config, device: TestNode, vault: Path) -> None:
    (vault / "good.md").write_text("x\n")
    (vault / "what?.md").write_text("x\n")
    (vault / "bad:name.md").write_text("x\n")
    (vault / "Twice.md").write_text("x\n")
    (vault / "twice.md").write_text("y\n")
    (vault / "latin.md").write_bytes(b"gr\xfc\xdfe")
    device.couch.bulk_docs(
        [{"_id": "../evil.md", "path": "../evil.md", "type": "plain", "children": [], "size": 0}]
    )
    result = sync_once(config)
    assert not result.is_complete
    found = check_livesync(config)
    assert [one.path or one.doc_id for one in found.quarantined] == ["../evil.md", "latin.md"]
    assert dict(found.left_out).keys() == {"bad:name.md", "twice.md"}
    assert list(found.warnings) == ["what?.md"]
    assert (found.trouble, found.is_clean) == (None, False)


def test_a_check_works_without_the_server_and_changes_nothing(
    joined: Callable[..., Config], device: TestNode, vault: Path
) -> None:
    (vault / "good.md").write_text("x\n")
    sync_once(joined())
    assert check_livesync(joined()).is_clean
    milestone = device.couch.get_local(MILESTONE_NAME)
    assert milestone is not None
    device.couch.put_local(MILESTONE_NAME, {**milestone, "created": 5})
    assert check_livesync(joined()).files == 1
    away = check_livesync(joined(couchdbUrl="http://127.0.0.1:9"))
    assert away.trouble is not None
    assert away.trouble.code == "LIVESYNC_UNREACHABLE"


# -- in the foreground


def test_a_node_in_the_foreground_follows_both_sides_and_other_processes_see_it(
    joined: Callable[..., Config], device: TestNode, vault: Path
) -> None:
    config = joined(debounce_s=0)
    engine = Engine(config)
    assert not status_of(engine).is_running
    stop = threading.Event()
    thread = threading.Thread(target=livesync.run_until_stopped, args=(config, stop))
    thread.start()
    try:
        until(lambda: status_of(engine).is_connected and status_of(engine).is_watching)
        (vault / "here.md").write_text("from here\n")
        until(lambda: device.sync() and "here.md" in device.files())
        device.write("there.md", "from the device\n")
        device.sync()
        until(lambda: (vault / "there.md").exists())
        until(lambda: status_of(engine).pulled == 1)
        told = status_of(engine)
        assert (told.is_running, told.health, told.pushed) == (True, "healthy", 1)
    finally:
        stop.set()
        thread.join(PATIENCE_S)
        engine.close()
    assert not thread.is_alive()
    assert not is_node_running(config, place_of(config).key)


def test_a_node_goes_on_with_a_new_database_when_the_old_one_was_set_aside(
    joined: Callable[..., Config], device: TestNode, vault: Path
) -> None:
    config = joined(debounce_s=0)
    device.write("a.md", "x\n")
    device.sync()
    stop = threading.Event()
    thread = threading.Thread(target=livesync.run_until_stopped, args=(config, stop))
    thread.start()
    try:
        until(lambda: (vault / "a.md").exists())
        for suffix in ("", "-wal", "-shm"):
            file = config.database.with_name(config.database.name + suffix)
            if file.exists():
                file.rename(file.with_name(f"aside{suffix}"))
        until(config.database.exists)
        device.write("b.md", "y\n")
        device.sync()
        until(lambda: (vault / "b.md").exists())
    finally:
        stop.set()
        thread.join(PATIENCE_S)
    assert sorted(file.name for file in vault.iterdir()) == ["a.md", "b.md"]


def status_of(engine: Engine) -> LivesyncState:
    """What a process without a node of its own tells."""
    return livesync_state(engine.config, engine.database, None)
