"""An MCP server without a daemon: one client on stdin and stdout, until it disconnects.

Each request opens an engine and closes it again, as a command does: no files are watched, and each
answer uses the current settings.

The event loop only passes messages on. Slow work runs in threads, and heavy modules are imported
with the first request that needs them, so that the client gets its first answer soon.
"""

import functools
import json
import logging
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from obsidian_rag.config import Config
from obsidian_rag.transports.limits import NO_LIMITS, Limits
from obsidian_rag.transports.log import log_to
from obsidian_rag.transports.mcp.handlers import Handlers

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Iterator

    from anyio.abc import ObjectSendStream
    from anyio.streams.memory import MemoryObjectSendStream

    from obsidian_rag.transports.mcp.answers import Answers


Id = int | str | None


def repair_message(problem: Exception) -> JSONRPCMessage | None:
    """Replace characters that cannot be encoded with "?"; None if that is not the problem."""
    line = _line_of(problem)
    if line is None:
        return None
    try:
        found = json.loads(line)
        text = json.dumps(found, ensure_ascii=False).encode(errors="replace")
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except (ValueError, RecursionError):
        return None


def refusal_of(problem: Exception) -> JSONRPCError | None:
    """The error to send for a line that is not a message; None for an empty line."""
    line = _line_of(problem)
    if line is not None and not line.strip():
        return None
    is_json = line is None
    error = (
        ErrorData(code=INVALID_REQUEST, message="The message is not a JSON-RPC request.")
        if is_json
        else ErrorData(code=PARSE_ERROR, message="The message is not valid JSON.")
    )
    return JSONRPCError(jsonrpc="2.0", id=_id_of(problem), error=error)


def _line_of(problem: Exception) -> str | None:
    """The line, if it was not valid JSON."""
    for kind, given in _error_details(problem):
        if kind == "json_invalid":
            return str(given)
    return None


def _id_of(problem: Exception) -> Id:
    for _, given in _error_details(problem):
        if isinstance(given, dict) and isinstance(given.get("id"), int | str):
            found: Id = given["id"]
            return found
    return None


def _error_details(problem: Exception) -> "Iterator[tuple[str, object]]":
    if isinstance(problem, ValidationError):
        for detail in problem.errors(include_url=False, include_context=False):
            yield detail["type"], detail["input"]


_INTERRUPTED = 130
_DRAIN_TIMEOUT_S = 60.0
_CANCELLED = "notifications/cancelled"
_log = logging.getLogger(__name__)


def speak(config: Config, limits: Limits = NO_LIMITS) -> int:
    """Serve one MCP client; returns the exit code when it disconnects."""
    log_to(config.logs / "mcp.log")
    anyio.run(_serve, Handlers(_answers_within(limits)).server())
    return 0


async def _serve(server: Server[Any]) -> None:
    try:
        async with anyio.create_task_group() as group:
            if sys.platform != "win32":
                group.start_soon(_end_on_signal)
            # It reserves stdout: what libraries print goes to stderr.
            async with stdio_server() as (incoming, outgoing):
                passing, readable = anyio.create_memory_object_stream[SessionMessage | Exception]()
                answering, answers = anyio.create_memory_object_stream[SessionMessage]()
                unanswered = _Unanswered()
                group.start_soon(_pass_on, incoming, passing, outgoing.send, unanswered)
                group.start_soon(_pass_back, answers, outgoing, unanswered)
                await server.run(readable, answering, server.create_initialization_options())
            group.cancel_scope.cancel()
    except* (BrokenPipeError, ConnectionResetError):
        _log.info("the client went away before it had its answer")


async def _pass_on(
    incoming: "AsyncIterable[SessionMessage | Exception]",
    passing: "MemoryObjectSendStream[SessionMessage | Exception]",
    reply: "Callable[[SessionMessage], Awaitable[None]]",
    unanswered: "_Unanswered",
) -> None:
    """Pass messages to the server, and answer the lines that it would drop.

    The server drops open requests when its input ends, so its input ends after the last answer.
    """
    async with passing:
        async for item in incoming:
            if not isinstance(item, Exception):
                unanswered.note(item.message)
                await passing.send(item)
            elif (message := repair_message(item)) is not None:
                unanswered.note(message)
                await passing.send(SessionMessage(message))
            elif (refusal := refusal_of(item)) is not None:
                await reply(SessionMessage(refusal))
        with anyio.move_on_after(_DRAIN_TIMEOUT_S):
            await unanswered.wait_until_empty()


async def _pass_back(
    answers: "AsyncIterable[SessionMessage]",
    outgoing: "ObjectSendStream[SessionMessage]",
    unanswered: "_Unanswered",
) -> None:
    """Pass the server's messages to the client."""
    async with outgoing:
        async for item in answers:
            await outgoing.send(item)
            unanswered.settle(item.message)


class _Unanswered:
    """The ids of requests without an answer yet."""

    def __init__(self) -> None:
        self._ids: set[object] = set()
        self._changed = anyio.Event()

    def note(self, message: JSONRPCMessage) -> None:
        """Record a message from the client: a request or a cancellation."""
        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == _CANCELLED:
            self._remove((message.params or {}).get("requestId"))

    def settle(self, message: JSONRPCMessage) -> None:
        """Record a message to the client, which may be an answer."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._remove(message.id)

    async def wait_until_empty(self) -> None:
        """Wait for the last answer."""
        while self._ids:
            self._changed = anyio.Event()
            await self._changed.wait()

    def _remove(self, request_id: object) -> None:
        self._ids.discard(request_id)
        self._changed.set()


async def _end_on_signal() -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            logging.shutdown()
            # A thread is blocked reading stdin and cannot be stopped.
            os._exit(0 if number == signal.SIGTERM else _INTERRUPTED)


def _answers_within(limits: Limits) -> "Callable[[Any], Answers]":
    """Create the answers with the first request: their imports are slow, the greeting's are not."""
    making = threading.Lock()

    @functools.cache
    def create() -> "Answers":
        from obsidian_rag.transports.mcp.answers import Answers, open_engine  # noqa: PLC0415

        return Answers(open_engine, limits.caller())

    def answers(_: Any) -> "Answers":
        with making:
            return create()

    return answers
