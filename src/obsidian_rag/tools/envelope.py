"""The envelope: the shape of every answer, from every door."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any, TypedDict, get_args

from obsidian_rag.errors import ErrorBody, ObsidianRagError, Status


class Meta(TypedDict):
    """How long an answer took, and which index it is from."""

    query_time_ms: float
    chunks_scanned: int
    index_version: str
    vault_mtime: str | None


class Envelope(TypedDict):
    """Data, an error, or both if the answer is degraded."""

    status: Status
    data: object | None
    error: ErrorBody | None
    meta: Meta


_TEXT = {"type": "string"}
ENVELOPE_SCHEMA: dict[str, object] = {
    "type": "object",
    "description": "Data, or an error, or both when the answer is degraded",
    "properties": {
        "status": {"enum": list(get_args(Status))},
        "data": {"type": ["object", "null"]},
        "error": {
            "type": ["object", "null"],
            "properties": {
                "code": {**_TEXT, "pattern": "^[A-Z_]+$"},
                "message": _TEXT,
                "recoverable": {"type": "boolean"},
                "suggestion": {**_TEXT, "description": "What to do next"},
            },
            "required": list(ErrorBody.__annotations__),
            "additionalProperties": False,
        },
        "meta": {
            "type": "object",
            "properties": {
                "query_time_ms": {"type": "number"},
                "chunks_scanned": {"type": "integer"},
                "index_version": _TEXT,
                "vault_mtime": {"type": ["string", "null"]},
            },
            "required": list(Meta.__annotations__),
            "additionalProperties": False,
        },
    },
    "required": list(Envelope.__annotations__),
    "additionalProperties": False,
}
NO_META = Meta(query_time_ms=0, chunks_scanned=0, index_version="0", vault_mtime=None)


def success(
    data: object,
    meta: Meta = NO_META,
    trouble: ObsidianRagError | None = None,
    status: Status | None = None,
) -> Envelope:
    """An envelope with data; with `trouble` it is degraded, unless `status` is given."""
    return Envelope(
        status=status or ("degraded" if trouble else "healthy"),
        data=data,
        error=trouble.body if trouble else None,
        meta=meta,
    )


def failure(error: ObsidianRagError, meta: Meta = NO_META) -> Envelope:
    """An envelope with an error; `error.status` is the engine's health if that is known."""
    return Envelope(status=error.status, data=None, error=error.body, meta=meta)


def to_json(value: object, names: Mapping[str, str | None] = MappingProxyType({})) -> Any:
    """A value as JSON. Fields of dataclasses are renamed by `names`, or left out for None."""
    if isinstance(value, ObsidianRagError):
        return value.body
    if is_dataclass(value) and not isinstance(value, type):
        shown = ((names.get(one.name, one.name), getattr(value, one.name)) for one in fields(value))
        return {name: to_json(inner, names) for name, inner in shown if name is not None}
    if isinstance(value, Mapping):
        return {str(key): to_json(inner, names) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(inner, names) for inner in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)
