"""`make stop` ends the daemons that `make start` started, whatever vault they were for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import PATIENCE_S

from obsidian_rag.transports.daemon_client import find_daemon, is_locked

ROOT = Path(__file__).parents[1]


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, as make sees it."""
    monkeypatch.delenv("OBSIDIAN_RAG_HOME")
    monkeypatch.setenv("OBSIDIAN_RAG_EMBEDDING__PROVIDER", "hash")
    folder = tmp_path / "user"
    folder.mkdir()
    return folder


def make(tmp_path: Path, *words: str) -> str:
    """Run make with this interpreter's commands, without touching the installation."""
    done = subprocess.run(
        [
            "make",
            "--no-print-directory",
            "-o",
            ".venv/app",
            f"BIN={Path(sys.executable).parent}",
            f"STARTED={tmp_path / 'cache' / 'started'}",
            *words,
        ],
        cwd=ROOT,
        env={name: text for name, text in os.environ.items() if not name.startswith("MAKE")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_make_stop_ends_what_make_start_started_without_a_network(
    tmp_path: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = tmp_path / "My vault"
    vault.mkdir()
    (vault / "Garden.md").write_text("# Garden\nIris.\n")
    data = user / ".obsidian-rag"
    # The package registry of a machine without a network.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("UV_OFFLINE", "1")
    said = make(tmp_path, "start", f"VAULT={vault}")
    assert (
        "Search goes on with static vectors; `obsidian-rag model get minilm` tries again." in said
    )
    assert "Traceback" not in said
    try:
        daemon = find_daemon(data)
        assert daemon is not None
        assert f"Stopped process {daemon.pid}." in make(tmp_path, "stop")
        assert not is_locked(data)
    finally:
        make(tmp_path, "stop", f"VAULT={vault}")
