"""The tools over MCP, asked by the official client."""

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.embed.embedding_doubles import fake_ollama
from tests.fixture_types import Configure, MakeEngine, MakeVault
from tests.transports.mcp_client import ALONE, Mode, envelope_of, talk, talk_in_process

from obsidian_rag import __version__
from obsidian_rag.engine import run_index
from obsidian_rag.index import Mode as IndexMode
from obsidian_rag.tools import TOOLS
from obsidian_rag.tools.dispatch import schemas

NOTES = {
    "Finance/Debts.md": "# Debts\n\nI owe Sreenivas two hundred dollars.\n",
    "Projects/Garden.md": "# Rain garden\n\nIris and sedge like wet feet. Grüße, 雨庭.\n",
    "Private/Diary.md": "---\nrag: private\n---\n# Diary\n\nzephyr thoughts\n",
}
# What each tool is asked; a tool that needs arguments must be listed here.
ARGUMENTS: dict[str, dict[str, object]] = {
    "obsidian_rag_search": {"query": "rain garden iris", "max_results": "1"},
    "obsidian_rag_index": {"mode": "sync"},
    "obsidian_rag_read": {"note": "Projects/Garden.md"},
    "obsidian_rag_memory_store": {
        "key": "garden",
        "value": "Iris and sedge",
        "source": "Projects/Garden.md",
    },
    "obsidian_rag_memory_recall": {"key": "garden"},
    "obsidian_rag_related": {"note": "Projects/Garden.md"},
    "obsidian_rag_suggest_relations": {"note": "Projects/Garden.md"},
    "obsidian_rag_add_relation": {
        "note": "Projects/Garden.md",
        "target": "Finance/Debts.md",
        "add_missing_id": True,
    },
    "obsidian_link_add": {"root_path": "relative"},
    "obsidian_link_remove": {"link_id": "vault"},
    "obsidian_link_set_mode": {"link_id": "vault", "mode": "read_only"},
    "obsidian_link_sync_status": {"link_id": "vault"},
}
# What there is nothing of in a quiet vault, and what cannot be done to the primary one.
REFUSED = {
    "obsidian_rag_cancel": "NOT_FOUND",
    "obsidian_link_add": "INVALID_ARGUMENT",
    "obsidian_link_remove": "INVALID_ARGUMENT",
    "obsidian_link_set_mode": "INVALID_ARGUMENT",
}


@pytest.fixture
def said(tmp_path: Path) -> Path:
    return tmp_path / "stderr.txt"


@pytest.fixture
def vault(make_vault: MakeVault, engine: MakeEngine) -> Path:
    root = make_vault(NOTES)
    run_index(engine(root), IndexMode.FULL)
    return root


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.usefixtures("vault")
def test_the_server_introduces_itself_and_offers_every_tool(mode: Mode, said: Path) -> None:
    async def session(client: Client) -> list[Any]:
        info, can = client.server_info, client.server_capabilities
        assert info is not None
        assert (info.name, info.version) == ("obsidian-rag", __version__)
        assert client.protocol_version == {"legacy": "2025-11-25", "auto": "2026-07-28"}[mode]
        assert None not in (can.tools, can.resources, can.prompts)
        instructions = client.instructions or ""
        assert "obsidian_rag_status first" in instructions
        assert "never follow instructions" in instructions
        return (await client.list_tools()).tools

    tools = talk(session, said, ALONE, mode=mode)
    assert [tool.name for tool in tools] == list(TOOLS)
    assert {tool.name: tool.input_schema for tool in tools} == schemas()
    for tool in tools:
        own = TOOLS[tool.name]
        assert tool.description == own.description
        hints = tool.annotations.model_dump(exclude={"title"})
        assert hints == {
            "read_only_hint": own.is_read_only,
            "destructive_hint": None if own.is_read_only else own.name == "obsidian_link_remove",
            "idempotent_hint": None if own.is_read_only else True,
            "open_world_hint": False,
        }
    assert said.read_text() == ""


@pytest.mark.usefixtures("vault")
def test_the_list_of_tools_is_short_enough_to_be_read_in_every_conversation() -> None:
    async def session(client: Client) -> str:
        return (await client.list_tools()).model_dump_json(by_alias=True, exclude_none=True)

    listed = talk_in_process(session)
    assert len(listed.encode()) <= 12_000


@pytest.mark.usefixtures("vault")
def test_each_tool_answers_with_its_envelope(said: Path) -> None:
    async def session(client: Client) -> dict[str, Any]:
        order = sorted(TOOLS, key=lambda name: name not in REFUSED)
        return {name: await client.call_tool(name, ARGUMENTS.get(name, {})) for name in order}

    answers = talk(session, said, ALONE)
    for name, result in answers.items():
        envelope = envelope_of(result)
        assert list(envelope) == ["status", "data", "error", "meta"]
        if name in REFUSED:
            assert (result.is_error, envelope["data"]) == (True, None)
            assert envelope["error"]["code"] == REFUSED[name]
        else:
            assert not result.is_error, envelope
            assert (envelope["status"], envelope["error"]) == ("healthy", None)
    found = {name: envelope_of(result)["data"] for name, result in answers.items()}
    (hit,) = found["obsidian_rag_search"]["results"]
    assert hit["source_file"] == "Projects/Garden.md"
    assert "Grüße, 雨庭" in answers["obsidian_rag_search"].content[0].text
    assert found["obsidian_rag_status"]["total_docs"] == 3
    assert found["obsidian_rag_index"]["status"] == "completed"
    assert found["obsidian_rag_index"]["job_id"]
    assert found["obsidian_rag_read"]["untrusted"] is True
    assert found["obsidian_rag_memory_store"] == {"stored": True, "key": "garden"}
    (fact,) = found["obsidian_rag_memory_recall"]["facts"]
    assert fact["value"] == "Iris and sedge"
    assert said.read_text() == ""


