"""The server itself: one client on stdin and stdout, until it goes or we are told to end.

The event loop only passes messages on. Everything that could take a while runs in a thread, and
nothing heavy is imported before a request needs it, so that a client gets its first answer soon.
"""

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

from obsidian_rag.config import Config
from obsidian_rag.transports.limits import NO_LIMITS, Limits
from obsidian_rag.transports.log import log_to
from obsidian_rag.transports.mcp.handlers import Handlers
from obsidian_rag.transports.mcp.malformed import mended, refusal_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable

    from anyio.streams.memory import MemoryObjectSendStream

    from obsidian_rag.transports.mcp.answers import Answers

_INTERRUPTED = 130
_log = logging.getLogger(__name__)


def speak(config: Config, limits: Limits = NO_LIMITS) -> int:
    """Serve one MCP client; returns the exit code once its end of the line is closed."""
    log_to(config.logs / "mcp.log")
    door = _Door(config, limits)
    try:
        anyio.run(_serve, door)
    finally:
        door.close()
    return 0


async def _serve(door: "_Door") -> None:
    server = door.server()
    try:
        async with anyio.create_task_group() as group:
            if sys.platform != "win32":
                group.start_soon(_end_on_signal, door)
            # It keeps stdout to itself: what libraries print goes to stderr.
            async with stdio_server() as (incoming, outgoing):
                passing, readable = anyio.create_memory_object_stream[SessionMessage | Exception]()
                group.start_soon(_pass_on, incoming, passing, outgoing.send)
                await server.run(readable, outgoing, server.create_initialization_options())
            group.cancel_scope.cancel()
    except* (BrokenPipeError, ConnectionResetError):
        _log.info("the client went away before it had its answer")


async def _pass_on(
    incoming: "AsyncIterable[SessionMessage | Exception]",
    passing: "MemoryObjectSendStream[SessionMessage | Exception]",
    reply: "Callable[[SessionMessage], Awaitable[None]]",
) -> None:
    """Hand messages to the server; answer the lines that it would drop."""
    async with passing:
        async for item in incoming:
            if not isinstance(item, Exception):
                await passing.send(item)
            elif (message := mended(item)) is not None:
                await passing.send(SessionMessage(message))
            elif (refused := refusal_of(item)) is not None:
                await reply(SessionMessage(refused))


async def _end_on_signal(door: "_Door") -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            await anyio.to_thread.run_sync(door.close)
            logging.shutdown()
            # A thread waits for the next line of stdin and cannot be told to stop.
            os._exit(0 if number == signal.SIGTERM else _INTERRUPTED)


class _Door:
    """The answers for the one client, made with its first request."""

    def __init__(self, config: Config, limits: Limits) -> None:
        self._config = config
        self._limits = limits
        self._lock = threading.Lock()
        self._made: Answers | None = None

    def server(self) -> Server[Any]:
        """The server with all that it answers."""
        return Handlers(lambda _: self._answers()).server()

    def close(self) -> None:
        """End what was started for the answers; nothing if nothing was asked."""
        with self._lock:
            if self._made is not None:
                self._made.close()

    def _answers(self) -> "Answers":
        with self._lock:
            if self._made is None:
                # Heavy, and not needed for the first answer that a client waits for.
                from obsidian_rag.transports.backend import ResidentBackend  # noqa: PLC0415
                from obsidian_rag.transports.mcp.answers import Answers  # noqa: PLC0415

                self._made = Answers(ResidentBackend(self._config, self._limits))
            return self._made
