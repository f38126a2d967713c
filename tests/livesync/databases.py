"""A real server for every test that syncs, one in a process, and a fresh database for each test."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.livesync.pouch import Server, running_server, why_not
from tests.livesync.proxy import FaultyProxy

from obsidian_rag.livesync.couchdb.remote import Remote


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
