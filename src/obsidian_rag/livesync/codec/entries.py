"""Read an entry document, checking every field.

Threat: anyone with access to the database may have written it. Nothing in it is trusted before it
is checked, and every defect raises the same kind of error.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from obsidian_rag.errors import LivesyncUnreadable
from obsidian_rag.livesync.codec.encryption import text_bytes
from obsidian_rag.livesync.codec.path_ids import CHUNK_PREFIX, is_text

TEXT, BINARY = "plain", "newnote"
_OLD = "notes"
_INLINE = (None, _OLD)
# The types of documents that are files; very old ones have no type.
FILE_TYPES = (TEXT, BINARY, _OLD)
_MAX_MS = 253_402_300_799_999  # the end of the year 9999: no disk stores later times
_MAX_SIZE_BYTES = 2**53


@dataclass(frozen=True, slots=True)
class Entry:
    """A file's entry, decrypted and checked."""

    id: str
    rev: str
    path: str
    is_text: bool
    ctime_ms: int
    mtime_ms: int
    size: int  # 0 may mean unknown
    children: tuple[str, ...]
    is_deleted: bool
    eden: Mapping[str, str]  # chunks kept inside the entry, by id
    inline: str | None  # the whole content, as very old versions stored it
    conflicts: tuple[str, ...]


def read_entry(document: Mapping[str, object]) -> Entry:
    """The entry in a decrypted document; its id is not checked.

    Raises:
        LivesyncUnreadable: it is malformed.
    """
    path = read_text(document, "path")
    kind = document.get("type")
    is_inline = kind in _INLINE
    if not is_inline and kind not in (TEXT, BINARY):
        raise _malformed_error("type")
    is_deleted = _read_flag(document, "deleted") or _read_flag(document, "_deleted")
    mtime_ms = _read_time(document, "mtime", 0)
    return Entry(
        id=read_text(document, "_id"),
        rev=read_text(document, "_rev") if "_rev" in document else "",
        path=path,
        is_text=kind == TEXT or is_text(path),
        ctime_ms=_read_time(document, "ctime", mtime_ms),
        mtime_ms=mtime_ms,
        size=_read_size(document),
        children=() if is_inline else _read_children(document, is_deleted),
        is_deleted=is_deleted,
        eden=_read_eden(document),
        inline=_read_inline(document, is_deleted) if is_inline else None,
        conflicts=_read_texts(document, "_conflicts"),
    )


def read_text(document: Mapping[str, object], key: str) -> str:
    """A field that must be text that can be encoded.

    Raises:
        LivesyncUnreadable: it is not.
    """
    value = document.get(key)
    if not isinstance(value, str) or not value or "\0" in value:
        raise _malformed_error(key)
    text_bytes(value)
    return value


def _read_texts(document: Mapping[str, object], key: str) -> tuple[str, ...]:
    values = document.get(key)
    if values is None:
        return ()
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise _malformed_error(key)
    text_bytes("".join(values))
    return tuple(values)


def _read_children(document: Mapping[str, object], is_deleted: bool) -> tuple[str, ...]:
    children = _read_texts(document, "children")
    # A child is always a chunk: entries that name entries could be endless.
    if not all(child.startswith(CHUNK_PREFIX) for child in children):
        raise _malformed_error("children")
    if document.get("children") is None and not is_deleted:
        raise _malformed_error("children")
    return children


def _read_inline(document: Mapping[str, object], is_deleted: bool) -> str:
    value = document.get("data")
    if isinstance(value, str):
        return value
    if value is None and not is_deleted:
        raise _malformed_error("data")
    return "".join(_read_texts(document, "data"))


def _read_eden(document: Mapping[str, object]) -> dict[str, str]:
    eden = document.get("eden")
    if eden is None:
        return {}
    if not isinstance(eden, Mapping):
        raise _malformed_error("eden")
    chunks = {}
    for chunk_id, kept in eden.items():
        data = kept.get("data") if isinstance(kept, Mapping) else None
        if not isinstance(data, str):
            raise _malformed_error("eden")
        chunks[chunk_id] = data
    return chunks


def _read_flag(document: Mapping[str, object], key: str) -> bool:
    value = document.get(key)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise _malformed_error(key)


def _read_size(document: Mapping[str, object]) -> int:
    size = _read_number(document, "size", 0)
    if not 0 <= size <= _MAX_SIZE_BYTES:
        raise _malformed_error("size")
    return size


def _read_time(document: Mapping[str, object], key: str, default: int) -> int:
    # Clamp: an impossible time must not lose the file.
    return min(max(_read_number(document, key, default), 0), _MAX_MS)


def _read_number(document: Mapping[str, object], key: str, default: int) -> int:
    value = document.get(key)
    if value is None:
        return default
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    if type(value) is not int:
        raise _malformed_error(key)
    return value


def _malformed_error(key: str) -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"A document of the database is malformed: '{key}' is not what it should be.",
        "Save the file again on a device that has it.",
    )
