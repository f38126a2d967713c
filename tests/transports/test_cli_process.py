"""The command line as an operating system sees it: pipes, terminals, signals, crashes."""

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from tests.embed.embedding_doubles import Answer, FakeOllama, fake_ollama
from tests.fixture_types import Cli, Configure, MakeVault
from tests.transports.command_line import COMMAND, Done, in_another_process, on_terminal
from tests.waiting import PATIENCE_S

from obsidian_rag.store import writer_lock


@pytest.fixture
def vault(make_vault: MakeVault, configure: Configure) -> Path:
    made = make_vault({"a.md": "# A\n\ntext", "b.md": "# B\n\nmore"})
    configure(made, {})
    return made


def break_the_database(cli: Cli, home: Path) -> None:
    """A rule of somebody else's in our database: a failure that nobody has foreseen."""
    cli("index")
    with contextlib.closing(sqlite3.connect(home / "state.db")) as database:
        database.execute(
            "CREATE TRIGGER no BEFORE UPDATE ON vault_link BEGIN SELECT RAISE(ABORT, 'no'); END"
        )


def test_the_package_runs_as_a_module_and_as_a_script(vault: Path) -> None:
    done = in_another_process("index")
    assert (done.code, done.err) == (0, "")
    assert done.lines[-1]["indexed_files"] == 2
    script = Path(sys.executable).with_name("obsidian-rag")
    shown = subprocess.run(
        [script, "status", "--json"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert json.loads(shown.stdout)["data"]["total_docs"] == 2


def test_exit_codes_reach_the_shell(vault: Path, make_vault: MakeVault) -> None:
    assert in_another_process("status", "--nonsense").code == 2
    make_vault({"bad.md": b"\xff"})
    assert in_another_process("sync", "--json").code == 1


def test_a_process_that_finds_another_one_writing_says_so(vault: Path, home: Path) -> None:
    with writer_lock(home, "index"):
        done = in_another_process("sync")
    assert done.code == 2
    assert done.lines[-1]["code"] == "BUSY"
    assert f"process {os.getpid()}" in done.lines[-1]["message"]


def test_on_a_terminal_there_is_a_bar_and_a_summary(vault: Path) -> None:
    done = on_terminal("index")
    assert done.code == 0
    assert "━" in done.err
    assert "2 notes, 2 chunks searchable" in done.err
    assert '{"type"' not in done.err


def test_on_a_terminal_lines_can_be_had_too(vault: Path) -> None:
    done = on_terminal("index", "--ndjson")
    assert "━" not in done.err
    assert json.loads(done.err.splitlines()[-1])["type"] == "complete"


def test_json_goes_whole_into_a_file_while_the_terminal_shows_the_bar(vault: Path) -> None:
    done = on_terminal("sync", "--json", is_redirected=True)
    assert done.code == 0
    assert done.json["data"]["indexed_files"] == 2
    assert '"indexed_files"' not in done.err


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" in on_terminal("status").err
    monkeypatch.setenv("NO_COLOR", "1")
    plain = on_terminal("status").err
    assert "CONFIG_INVALID" in plain
    assert "\x1b[" not in plain
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[" not in in_another_process("status").err


@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["lines", "json"])
def test_an_unexpected_failure_shows_no_traceback_but_keeps_it_in_the_log(
    cli: Cli, vault: Path, home: Path, flags: tuple[str, ...]
) -> None:
    break_the_database(cli, home)
    done = cli("sync", *flags)
    assert done.code == 2
    assert "Traceback" not in done.out + done.err
    assert "crash.log" in done.err
    log = (home / "logs/crash.log").read_text()
    assert "in sync" in log or "in index" in log
    assert re.search(r"^\w+(Error|Exception)", log, re.MULTILINE), "its kind, and no message"
    if flags:
        assert done.json["error"]["code"] == "INDEXER_FAILED"


def test_an_unexpected_failure_ends_the_lines_with_an_error(
    cli: Cli, vault: Path, home: Path
) -> None:
    break_the_database(cli, home)
    assert cli("sync").lines[-1]["type"] == "error"


def test_a_log_that_cannot_be_written_does_not_make_it_worse(
    cli: Cli, vault: Path, home: Path
) -> None:
    break_the_database(cli, home)
    (home / "logs").write_text("a file where the folder should be")
    done = cli("sync", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "INDEXER_FAILED")
    assert "Traceback" not in done.out + done.err


def test_a_data_folder_that_is_a_file_is_told(cli: Cli, home: Path) -> None:
    home.write_text("a file")
    for command in ("status", "index", "doctor"):
        done = cli(command)
        assert done.code == 2
        assert "CONFIG_INVALID" in done.err
        assert "Traceback" not in done.err


def into_a_closed_pipe(*arguments: str) -> Done:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return in_another_process(*arguments, stdout=writing)
    finally:
        os.close(writing)


@pytest.mark.parametrize("arguments", [("status",), ("config", "show"), ("--help",)])
def test_a_reader_that_went_away_is_no_failure(vault: Path, arguments: tuple[str, ...]) -> None:
    done = into_a_closed_pipe(*arguments)
    assert (done.code, done.err) == (0, "")


def test_an_index_whose_reader_went_away_is_silent_and_can_be_finished(
    cli: Cli, vault: Path
) -> None:
    assert into_a_closed_pipe("index").err == ""
    assert cli("sync").lines[-1]["indexed_files"] == 2


def read_until(stream: IO[str], wanted: Callable[[str], bool]) -> str:
    for line in stream:
        if wanted(line):
            return line
    raise AssertionError("the stream ended without the awaited line")


def is_stored(line: str) -> bool:
    return bool(json.loads(line).get("phase") == "storing")


NOTES = 600


@pytest.fixture
def stalling(make_vault: MakeVault, configure: Configure) -> Iterator[FakeOllama]:
    """A vault whose embedder answers for the first group of notes and then waits for release."""
    vault = make_vault({f"{at:03}.md": f"# Note {at}\n\ntext of note {at}" for at in range(NOTES)})
    with fake_ollama() as server:

        def stall_after_the_first_group(request: dict[str, Any]) -> Answer:
            if sum(len(batch) for batch in server.inputs) > 256:
                server.release.wait(PATIENCE_S)
            return server.vectors(request)

        server.on_embed = stall_after_the_first_group
        settings = {
            "embedding.provider": "ollama",
            "embedding.model": "tiny",
            "embedding.dimensions": 8,
            "embedding.base_url": server.url,
        }
        configure(vault, settings)
        yield server


@contextmanager
def index_under_way() -> Iterator[tuple["subprocess.Popen[str]", IO[str], IO[str], int]]:
    """An index of which the first group, of so many notes, is stored."""
    with subprocess.Popen(
        [*COMMAND, "index"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        stored = json.loads(read_until(process.stdout, is_stored))["current"]
        assert 0 < stored < NOTES
        yield process, process.stdout, process.stderr, stored


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminate"])
def test_an_interrupted_index_keeps_what_is_done_and_a_sync_does_the_rest(
    cli: Cli, stalling: FakeOllama, home: Path, number: signal.Signals
) -> None:
    with index_under_way() as (process, out, err, stored):
        process.send_signal(number)
        read_until(err, lambda line: "Stopping" in line)
        stalling.release.set()
        last = json.loads(out.read().splitlines()[-1])
        assert process.wait(PATIENCE_S) == 130
        assert "Traceback" not in err.read()
    assert (last["type"], last["is_cancelled"]) == ("complete", True)
    assert last["indexed_files"] == stored
    assert json.loads((home / "sync-result.json").read_text())["status"] == "cancelled"
    done = cli("sync")
    assert done.code == 0
    assert done.lines[-1]["indexed_files"] == NOTES
    assert done.lines[-1]["added"] == NOTES - stored


def test_a_second_interrupt_ends_at_once_and_nothing_is_lost(
    cli: Cli, stalling: FakeOllama
) -> None:
    with index_under_way() as (process, _, err, stored):
        process.send_signal(signal.SIGINT)
        read_until(err, lambda line: "Stopping" in line)
        process.send_signal(signal.SIGINT)
        # The embedder still stalls: only the second signal can have ended it.
        assert process.wait(PATIENCE_S) in (130, -signal.SIGINT)
        assert "Traceback" not in err.read()
    stalling.release.set()
    done = cli("sync")
    assert (done.code, done.lines[-1]["added"]) == (0, NOTES - stored)
    assert cli("doctor", "--deep").code == 0
