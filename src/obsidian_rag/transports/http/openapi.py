"""The OpenAPI document of the door, generated from the tools' parameter models."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from obsidian_rag import __version__
from obsidian_rag.tools import ENVELOPE_SCHEMA, TOOLS, Tool
from obsidian_rag.transports.http.messages import ERROR_STATUSES, JSON

Document = dict[str, Any]

_SCHEMAS = "#/components/schemas/"
# Statuses of the door itself, at any path: foreign callers, wrong methods, overload, bugs.
_OPEN_STATUSES = frozenset({403, 405, 421, 429, 500})
_DOOR_STATUSES = _OPEN_STATUSES | {401}
_TOOL_STATUSES = _DOOR_STATUSES | ERROR_STATUSES | {400, 404, 408, 413, 415}
_HEADERS = {
    401: {"WWW-Authenticate": {"schema": {"type": "string"}}},
    405: {"Allow": {"schema": {"type": "string"}}},
    429: {"Retry-After": {"schema": {"type": "integer", "minimum": 1}}},
}
_CALLER = {
    "name": "X-Obsidian-Rag-Caller",
    "in": "header",
    "description": "`owner` for the owner of the notes; every other caller is an agent",
    "schema": {"type": "string"},
}
_LAST_EVENT = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The id of the last event seen; remembered later ones come first",
    "schema": {"type": "string", "pattern": "^[0-9]{1,15}$"},
}
_TOOL_LIST: Document = {
    "type": "object",
    "required": ["tools", "version"],
    "properties": {
        "version": {"type": "string"},
        "tools": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "description", "input_schema", "read_only"],
                "properties": {
                    "name": {"type": "string"},
                    "description": {"type": "string"},
                    "input_schema": {"type": "object"},
                    "read_only": {"type": "boolean"},
                },
            },
        },
    },
}
_HEALTH: Document = {
    "type": "object",
    "required": ["status", "version"],
    "additionalProperties": False,
    "properties": {
        "status": {"enum": ["starting", "healthy", "degraded", "unavailable"]},
        "version": {"type": "string"},
    },
}


def tool_list() -> Document:
    """The answer of `GET /tools`."""
    tools = [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.schema,
            "read_only": tool.is_read_only,
        }
        for tool in TOOLS.values()
    ]
    return {"tools": tools, "version": __version__}


def openapi() -> Document:
    """The answer of `GET /openapi.json`: OpenAPI 3.1."""
    components: dict[str, Document] = {
        "Envelope": ENVELOPE_SCHEMA,
        "ToolList": _TOOL_LIST,
        "Health": _HEALTH,
    }
    for name, schema in _params():
        if components.setdefault(name, schema) != schema:
            raise ValueError(f"two different schemas are called {name}")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "obsidian-rag",
            "version": __version__,
            "description": "Ask your notes. Serves this machine only; the port and the token are"
            " in daemon.json in the data folder.",
        },
        "security": [{"token": []}],
        "paths": {**_door_paths(), **{f"/tools/{t.name}": _tool_path(t) for t in TOOLS.values()}},
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _params() -> Iterator[tuple[str, Document]]:
    """The parameter schema of each tool and the schemas it refers to."""
    for tool in TOOLS.values():
        schema = tool.params.model_json_schema(ref_template=f"{_SCHEMAS}{{model}}")
        yield from schema.pop("$defs", {}).items()
        yield tool.params.__name__, schema


def _door_paths() -> Document:
    return {
        "/tools": {
            "get": {
                "operationId": "list_tools",
                "summary": "The tools and their parameters",
                "responses": _responses(_json("ToolList"), _DOOR_STATUSES),
            }
        },
        "/events": {
            "get": {
                "operationId": "listen",
                "summary": "Progress, health and changes as server-sent events; `ready` first",
                "parameters": [_LAST_EVENT],
                "responses": _responses(
                    {"text/event-stream": {"schema": {"type": "string"}}}, _DOOR_STATUSES | {400}
                ),
            }
        },
        "/healthz": {
            "get": {
                "operationId": "health",
                "summary": "Whether the daemon is there, and how it is",
                "security": [],
                "responses": _responses(_json("Health"), _OPEN_STATUSES),
            }
        },
        "/openapi.json": {
            "get": {
                "operationId": "describe",
                "summary": "This document",
                "security": [],
                "responses": _responses({JSON: {"schema": {"type": "object"}}}, _OPEN_STATUSES),
            }
        },
        "/shutdown": {
            "post": {
                "operationId": "stop",
                "summary": "Stop the daemon",
                "responses": _responses(_json("Envelope"), _DOOR_STATUSES, success=202),
            }
        },
    }


def _tool_path(tool: Tool[Any]) -> Document:
    return {
        "post": {
            "operationId": tool.name,
            "summary": tool.name,
            "description": tool.description,
            "parameters": [_CALLER],
            "requestBody": {"content": _json(tool.params.__name__)},
            "responses": _responses(_json("Envelope"), _TOOL_STATUSES),
        }
    }


def _json(schema: str) -> Document:
    return {JSON: {"schema": {"$ref": f"{_SCHEMAS}{schema}"}}}


def _responses(
    content: Mapping[str, object], errors: frozenset[int], success: int = 200
) -> Document:
    found: Document = {str(success): {"description": "The answer", "content": content}}
    for status in sorted(errors):
        found[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "headers": _HEADERS.get(status, {}),
            "content": _json("Envelope"),
        }
    return found
