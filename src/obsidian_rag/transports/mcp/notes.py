"""Notes as MCP resources: listed as the guard allows, in pages, and read through the tool.

A refusal is a protocol error whose `data` has our code, so that a program can tell why.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from mcp_types import ListResourcesResult, ReadResourceResult, Resource, TextResourceContents

from obsidian_rag.engine import Engine
from obsidian_rag.errors import InvalidArgument
from obsidian_rag.tools import Caller, Envelope, listed_notes, media_type
from obsidian_rag.transports.mcp.refusal import refused
from obsidian_rag.transports.mcp.template import PREFIX

PAGE = 100
_MOST_CHARS = 100_000
_FACTS = ("title", "tags", "date", "sensitive_detected", "sensitive_categories", "untrusted")

Call = Callable[[str, Mapping[str, object]], Envelope]


def list_resources(engine: Engine, cursor: str | None, caller: Caller) -> ListResourcesResult:
    """A page of the notes that the agent may know of.

    Raises:
        InvalidArgument: the cursor is none of ours.
        IndexCorrupted: the index cannot be read.
    """
    notes, last = listed_notes(engine, _path_after(cursor), PAGE, caller)
    shown = [_resource(path, name) for path, name in notes]
    return ListResourcesResult(resources=shown, next_cursor=_cursor(last) if last else None)


def read_resource(call: Call, uri: str) -> ReadResourceResult:
    """The text of a note, if the guard lets it pass.

    Raises:
        InvalidArgument: the address is none of a note.
        MCPError: there is no such note, or it is not for agents.
    """
    if not uri.startswith(PREFIX):
        raise InvalidArgument(f"'{uri[:200]}' is not a note.", f"Notes are at {PREFIX}<path>.")
    arguments = {"note": unquote(uri.removeprefix(PREFIX)), "max_chars": _MOST_CHARS}
    envelope = call("obsidian_rag_read", arguments)
    if envelope["data"] is None and envelope["error"] is not None:
        raise refused(envelope["error"], uri)
    return ReadResourceResult(contents=_contents(uri, envelope["data"]))


def _contents(uri: str, note: Any) -> list[TextResourceContents]:
    text = TextResourceContents(
        uri=uri,
        mime_type=media_type(note["source_file"]),
        text=note["text"],
        _meta={name: note[name] for name in _FACTS},
    )
    if not note["is_truncated"]:
        return [text]
    # A model sees contents only: a note that silently ends would be taken for the whole.
    rest = (
        f"[obsidian-rag: this is the beginning, up to line {note['end_line']} of"
        f" {note['total_lines']}; obsidian_rag_read with start_line reads on]"
    )
    return [text, TextResourceContents(uri=uri, mime_type="text/plain", text=rest)]


def _resource(path: str, name: str) -> Resource:
    return Resource(
        name=name,
        uri=PREFIX + quote(path),
        description=path,
        mime_type=media_type(path),
    )


def _cursor(path: str) -> str:
    return base64.urlsafe_b64encode(path.encode()).decode()


def _path_after(cursor: str | None) -> str:
    try:
        return base64.urlsafe_b64decode(cursor or "").decode()
    except (binascii.Error, ValueError):
        raise InvalidArgument(
            "The cursor is not one of this server's.", "Start without a cursor."
        ) from None
