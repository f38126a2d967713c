"""What callers may do that are limited to some vaults and folders, or to reading.

Threat: an agent that works for one project learns about the user's other notes from counts, times,
the text of a failure, or a job that it starts for all vaults. So a limited caller can neither see
nor change anything that concerns the installation as a whole.
"""

from dataclasses import replace

from obsidian_rag.engine import Engine
from obsidian_rag.errors import (
    Busy,
    InvalidArgument,
    NoteChanged,
    NotFound,
    ReadOnly,
    SecurityViolation,
    SensitiveFiltered,
)
from obsidian_rag.tools.envelope import NO_META, Envelope, Meta
from obsidian_rag.tools.guard import Caller

# Errors of the call itself, which name only what the caller already knows.
_CALL_ERRORS = {
    kind.code
    for kind in (
        Busy,
        InvalidArgument,
        NoteChanged,
        NotFound,
        ReadOnly,
        SecurityViolation,
        SensitiveFiltered,
    )
}
_ASK_THE_USER = "Ask the user to do it."


def check_may_call(tool: str, caller: Caller, is_read_only: bool, is_of_installation: bool) -> None:
    """Refuse a tool that the caller may not use, whatever its arguments.

    Raises:
        ReadOnly: the tool would change something and the caller may only read, or it would change
            the whole installation and the caller is limited to a part.
        NotFound: the tool shows the whole installation, and the caller is limited to a part.
    """
    if caller.is_read_only and not is_read_only:
        raise ReadOnly(f"{tool} changes something, and you may only read.", _ASK_THE_USER)
    if caller.is_limited and is_of_installation:
        refused = NotFound if is_read_only else ReadOnly
        raise refused(f"{tool} is about all notes, and you may see only some.", _ASK_THE_USER)


def with_known_vaults(engine: Engine, caller: Caller) -> Caller:
    """The caller with a scope of link ids.

    Raises:
        NotFound: none of its vaults is linked, or they no longer are.
    """
    if not caller.is_limited:
        return caller
    names = {vault.link_id: vault.name for vault in engine.vaults}
    # A folder without a vault belongs to the primary vault.
    scope = (
        caller.scope
        if caller.scope.vaults is not None
        else replace(caller.scope, vaults=(engine.vaults.primary.link_id,))
    )
    scope = scope.named(names)
    if not scope.vaults:
        raise NotFound("There is no vault that you may see.", "Ask the user for access.")
    return replace(caller, scope=scope)


def without_installation(envelope: Envelope) -> Envelope:
    """Remove what an answer says about the whole installation: when it changed, what fails."""
    error, asked = envelope["error"], envelope["meta"]
    meta = Meta(
        query_time_ms=asked["query_time_ms"],
        chunks_scanned=asked["chunks_scanned"],
        index_version=NO_META["index_version"],
        vault_mtime=NO_META["vault_mtime"],
    )
    if error is not None and error["code"] not in _CALL_ERRORS:
        error = {
            **error,
            "message": f"Search is {envelope['status']} ({error['code']}).",
            "suggestion": "Run `obsidian-rag status`.",
        }
    return {**envelope, "error": error, "meta": meta}
