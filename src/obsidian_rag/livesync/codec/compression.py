"""The compressed form of chunk data: a marker, then deflated bytes as base64.

Threat: a small chunk may expand to gigabytes. So expansion stops at a limit.
"""

import base64
import zlib

from obsidian_rag.errors import LivesyncUnreadable
from obsidian_rag.livesync.codec.chunk_ids import length16

# More than any device makes: LiveSync's largest pieces have about 6 MB.
EXPANDED_LIMIT_BYTES = 64 << 20

_MARKER = "\x0eLZ\x1d"
_BASE64_MARKER = "~"
_BOM = "\ufeff"
_LEVEL = 9
_RAW_DEFLATE = -zlib.MAX_WBITS


def is_compressed(data: str) -> bool:
    """Whether chunk data is marked as compressed."""
    return data.startswith(_MARKER)


def compress(text: str) -> str:
    """The compressed form of a piece, or the piece itself if that is not longer."""
    if text.startswith(_BOM):
        return text  # LiveSync drops the BOM when it expands such a piece, which loses the file
    raw = _as_base64(text)
    deflated = _deflate(text.encode() if raw is None else raw)
    kind = "" if raw is None else _BASE64_MARKER
    stored = f"{_MARKER}{kind}{base64.b64encode(deflated).decode()}"
    # A piece that looks compressed must be compressed, or it would be expanded.
    return stored if is_compressed(text) or len(stored) < length16(text) else text


def expand(data: str, limit_bytes: int = EXPANDED_LIMIT_BYTES) -> str:
    """The piece in chunk data, compressed or not.

    Raises:
        LivesyncUnreadable: it is damaged, or would exceed the limit.
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
    """The bytes that a text encodes, if encoding them gives the same text again."""
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
