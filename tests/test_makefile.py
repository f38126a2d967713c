"""What `make start` prints works, and `make stop` ends the daemons that it started."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client
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
        for server in mcp_servers(said):
            assert "Garden.md" in ask_mcp(server, "Iris", tmp_path)
        assert f"Stopped process {daemon.pid}." in make(tmp_path, "stop")
        assert not is_locked(data)
    finally:
        make(tmp_path, "stop", f"VAULT={vault}")


def test_the_readme_shows_the_agent_lines_that_make_start_prints(
    tmp_path: Path, user: Path
) -> None:
    printed = mcp_servers(make(tmp_path, "-n", "start", "BIN=.venv/bin"))
    assert len(printed) == 2
    for server in printed:
        assert server.command == str(ROOT / ".venv/bin/obsidian-rag")
        assert server.env == {"OBSIDIAN_RAG_HOME": str(ROOT / ".cache/demo")}
    readme = (ROOT / "README.md").read_text("utf-8").replace("/home/me/obsidian-rag", str(ROOT))
    shown = mcp_servers(readme.replace("$PWD", str(ROOT)))
    assert len(shown) == 3
    assert all(server == printed[0] for server in shown)


def mcp_servers(text: str) -> list[StdioServerParameters]:
    """The servers in lines for Claude Code and in JSON for other clients."""
    found = []
    for line in re.findall(r"\bclaude mcp add .*? mcp\b", text):
        words = shlex.split(line)
        env = dict([words[words.index("--env") + 1].split("=", 1)])
        command, *arguments = words[words.index("--") + 1 :]
        found.append(StdioServerParameters(command=command, args=arguments, env=env))
    for line in re.findall(r"\{\"mcp.*\}", text):
        tree = json.loads(line)
        (server,) = (tree.get("mcpServers") or tree["mcp"]["servers"]).values()
        found.append(StdioServerParameters(**server))
    assert found, text
    return found


def ask_mcp(server: StdioServerParameters, question: str, folder: Path) -> str:
    """Search as an agent does that starts the server elsewhere, with an environment of its own."""

    async def main() -> str:
        with anyio.fail_after(PATIENCE_S):
            async with Client(stdio_client(server), mode="legacy") as client:
                found = await client.call_tool("obsidian_rag_search", {"query": question})
                return json.dumps(found.structured_content)

    server.cwd = folder
    return anyio.run(main)
