"""From the bytes of a note to its text: UTF-8, what the note says of itself, or a guess.

Guessing is the last resort and depends on nothing but the bytes: the same note is always read in
the same way. Old notes are mostly in the code page of Western Windows, so that one has the benefit
of the doubt where high bytes stand alone between letters.
"""

import codecs
import re
from dataclasses import dataclass

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Bytes that stand in no text of any code page: they tell a picture from a note.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROL_SHARE = 0.001
_HIGH = re.compile(rb"[\x80-\xff]+")
_DECLARED = re.compile(
    rb"\A---[ \t]*\r?\n(?:(?!---).*\n)*?(?:encoding|charset)[ \t]*:[ \t]*[\"']?([\w.:-]+)", re.I
)
_DECLARED_BYTES = 4000
# In what order guesses are made where a text could be several: the more common first.
_LATIN = ("cp1252", "cp1250", "cp1254", "cp1257", "iso8859_2", "cp850", "mac_roman")
_WIDE = ("cp932", "gb18030", "euc_jp", "big5", "cp949")
_OTHERS = ("cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp874")
_ENOUGH_IN_A_RUN = 2.5
_FEWEST_LETTERS = 3
_MESS_ALLOWED = 0.35
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
# What Python calls encodings of text, but nobody writes notes in.
_NEVER = ("unicode_escape", "raw_unicode_escape", "idna", "punycode", "undefined", "utf_7")
_SAMPLE_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text of a note without a byte order mark; `encoding` is None for UTF-8."""

    text: str
    encoding: str | None = None


def decode(data: bytes) -> Decoded | None:
    """The text; None if there is none, or no encoding can be told."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _as(data, encoding, encoding.upper())
    if b"\0" not in data:
        try:
            return Decoded(data.removeprefix(codecs.BOM_UTF8).decode("utf-8"))
        except UnicodeDecodeError:
            pass
    elif (wide := _unmarked_utf16(data)) is not None:
        return wide
    return None if is_binary(data) else _declared(data) or _guessed(data)


def is_binary(data: bytes) -> bool:
    """Whether these bytes are no text in any code page."""
    return len(_CONTROL.findall(data)) > _MOST_CONTROL_SHARE * len(data)


def _unmarked_utf16(data: bytes) -> Decoded | None:
    """Text whose every other byte is mostly zero: what old Windows programs called Unicode."""
    if len(data) % 2:
        return None
    for zeros, others, encoding in (
        (data[1::2], data[::2], "utf-16-le"),
        (data[::2], data[1::2], "utf-16-be"),
    ):
        if 2 * zeros.count(0) >= len(zeros) and 0 not in others:
            found = _as(data, encoding, encoding.upper())
            if found is not None and not _CONTROL.search(found.text.encode()):
                return found
    return None


def _declared(data: bytes) -> Decoded | None:
    """As the frontmatter says: `encoding: shift_jis`."""
    found = _DECLARED.match(data[:_DECLARED_BYTES])
    if found is None:
        return None
    name = found[1].decode("ascii", "replace")
    try:
        known = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    is_text = (
        getattr(known, "_is_text_encoding", True) and known.name.replace("-", "_") not in _NEVER
    )
    return _as(data, known.name, name) if is_text else None


def _guessed(data: bytes) -> Decoded | None:
    from charset_normalizer import from_bytes

    runs = _HIGH.findall(data[:_SAMPLE_BYTES])
    is_latin = sum(map(len, runs)) < _ENOUGH_IN_A_RUN * len(runs)
    order = (*_LATIN, *_WIDE, *_OTHERS) if is_latin else (*_WIDE, *_OTHERS, *_LATIN)
    found = from_bytes(data, cp_isolation=list(order), threshold=_MESS_ALLOWED)
    guesses = []
    for match in found:
        # Where several give the same text, the match goes by the name of any of them.
        name = min((one for one in match.could_be_from_charset if one in order), key=order.index)
        is_likely = (name in _LATIN) == is_latin
        mess, sense = round(match.chaos, 2), round(match.coherence, 1)
        guesses.append((not is_likely, mess, -sense, order.index(name), name))
    for *_, name in sorted(guesses):
        told = _as(data, name, _NAMES.get(name) or name.replace("cp", "windows-"))
        if told is not None:
            return told if sum(map(str.isalpha, told.text)) >= _FEWEST_LETTERS else None
    return None


def _as(data: bytes, encoding: str, name: str) -> Decoded | None:
    try:
        text = data.decode(encoding)
    except UnicodeError:
        return None
    return Decoded(text.removeprefix("\ufeff"), name) if "\0" not in text else None
