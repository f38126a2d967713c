"""The compressed form of chunk data: a marker, then deflated bytes as base64.

Threat: a small chunk may claim to be gigabytes. What is expanded stops at a limit.
"""

import base64
import zlib

from obsidian_rag.errors import LivesyncUnreadable
from obsidian_rag.livesync.codec.chunk_ids import length16

# More than any device cuts: the largest pieces LiveSync knows have some 6 MB.
EXPANDED_LIMIT_BYTES = 64 << 20

_MARKER = "\x0eLZ\x1d"
_BASE64_MARKER = "~"
_BOM = "\ufeff"
_LEVEL = 9
_RAW_DEFLATE = -zlib.MAX_WBITS


def is_compressed(data: str) -> bool:
    """Whether chunk data says that it is compressed."""
    return data.startswith(_MARKER)


def compress(text: str) -> str:
    """The compressed form of a piece, or the piece itself when that is not longer."""
    if text.startswith(_BOM):
        return text  # LiveSync loses the mark when it expands such a piece, and then the file
    raw = _as_base64(text)
    deflated = _deflate(text.encode() if raw is None else raw)
    kind = "" if raw is None else _BASE64_MARKER
    stored = f"{_MARKER}{kind}{base64.b64encode(deflated).decode()}"
    # A piece that looks compressed would be taken for it, so it must be.
    return stored if is_compressed(text) or len(stored) < length16(text) else text


def expand(data: str, limit_bytes: int = EXPANDED_LIMIT_BYTES) -> str:
    """The piece that chunk data stands for, compressed or not.

    Raises:
        LivesyncUnreadable: it is damaged, or would grow beyond the limit.
    """
    if not is_compressed(data):
        return data
    body = data.removeprefix(_MARKER)
    try:
        if body.startswith(_BASE64_MARKER):
            return base64.b64encode(_inflate(body[1:], limit_bytes)).decode()
        return _inflate(body, limit_bytes).decode()
    except (ValueError, zlib.error) as error:
        raise LivesyncUnreadable(
            f"A compressed chunk is damaged ({error}).",
            "Save the file again on a device that has it whole.",
        ) from error


def _as_base64(text: str) -> bytes | None:
    """The bytes a text encodes, if encoding them again gives the same text."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return raw if base64.b64encode(raw).decode() == text else None


def _deflate(raw: bytes) -> bytes:
    deflater = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW_DEFLATE)
    return deflater.compress(raw) + deflater.flush()


def _inflate(encoded: str, limit_bytes: int) -> bytes:
    inflater = zlib.decompressobj(_RAW_DEFLATE)
    raw = inflater.decompress(base64.b64decode(encoded, validate=True), limit_bytes + 1)
    if len(raw) > limit_bytes:
        raise LivesyncUnreadable(
            f"A compressed chunk would grow beyond {limit_bytes} bytes.",
            "Find out which device wrote it; no LiveSync device makes such chunks.",
        )
    if not inflater.eof:
        raise ValueError("it ends too early")
    return raw
