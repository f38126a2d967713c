"""The daemon as a process: how it says where it is, and every way in which it ends."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from tests.fixture_types import Configure, MakeVault
from tests.transports.http_client import NOTES, daemon, ending, start_daemon
from tests.waiting import PATIENCE_S, until

from obsidian_rag import __version__, config
from obsidian_rag.engine import Bus, Engine, claim
from obsidian_rag.engine.jobs import Jobs
from obsidian_rag.errors import Busy
from obsidian_rag.index import Mode
from obsidian_rag.tools import call
from obsidian_rag.transports.daemon_client import find_daemon, is_locked
from obsidian_rag.transports.http import serve
from obsidian_rag.transports.http.server import idle_reason
from obsidian_rag.transports.http.threads import Activity
from obsidian_rag.transports.servers import ServeOptions


@pytest.fixture(autouse=True)
def vault(make_vault: MakeVault, configure: Configure) -> Iterator[Path]:
    root = make_vault(NOTES)
    configure(root, {"watcher.enabled": False})
    yield root


def is_silent(home: Path) -> bool:
    return not (home / "daemon.json").exists() and not is_locked(home)


def test_a_daemon_says_where_it_is_to_its_owner_only(home: Path, vault: Path) -> None:
    with daemon() as door:
        assert door.get("/healthz", {"Authorization": None}).status == 200
        file = home / "daemon.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        told = json.loads(file.read_text())
        assert told == {
            "port": door.port,
            "token": door.token,
            "pid": door.process.pid,
            "url": door.url,
            "version": __version__,
            "config": str(home / "config.json"),
            "overrides": {},
            "started_with": config.load().restart_values,
            "while_used": False,
            "started_at": told["started_at"],
        }
        assert len(door.token) >= 43
        assert door.said == f"obsidian-rag serves {vault} at {door.url} (process {told['pid']})\n"
        assert stat.S_IMODE((home / "logs" / "daemon.log").stat().st_mode) == 0o600


def test_it_listens_on_this_machine_only() -> None:
    with daemon() as door:
        listening = [
            one.laddr
            for one in psutil.Process(door.process.pid).net_connections("inet")
            if one.status == psutil.CONN_LISTEN
        ]
    assert [(one.ip, one.port) for one in listening] == [("127.0.0.1", door.port)]


def test_questions_asked_the_moment_it_is_there_are_answered(home: Path) -> None:
    engine = Engine(config.load())
    assert call(engine, "obsidian_rag_index", {"mode": "full"})["status"] == "healthy"
    engine.close()
    with daemon() as door, ThreadPoolExecutor(8) as clients:
        asked = {"query": "rain garden", "max_results": 1}
        replies = [clients.submit(door.tool, "search", asked) for _ in range(8)]
        assert [one.result().json["error"] for one in replies] == [None] * 8
        assert {one.result().json["data"]["results"][0]["source_file"] for one in replies} == {
            "Projects/Plan.md"
        }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(home: Path, number: int) -> None:
    with daemon() as door, door.listen() as listener:
        os.kill(door.process.pid, number)
        assert listener.response.read().count(b"event: missed") == 0
        assert door.end() == 0
        assert is_silent(home)
        assert door.process.stderr is not None
        assert door.process.stderr.read() == ""


def test_it_ends_when_it_is_asked_to(home: Path) -> None:
    with daemon() as door:
        reply = door.ask("POST", "/shutdown", {})
        assert (reply.status, reply.json["data"]) == (202, {"stopping": True})
        assert door.end() == 0
        assert is_silent(home)


def test_no_daemon_is_found_as_soon_as_one_begins_to_end(home: Path) -> None:
    with daemon() as door, door.connect() as raw:
        # A request that is never finished holds the end up for a while.
        raw.sendall(door.head("POST", "/tools/obsidian_rag_status", {"Content-Length": "9"}))
        door.ask("POST", "/shutdown")
        until(lambda: not (home / "daemon.json").exists())
        assert door.process.poll() is None
        assert is_locked(home)
        raw.close()
        assert door.end() == 0


def test_of_two_started_at_once_exactly_one_serves(home: Path) -> None:
    script = [start_daemon(), start_daemon()]
    with ExitStack() as stack:
        both = [stack.enter_context(ending(one)) for one in script]
        loser = until(lambda: next((one for one in both if one.poll() is not None), None))
        assert loser is not None
        (winner,) = (one for one in both if one is not loser)
        assert winner.stderr is not None
        assert "obsidian-rag serves" in winner.stderr.readline()
        assert loser.stderr is not None
        assert "Busy" in loser.stderr.read()
        assert loser.returncode == 1
        found = find_daemon(home)
        assert found is not None
        assert found.pid == winner.pid
        assert found.call("obsidian_rag_status", {})["data"] is not None


def test_a_second_one_is_told_that_there_is_one(home: Path) -> None:
    with daemon(), pytest.raises(Busy):
        serve(config.load(), ServeOptions())


def test_a_daemon_that_was_killed_leaves_nothing_in_the_way(home: Path) -> None:
    with daemon() as first:
        first.process.kill()
        first.process.wait()
        stale = json.loads((home / "daemon.json").read_text())
        assert find_daemon(home) is None
        with daemon() as second:
            told = json.loads((home / "daemon.json").read_text())
            assert told["pid"] == second.process.pid
            assert told["token"] != stale["token"]
            assert second.get("/tools", {"Authorization": f"Bearer {first.token}"}).status == 401


def test_a_taken_port_is_told_with_a_way_out(vault: Path, home: Path, configure: Configure) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        configure(vault, {"server.port": taken.getsockname()[1]})
        with pytest.raises(Busy) as refused:
            serve(config.load(), ServeOptions())
    assert "config set server.port 0" in refused.value.suggestion
    with claim(config.load()):
        pass  # nothing is held


def test_a_fixed_port_can_be_used_again_at_once(vault: Path, configure: Configure) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    configure(vault, {"server.port": port, "watcher.enabled": False})
    for _ in range(2):
        with daemon() as door:
            assert door.port == port
            # The server closes first, so the port lingers in TIME_WAIT.
            with door.connect() as raw:
                raw.sendall(door.head("GET", "/healthz", {"Connection": "close"}))
                while raw.recv(65536):
                    pass
            door.process.terminate()
            assert door.end() == 0


def test_it_ends_when_the_program_it_was_started_for_is_gone(home: Path) -> None:
    waiting = [sys.executable, "-c", "import threading; threading.Event().wait(300)"]
    parent = subprocess.Popen(waiting, text=True)
    with ending(parent), daemon(parent_pid=parent.pid) as door:
        assert door.get("/healthz").status == 200
        # Not waited for: what is left is a zombie, which is as gone as can be.
        parent.kill()
        assert door.end() == 0
        assert "is gone" in (home / "logs" / "daemon.log").read_text()
    assert is_silent(home)


def test_it_ends_at_once_when_that_program_was_gone_before(home: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with ending(start_daemon(parent_pid=gone.pid)) as process:
        assert process.wait(PATIENCE_S) == 0
    assert is_silent(home)


def test_it_ends_when_nobody_asks_though_somebody_listens_and_looks(home: Path) -> None:
    with daemon(idle_exit_s=3) as door, door.listen() as listener:
        started = time.monotonic()
        asked = 0
        pause = threading.Event()
        while time.monotonic() - started < 4:
            assert door.tool("memory_recall", {"key": "x"}).status == 200
            asked += 1
            pause.wait(0.1)
        assert asked > 1, "a request keeps it"
        while door.process.poll() is None:
            assert time.monotonic() - started < PATIENCE_S
            try:
                door.get("/healthz")
            except OSError:
                break
            pause.wait(0.1)
        listener.response.read()
        assert door.end() == 0
    assert "no request for 3 s" in (home / "logs" / "daemon.log").read_text()


def test_a_job_under_way_keeps_it() -> None:
    jobs = Jobs(config.load(), Bus())
    reason = idle_reason(Activity(), lambda: jobs.active is not None, 0)
    jobs.request(Mode.SYNC)  # nothing runs it: nobody has started these jobs
    assert reason() is None
    jobs.cancel()
    assert until(reason) == "no request for 0 s"


def test_without_a_vault_there_is_the_page_to_choose_one(home: Path) -> None:
    config.save({}, home / "config.json")
    with daemon() as served:
        assert served.get("/", {"Authorization": None}).status == 200
        start = served.get("/page/start", {"X-Obsidian-Rag-Caller": "owner"}).json["data"]
        assert (start["vaults"], start["health"]["state"]) == ([], "unavailable")
        refused = served.tool("search", {"query": "anything"})
        assert refused.code == "CONFIG_INVALID"
