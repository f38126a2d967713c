"""An MCP server beside a daemon: it asks the daemon while there is one, and misses none."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from tests.fixture_types import Configure, MakeVault
from tests.integration.living import QUICK, Living, living
from tests.transports.mcp_client import envelope_of, talk, talk_in_process

NOTES = {"Garden.md": "# Rain garden\n\nIris and sedge.\n"}


@pytest.fixture
def vault(make_vault: MakeVault, configure: Configure) -> Path:
    root = make_vault(NOTES)
    configure(root, QUICK)
    return root


async def status(client: Client) -> Any:
    return envelope_of(await client.call_tool("obsidian_rag_status"))["data"]


@pytest.mark.usefixtures("vault")
def test_a_daemon_is_asked_for_as_long_as_it_runs(tmp_path: Path) -> None:
    with ExitStack() as stack:

        def start() -> Living:
            return stack.enter_context(living())

        async def session(client: Client) -> list[Any]:
            # Only a daemon watches the vault.
            seen = [await status(client)]
            daemon = await anyio.to_thread.run_sync(start)
            call = await client.call_tool("obsidian_rag_index", {"mode": "full"})
            job = envelope_of(call)["data"]
            await anyio.to_thread.run_sync(
                lambda: daemon.wait_for("job", id=job["job_id"], status="completed")
            )
            seen.append(await status(client))
            uri = "obsidian-rag://note/Garden.md"
            assert [note.uri for note in (await client.list_resources()).resources] == [uri]
            (note,) = (await client.read_resource(uri)).contents
            assert "Iris" in note.model_dump()["text"]
            await anyio.to_thread.run_sync(daemon.stop)
            seen.append(await status(client))
            await anyio.to_thread.run_sync(start)
            return [*seen, await status(client)]

        before, during, after, again = talk(session, tmp_path / "stderr.txt")
    assert [one["is_watching"] for one in (before, during, after, again)] == [
        False,
        True,
        False,
        True,
    ]
    assert (before["total_docs"], during["total_docs"], after["total_docs"]) == (0, 1, 1)


@pytest.mark.usefixtures("vault")
def test_a_daemon_that_was_killed_is_not_missed() -> None:
    with living() as daemon:
        daemon.index()

        async def session(client: Client) -> tuple[Any, Any]:
            during = await status(client)
            daemon.process.kill()
            found = await client.call_tool("obsidian_rag_search", {"query": "iris"})
            return during, envelope_of(found)

        during, found = talk_in_process(session)
    assert during["is_watching"]
    assert found["data"]["results"][0]["source_file"] == "Garden.md"


def test_a_daemon_with_other_settings_does_not_answer_for_us(
    vault: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with living() as daemon:
        daemon.index()
        monkeypatch.setenv("OBSIDIAN_RAG_SECURITY__SENSITIVE_POLICY", "withhold")
        assert talk(status, tmp_path / "stderr.txt")["is_watching"] is False
    assert "has other settings" in (home / "logs" / "mcp.log").read_text()


@pytest.mark.usefixtures("vault")
def test_a_name_that_is_no_tool_never_reaches_the_daemon() -> None:
    with living() as daemon:

        async def session(client: Client) -> list[Any]:
            names = ("../shutdown", "obsidian_rag_status?", "obsidian_rag_status#")
            return [await client.call_tool(name, {}) for name in names]

        assert [result.is_error for result in talk_in_process(session)] == [True] * 3
        assert daemon.call("status")["data"]["is_watching"]
