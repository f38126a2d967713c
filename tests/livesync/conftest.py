"""A real server for the tests of the LiveSync room, and a fresh database for each of them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.livesync.keyrings import memory_keyring, no_keyring
from tests.livesync.nodes import MakeNode, TestNode
from tests.livesync.pouch import Server, address_of, running_server, why_not
from tests.livesync.proxy import FaultyProxy
from tests.livesync.third import ThirdClient

from obsidian_rag.livesync.couch import Couch
from obsidian_rag.livesync.remote import Remote

__all__ = ["memory_keyring", "no_keyring"]


@pytest.fixture(scope="session")
def pouch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server: a pouchdb-server, or the CouchDB of OBSIDIAN_RAG_COUCH_URL."""
    if reason := why_not():
        pytest.skip(reason)
    with running_server(tmp_path_factory.mktemp("pouch")) as server:
        yield server


@pytest.fixture
def remote(pouch: Server) -> Iterator[Remote]:
    """A new, empty database, and the right to use it."""
    made = pouch.new_remote()
    # In one shard, so that changes come in the order of the writing.
    status, _ = pouch.request("PUT", f"/{made.database}?q=1")
    assert status in (201, 202)
    yield made
    pouch.request("DELETE", f"/{made.database}")


@pytest.fixture
def couch_url(remote: Remote) -> str:
    """The address of a new database, with user and password in it."""
    return address_of(remote)


@pytest.fixture
def couch(remote: Remote) -> Iterator[Couch]:
    """A client of a new database."""
    client = Couch(remote, timeout_s=20)
    yield client
    client.close()


@pytest.fixture
def proxy(pouch: Server) -> Iterator[FaultyProxy]:
    """A proxy before the server that spoils what it is told to."""
    if pouch.url.startswith("https:"):
        pytest.skip("the faulty proxy speaks no TLS: give OBSIDIAN_RAG_COUCH_URL as http")
    with FaultyProxy(pouch.port, pouch.host) as made:
        yield made


@pytest.fixture
def far_remote(remote: Remote, proxy: FaultyProxy) -> Remote:
    """The new database, through the proxy."""
    return replace(remote, url=proxy.url)


@pytest.fixture
def far_couch(far_remote: Remote) -> Iterator[Couch]:
    """A client of the new database that has to go through the proxy."""
    client = Couch(far_remote, timeout_s=5)
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
