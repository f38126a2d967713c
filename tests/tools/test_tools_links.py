"""Linked vaults as tools: added, listed, synced, paused and removed; never written to."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fixture_types import MakeEngine
from tests.folders import write_notes

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.tools import AGENT, Caller, Scope, call

ADD, LIST, REMOVE = "obsidian_link_add", "obsidian_link_list", "obsidian_link_remove"
SET_MODE, SYNC, STATUS = "obsidian_link_set_mode", "obsidian_sync_now", "obsidian_link_sync_status"
LINKED = {"Rocks/Granite.md": "# Granite\n\nGranite is coarse.", "Old/Slate.md": "slate"}
PRIVATE = {"Diary.md": "---\nrag: private\n---\nzephyr"}


@pytest.fixture
def stones(tmp_path: Path) -> Path:
    root = tmp_path / "elsewhere" / "Stones"
    write_notes(root, {**LINKED, **PRIVATE})
    return root


@pytest.fixture
def made(engine: MakeEngine, make_vault: Callable[[Mapping[str, str]], Path]) -> Iterator[Engine]:
    one = engine(make_vault({"Pond.md": "# Pond\n\nnewts"}))
    run_index(one, "sync")
    yield one


def data(engine: Engine, tool: str, arguments: Mapping[str, object], caller: Caller = AGENT) -> Any:
    envelope = call(engine, tool, arguments, caller)
    assert envelope["data"] is not None, envelope["error"]
    return envelope["data"]


def code(engine: Engine, tool: str, arguments: Mapping[str, object], caller: Caller = AGENT) -> str:
    envelope = call(engine, tool, arguments, caller)
    assert envelope["error"] is not None, envelope["data"]
    return envelope["error"]["code"]


def found(engine: Engine, query: str) -> list[str]:
    hits = data(engine, "obsidian_rag_search", {"query": query, "max_results": 20})["results"]
    return [hit["source_file"] for hit in hits if hit["vault"] == "Stones"]


def test_a_vault_is_added_synced_searched_and_removed(made: Engine, stones: Path) -> None:
    before = {file: file.read_bytes() for file in stones.rglob("*.md")}
    added = data(made, ADD, {"root_path": str(stones), "exclude": ["Old"]})
    assert (added["name"], added["mode"], added["importing"]) == ("Stones", "read_only", False)
    assert data(made, SYNC, {"link_id": "stones"})["added"] == 2
    assert found(made, "granite slate") == ["Rocks/Granite.md"]
    names = [(link["name"], link["label"]) for link in data(made, LIST, {})["links"]]
    assert names == [("vault", "Primary vault"), ("Stones", "Linked vault (read-only)")]
    removed = data(made, REMOVE, {"link_id": added["link_id"]})
    assert (removed["removed"]["files"], removed["files_untouched"]) == (2, True)
    assert found(made, "granite") == []
    assert {file: file.read_bytes() for file in stones.rglob("*.md")} == before


def test_a_successful_add_looks_like_one_and_names_the_tool_to_call_next(
    made: Engine, stones: Path
) -> None:
    envelope: Any = call(made, ADD, {"root_path": str(stones)})
    assert (envelope["status"], envelope["error"]) == ("healthy", None)
    assert envelope["data"]["next_step"] == 'obsidian_sync_now with link_id "Stones" imports it.'
    after: Any = call(made, LIST, {})
    assert (after["status"], after["error"]["code"]) == ("degraded", "INDEX_INCOMPLETE")
    trouble = after["data"]["links"][1]["trouble"]
    for suggestion in (after["error"]["suggestion"], trouble["suggestion"]):
        assert "obsidian_sync_now" in suggestion
        assert "obsidian-rag " not in suggestion


def test_the_status_tells_what_waits_but_no_private_file_to_an_agent(
    made: Engine, stones: Path
) -> None:
    data(made, ADD, {"root_path": str(stones), "name": "Geology"})
    told = data(made, STATUS, {"link_id": "geology", "limit": 5})
    assert (told["name"], told["totals"]["indexed"]) == ("Geology", 0)
    data(made, SYNC, {})
    told = data(made, STATUS, {"link_id": "geology"})
    assert (told["totals"]["indexed"], told["progress"]["phase"]) == (3, "done")
    assert "Diary" not in str(told)


def test_a_paused_vault_is_left_alone_and_stays_searchable(made: Engine, stones: Path) -> None:
    data(made, ADD, {"root_path": str(stones)})
    data(made, SYNC, {"link_id": "Stones"})
    assert data(made, SET_MODE, {"link_id": "Stones", "paused": True})["paused"]
    write_notes(stones, {"Rocks/Basalt.md": "basalt"})
    assert code(made, SYNC, {"link_id": "Stones"}) == "INVALID_ARGUMENT"
    data(made, SYNC, {})
    assert found(made, "granite")[0] == "Rocks/Granite.md"
    assert "Rocks/Basalt.md" not in found(made, "basalt")
    assert not data(made, SET_MODE, {"link_id": "Stones", "paused": False})["paused"]
    data(made, SYNC, {"link_id": "Stones"})
    assert found(made, "basalt")[0] == "Rocks/Basalt.md"


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        (ADD, {"root_path": "relative"}, "INVALID_ARGUMENT"),
        (ADD, {"root_path": "/nowhere/at/all"}, "INVALID_ARGUMENT"),
        (ADD, {"root_path": "{stones}", "mode": "read_write"}, "READ_ONLY"),
        (ADD, {"root_path": "{stones}", "mode": "append"}, "INVALID_ARGUMENT"),
        (REMOVE, {"link_id": "vault"}, "INVALID_ARGUMENT"),
        (REMOVE, {"link_id": "Nowhere"}, "NOT_FOUND"),
        (SET_MODE, {"link_id": "vault", "paused": True}, "INVALID_ARGUMENT"),
        (SET_MODE, {"link_id": "vault", "mode": "read_only"}, "INVALID_ARGUMENT"),
        (SYNC, {"link_id": "Nowhere"}, "NOT_FOUND"),
        (STATUS, {"link_id": "Nowhere"}, "NOT_FOUND"),
        (STATUS, {"link_id": "vault", "limit": 501}, "INVALID_ARGUMENT"),
    ],
)
def test_what_cannot_be_done_is_refused(
    made: Engine, stones: Path, tool: str, arguments: dict[str, object], expected: str
) -> None:
    filled = {
        key: value.replace("{stones}", str(stones)) if isinstance(value, str) else value
        for key, value in arguments.items()
    }
    assert code(made, tool, filled) == expected
    assert len(data(made, LIST, {})["links"]) == 1


def test_a_second_link_to_a_folder_names_the_first(made: Engine, stones: Path) -> None:
    link = data(made, ADD, {"root_path": str(stones)})
    error: Any = call(made, ADD, {"root_path": str(stones)})["error"]
    assert link["link_id"] in error["message"]


def test_a_limited_agent_lists_its_vaults_and_changes_none(made: Engine, stones: Path) -> None:
    data(made, ADD, {"root_path": str(stones)})
    limited = Caller(scope=Scope(vaults=("Stones",)))
    (link,) = data(made, LIST, {}, limited)["links"]
    assert (link["name"], "root_path" in link, "totals" in link) == ("Stones", False, False)
    assert code(made, STATUS, {"link_id": "vault"}, limited) == "NOT_FOUND"
    assert data(made, STATUS, {"link_id": "Stones"}, limited)["name"] == "Stones"
    for tool, arguments in (
        (ADD, {"root_path": "/"}),
        (REMOVE, {"link_id": "Stones"}),
        (SET_MODE, {"link_id": "Stones", "paused": True}),
        (SYNC, {}),
    ):
        assert code(made, tool, arguments, limited) == "READ_ONLY"
