"""What each request is answered from; imported with the first one, since it costs a second."""

from collections.abc import Mapping

from mcp_types import CallToolResult, ListResourcesResult, ReadResourceResult, Tool

from obsidian_rag.transports.backend import Backend
from obsidian_rag.transports.mcp.notes import list_resources, read_resource
from obsidian_rag.transports.mcp.offer import offered_tools, result_of


class Answers:
    """The answers that need the engine; any thread may ask."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def tools(self) -> list[Tool]:
        """Every tool there is."""
        return offered_tools()

    def tool(self, name: str, arguments: Mapping[str, object]) -> CallToolResult:
        """What a tool answers; a failure is an answer too."""
        return result_of(self._backend.call(name, arguments))

    def notes(self, cursor: str | None) -> ListResourcesResult:
        """A page of notes: of the daemon while one runs, as with the tools."""
        told = self._backend.ask_daemon("resources/list", {"cursor": cursor} if cursor else {})
        if told is not None:
            return ListResourcesResult.model_validate(told)
        return list_resources(self._backend.engine, cursor, self._backend.caller)

    def note(self, uri: str) -> ReadResourceResult:
        """One note.

        Raises:
            MCPError: there is no such note, or it is not for agents.
        """
        return read_resource(self._backend.call, uri)

    def close(self) -> None:
        """End what was started for the answers."""
        self._backend.close()
