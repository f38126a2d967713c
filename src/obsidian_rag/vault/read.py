"""Read a file consistently: the bytes of a single moment, and for a note its text.

Reading never changes modification times, and access times only where O_NOATIME is not possible. A
file that cannot be read as a note is an expected outcome, returned with its reason.
"""

import codecs
import os
import re
from dataclasses import dataclass
from pathlib import Path

import xxhash

from obsidian_rag.errors import IndexerFailed, NoteChanged, SecurityViolation
from obsidian_rag.vault.boundary import NotANote, check_relative, open_inside
from obsidian_rag.vault.walk import FileEntry, SkippedFile, file_entry

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Bytes that occur in no text of any code page: they distinguish a picture from a note.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MAX_CONTROL_SHARE = 0.001
_NON_ASCII_RUN = re.compile(rb"[\x80-\xff]+")
_DECLARED = re.compile(
    rb"\A---[ \t]*\r?\n(?:(?!---).*\n)*?(?:encoding|charset)[ \t]*:[ \t]*[\"']?([\w.:-]+)", re.I
)
_DECLARATION_BYTES = 4000
# The order of guesses where several encodings fit: the more common first.
_LATIN = ("cp1252", "cp1250", "cp1254", "cp1257", "iso8859_2", "cp850", "mac_roman")
_EAST_ASIAN = ("cp932", "gb18030", "euc_jp", "big5", "cp949")
_OTHER_SCRIPTS = ("cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp874")
_LATIN_RUN_BYTES = 2.5
_MIN_LETTERS = 3
_MAX_MESS = 0.35
_NAMES = {
    "cp932": "Shift_JIS",
    "cp949": "EUC-KR",
    "cp874": "windows-874",
    "cp850": "IBM850",
    "mac_roman": "macintosh",
    "iso8859_2": "ISO-8859-2",
    "koi8_r": "KOI8-R",
    "euc_jp": "EUC-JP",
    "gb18030": "GB18030",
    "big5": "Big5",
}
# Python lists these as text encodings, but no note is written in them.
_UNUSED_ENCODINGS = (
    "unicode_escape",
    "raw_unicode_escape",
    "idna",
    "punycode",
    "undefined",
    "utf_7",
)
_SAMPLE_BYTES = 100_000
_ATTEMPTS = 3
_MAX_IGNORE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class NoteFile:
    """A note as read: its bytes, its text without a byte order mark, and its file entry.

    `encoding` is None for UTF-8.
    """

    rel_path: str
    data: bytes
    text: str
    entry: FileEntry
    encoding: str | None = None


def content_hash(data: bytes) -> str:
    """The identity of a note's content."""
    return xxhash.xxh3_128_hexdigest(data)


def read_note(root: Path, rel: str, max_bytes: int) -> NoteFile | SkippedFile:
    """Read a note, or return why it is skipped.

    Raises:
        SecurityViolation: the path leaves the vault.
        NoteChanged: another program keeps writing to it.
    """
    is_linked = os.path.islink(os.path.join(root, rel))  # noqa: PTH114, PTH118  (called often)
    try:
        data, entry = read_steadily(root, rel, max_bytes, is_linked=is_linked)
    except NotANote as error:
        return SkippedFile(rel, error.reason)
    except (FileNotFoundError, NotADirectoryError):
        return SkippedFile(rel, "missing")
    except OSError:
        return SkippedFile(rel, "unreadable")
    found = decode(data)
    if found is None:
        return SkippedFile(rel, "binary" if is_binary(data) else "not_utf8")
    return NoteFile(rel, data, found.text, entry, found.encoding)


def read_steadily(
    root: Path, rel: str, max_bytes: int | None = None, *, is_linked: bool = False
) -> tuple[bytes, FileEntry]:
    """A file's bytes at a single moment, and its entry at that moment.

    Raises:
        SecurityViolation: the path leaves the vault.
        NotANote: it is not a regular file, its content is not on this disk, or it is too large.
        OSError: it is missing or unreadable.
        NoteChanged: another program keeps writing to it.
    """
    for _ in range(_ATTEMPTS):
        with open_inside(root, rel) as stream:
            before = os.fstat(stream.fileno())
            if max_bytes is not None and before.st_size > max_bytes:
                raise NotANote("too_large")
            data = stream.read(-1 if max_bytes is None else max_bytes + 1)
            after = os.fstat(stream.fileno())
        entry = file_entry(rel, before, is_linked)
        if entry == file_entry(rel, after, is_linked) and len(data) == before.st_size:
            return data, entry
    raise NoteChanged(
        f"'{rel}' is being written to.", "Try again when the other program has finished."
    )


