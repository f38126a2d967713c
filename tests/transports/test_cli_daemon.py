"""Commands use the daemon when it speaks for them, and do without it otherwise."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.embed.embedding_doubles import FakeOllama, fake_ollama
from tests.integration.living import QUICK, Configure, Living, MakeVault, living
from tests.transports.command_line import COMMAND, in_another_process

from obsidian_rag.config import load
from obsidian_rag.transports.running import find_daemon, usable_daemon

NOTES = {
    "Debts.md": "# Debts\nI owe Sreenivas 40 dollars.\n",
    "Diary.md": "---\nrag: private\n---\nx",
}


@pytest.fixture
def daemon(make_vault: MakeVault, configure: Configure) -> Iterator[Living]:
    configure(make_vault(NOTES), QUICK)
    with living() as one:
        one.index()
        yield one


def test_the_owner_sees_private_notes_through_the_daemon_and_an_agent_does_not(
    daemon: Living,
) -> None:
    shown = in_another_process("read", "Diary.md")
    assert (shown.code, shown.out.splitlines()[-1]) == (0, "x")
    asked = daemon.call("read", note="Diary.md")
    assert (asked["data"], asked["error"]["code"]) == (None, "SENSITIVE_FILTERED")


def test_a_failure_of_the_daemon_is_the_commands_failure(daemon: Living) -> None:
    done = in_another_process("read", "Nowhere.md", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "NOT_FOUND")
    assert "hint" in done.err
    wrong = in_another_process("search", "debts", "--top", "99", "--json")
    assert (wrong.code, wrong.json["error"]["code"]) == (2, "INVALID_ARGUMENT")


def test_a_command_with_other_settings_works_by_itself_and_says_so(
    daemon: Living, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OBSIDIAN_RAG_INDEXING__MAX_FILE_MB", "3")
    done = in_another_process("status", "--json")
    assert done.json["data"]["is_watching"] is None
    assert "other settings" in done.err
    monkeypatch.delenv("OBSIDIAN_RAG_INDEXING__MAX_FILE_MB")
    assert in_another_process("status", "--json").json["data"]["is_watching"] is True


def test_a_changed_setting_tells_of_the_daemon_that_does_not_have_it(daemon: Living) -> None:
    done = in_another_process("config", "set", "indexing.max_file_mb", "4")
    assert (done.code, "other settings" in done.err) == (0, True)


def test_a_daemon_of_another_version_is_not_used(daemon: Living, home: Path) -> None:
    file = home / "daemon.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": "0.0.0"}))
    found, reason = usable_daemon(load())
    assert found is None
    assert "another version" in reason


def test_the_file_of_a_dead_daemon_is_not_believed(daemon: Living, home: Path) -> None:
    content = (home / "daemon.json").read_bytes()
    assert daemon.stop() == 0
    (home / "daemon.json").write_bytes(content)
    assert find_daemon(home) is None


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
    vectors = slow.on_embed

    def held(request: dict[str, object]) -> object:
        slow.release.wait(20)
        return vectors(request)

    slow.on_embed = held  # type: ignore[assignment]
    notes = {f"Note {number}.md": f"# Note {number}\nword {number}\n" for number in range(200)}
    configure(make_vault(notes), {**QUICK, **settings})
    with living() as daemon:
        command = subprocess.Popen(
            [*COMMAND, "index"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        daemon.wait_for("progress", phase="parsing")
        os.kill(command.pid, signal.SIGINT)
        assert command.stderr is not None
        assert "Stopping" in command.stderr.readline() + command.stderr.readline()
        slow.release.set()
        out, _ = command.communicate(timeout=30)
        assert command.returncode == 130
        assert json.loads(out.splitlines()[-1])["is_cancelled"] is True
        assert daemon.call("status")["data"]["last_job"]["status"] == "cancelled"
