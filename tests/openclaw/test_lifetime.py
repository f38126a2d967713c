"""The daemon lives as long as the gateway, however that ends; what the user started stays."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.integration.living import QUICK
from tests.openclaw.gateway import NEEDS_OPENCLAW, Gateway, Place, gateway
from tests.waiting import PATIENCE_S, until

pytestmark = NEEDS_OPENCLAW


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "place")
    made.write_note("Garden.md", "# Garden\nFerns like the shade.\n")
    made.configure_engine(QUICK)
    made.write_config()
    yield made
    made.clean_up()


def family(one: Gateway) -> list[psutil.Process]:
    """The gateway, the daemon and its worker, all of them seen alive."""
    one.index()
    daemon = one.place.daemon()
    assert daemon is not None
    worker = psutil.Process(daemon.pid).children()
    found = one.place.processes()
    assert {one.process.pid, daemon.pid, *(child.pid for child in worker)} <= {p.pid for p in found}
    assert worker
    return found


def test_a_gateway_that_is_asked_to_stop_leaves_no_process_behind(place: Place) -> None:
    with gateway(place) as one:
        family(one)
        one.end(signal.SIGTERM)
        assert place.daemon() is None
        until(lambda: place.processes() == [], "the end of every process", 10)
        assert "obsidian-rag: stopped the daemon" in one.log()


def test_a_gateway_that_is_killed_leaves_no_process_behind_for_long(place: Place) -> None:
    with gateway(place) as one:
        family(one)
        one.end(signal.SIGKILL)
        until(lambda: place.processes() == [], "the end of every process")
        assert place.daemon() is None


def test_a_daemon_that_the_user_started_is_used_and_stays(place: Place) -> None:
    command = [str(Path(sys.executable).parent / "obsidian-rag"), "serve"]
    mine = subprocess.Popen(
        command, env=place.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        daemon = until(place.daemon, "my daemon")
        assert daemon.pid == mine.pid
        with gateway(place) as one:
            one.index()
            assert one.found("ferns") == ["Garden.md"]
            one.end(signal.SIGTERM)
            assert place.daemon() == daemon
    finally:
        mine.terminate()
        mine.wait(PATIENCE_S)
