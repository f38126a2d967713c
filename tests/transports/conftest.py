"""What several files of commands need: an indexed vault, and one that LiveSync keeps."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fixture_types import Cli, Configure, MakeVault
from tests.livesync.nodes import TestNode
from tests.transports.livesync_site import PASSPHRASE, URI_PASSPHRASE, device_of, options_of

from obsidian_rag.livesync.couchdb.remote import Remote


@pytest.fixture
def vault(
    request: pytest.FixtureRequest, make_vault: MakeVault, configure: Configure, cli: Cli
) -> Path:
    """A vault of the module's NOTES, whose index is complete."""
    root = make_vault(request.module.NOTES)
    configure(root, {})
    assert cli("index").code == 0
    return root


@pytest.fixture
def livesync_secrets(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secrets of the new database, in variables."""
    monkeypatch.setenv("COUCH_PASSWORD", remote.password or "")
    monkeypatch.setenv("NOTES_PASSPHRASE", PASSPHRASE)
    monkeypatch.setenv("URI_PASSPHRASE", URI_PASSPHRASE)


@pytest.fixture
def device(tmp_path: Path, remote: Remote) -> Iterator[TestNode]:
    """Another device, which has set the database up."""
    node = device_of(tmp_path / "device", remote)
    yield node
    node.close()


@pytest.fixture
def synced_vault(
    request: pytest.FixtureRequest,
    cli: Cli,
    remote: Remote,
    device: TestNode,
    make_vault: MakeVault,
    livesync_secrets: None,
) -> Path:
    """A vault of the module's NOTES that is set up and in sync with the device."""
    root = make_vault(request.module.NOTES)
    done = cli("livesync", "setup", *options_of(remote, root))
    assert done.code == 0, done.err
    assert cli("livesync", "run", "--once").code == 0
    device.sync()
    return root
