"""index, sync and reindex: lines for programs, exit codes, and the result on file."""

import io
import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.fixture_types import Cli, Configure, MakeVault
from tests.transports.command_line import Done
from tests.waiting import PATIENCE_S

from obsidian_rag.store import writer_lock
from obsidian_rag.transports.cli.index_cmd import index

PHASES = {"scanning", "hashing", "parsing", "embedding", "storing", "optimising", "relating"}
NOTES: dict[str, str | bytes] = {"a.md": "# A\n\ntext", "b.md": "# B\n\nmore", "c/c.md": "third"}


@pytest.fixture
def vault(make_vault: MakeVault, configure: Configure) -> Path:
    made = make_vault(NOTES)
    configure(made, {})
    return made


def complete(done: Done) -> dict[str, Any]:
    """The last line, after checking that all lines are what they should be."""
    *progress, last = done.lines
    assert last["type"] == "complete"
    for line in progress:
        assert set(line) == {"type", "phase", "current", "total"}
        assert line["type"] == "progress"
        assert line["phase"] in PHASES
        assert isinstance(line["current"], int)
        assert isinstance(line["total"], int)
    return last


@pytest.mark.parametrize(
    ("command", "mode"), [("index", "full"), ("sync", "sync"), ("reindex", "reindex")]
)
def test_into_a_pipe_go_progress_lines_and_one_last_complete_line(
    cli: Cli, vault: Path, command: str, mode: str
) -> None:
    done = cli(command)
    assert (done.code, done.err) == (0, "")
    last = complete(done)
    assert (last["mode"], last["indexed_files"], last["total_chunks"]) == (mode, 3, 3)
    assert last["errors"] == []
    assert last["duration_ms"] >= 0
    phases = {line["phase"] for line in done.lines[:-1]}
    assert phases >= {"scanning", "embedding", "storing"}
    assert {"type": "progress", "phase": "storing", "current": 3, "total": 3} in done.lines


class Interrupted(io.StringIO):
    """A stdout on which every write that does not end a line is followed by another thread's."""

    def __init__(self) -> None:
        super().__init__()
        self._writer: int | None = None
        self._other = threading.Event()

    def write(self, text: str) -> int:
        me = threading.get_ident()
        if self._writer not in (None, me):
            self._other.set()
        self._writer = me
        written = super().write(text)
        if "embedding" in text and not text.endswith("\n"):
            self._other.clear()
            self._other.wait(PATIENCE_S)
        return written