def read_ignore_file(root: Path, rel: str) -> str | None:
    """The text of an ignore file, which may be hidden (`.gitignore`); None if there is none.

    Raises:
        IndexerFailed: it exists, but cannot be read.
    """
    try:
        with open_inside(root, check_relative(rel)) as stream:
            data = stream.read(_MAX_IGNORE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (NotANote, SecurityViolation, OSError) as error:
        raise _unreadable(rel) from error
    if len(data) > _MAX_IGNORE_BYTES:
        raise _unreadable(rel)
    return data.decode("utf-8", "replace")


def _unreadable(rel: str) -> IndexerFailed:
    return IndexerFailed(
        f"The ignore file '{rel}' cannot be read.",
        "Make it a plain text file inside the vault that this user can read.",
    )


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text of a note without a byte order mark; `encoding` is None for UTF-8."""

    text: str
    encoding: str | None = None


def decode(data: bytes) -> Decoded | None:
    """The text; None if the data is binary or its encoding cannot be detected."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _decode_as(data, encoding, encoding.upper())
    if b"\0" not in data:
        try:
            return Decoded(data.removeprefix(codecs.BOM_UTF8).decode("utf-8"))
        except UnicodeDecodeError:
            pass
    elif (wide := _decode_unmarked_utf16(data)) is not None:
        return wide
    return None if is_binary(data) else _decode_declared(data) or _decode_guessed(data)


def is_binary(data: bytes) -> bool:
    """Whether these bytes cannot be text in any code page."""
    return len(_CONTROL.findall(data)) > _MAX_CONTROL_SHARE * len(data)


def _decode_unmarked_utf16(data: bytes) -> Decoded | None:
    """UTF-16 without a byte order mark, as old Windows programs write it."""
    if len(data) % 2:
        return None
    for zeros, others, encoding in (
        (data[1::2], data[::2], "utf-16-le"),
        (data[::2], data[1::2], "utf-16-be"),
    ):
        if 2 * zeros.count(0) >= len(zeros) and 0 not in others:
            found = _decode_as(data, encoding, encoding.upper())
            if found is not None and not _CONTROL.search(found.text.encode()):
                return found
    return None


def _decode_declared(data: bytes) -> Decoded | None:
    """Decode as the frontmatter declares: `encoding: shift_jis`."""
    found = _DECLARED.match(data[:_DECLARATION_BYTES])
    if found is None:
        return None
    name = found[1].decode("ascii", "replace")
    try:
        known = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    is_text = (
        getattr(known, "_is_text_encoding", True)
        and known.name.replace("-", "_") not in _UNUSED_ENCODINGS
    )
    return _decode_as(data, known.name, name) if is_text else None


def _decode_guessed(data: bytes) -> Decoded | None:
    from charset_normalizer import from_bytes

    runs = _NON_ASCII_RUN.findall(data[:_SAMPLE_BYTES])
    is_latin = sum(map(len, runs)) < _LATIN_RUN_BYTES * len(runs)
    order = (
        (*_LATIN, *_EAST_ASIAN, *_OTHER_SCRIPTS)
        if is_latin
        else (*_EAST_ASIAN, *_OTHER_SCRIPTS, *_LATIN)
    )
    found = from_bytes(data, cp_isolation=list(order), threshold=_MAX_MESS)
    guesses = []
    for match in found:
        # If several encodings give the same text, the match is named after any of them.
        name = min((one for one in match.could_be_from_charset if one in order), key=order.index)
        is_likely = (name in _LATIN) == is_latin
        mess, sense = round(match.chaos, 2), round(match.coherence, 1)
        guesses.append((not is_likely, mess, -sense, order.index(name), name))
    for *_, name in sorted(guesses):
        decoded = _decode_as(data, name, _NAMES.get(name) or name.replace("cp", "windows-"))
        if decoded is not None:
            return decoded if sum(map(str.isalpha, decoded.text)) >= _MIN_LETTERS else None
    return None


def _decode_as(data: bytes, encoding: str, name: str) -> Decoded | None:
    try:
        text = data.decode(encoding)
    except UnicodeError:
        return None
    return Decoded(text.removeprefix("\ufeff"), name) if "\0" not in text else None
