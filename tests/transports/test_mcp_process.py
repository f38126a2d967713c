"""`obsidian-rag mcp` as a process, beside a daemon and without: how it talks and how it ends."""

import json
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.fixture_types import MakeEngine, MakeVault
from tests.integration.living import QUICK, Living, living_below
from tests.transports.mcp_client import ALONE, SERVER
from tests.waiting import PATIENCE_S

from obsidian_rag.config import data_home
from obsidian_rag.engine import run_index
from obsidian_rag.index import Mode

NOTES = {"Garden.md": "# Rain garden\n\nIris and sedge.\n"}
# A server with tools that behave as badly as a library can.
ODD_SERVER = """
import os, subprocess, sys, threading
from obsidian_rag import tools
from obsidian_rag.config import load
from obsidian_rag.transports.mcp.server import speak

meeting = threading.Barrier(2, timeout=300)

def shout(engine, params, caller):
    print("a library talks")
    os.write(1, b"a C library talks\\n")
    subprocess.run([sys.executable, "-c", "print('a child talks')"], check=True)
    return tools.success({"read": sys.stdin.read()})

def fail(engine, params, caller):
    raise ValueError("zephyr: a word of a note")

def meet(engine, params, caller):
    meeting.wait()
    return tools.success({"met": True})

def surprise(engine, params, caller):
    return tools.success({"file": "odd \\udcff name.md"})

for act in (shout, fail, meet, surprise):
    name = "obsidian_rag_" + act.__name__
    tools.register(tools.Tool(name, "odd", tools.dispatch.Params, act, True))
sys.exit(speak(load()))
"""


