"""The next step of a failure, for agents: they call tools, where a person types a command.

Failures name the command, because most of them are read by people. What a tool does is said as
that tool; every other command is for the agent to ask its user for.
"""

import re

from obsidian_rag.tools.envelope import Envelope

_TOOLS = {
    "index": 'obsidian_rag_index with mode "full"',
    "sync": 'obsidian_rag_index with mode "sync"',
    "reindex": 'obsidian_rag_index with mode "reindex"',
    "status": "obsidian_rag_status",
    "livesync status": "obsidian_sync_status",
    "link list": "obsidian_link_list",
}
_COMMAND = re.compile(r"(?:\b(?P<run>[Rr]un) )?(?P<whole>`obsidian-rag (?P<words>[^`]+)`)")


def for_agents(envelope: Envelope) -> Envelope:
    """The envelope with a suggestion that an agent can follow."""
    error = envelope["error"]
    if error is None:
        return envelope
    told = _COMMAND.sub(_step, error["suggestion"])
    return {**envelope, "error": {**error, "suggestion": told}}


def _step(found: re.Match[str]) -> str:
    tool = _TOOLS.get(found["words"])
    if found["run"] is None:
        return tool or found["whole"]
    step = f"call {tool}" if tool else f"ask the user to run {found['whole']}"
    return step[0].upper() + step[1:] if found["run"] == "Run" else step
