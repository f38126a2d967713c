"""Characters nobody sees: dropped, so that no text can hide in or from a note.

Control, zero-width, bidi-override, tag and variation characters carry hidden instructions and
split words that a guard looks for. Joiners stay where a script or an emoji needs them.
"""

import re

_ASCII_CONTROLS = bytes([*range(9), *range(11, 13), *range(14, 32), 127])
_SPACING = "[\x0b\x0c\x1c-\x1f\x85\u2028\u2029]"
_HIDDEN = (
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0d\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]+"
)
# Indic, Persian and emoji sequences; between Latin letters a joiner only splits a word.
_JOINABLE = "\u0590-\u1fff\u2070-\u2fff\u3001-\ufdff\ufe0e-\ufefe\uff00-\uffff\U00010000-\U0001ffff"
_ANY = re.compile(f"{_SPACING}|{_HIDDEN}|[\u200c\u200d]")
_SPACING_CHARACTER = re.compile(_SPACING)
_HIDDEN_CHARACTERS = re.compile(_HIDDEN)
_LOOSE_JOINER = re.compile(f"(?<![{_JOINABLE}])[\u200c\u200d]+|[\u200c\u200d](?![{_JOINABLE}])")


def has_controls(text: str) -> bool:
    """Whether `text` holds ASCII control characters other than tab and line ends."""
    raw = text.encode("utf-8", "surrogatepass")
    return len(raw.translate(None, _ASCII_CONTROLS)) != len(raw)


def drop_invisible(text: str) -> str:
    """`text` without invisible characters; those that separate words become a space."""
    if not _ANY.search(text):
        return text
    text = _SPACING_CHARACTER.sub(" ", text)
    text = _HIDDEN_CHARACTERS.sub("", text)
    if "\u200c" in text or "\u200d" in text:
        text = _LOOSE_JOINER.sub("", text)
    return text


def drop_invisible_lines(lines: list[str], *, with_controls: bool) -> list[str]:
    """`drop_invisible` for the lines of a note, at little cost for plain ones."""
    if with_controls:
        return [drop_invisible(line) for line in lines]
    return [line if line.isascii() else drop_invisible(line) for line in lines]
