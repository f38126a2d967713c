"""One database reached by several addresses is one database: what was agreed stays agreed."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fixture_types import Configure
from tests.livesync.nodes import MakeNode
from tests.livesync.pouch import Server, running_server
from tests.livesync.proxy import FaultyProxy

from obsidian_rag.config import Config, load
from obsidian_rag.errors import Busy
from obsidian_rag.livesync import (
    Options,
    livesync_state,
    restore_trashed,
    status_fields,
    sync_once,
    trashed_files,
    unlock_database,
)
from obsidian_rag.livesync.couchdb.remote import Remote
from obsidian_rag.livesync.milestone import MILESTONE_NAME
from obsidian_rag.livesync.secrets import Secrets, SecretStore
from obsidian_rag.livesync.session import open_node
from obsidian_rag.livesync.site import place_of
from obsidian_rag.store import Database

pytestmark = pytest.mark.usefixtures("no_keyring")
SetUp = Callable[[Remote], Config]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    return root


@pytest.fixture
def connect(vault: Path, configure: Configure) -> SetUp:
    """Point the settings at a database, as a user does who edits the address."""

    def make(remote: Remote) -> Config:
        configure(
            vault,
            {
                "livesync.couchdbUrl": remote.url,
                "livesync.couchdbUser": remote.user,
                "livesync.dbName": remote.database,
            },
        )
        config = load()
        config.home.mkdir(exist_ok=True)
        SecretStore(config.home).put(
            place_of(config).key, Secrets(remote.password), may_use_keyring=False
        )
        return config

    return make


def _files(config: Config) -> int:
    with contextlib.closing(Database(config.database)) as database:
        state = livesync_state(config, database, None)
        fields: Any = status_fields(config, database, state, has_paths=True)
        return int(fields["files"])


def test_deletion_made_before_the_address_changed_reaches_the_other_devices(
    connect: SetUp, vault: Path, make_node: MakeNode, remote: Remote, far_remote: Remote
) -> None:
    device = make_node("device")
    for name in ("gone.md", "kept.md", "a.md", "b.md", "c.md", "d.md"):
        device.write(name, f"{name}\n")
    device.sync()
    sync_once(connect(remote))
    (vault / "gone.md").unlink()
    (vault / "a.md").rename(vault / "renamed.md")

    config = connect(far_remote)
    sync_once(config, Options(allows_deletions=True))

    assert not (vault / "gone.md").exists()
    assert not (vault / "a.md").exists()
    device.sync(allows_deletions=True)
    assert sorted(device.files()) == ["b.md", "c.md", "d.md", "kept.md", "renamed.md"]
    assert _files(config) == 5


def test_file_replaced_by_a_folder_is_deleted_there_and_back_again(
    connect: SetUp, vault: Path, make_node: MakeNode, remote: Remote, far_remote: Remote
) -> None:
    device = make_node("device")
    device.write("thing", "a file\n")
    device.write("other.md", "x\n")
    device.sync()
    sync_once(connect(remote))
    (vault / "thing").unlink()
    (vault / "thing").mkdir()
    (vault / "thing" / "inside.md").write_text("in a folder\n")

    sync_once(connect(far_remote), Options(allows_deletions=True))
    device.sync(allows_deletions=True)
    assert device.files() == {"other.md": b"x\n", "thing/inside.md": b"in a folder\n"}

    (vault / "thing" / "inside.md").unlink()
    (vault / "thing").rmdir()
    (vault / "thing").write_text("a file again\n")
    sync_once(connect(remote), Options(allows_deletions=True))
    device.sync(allows_deletions=True)
    assert device.files() == {"other.md": b"x\n", "thing": b"a file again\n"}


def test_trash_is_found_by_every_address_of_the_database(
    connect: SetUp, vault: Path, make_node: MakeNode, remote: Remote, far_remote: Remote
) -> None:
    device = make_node("device")
    device.write("gone.md", "precious\n")
    device.write("kept.md", "x\n")
    device.sync()
    sync_once(connect(remote))
    (device.root / "gone.md").unlink()
    device.sync(allows_deletions=True)
    sync_once(connect(remote), Options(allows_deletions=True))

    config = connect(far_remote)
    sync_once(config)

    assert [file.path for file in trashed_files(config)] == ["gone.md"]
    restore_trashed(config, "gone.md")
    assert (vault / "gone.md").read_text() == "precious\n"


def test_device_that_was_accepted_stays_accepted_by_another_address(
    connect: SetUp, vault: Path, make_node: MakeNode, remote: Remote, far_remote: Remote
) -> None:
    device = make_node("device")
    device.write("a.md", "x\n")
    device.sync()
    sync_once(connect(remote))
    milestone = device.couch.get_local(MILESTONE_NAME)
    assert milestone is not None
    device.couch.put_local(MILESTONE_NAME, {**milestone, "locked": True, "accepted_nodes": []})
    unlock_database(connect(remote))

    config = connect(far_remote)
    sync_once(config)

    assert _files(config) == 1


def test_address_that_serves_another_database_now_leaves_the_old_records_alone(
    connect: SetUp,
    vault: Path,
    make_node: MakeNode,
    tmp_path: Path,
    pouch: Server,
    remote: Remote,
    proxy: FaultyProxy,
    far_remote: Remote,
) -> None:
    if pouch.is_couchdb:
        pytest.skip("needs a second server, and OBSIDIAN_RAG_COUCH_URL names one")
    make_node("device").sync()
    (vault / "a.md").write_text("x\n")
    (vault / "b.md").write_text("y\n")
    sync_once(connect(far_remote))
    sync_once(connect(remote))  # the database has moved here
    folder = tmp_path / "second"
    folder.mkdir()
    with running_server(folder) as second:  # a new server takes over the old address
        proxy.lead_to(second.port)
        second.request("PUT", f"/{remote.database}")
        make_node("stranger", far_remote).sync()
        sync_once(connect(far_remote))
        assert _files(load()) == 2

    (vault / "a.md").unlink()
    sync_once(connect(remote), Options(allows_deletions=True))

    assert not (vault / "a.md").exists()


def test_node_refuses_to_run_twice_for_one_database_by_two_addresses(
    connect: SetUp, make_node: MakeNode, remote: Remote, far_remote: Remote
) -> None:
    make_node("device").sync()
    here = connect(remote)
    sync_once(here)
    with open_node(here), pytest.raises(Busy):
        sync_once(connect(far_remote))
