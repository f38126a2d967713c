"""Answers to MCP requests; imported with the first one, because the import takes a second."""

import base64
import binascii
import contextlib
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import quote, unquote

from mcp_types import (
    CallToolResult,
    ListResourcesResult,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from obsidian_rag.config import load
from obsidian_rag.engine import Engine
from obsidian_rag.errors import InvalidArgument, ObsidianRagError
from obsidian_rag.tools import (
    TOOLS,
    Caller,
    Envelope,
    call,
    failure,
    for_agents,
    listed_notes,
    media_type,
)
from obsidian_rag.tools import Tool as OwnTool
from obsidian_rag.transports.mcp.handlers import PREFIX, to_mcp_error

PAGE = 100
_MAX_CHARS = 100_000
_FACTS = ("title", "tags", "date", "sensitive_detected", "sensitive_categories", "untrusted")

Call = Callable[[str, Mapping[str, object]], Envelope]


def list_resources(engine: Engine, cursor: str | None, caller: Caller) -> ListResourcesResult:
    """List a page of the notes that the agent may see.

    Raises:
        InvalidArgument: the cursor is invalid.
        IndexCorrupted: the index cannot be read.
    """
    notes, last = listed_notes(engine, _path_after(cursor), PAGE, caller)
    shown = [_resource(path, name) for path, name in notes]
    return ListResourcesResult(resources=shown, next_cursor=_cursor(last) if last else None)


def read_resource(call: Call, uri: str) -> ReadResourceResult:
    """Read a note, if the guard allows it.

    Raises:
        InvalidArgument: the URI is not that of a note.
        MCPError: there is no such note, or it is not for agents.
    """
    if not uri.startswith(PREFIX):
        raise InvalidArgument(f"'{uri[:200]}' is not a note.", f"Notes are at {PREFIX}<path>.")
    arguments = {"note": unquote(uri.removeprefix(PREFIX)), "max_chars": _MAX_CHARS}
    envelope = call("obsidian_rag_read", arguments)
    if envelope["data"] is None and envelope["error"] is not None:
        raise to_mcp_error(envelope["error"], uri)
    return ReadResourceResult(contents=_to_contents(uri, envelope["data"]))


def _to_contents(uri: str, note: Any) -> list[TextResourceContents]:
    text = TextResourceContents(
        uri=uri,
        mime_type=media_type(note["source_file"]),
        text=note["text"],
        _meta={name: note[name] for name in _FACTS},
    )
    if not note["is_truncated"]:
        return [text]
    # A model sees only the contents: it would take a silently truncated note for the whole.
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


# Opens an engine for one answer: the daemon's, which stays open, or a new one.
OpenEngine = Callable[[], AbstractContextManager[Engine]]


def open_engine() -> AbstractContextManager[Engine]:
    """Open an engine with the current settings, as a command does.

    Raises:
        ConfigInvalid: the settings cannot be used.
    """
    return contextlib.closing(Engine(load()))


class Answers:
    """Answers one caller's requests that need an engine; thread-safe."""

    def __init__(self, open_engine: OpenEngine, caller: Caller) -> None:
        self._open_engine = open_engine
        self._caller = caller

    def tools(self) -> list[Tool]:
        """List all tools."""
        return [_describe(tool) for tool in TOOLS.values()]

    def tool(self, name: str, arguments: Mapping[str, object]) -> CallToolResult:
        """Call a tool; a failure is a result too."""
        return _result(self._ask(name, arguments))

    def notes(self, cursor: str | None) -> ListResourcesResult:
        """List a page of notes."""
        with self._open_engine() as engine:
            return list_resources(engine, cursor, self._caller)

    def note(self, uri: str) -> ReadResourceResult:
        """Read one note.

        Raises:
            MCPError: there is no such note, or it is not for agents.
        """
        return read_resource(self._ask, uri)

    def _ask(self, tool: str, arguments: Mapping[str, object]) -> Envelope:
        """Call a tool. The answer is always an envelope, also after a failure."""
        try:
            with self._open_engine() as engine:
                return call(engine, tool, arguments, self._caller)
        except ObsidianRagError as error:
            return for_agents(failure(error))


def _result(envelope: Envelope) -> CallToolResult:
    """An envelope as structured content, and as the same JSON in text for models."""
    # A file name may contain what UTF-8 cannot encode; such characters become "?".
    plain = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))
    text = plain.encode(errors="replace").decode()
    return CallToolResult(
        content=[TextContent(text=text)],
        structured_content=json.loads(text),
        is_error=envelope["data"] is None,
    )


def _describe(tool: OwnTool[Any]) -> Tool:
    """Describe a tool for MCP; without output schema and title, which would make the list long."""
    return Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        annotations=ToolAnnotations(
            read_only_hint=tool.is_read_only,
            destructive_hint=None if tool.is_read_only else tool.is_destructive,
            # A repeated call changes nothing more.
            idempotent_hint=None if tool.is_read_only else True,
            open_world_hint=False,
        ),
    )
