"""Commands use the daemon when it speaks for them, and do without it otherwise."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.embed.embedding_doubles import Answer, FakeOllama, fake_ollama
from tests.fixture_types import Cli
from tests.integration.living import (
    QUICK,
    Configure,
    Living,
    MakeVault,
    living,
    living_below,
)
from tests.transports.command_line import COMMAND, in_another_process
from tests.waiting import PATIENCE_S

from obsidian_rag.config import load
from obsidian_rag.errors import Busy
from obsidian_rag.tools import failure
from obsidian_rag.transports.daemon_client import find_daemon, usable_daemon

NOTES = {
    "Debts.md": "# Debts\nI owe Sreenivas 40 dollars.\n",
    "Diary.md": "---\nrag: private\n---\nx",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    with living_below(tmp_path_factory.mktemp("daemon"), NOTES, QUICK) as one:
        one.index()
        yield one


@pytest.fixture
def daemon(shared: Living, monkeypatch: pytest.MonkeyPatch) -> Iterator[Living]:
    """The daemon of these tests, which find and leave what it says of itself as it was."""
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(shared.home))
    file = shared.home / "daemon.json"
    told = file.read_bytes()
    yield shared
    file.write_bytes(told)


def test_the_owner_sees_private_notes_through_the_daemon_and_an_agent_does_not(
    daemon: Living,
) -> None:
    shown = in_another_process("read", "Diary.md")
    assert (shown.code, shown.out.splitlines()[-1]) == (0, "x")
    asked = daemon.call("read", note="Diary.md")
    assert (asked["data"], asked["error"]["code"]) == (None, "SENSITIVE_FILTERED")


@pytest.mark.usefixtures("daemon")
def test_a_failure_of_the_daemon_is_the_commands_failure(cli: Cli) -> None:
    done = cli("read", "Nowhere.md", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "NOT_FOUND")
    assert "hint" in done.err
    wrong = cli("search", "debts", "--top", "99", "--json")
    assert (wrong.code, wrong.json["error"]["code"]) == (2, "INVALID_ARGUMENT")


@pytest.mark.usefixtures("daemon")
def test_a_command_with_other_settings_works_by_itself_and_says_so(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OBSIDIAN_RAG_INDEXING__MAX_FILE_MB", "3")
    done = cli("status", "--json")
    assert done.json["data"]["is_watching"] is None
    assert "other settings" in done.err
    monkeypatch.delenv("OBSIDIAN_RAG_INDEXING__MAX_FILE_MB")
    assert cli("status", "--json").json["data"]["is_watching"] is True


@pytest.mark.usefixtures("daemon")
def test_a_changed_setting_is_the_daemons_at_once(cli: Cli) -> None:
    done = cli("config", "set", "indexing.max_file_mb", "4")
    assert (done.code, "from now on" in done.err) == (0, True)
    status = cli("status", "--json")
    # Whoever answers with None has no watcher: a command that works by itself.
    assert status.json["data"]["is_watching"] is not None
    assert status.err == ""


def test_a_daemon_of_another_version_is_not_used(daemon: Living) -> None:
    file = daemon.home / "daemon.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": "0.0.0"}))
    found, reason = usable_daemon(load())
    assert found is None
    assert "another version" in reason


def test_the_file_of_a_dead_daemon_is_not_believed(
    make_vault: MakeVault, configure: Configure, home: Path
) -> None:
    configure(make_vault(NOTES), QUICK)
    with living() as daemon:
        content = (home / "daemon.json").read_bytes()
        assert daemon.stop() == 0
    (home / "daemon.json").write_bytes(content)
    assert find_daemon(home) is None


class _Overloaded(BaseHTTPRequestHandler):
    """A door that has no time for anybody."""

    def do_POST(self) -> None:
        body = json.dumps(failure(Busy("There are too many connections.", "Close some."))).encode()
        self.send_response(503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_command_works_by_itself_when_the_daemon_has_no_time(daemon: Living, cli: Cli) -> None:
    file = daemon.home / "daemon.json"
    with HTTPServer(("127.0.0.1", 0), _Overloaded) as door:
        threading.Thread(target=door.serve_forever, daemon=True).start()
        told = {**json.loads(file.read_text()), "port": door.server_port}
        file.write_text(json.dumps(told))
        done = cli("search", "Sreenivas", "--json")
        door.shutdown()
    assert (done.code, done.json["error"]) == (0, None)
    assert done.json["data"]["results"][0]["source_file"] == "Debts.md"


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"port": "x"}'])
def test_a_broken_daemon_file_is_no_daemon(home: Path, content: str) -> None:
    home.mkdir()
    (home / "daemon.json").write_text(content)
    assert find_daemon(home) is None


@pytest.fixture
def slow() -> Iterator[FakeOllama]:
    with fake_ollama() as server:
        yield server


def test_an_interrupted_command_cancels_the_job_of_the_daemon(
    make_vault: MakeVault, configure: Configure, slow: FakeOllama
) -> None:
    settings = {
        "embedding.provider": "ollama",
        "embedding.base_url": slow.url,
        "embedding.model": "tiny",
    }
    is_embedding = threading.Event()

    def held(request: dict[str, Any]) -> Answer:
        # The first request asks for a word only, to learn how wide the vectors are.
        if any("Note" in text for text in request["input"]):
            is_embedding.set()
            assert slow.release.wait(PATIENCE_S)
        return slow.vectors(request)

    slow.on_embed = held
    # Enough that most are still to be embedded when the cancel arrives on a busy machine.
    notes = {f"Note {number}.md": f"# Note {number}\nword {number}\n" for number in range(1500)}
    configure(make_vault(notes), {**QUICK, **settings})
    with living() as daemon:
        with subprocess.Popen(
            [*COMMAND, "index"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as command:
            try:
                assert is_embedding.wait(PATIENCE_S)
                os.kill(command.pid, signal.SIGINT)
                assert command.stderr is not None
                assert "Stopping" in command.stderr.readline() + command.stderr.readline()
            finally:
                slow.release.set()
            out, _ = command.communicate(timeout=PATIENCE_S)
        assert command.returncode == 130
        assert json.loads(out.splitlines()[-1])["is_cancelled"] is True
        assert daemon.call("status")["data"]["last_job"]["status"] == "cancelled"