def test_a_line_is_one_write_that_no_other_thread_gets_into(
    make_vault: MakeVault, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread tells of notes that it parses while another tells of those it stores."""
    configure(make_vault({f"{number}.md": f"note {number}" for number in range(290)}), {})
    out = Interrupted()
    monkeypatch.setattr("sys.stdout", out)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert index() == 0
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines[-1]["type"] == "complete"
    assert {"parsing", "storing"} <= {line.get("phase") for line in lines}


def test_a_sync_does_only_what_changed(cli: Cli, vault: Path) -> None:
    complete(cli("index"))
    # The new file comes first, so that it does not get the file id of the deleted one.
    (vault / "new.md").write_text("new")
    (vault / "a.md").write_text("# A\n\nother text")
    (vault / "b.md").unlink()
    (vault / "c/c.md").rename(vault / "d.md")
    last = complete(cli("sync"))
    counts = {name: last[name] for name in ("added", "changed", "renamed", "removed")}
    assert counts == {"added": 1, "changed": 1, "renamed": 1, "removed": 1}
    assert last["embedded_chunks"] <= 3
    again = complete(cli("sync"))
    assert (again["indexed_files"], again["unchanged"], again["embedded_chunks"]) == (3, 3, 0)


@pytest.mark.parametrize("command", ["index", "sync", "reindex"])
def test_a_note_that_cannot_be_read_makes_it_a_partial_success(
    cli: Cli, make_vault: MakeVault, vault: Path, command: str
) -> None:
    make_vault({"bad.md": b"\xff\xff"})
    done = cli(command)
    assert done.code == 1
    last = complete(done)
    assert last["indexed_files"] == 3
    assert [error["file"] for error in last["errors"]] == ["bad.md"]
    assert last["errors"][0]["reason"] == "not_utf8"


@pytest.mark.parametrize("command", ["index", "sync", "reindex"])
@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["lines", "json"])
def test_without_a_vault_it_is_fatal(cli: Cli, command: str, flags: tuple[str, ...]) -> None:
    done = cli(command, *flags)
    assert done.code == 2
    assert "CONFIG_INVALID" in done.err
    assert "obsidian-rag init" in done.err
    error = done.json["error"] if flags else done.lines[-1]
    assert error["code"] == "CONFIG_INVALID"
    assert error["recoverable"] is True


@pytest.mark.parametrize(
    "arguments",
    [("index", "--nonsense"), ("reindexx",), ("sync", "extra"), ("config", "set", "a"), ("--x",)],
)
def test_wrong_usage_is_fatal_and_shows_no_traceback(cli: Cli, arguments: tuple[str, ...]) -> None:
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "INVALID_ARGUMENT" in done.err
    assert "--help" in done.err
    assert "Traceback" not in done.err


def test_wrong_usage_with_json_is_an_envelope_too(cli: Cli) -> None:
    done = cli("index", "--nonsense", "--json")
    assert done.code == 2
    assert done.json["error"]["code"] == "INVALID_ARGUMENT"
    assert done.json["data"] is None


@pytest.mark.parametrize("command", ["index", "sync", "reindex"])
def test_json_is_one_envelope_and_nothing_else(cli: Cli, vault: Path, command: str) -> None:
    done = cli(command, "--json")
    assert (done.code, done.err) == (0, "")
    assert set(done.json) == {"status", "data", "error", "meta"}
    assert (done.json["status"], done.json["error"]) == ("healthy", None)
    assert done.json["data"]["indexed_files"] == 3


def test_a_vault_that_is_not_there_ends_the_lines_with_the_error(cli: Cli, vault: Path) -> None:
    vault.rename(vault.with_name("elsewhere"))
    done = cli("sync")
    assert done.code == 2
    assert done.lines[-1]["type"] == "error"
    assert done.lines[-1]["code"] == "NOT_FOUND"
    assert "NOT_FOUND" in done.err


def test_other_settings_need_a_reindex_and_the_message_says_so(
    cli: Cli, vault: Path, configure: Configure
) -> None:
    cli("index")
    configure(vault, {"embedding.dimensions": 32})
    done = cli("sync", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "EMBEDDING_MISMATCH")
    assert "reindex" in done.json["error"]["suggestion"]
    assert cli("reindex").code == 0
    assert cli("sync").code == 0


def test_the_result_on_file_is_what_the_last_line_said(cli: Cli, vault: Path, home: Path) -> None:
    last = complete(cli("index"))
    result = json.loads((home / "sync-result.json").read_text())
    del last["type"]
    assert last.pop("meaning") is None  # not of this run, and no transformer here
    assert last.items() <= result.items()
    assert result["status"] == "complete"
    assert result["last_sync"] == result["finished_at"]


def test_while_another_process_writes_it_is_busy_and_its_result_stays(
    cli: Cli, vault: Path, home: Path
) -> None:
    cli("index")
    before = (home / "sync-result.json").read_bytes()
    with writer_lock(home, "reindex"):
        done = cli("sync", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "BUSY")
    assert "reindex" in done.json["error"]["message"]
    assert (home / "sync-result.json").read_bytes() == before
    assert cli("sync").code == 0


def test_an_empty_vault_is_no_failure(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault({}), {})
    last = complete(cli("index"))
    assert (last["indexed_files"], last["total_chunks"]) == (0, 0)


def test_names_in_any_script_survive_the_lines(
    cli: Cli, vault: Path, make_vault: MakeVault
) -> None:
    make_vault({"Tagebuch/Grüße 🎉 日本.md": b"\xff"})
    done = cli("index")
    assert complete(done)["errors"][0]["file"] == "Tagebuch/Grüße 🎉 日本.md"
    assert all(line.isprintable() for line in done.out.splitlines())


def test_the_vault_is_never_changed(cli: Cli, vault: Path) -> None:
    def everything() -> dict[str, tuple[bytes, int]]:
        files = (path for path in vault.rglob("*") if path.is_file())
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    before = everything()
    for command in ("index", "sync", "reindex", "status", "doctor"):
        cli(command)
    assert everything() == before
