"""Characters of every script: which are invisible, where words end, which spellings are one."""

import re
import unicodedata

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
# Combining marks, and letters between them; above the basic plane by the block.
MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711-\u07f3\u07fd\u0816-\u082d"
    "\u0859-\u085b\u0898-\u08e1\u08e3-\u0963\u0981-\u09e3\u09fe-\u0a75\u0a81-\u0ae3\u0afa-\u0b63"
    "\u0b82-\u0bd7\u0c00-\u0c63\u0c81-\u0c83\u0cbc-\u0d4d\u0d57-\u0d63\u0d81-\u0df3\u0e31-\u0e3a"
    "\u0e47-\u0e4e\u0eb1-\u0ecd\u0f18-\u0f19\u0f35\u0f37\u0f39\u0f3e-\u0f84\u0f86-\u0fbc\u0fc6"
    "\u102b-\u103e\u1056-\u109d\u135d-\u135f\u1712-\u1734\u1752-\u17d3\u17dd\u180b-\u180d"
    "\u180f-\u193b\u1a17-\u1a1b\u1a55-\u1a7f\u1ab0-\u1b44\u1b6b-\u1b73\u1b80-\u1bf3\u1c24-\u1c37"
    "\u1cd0-\u1cd2\u1cd4-\u1dff\u20d0-\u20f0\u2cef-\u2cf1\u2d7f-\u2dff\u302a-\u302f\u3099-\u309a"
    "\ua66f\ua674-\ua67d\ua69e-\ua6f1\ua802-\ua827\ua82c\ua880-\ua8c5\ua8e0-\ua8f1\ua8ff-\ua92d"
    "\ua947-\ua953\ua980-\ua9c0\ua9e5-\uaa4d\uaa7b-\uaac1\uaaeb-\uaaef\uaaf5-\uaaf6\uabe3-\uabea"
    "\uabec-\uabed\ufb1e\ufe00-\ufe0f\ufe20-\ufe2f"
    "\U00010a01-\U00010a3f\U00011000-\U00011fff\U00016af0-\U00016af4\U0001e944-\U0001e94a"
)
WORD = re.compile(rf"\w+(?:[{MARKS}\u200c\u200d]+\w*)*")
# As in a key or a file name, where `_` stands between words.
WORD_PART = re.compile(r"[^\W_]+")
LETTERS = re.compile(r"[^\W\d_]+")
# Scripts that put no space between words: Chinese and Japanese, Thai, Lao, Burmese, Khmer.
UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3041-\u3096\u3099-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\u0e00-\u0e3a\u0e40-\u0e4e\u0e80-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u109a-\u109f"
    "\u1780-\u17d3\u17d7\u17dc\u17dd\uaa60-\uaa7f\ua9e0-\ua9ef\U00020000-\U0003ffff"
)
# Accents of Latin, Greek and Cyrillic, and the vowel points of Hebrew and Arabic: people leave them
# out. Not the breve and the dots that make another letter in Cyrillic. In other scripts a mark is a
# vowel, and without it the word is another one.
_ACCENTS = re.compile(
    "(?<![\u0438\u0443])\u0306|(?<!\u0456)\u0308|"
    "[\u0300-\u0305\u0307\u0309-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5"
    "\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]"
)
# Letters with a stroke and the like, which Unicode does not decompose.
_STROKES = str.maketrans(
    {"đ": "d", "ð": "d", "ø": "o", "ł": "l", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
_WITH_STROKE = re.compile(f"[{''.join(map(chr, _STROKES))}]")
# NFKD decomposes it, though it is typed as one letter.
_AM = re.compile("\u0e4d\u0e32|\u0ecd\u0eb2")
_AM_LETTER = {"\u0e4d\u0e32": "\u0e33", "\u0ecd\u0eb2": "\u0eb3"}


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
    """`drop_invisible` for the lines of a note, fast for ASCII lines."""
    if with_controls:
        return [drop_invisible(line) for line in lines]
    return [line if line.isascii() else drop_invisible(line) for line in lines]


def folded(text: str) -> str:
    """Lower case without accents, so that `Café` and `cafe` are one word; lines stay lines."""
    if text.isascii():
        return text.lower()
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    # Not on the whole text: `translate` looks up every letter, which takes ten times as long.
    plain = _WITH_STROKE.sub(lambda found: found[0].translate(_STROKES), plain)
    plain = unicodedata.normalize("NFC", plain)
    return _AM.sub(lambda found: _AM_LETTER[found[0]], plain)
