"""`obsidian-rag mcp` beside a daemon: a bridge that starts one, misses none, and owns nothing."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from filelock import FileLock
from mcp import Client
from tests.fixture_types import Configure, MakeVault
from tests.integration.living import QUICK, Living, living_below
from tests.transports.command_line import Done, in_another_process
from tests.transports.mcp_client import (
    ALONE,
    SERVER,
    Mode,
    envelope_of,
    failure_of,
    talk,
)
from tests.transports.test_mcp_process import started
from tests.waiting import PATIENCE_S, until

from obsidian_rag import __version__
from obsidian_rag.config import DAEMON_LOCK
from obsidian_rag.data_folder import DAEMON_FILE
from obsidian_rag.engine import Tokens
from obsidian_rag.notes import EVERYTHING
from obsidian_rag.transports.daemon_client import RunningDaemon, find_daemon
from obsidian_rag.transports.http.threads import Activity
from obsidian_rag.transports.limits import Limits

NOTES = {
    "Garden.md": "# Rain garden\n\nIris and sedge.\n",
    "Home/Debts.md": "# Debts\n\nI owe Sreenivas 40 dollars.\n",
    "Home/Diary.md": "---\nrag: private\n---\nNobody reads this diary.\n",
}
# What the bridge never loads, though it stays for days.
HEAVY = {"mcp", "mcp_types", "pydantic", "httpx", "anyio", "typer", "lancedb", "numpy"}
LOADED = """
import sys
from obsidian_rag.transports.cli import main
sys.argv = ["obsidian-rag", "mcp"]
code = main()
print(code, *{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    with living_below(tmp_path_factory.mktemp("bridge"), NOTES, QUICK) as one:
        one.index()
        yield one


@pytest.fixture
def beside(daemon: Living, monkeypatch: pytest.MonkeyPatch) -> Living:
    """The daemon of the data folder that commands of this test have."""
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(daemon.home))
    return daemon


@pytest.fixture
def vault(make_vault: MakeVault, configure: Configure) -> Path:
    root = make_vault(NOTES)
    configure(root, QUICK)
    return root


async def status(client: Client) -> Any:
    return envelope_of(await client.call_tool("obsidian_rag_status"))["data"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.usefixtures("beside")
def test_it_says_what_a_server_without_a_daemon_says(mode: Mode, tmp_path: Path) -> None:
    async def session(client: Client) -> list[Any]:
        def shown(result: Any) -> Any:
            return result.model_dump(mode="json", by_alias=True, exclude={"meta"})

        uri = "obsidian-rag://note/Garden.md"
        return [
            client.server_info and shown(client.server_info),
            shown(client.server_capabilities),
            client.protocol_version,
            client.instructions,
            shown(await client.list_tools()),
            shown(await client.list_prompts()),
            shown(await client.get_prompt("ask_vault", {"question": "Straße?"})),
            shown(await client.list_resources()),
            shown(await client.list_resource_templates()),
            shown(await client.read_resource(uri)),
            (await failure_of(client.read_resource(uri + "ß"))).data["code"],
            (await failure_of(client.list_resources(cursor="not ours"))).data["code"],
        ]

    said = tmp_path / "said"
    assert talk(session, said, mode=mode) == talk(session, said, ALONE, mode=mode)
    assert said.read_text() == ""


@pytest.mark.usefixtures("beside")
def test_the_bridge_loads_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    code, *loaded = done.stderr.split()
    assert (code, HEAVY & set(loaded), done.stdout) == ("0", set(), "")


@pytest.mark.usefixtures("vault", "daemon_ends")
def test_it_starts_a_daemon_and_goes_on_with_the_one_that_comes_after(
    home: Path, tmp_path: Path
) -> None:
    async def session(client: Client) -> list[RunningDaemon | None]:
        daemons = []
        for then in (_nothing, lambda: serve("--detach"), lambda: _kill(home), _nothing):
            seen = await status(client)
            assert seen["is_watching"] is not None
            daemons.append(find_daemon(home))
            await anyio.to_thread.run_sync(then)
        return daemons

    first, same, own, again = talk(session, tmp_path / "said")
    assert None not in (first, same, own, again)
    assert first == same
    assert [one and one.while_used for one in (first, own, again)] == [True, False, True]
    assert len({one and one.pid for one in (first, own, again)}) == 3


def _nothing() -> None:
    pass


def serve(*flags: str) -> Done:
    done = in_another_process("serve", *flags)
    assert done.code == 0, done.err
    return done


def _kill(home: Path) -> None:
    daemon = find_daemon(home)
    assert daemon is not None
    process = psutil.Process(daemon.pid)
    workers = process.children(recursive=True)
    process.kill()
    psutil.wait_procs([process, *workers], timeout=PATIENCE_S)


@pytest.mark.usefixtures("vault", "daemon_ends")
def test_the_daemon_of_an_agent_ends_after_its_last_client(home: Path) -> None:
    # Long enough for the client to start on a busy machine.
    begun = serve("--detach", "--while-used", "--idle-exit", "20", "--json").json
    daemon = psutil.Process(begun["data"]["pid"])
    with started(*SERVER) as client:
        client.shake_hands()
        found = find_daemon(home)
        assert found is not None
        assert (found.pid, found.while_used) == (daemon.pid, True)
        assert client.close()[0] == 0
    until(lambda: not daemon.is_running(), "the end of the daemon")
    assert "no request for 20 s" in (home / "logs" / "daemon.log").read_text()


def test_a_client_is_one_for_as_long_as_its_process_lives() -> None:
    activity = Activity()
    assert not activity.has_clients
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        activity.note_client(process.pid)
        assert activity.has_clients
        process.kill()
        process.wait()
        assert not activity.has_clients
    activity.note_client(process.pid)
    activity.note_client(2**70)
    assert not activity.has_clients


def test_a_daemon_with_other_settings_does_not_answer_for_us(
    beside: Living, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OBSIDIAN_RAG_SECURITY__SENSITIVE_POLICY", "withhold")
    said = tmp_path / "stderr.txt"
    assert talk(status, said)["is_watching"] is None
    assert "has other settings" in said.read_text()
    assert beside.process.poll() is None


@pytest.mark.usefixtures("beside")
def test_it_asks_for_no_more_than_its_flags_allow(tmp_path: Path) -> None:
    async def session(client: Client) -> tuple[list[str], Any, Any]:
        listed = [note.name for note in (await client.list_resources()).resources]
        found = await client.call_tool("obsidian_rag_search", {"query": "iris Sreenivas"})
        index = await client.call_tool("obsidian_rag_index", {"mode": "sync"})
        return listed, envelope_of(found), envelope_of(index)

    for flags in (("--folder", "Home", "--read-only"), ("--read-only", "--folder=Home")):
        listed, found, index = talk(session, tmp_path / "said", *flags)
        assert listed == ["Debts"]
        assert "Iris" not in json.dumps(found["data"])
        assert index["data"] is None


@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize("flags", [("--folder", "Projcts"), ("--vault", "Nowhere")])
def test_it_does_not_start_with_limits_that_mean_nothing(flags: tuple[str, ...]) -> None:
    with started(*SERVER, *flags) as server:
        code, out, err = server.close()
    assert (code, out) == (2, "")
    assert flags[1] in err


def test_nobody_but_the_owner_asks_what_limits_mean(beside: Living) -> None:
    asked = Limits(folders=("Home",)).fields
    assert beside.door.post("/limits", asked, is_owner=True)["data"]["folders"] == ["Home"]
    agent = RunningDaemon(
        beside.door.port,
        Tokens(beside.home).create("agent", EVERYTHING, is_read_only=False),
        0,
        "",
        "",
    )
    for one, owns in ((beside.door, False), (agent, False), (agent, True)):
        refused = one.post("/limits", asked, is_owner=owns)
        assert (refused["data"], refused["error"]["code"]) == (None, "SECURITY_VIOLATION")
    wrong = beside.door.post("/limits", {"vaults": "all"}, is_owner=True)
    assert (wrong["data"], wrong["error"]["code"]) == (None, "INVALID_ARGUMENT")


@pytest.mark.usefixtures("beside")
def test_what_an_agent_says_becomes_no_header_and_no_path() -> None:
    """Nor does the daemon's token make the agent an owner."""
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28\r\nX: y"}}
    bad = "tools/call\r\nX-Obsidian-Rag-Caller: owner"
    diary = {"note": "Home/Diary.md"}
    with started(*SERVER) as server:
        server.shake_hands()
        server.ask(bad, **meta)
        assert "error" in server.answer()
        meta["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
        server.ask(bad, **meta)
        assert "error" in server.answer()
        for tool in ("../shutdown", "status?", "x\r\nX-Obsidian-Rag-Caller: owner"):
            server.call(tool)
            assert server.answer()["result"]["isError"]
        server.call("read", **diary)
        told = server.answer()["result"]["structuredContent"]
    assert (told["data"], told["error"]["code"]) == (None, "SENSITIVE_FILTERED")


class Deaf:
    """Something at the daemon's address that takes requests and answers none."""

    def __init__(self, home: Path, config: Path) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.heard = threading.Event()
        self.left = threading.Event()
        self.closes = False
        facts = {
            "port": self.listener.getsockname()[1],
            "token": "a-token",
            "pid": os.getpid(),
            "version": __version__,
            "config": str(config),
            "overrides": {},
            "started_with": {},
            "while_used": True,
        }
        (home / DAEMON_FILE).write_text(json.dumps(facts))
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection:
                    connection.recv(65536)
                    self.heard.set()
                    if not self.closes:
                        while connection.recv(65536):
                            pass
                        self.left.set()


@pytest.fixture
def deaf(vault: Path, home: Path) -> Iterator[Deaf]:
    with FileLock(home / DAEMON_LOCK):
        one = Deaf(home, home / "config.json")
        yield one
        one.listener.close()
    (home / DAEMON_FILE).unlink()


def test_a_request_that_was_given_up_is_given_up_at_the_daemon(deaf: Deaf) -> None:
    with started(*SERVER) as server:
        asked = server.ask("tools/list")
        assert deaf.heard.wait(PATIENCE_S)
        server._send({"method": "notifications/cancelled", "params": {"requestId": asked}})
        assert deaf.left.wait(PATIENCE_S)
        assert server.close() == (0, "", "")


def test_a_daemon_that_never_answers_is_asked_twice_and_then_told_of(deaf: Deaf) -> None:
    deaf.closes = True
    with started(*SERVER) as server:
        asked = server.ask("tools/list")
        answer = server.answer()
    assert (answer["id"], answer["error"]["code"]) == (asked, -32603)
    assert "ended while it answered" in answer["error"]["message"]