class Server:
    """A server and the client's ends of its pipes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []
        self._number = 0

    def ask(self, method: str, **params: object) -> int:
        """Send a request; its number."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        return self._number

    def call(self, tool: str, **arguments: object) -> int:
        return self.ask("tools/call", name=f"obsidian_rag_{tool}", arguments=arguments)

    def answer(self) -> Any:
        """The next message; whatever is not one fails here."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server closed its stdout"
        self.lines.append(line)
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def shake_hands(self) -> Any:
        self.ask(
            "initialize",
            protocolVersion="2025-11-25",
            capabilities={},
            clientInfo={"name": "test", "version": "0"},
        )
        answer = self.answer()
        self._send({"method": "notifications/initialized"})
        return answer

    def close(self) -> tuple[int, str, str]:
        """Close its stdin: its exit code, and what else it wrote."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err

    def _send(self, message: dict[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()


@contextmanager
def started(*command: str) -> Iterator[Server]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with process:
        try:
            yield Server(process)
        finally:
            process.kill()


@pytest.fixture
def vault(make_vault: MakeVault, engine: MakeEngine) -> Path:
    root = make_vault(NOTES)
    run_index(engine(root), Mode.FULL)
    return root


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    with living_below(tmp_path_factory.mktemp("process"), NOTES, QUICK) as one:
        one.index()
        yield one


@pytest.fixture(params=["by the daemon", "alone"])
def command(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The server in both ways, for an indexed vault."""
    if request.param == "alone":
        request.getfixturevalue("vault")
        return [*SERVER, ALONE]
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(request.getfixturevalue("daemon").home))
    return SERVER


@pytest.mark.usefixtures("vault")
def test_stdout_carries_the_protocol_alone_whatever_libraries_print() -> None:
    with started(sys.executable, "-c", ODD_SERVER) as server:
        server.shake_hands()
        server.call("shout")
        assert server.answer()["result"]["structuredContent"]["data"] == {"read": ""}
        code, out, err = server.close()
    assert (code, out) == (0, "")
    assert err.splitlines() == ["a library talks", "a C library talks", "a child talks"]


@pytest.mark.usefixtures("vault")
def test_an_unexpected_failure_tells_no_word_of_a_note(home: Path) -> None:
    with started(sys.executable, "-c", ODD_SERVER) as server:
        server.shake_hands()
        server.call("fail")
        result = server.answer()["result"]
        _, _, err = server.close()
    assert result["isError"]
    assert result["structuredContent"]["error"]["code"] == "INDEXER_FAILED"
    log = (home / "logs" / "mcp.log").read_text()
    assert "in fail\nValueError\n" in log
    for text in (json.dumps(result), log, err):
        assert "zephyr" not in text


@pytest.mark.usefixtures("vault")
def test_two_calls_are_answered_at_once_and_the_server_stays_reachable() -> None:
    with started(sys.executable, "-c", ODD_SERVER) as server:
        server.shake_hands()
        first = server.call("meet")
        ping = server.ask("ping")
        assert server.answer()["id"] == ping
        second = server.call("meet")
        answers = [server.answer() for _ in range(2)]
    assert {answer["id"] for answer in answers} == {first, second}
    assert all(not answer["result"]["isError"] for answer in answers)


@pytest.mark.usefixtures("vault")
def test_a_file_name_that_is_no_text_does_not_break_the_line() -> None:
    with started(sys.executable, "-c", ODD_SERVER) as server:
        server.shake_hands()
        server.call("surprise")
        found = server.answer()["result"]["structuredContent"]["data"]
    assert found == {"file": "odd ? name.md"}


def test_closing_stdin_ends_the_server_which_leaves_no_process(vault: Path, home: Path) -> None:
    with started(*SERVER, ALONE) as server:
        server.shake_hands()
        server.call("index", mode="full")
        assert server.answer()["result"]["structuredContent"]["data"]["status"] == "completed"
        children = psutil.Process(server.process.pid).children(recursive=True)
        code, out, err = server.close()
    assert (code, out, err) == (0, "", "")
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert alive == []
    assert stat.S_IMODE((home / "logs" / "mcp.log").stat().st_mode) == 0o600


def test_requests_that_are_open_when_stdin_ends_are_answered(command: list[str]) -> None:
    with started(*command) as server:
        server.shake_hands()
        asked = [server.call("search", query=f"iris {number}") for number in range(12)]
        asked.append(server.ask("tools/list"))
        code, out, err = server.close()
    answers = [json.loads(line) for line in out.splitlines()]
    assert sorted(answer["id"] for answer in answers) == asked
    assert all("result" in answer for answer in answers)
    assert (code, err) == (0, "")


@pytest.mark.usefixtures("vault")
def test_a_request_that_was_given_up_does_not_keep_the_server_when_stdin_ends() -> None:
    with started(sys.executable, "-c", ODD_SERVER) as server:
        server.shake_hands()
        given_up = server.call("meet")
        server._send({"method": "notifications/cancelled", "params": {"requestId": given_up}})
        met = server.call("meet")
        code, out, _ = server.close()
    assert code == 0
    assert met in [json.loads(line)["id"] for line in out.splitlines()]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_the_server(command: list[str], number: int, code: int) -> None:
    with started(*command) as server:
        server.shake_hands()
        server.process.send_signal(number)
        assert server.process.wait(PATIENCE_S) == code


def test_a_client_that_vanishes_is_no_failure(command: list[str]) -> None:
    with started(*command) as server:
        server.shake_hands()
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.ask("ping")
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.wait(PATIENCE_S) == 0
    assert not (data_home() / "logs" / "crash.log").exists()


def test_a_question_with_half_a_character_is_answered(command: list[str]) -> None:
    with started(*command) as server:
        server.shake_hands()
        asked = server.call("search", query="iris \ud800")
        answer = server.answer()
    assert answer["id"] == asked
    (hit, *_) = answer["result"]["structuredContent"]["data"]["results"]
    assert hit["source_file"] == "Garden.md"


def test_every_line_that_is_no_message_is_answered_with_an_error(command: list[str]) -> None:
    lines = {
        "no json": (-32700, None),
        '{"jsonrpc": "2.0", "id": 7, "method": 5}': (-32600, 7),
        '{"jsonrpc": "2.0"}': (-32600, None),
        "[]": (-32600, None),
        "[" * 100_000: (-32700, None),
    }
    with started(*command) as server:
        assert server.process.stdin is not None
        server.process.stdin.write("\n".join(lines) + "\n\n")
        server.process.stdin.flush()
        answers = [server.answer() for _ in lines]
        info = server.shake_hands()["result"]["serverInfo"]
        server.ask("no/such/method")
        error = server.answer()["error"]
        code, _, err = server.close()
    assert [(one["error"]["code"], one["id"]) for one in answers] == [*lines.values()]
    assert info["name"] == "obsidian-rag"
    assert error["code"] == -32601
    assert (code, err) == (0, "")


def test_the_greeting_waits_for_no_engine() -> None:
    heavy = ("lancedb", "pyarrow", "numpy", "obsidian_rag.engine", "obsidian_rag.tools")
    script = (
        f"import sys, obsidian_rag.transports.mcp.server\nprint(set({heavy!r}) & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.stdout.strip(), done.stderr) == ("set()", "")


def test_settings_that_cannot_be_used_are_told_on_stderr(home: Path) -> None:
    home.mkdir()
    (home / "config.json").write_text('{"vault_pth": "/x"}')
    with started(*SERVER) as server:
        code, out, err = server.close()
    assert (code, out) == (2, "")
    assert re.search("CONFIG_INVALID.*vault_pth", err)
