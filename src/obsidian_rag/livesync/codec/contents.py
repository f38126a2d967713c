"""Convert a file's bytes to and from the pieces of text in chunks."""

import base64
from collections.abc import Callable

from obsidian_rag.errors import LivesyncUnreadable
from obsidian_rag.livesync.codec.encryption import from_base64, text_bytes
from obsidian_rag.livesync.codec.entries import Entry
from obsidian_rag.livesync.codec.path_ids import is_text
from obsidian_rag.livesync.codec.splitter import split
from obsidian_rag.livesync.codec.tweaks import Tweaks

_BOM = b"\xef\xbb\xbf"
# Limit for entries of unknown size: size 0 may also be a file that is not empty.
LARGEST_UNTOLD = 256 * 2**20
_OBSOLETE_PREFIX = "%"
_OBSOLETE_BYTES = {chr(0xC0 + byte): byte for byte in range(256)} | {
    chr(code): code for code in range(0x26, 0x7F) if chr(code) != ":"
}


def pieces_of(path: str, data: bytes, tweaks: Tweaks) -> list[str]:
    """The pieces of a file in order, before compression and encryption.

    Raises:
        LivesyncUnreadable: LiveSync stores such files as UTF-8 text, and this one is not.
    """
    is_text_file = is_text(path)
    if is_text_file:
        _check_utf8(path, data)
    parts = split(
        data,
        path,
        is_text=is_text_file,
        custom_chunk_size=tweaks.custom_chunk_size,
        minimum_chunk_size=tweaks.minimum_chunk_size,
    )
    if is_text_file:
        return [part.decode("utf-8") for part in parts]
    return [base64.b64encode(part).decode("ascii") for part in parts]


def join_pieces(entry: Entry, piece_of: Callable[[str], str]) -> bytes:
    """The bytes of a file; `piece_of` returns a piece by its id.

    Raises:
        LivesyncUnreadable: the pieces do not make up the file that the entry describes.
    """
    data = _join(entry, piece_of) if entry.inline is None else _decode_inline(entry)
    if entry.size in (0, len(data)):
        return data
    # Some versions of LiveSync drop a byte order mark but still count it.
    if entry.is_text and entry.size == len(data) + len(_BOM) and not data.startswith(_BOM):
        return data
    raise _wrong_size_error(entry)


def _join(entry: Entry, piece_of: Callable[[str], str]) -> bytes:
    """Join the pieces, and stop at the size limit: a chunk may repeat very often."""
    limit = entry.size or LARGEST_UNTOLD
    known: dict[str, bytes] = {}
    parts: list[bytes] = []
    total = 0
    decode: Callable[[str], bytes] | None = None
    for child in entry.children:
        if child not in known:
            piece = piece_of(child)
            decode = decode or _decoder(entry, piece)
            known[child] = decode(piece)
        parts.append(known[child])
        total += len(known[child])
        if total > limit:
            raise _wrong_size_error(entry)
    return b"".join(parts)


def _decode_inline(entry: Entry) -> bytes:
    assert entry.inline is not None
    return _decoder(entry, entry.inline)(entry.inline)


def _decoder(entry: Entry, first_piece: str) -> Callable[[str], bytes]:
    if entry.is_text:
        return text_bytes
    return _decode_obsolete if first_piece.startswith(_OBSOLETE_PREFIX) else from_base64


def _decode_obsolete(piece: str) -> bytes:
    """Decode the form before base64: one character per byte, unsafe ones shifted."""
    try:
        return bytes(_OBSOLETE_BYTES[letter] for letter in piece.removeprefix(_OBSOLETE_PREFIX))
    except KeyError:
        raise LivesyncUnreadable("A piece of a file is in a form we do not know.") from None


def _check_utf8(path: str, data: bytes) -> None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        raise LivesyncUnreadable(
            f"{path!r} is not UTF-8 text, and LiveSync cannot keep it as anything else.",
            "Save it as UTF-8.",
        ) from None


def _wrong_size_error(entry: Entry) -> LivesyncUnreadable:
    return LivesyncUnreadable(
        f"What the database holds of {entry.path!r} has not the size it should have.",
        "Save the file again on a device that has it.",
    )
