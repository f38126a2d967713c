"""One table of calls: the same envelope in process, over HTTP and over MCP, with and without a
daemon, apart from how long it took."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.integration.living import living
from tests.transports.mcp_client import ALONE, envelope_of, talk

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.tools import TOOLS, call

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
Envelopes = list[dict[str, Any]]
NOTES = {
    "Finance/Debts.md": "# Debts\n\nI owe Sreenivas two hundred dollars.\n",
    "Journal/2024-01-15.md": "#mentalhealth\n\nSlept badly. #therapy\n",
    "Projects/Garden.md": "# Rain garden\n\nIris and sedge like wet feet. Grüße, 雨庭.\n",
    "Private/Diary.md": "---\nrag: private\n---\n# Diary\n\nzephyr thoughts\n",
    "Broken.md": "---\ntitle: [\n---\nhalf a note\n",
}
SEARCH, READ = "obsidian_rag_search", "obsidian_rag_read"
RELATED = "obsidian_rag_related"
CALLS: list[tuple[str, dict[str, object]]] = [
    ("obsidian_rag_status", {}),
    (SEARCH, {"query": "rain garden"}),
    (SEARCH, {"query": "雨庭", "max_results": 1, "group_by_note": True}),
    (SEARCH, {"query": "how much do I owe?", "directory_filter": ["Finance"]}),
    (SEARCH, {"query": "slept", "date_range": {"from": "2024-01-01", "to": "2024-12-31"}}),
    (SEARCH, {"query": "zephyr"}),
    (SEARCH, {"query": "zephyr", "confirm_sensitive": True}),
    (SEARCH, {"query": " "}),
    (SEARCH, {"query": "garden", "max_results": "5"}),
    (SEARCH, {"query": "garden", "directory_filter": ["../.."]}),
    (READ, {"note": "Projects/Garden"}),
    (READ, {"note": "Debts", "heading": "Debts"}),
    (READ, {"note": "Private/Diary.md"}),
    (READ, {"note": "Private/Diary.md", "confirm_sensitive": True}),
    (READ, {"note": "../../etc/passwd"}),
    (READ, {"note": "Nowhere.md"}),
    ("obsidian_rag_memory_store", {"key": "k", "value": "v", "source": "Nowhere.md"}),
    ("obsidian_rag_memory_recall", {"query": "sedge"}),
    ("obsidian_rag_memory_recall", {}),
    (RELATED, {"note": "Projects/Garden.md"}),
    (RELATED, {"text": "iris and sedge", "max_results": 3, "tags": ["garden"]}),
    (RELATED, {"note": "Private/Diary.md"}),
    (RELATED, {"note": "../../etc/passwd"}),
    (RELATED, {"note": "Nowhere.md"}),
    (RELATED, {"note": "Debts", "text": "either, not both"}),
    ("obsidian_rag_suggest_relations", {"note": "Projects/Garden.md"}),
    ("obsidian_rag_suggest_relations", {"note": "Nowhere.md"}),
    ("obsidian_rag_add_relation", {"note": "Debts", "target": "../outside.md"}),
    ("obsidian_sync_status", {}),
    ("obsidian_link_list", {}),
    ("obsidian_link_sync_status", {"link_id": "vault", "limit": 5}),
    ("obsidian_link_sync_status", {"link_id": "Nowhere"}),
    ("obsidian_link_add", {"root_path": "relative"}),
    ("obsidian_link_add", {"root_path": "/", "mode": "read_write"}),
    ("obsidian_link_remove", {"link_id": "vault"}),
    ("obsidian_link_set_mode", {"link_id": "Nowhere", "paused": True}),
    ("obsidian_sync_now", {"link_id": "Nowhere"}),
    ("obsidian_rag_index", {"mode": "wish"}),
    ("obsidian_rag_wish", {"for": "luck"}),
]
# What only a process that stays can tell, and what it changes by staying: a daemon syncs at start.
OF_THE_LIVING = (
    "is_watching",
    "health_changes",
    "active_job",
    "last_job",
    "last_sync",
    "last_scan_at",
    "progress",
)


@pytest.fixture
def site(make_vault: MakeVault, engine: Callable[..., Engine]) -> Engine:
    settings = {"watcher.enabled": False, "server.probe_s": 3600}
    root = make_vault(NOTES)
    for note in NOTES:
        # Files this fresh would be looked at again, which the first answers would tell.
        os.utime(root / note, (1_700_000_000, 1_700_000_000))
    made = engine(root, settings)
    run_index(made, Mode.FULL)
    fact = {"key": "garden", "value": "Iris and sedge", "source": "Projects/Garden.md"}
    assert call(made, "obsidian_rag_memory_store", fact)["data"] is not None
    return made


def over_mcp(said: Path, *flags: str) -> Envelopes:
    async def session(client: Client) -> Envelopes:
        results = [await client.call_tool(tool, arguments) for tool, arguments in CALLS]
        for result in results:
            assert result.is_error == (envelope_of(result)["data"] is None)
        return [envelope_of(result) for result in results]

    return [_settled(envelope) for envelope in talk(session, said, *flags)]


def test_every_door_gives_the_same_envelope(site: Engine, tmp_path: Path) -> None:
    in_process = [_settled(call(site, tool, arguments)) for tool, arguments in CALLS]
    alone = over_mcp(tmp_path / "alone.txt", ALONE)
    with living() as daemon:
        http = [_settled(daemon.door.call(tool, arguments)) for tool, arguments in CALLS]
        through_daemon = over_mcp(tmp_path / "daemon.txt")
    doors = {"MCP alone": alone, "HTTP": http, "MCP through the daemon": through_daemon}
    for position, asked in enumerate(CALLS):
        for door, envelopes in doors.items():
            assert (door, asked, envelopes[position]) == (door, asked, in_process[position])


def test_the_table_has_good_and_bad_calls_of_every_tool_that_only_reads() -> None:
    asked = {tool for tool, _ in CALLS}
    assert {tool.name for tool in TOOLS.values() if tool.is_read_only} <= asked


def _settled(envelope: Any) -> dict[str, Any]:
    """An envelope as JSON has it, without what no two answers share."""
    settled: dict[str, Any] = json.loads(json.dumps(envelope))
    assert settled["meta"].pop("query_time_ms") >= 0
    data = settled["data"] if isinstance(settled["data"], dict) else {}
    for part in (data, *data.get("links", [])):
        for name in OF_THE_LIVING:
            part.pop(name, None)
    return settled
