"""Clients and devices of a fresh database for the tests of the LiveSync room."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.livesync.keyrings import memory_keyring, no_keyring
from tests.livesync.nodes import MakeNode, TestNode
from tests.livesync.pouch import Server
from tests.livesync.third import ThirdClient
from tests.waiting import PATIENCE_S

from obsidian_rag.livesync.couchdb.couch import Couch
from obsidian_rag.livesync.couchdb.remote import Remote

__all__ = ["memory_keyring", "no_keyring"]


@pytest.fixture
def couch(remote: Remote) -> Iterator[Couch]:
    """A client of a new database."""
    client = Couch(remote, timeout_s=PATIENCE_S)
    yield client
    client.close()


@pytest.fixture
def far_couch(far_remote: Remote) -> Iterator[Couch]:
    """A client of the new database that has to go through the proxy."""
    client = Couch(far_remote, timeout_s=PATIENCE_S)
    yield client
    client.close()


@pytest.fixture
def make_node(tmp_path: Path, remote: Remote) -> Iterator[MakeNode]:
    """Makes devices of the new database by their names; all are closed in the end."""
    made: list[TestNode] = []

    def make(name: str, remote: Remote = remote, **options: Any) -> TestNode:
        made.append(TestNode(tmp_path / name, remote, **options))
        return made[-1]

    yield make
    for node in made:
        node.close()


@pytest.fixture
def third(pouch: Server, remote: Remote) -> ThirdClient:
    """A client that writes into the new database as LiveSync's own do."""
    return ThirdClient(pouch, remote.database)
