"""What an agent is told to do next is something an agent can do."""

import pytest

from obsidian_rag.errors import IndexCorrupted, IndexerFailed, NotFound
from obsidian_rag.tools import failure, for_agents


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