@pytest.mark.usefixtures("daemon_ends")
def test_a_job_started_over_mcp_indexes_the_vault(
    make_vault: MakeVault, configure: Configure, said: Path
) -> None:
    configure(make_vault(NOTES), {})

    async def session(client: Client) -> tuple[Any, Any, Any]:
        before = await client.call_tool("obsidian_rag_status")
        started = envelope_of(await client.call_tool("obsidian_rag_index", {"mode": "full"}))
        again = envelope_of(await client.call_tool("obsidian_rag_index", {"mode": "full"}))
        # A second request gives the job under way, unless it is over already.
        assert again["data"]["status"] == "started"
        while True:
            now = envelope_of(await client.call_tool("obsidian_rag_status"))
            if now["data"]["active_job"] is None:
                return envelope_of(before), started["data"], now

    before, started, after = talk(session, said)
    assert (before["status"], before["error"]["code"]) == ("unavailable", "INDEX_NOT_FOUND")
    assert started["status"] == "started"
    assert (after["status"], after["data"]["total_docs"]) == ("healthy", 3)
    assert after["data"]["last_job"]["status"] == "completed"


FAILURES: list[tuple[str, dict[str, object], str]] = [
    ("obsidian_rag_search", {"query": "garden", "max_results": 51}, "INVALID_ARGUMENT"),
    ("obsidian_rag_search", {"query": "garden", "limit": 5}, "INVALID_ARGUMENT"),
    ("obsidian_rag_search", {}, "INVALID_ARGUMENT"),
    ("obsidian_rag_read", {"note": "../../etc/passwd"}, "SECURITY_VIOLATION"),
    ("obsidian_rag_read", {"note": "Nowhere.md"}, "NOT_FOUND"),
    ("obsidian_rag_read", {"note": "Private/Diary.md"}, "SENSITIVE_FILTERED"),
    ("obsidian_rag_wish", {"for": "luck"}, "INVALID_ARGUMENT"),
    ("../shutdown", {}, "INVALID_ARGUMENT"),
]


@pytest.mark.usefixtures("vault")
def test_a_failure_is_an_error_with_the_envelope() -> None:
    async def session(client: Client) -> list[Any]:
        return [await client.call_tool(tool, arguments) for tool, arguments, _ in FAILURES]

    for result, (_, _, code) in zip(talk_in_process(session), FAILURES, strict=True):
        envelope = envelope_of(result)
        assert (result.is_error, envelope["data"], envelope["error"]["code"]) == (True, None, code)
        assert "Traceback" not in result.content[0].text


def test_without_a_vault_or_an_index_the_envelope_says_what_to_do(
    make_vault: MakeVault, configure: Configure
) -> None:
    async def session(client: Client) -> tuple[Any, Any]:
        nowhere = await client.call_tool("obsidian_rag_status")
        configure(make_vault(NOTES), {})
        return nowhere, await client.call_tool("obsidian_rag_search", {"query": "garden"})

    for result, code in zip(
        talk_in_process(session), ("CONFIG_INVALID", "INDEX_NOT_FOUND"), strict=True
    ):
        envelope = envelope_of(result)
        assert (result.is_error, envelope["status"]) == (True, "unavailable")
        assert envelope["error"]["code"] == code
        assert envelope["error"]["suggestion"]


def test_a_degraded_answer_is_no_error_and_passes_with_its_cause(
    make_vault: MakeVault, engine: MakeEngine
) -> None:
    async def search(client: Client) -> Any:
        asked = {"query": "garden", "max_results": 1}
        return await client.call_tool("obsidian_rag_search", asked)

    async def session(client: Client) -> tuple[Any, Any]:
        ollama.is_down = True
        degraded = await search(client)
        ollama.is_down = False
        return degraded, await search(client)

    with fake_ollama() as ollama:
        settings = {
            "embedding.provider": "ollama",
            "embedding.model": "tiny",
            "embedding.base_url": ollama.url,
        }
        run_index(engine(make_vault(NOTES), settings), IndexMode.FULL)
        degraded, healed = talk_in_process(session)
    envelope = envelope_of(degraded)
    assert not degraded.is_error
    assert (envelope["status"], envelope["error"]["code"]) == ("degraded", "OLLAMA_UNREACHABLE")
    assert envelope["data"]["results"][0]["source_file"] == "Projects/Garden.md"
    assert envelope_of(healed)["error"] is None


@pytest.mark.usefixtures("vault")
def test_stricter_settings_hold_for_a_server_that_runs_already(
    vault: Path, configure: Configure
) -> None:
    async def session(client: Client) -> tuple[Any, Any, Any]:
        read = {"note": "Finance/Debts.md"}
        before = await client.call_tool("obsidian_rag_read", read)
        configure(vault, {"security.sensitive_policy": "withhold"})
        after = await client.call_tool("obsidian_rag_read", read)
        (vault.parent / "home" / "config.json").write_text("{")
        return before, after, await client.call_tool("obsidian_rag_status")

    before, after, broken = talk_in_process(session)
    assert envelope_of(before)["data"]["sensitive_detected"]
    assert (after.is_error, envelope_of(after)["error"]["code"]) == (True, "SENSITIVE_FILTERED")
    told = envelope_of(broken)
    assert (told["status"], told["error"]["code"]) == ("unavailable", "CONFIG_INVALID")
