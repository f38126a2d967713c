"""What only the person whose notes these are can ask: ids, and settings about related notes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.folders import write_notes
from tests.transports.http_client import OpenDoor, Reply, installed, open_door

ID = "550e8400-e29b-41d4-a716-446655440000"
OWNER = {"X-Obsidian-Rag-Caller": "owner"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "place"


@pytest.fixture
def door(root: Path) -> Iterator[OpenDoor]:
    root.mkdir()
    with open_door(installed(root)) as door:
        yield door


def ask(door: OpenDoor, tool: str, arguments: object = None, **headers: str) -> Reply:
    sent = headers or OWNER
    return door.ask("POST", f"/tools/obsidian_rag_{tool}", arguments or {}, headers=sent)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("check_ids", {}), ("add_ids", {"notes": ["Projects/Plan.md"]}), ("relation_settings", {})],
)
def test_agents_have_no_such_tool(door: OpenDoor, tool: str, arguments: object) -> None:
    reply = ask(door, tool, arguments, **{"X-Obsidian-Rag-Caller": "agent"})
    assert (reply.status, reply.code) == (404, "INVALID_ARGUMENT")
    assert f"obsidian_rag_{tool}" not in str(door.get("/tools").json)


def test_ids_that_are_missing_or_used_twice_are_listed(door: OpenDoor, root: Path) -> None:
    twice = f"---\nid: {ID}\n---\ntext\n"
    write_notes(root / "vault", {"One.md": twice, "Two.md": twice})
    data = ask(door, "check_ids").json["data"]
    assert data["duplicates"] == [{"id": ID, "kept": "One.md", "others": ["Two.md"]}]
    assert "Projects/Plan.md" in data["missing"]
    assert data["is_clean"] is False


def test_named_notes_get_an_id_and_keep_a_good_one(door: OpenDoor, root: Path) -> None:
    write_notes(root / "vault", {"Has.md": f"---\nid: {ID}\n---\ntext\n"})
    notes = ["Projects/Plan.md", "Has.md", "../Out.md"]
    done = ask(door, "add_ids", {"notes": notes}).json["data"]["notes"]
    assert [one["outcome"] for one in done] == ["added", "existing", "failed"]
    assert done[0]["id"] in (root / "vault/Projects/Plan.md").read_text()
    assert done[2]["error"]["code"] == "SECURITY_VIOLATION"


def test_settings_are_changed_validated_and_given_their_default(door: OpenDoor, root: Path) -> None:
    changes = {"bm25_weight": 0.7, "excluded_folders": ["Finance"], "rich_format": False}
    after = ask(door, "relation_settings", {"changes": changes}).json["data"]["settings"]
    assert {name: after[name] for name in changes} == changes
    for wrong in ({"bm25_weight": "much"}, {"max_results": 0}, {"vault_path": "/"}, {"no": 1}):
        reply = ask(door, "relation_settings", {"changes": wrong})
        assert (reply.status, reply.code) == (400, "INVALID_ARGUMENT"), wrong
    after = ask(door, "relation_settings", {"changes": {"bm25_weight": None}}).json["data"]
    assert after["settings"]["bm25_weight"] is None
    assert after["settings"]["rich_format"] is False
    written = json.loads((root / "home/config.json").read_text())
    assert written["relations"] == {"excluded_folders": ["Finance"], "rich_format": False}
