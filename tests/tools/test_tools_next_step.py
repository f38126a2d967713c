"""What an agent is told to do next is something an agent can do."""

from typing import Any

import pytest

from obsidian_rag.errors import IndexCorrupted, IndexerFailed, NotFound
from obsidian_rag.tools import failure, for_agents, success


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Run `obsidian-rag index`.", 'Call obsidian_rag_index with mode "full".'),
        ("Wait, or run `obsidian-rag sync`.", 'Wait, or call obsidian_rag_index with mode "sync".'),
        ("`obsidian-rag status` shows it.", "obsidian_rag_status shows it."),
        ("Run `obsidian-rag init`.", "Ask the user to run `obsidian-rag init`."),
        ("If that is meant, run `obsidian-rag sync --accept-removals`.",
         "If that is meant, ask the user to run `obsidian-rag sync --accept-removals`."),
        ("Run `obsidian-rag livesync setup`, or wait.",
         "Ask the user to run `obsidian-rag livesync setup`, or wait."),
        ("Run `obsidian-rag link resume My Wiki` first.",
         'Call obsidian_link_set_mode with link_id "My Wiki" and paused false first.'),
        ("Run `obsidian-rag link sync wiki`: it goes on.",
         'Call obsidian_sync_now with link_id "wiki": it goes on.'),
        ("`obsidian-rag link status wiki` shows how far it is.",
         'obsidian_link_sync_status with link_id "wiki" shows how far it is.'),
        ("If it moved, run `obsidian-rag link remove wiki` and `obsidian-rag link add /new`.",
         'If it moved, call obsidian_link_remove with link_id "wiki"'
         ' and obsidian_link_add with root_path "/new".'),
        ("See `obsidian-rag memory list`.",
         "See `obsidian-rag memory list`. Only the user can run commands."),
        ("Rerun it.", "Rerun it."),
        ("", ""),
    ],
)  # fmt: skip
def test_a_command_becomes_a_tool_or_a_request_to_the_user(said: str, told: str) -> None:
    error = for_agents(failure(IndexerFailed("It failed.", said)))["error"]
    assert error is not None
    assert error["suggestion"] == told
    assert error["message"] == "It failed."


@pytest.mark.parametrize("kind", [IndexCorrupted, NotFound])
def test_nothing_else_of_the_envelope_changes(kind: type[IndexCorrupted]) -> None:
    before = failure(kind("It failed.", "Run `obsidian-rag reindex`."))
    after = for_agents(before)
    assert {**after, "error": None} == {**before, "error": None}


def test_an_error_within_the_data_is_rewritten_too_and_other_data_is_not() -> None:
    body = IndexerFailed("It failed.", "Run `obsidian-rag link sync wiki`.").body
    text = {"text": "Run `obsidian-rag sync`.", "suggestion": "Run `obsidian-rag sync`."}
    data: Any = for_agents(success({"links": [{"trouble": body}], "note": text}))["data"]
    told = data["links"][0]["trouble"]["suggestion"]
    assert told == 'Call obsidian_sync_now with link_id "wiki".'
    assert data["note"] == text
