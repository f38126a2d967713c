"""JavaScript regular expressions, matched in Python exactly as LiveSync matches them.

LiveSync compiles its filters with `new RegExp(pattern)` or, where case is ignored, with the
flag `i`. That works on UTF-16 code units, knows ASCII digits and letters only, and compares
letters by their upper case. So pattern and text are converted to code units here, and to upper
case where case is ignored; what Python cannot match in the same way is refused, not guessed.
"""

import functools
import re

_UNITS = 0x10000
_ASCII = 0x80
_DIGITS = "0-9"
_WORD = "0-9A-Za-z_"
_SPACE = "\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_LINE_ENDS = "\n\r\u2028\u2029"
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_HEX = {"x": re.compile("[0-9A-Fa-f]{2}"), "u": re.compile("[0-9A-Fa-f]{4}")}
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})")
_NAME = re.compile(r"\?<[A-Za-z_$][A-Za-z0-9_$]*>")
_LOOK_AROUND = ("?=", "?!", "?<=", "?<!")

Mask = bytearray


class NotSupported(ValueError):
    """A pattern that is not valid in JavaScript, or that Python cannot match in the same way."""


class JsRegExp:
    """One regular expression of JavaScript."""

    def __init__(self, source: str, *, ignores_case: bool) -> None:
        """Translate the pattern.

        Raises:
            NotSupported: it is invalid or cannot be translated; the message names the part.
        """
        self._ignores_case = ignores_case
        translated = _Parser(source, ignores_case).translate()
        try:
            self._compiled = re.compile(translated)
        except (re.error, OverflowError, RecursionError) as error:
            raise NotSupported(f"it cannot be carried over to Python ({error})") from None

    def test(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        return self._compiled.search(code_units(text, ignores_case=self._ignores_case)) is not None


def code_units(text: str, *, ignores_case: bool) -> str:
    """The text as JavaScript sees it: UTF-16 code units, in upper case where case is ignored."""
    data = text.encode("utf-16-le", "surrogatepass")
    units = "".join(chr(data[at] | data[at + 1] << 8) for at in range(0, len(data), 2))
    return "".join(map(_upper, units)) if ignores_case else units


def _upper(unit: str) -> str:
    """The upper case that JavaScript compares: one unit, and never from other letters to ASCII."""
    upper = unit.upper()
    if len(upper) != 1 or ord(upper) >= _UNITS:
        return unit
    return unit if ord(unit) >= _ASCII > ord(upper) else upper


@functools.cache
def _upper_codes() -> list[int]:
    return [ord(_upper(chr(code))) for code in range(_UNITS)]


class _Parser:
    """Translates a pattern, read as without the flags `u` and `v`, to Python."""

    def __init__(self, source: str, ignores_case: bool) -> None:
        self._text = code_units(source, ignores_case=False)
        self._at = 0
        self._ignores_case = ignores_case
        self._names: set[str] = set()
        self._has_names = _NAME.search(self._text) is not None

    def translate(self) -> str:
        translated = self._alternatives()
        if self._at < len(self._text):
            raise NotSupported("a ')' has no '('")
        return translated

    def _alternatives(self) -> str:
        branches = [self._terms()]
        while self._take_if("|"):
            branches.append(self._terms())
        return "|".join(branches)

    def _terms(self) -> str:
        terms = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            atom, may_repeat = self._atom()
            terms.append(self._quantify(atom, may_repeat))
        return "".join(terms)

    def _quantify(self, atom: str, may_repeat: bool) -> str:
        found = _QUANTIFIER.match(self._text, self._at)
        if found is None:
            return atom
        if not may_repeat:
            raise NotSupported(f"nothing can be repeated by '{found[0]}'")
        self._at = found.end()
        if found[1] is not None and found[3] and int(found[1]) > int(found[3]):
            raise NotSupported(f"the numbers in '{found[0]}' are out of order")
        is_lazy = self._take_if("?")
        return f"(?:{atom}){found[0]}{'?' if is_lazy else ''}"

    def _atom(self) -> tuple[str, bool]:
        """The next atom translated to Python, and whether it may be repeated."""
        if _QUANTIFIER.match(self._text, self._at):
            raise NotSupported(f"nothing comes before '{self._text[self._at]}'")
        unit = self._next()
        simple = {"^": (r"\A", False), "$": (r"\Z", False)}
        if unit in simple:
            return simple[unit]
        if unit == ".":
            return self._class(_mask(_LINE_ENDS), is_negated=True), True
        if unit == "(":
            return self._group()
        if unit == "[":
            return self._set(), True
        if unit == "\\":
            return self._escape()
        return self._literal(unit), True

    def _group(self) -> tuple[str, bool]:
        opening, may_repeat = "(?:", True
        rest = self._text[self._at : self._at + 3]
        look = next((mark for mark in _LOOK_AROUND if rest.startswith(mark)), None)
        if look is not None:
            self._at += len(look)
            opening, may_repeat = f"({look}", not look.startswith("?<")
        elif rest.startswith("?:"):
            self._at += 2
        elif found := _NAME.match(self._text, self._at):
            self._at = found.end()
            if found[0] in self._names:
                raise NotSupported("two groups have the same name")
            self._names.add(found[0])
        elif rest.startswith("?"):
            raise NotSupported(f"the group '({rest[:2]}' is not known")
        inside = self._alternatives()
        if not self._take_if(")"):
            raise NotSupported("a '(' has no ')'")
        return f"{opening}{inside})", may_repeat

    def _escape(self) -> tuple[str, bool]:
        letter = self._peek()
        if letter in ("b", "B"):
            self._at += 1
            return self._boundary(is_negated=letter == "B"), False
        mask = self._class_escape()
        if mask is not None:
            return self._class(mask), True
        return self._literal(self._character()), True

    def _boundary(self, *, is_negated: bool) -> str:
        word = self._class(_mask(_WORD))
        if is_negated:
            return f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"
        return f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"

    def _class_escape(self) -> Mask | None:
        """The set for `\\d`, `\\W` and the like; None for other escapes."""
        letter = self._peek()
        known = _CLASSES.get(letter.lower()) if letter else None
        if known is None:
            return None
        self._at += 1
        mask = _mask(known)
        return _invert(mask) if letter.isupper() else mask

    def _character(self) -> str:
        """The one character that an escape stands for, after the backslash."""
        letter = self._next()
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter in _HEX:
            found = _HEX[letter].match(self._text, self._at)
            if found is None:
                return letter
            self._at = found.end()
            return chr(int(found[0], 16))
        if letter.isascii() and letter.isdigit():
            return self._zero(letter)
        if letter == "k" and self._has_names:
            raise NotSupported("references to groups ('\\k') cannot be carried over")
        return self._control() if letter == "c" else letter

    def _zero(self, digit: str) -> str:
        if digit != "0" or self._peek().isdigit():
            raise NotSupported(f"references to groups ('\\{digit}') cannot be carried over")
        return "\0"

    def _control(self) -> str:
        letter = self._peek()
        if letter.isascii() and letter.isalpha():
            self._at += 1
            return chr(ord(letter) % 32)
        self._at -= 1  # as in JavaScript: then the backslash is literal
        return "\\"

    def _set(self) -> str:
        is_negated = self._take_if("^")
        mask = Mask(_UNITS)
        while not self._take_if("]"):
            self._member(mask)
        return self._class(mask, is_negated=is_negated)

    def _member(self, mask: Mask) -> None:
        """One character, class or range of a set."""
        first = self._set_atom()
        is_range = self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("", "]")
        if not is_range:
            _add(mask, first)
            return
        self._at += 1
        last = self._set_atom()
        if isinstance(first, str) and isinstance(last, str):
            if first > last:
                raise NotSupported(f"the range '{first}-{last}' is out of order")
            mask[ord(first) : ord(last) + 1] = b"\1" * (ord(last) - ord(first) + 1)
            return
        for one in (first, "-", last):
            _add(mask, one)

    def _set_atom(self) -> str | Mask:
        unit = self._next()
        if unit != "\\":
            return unit
        if self._take_if("b"):
            return "\b"
        if self._peek() == "c" and self._text[self._at + 1 : self._at + 2].isalnum():
            raise NotSupported("control characters in a set cannot be carried over")
        mask = self._class_escape()
        return self._character() if mask is None else mask

    def _class(self, mask: Mask, *, is_negated: bool = False) -> str:
        """A set in Python's syntax; in upper case only, if case is ignored."""
        if self._ignores_case:
            folded, codes = Mask(_UNITS), _upper_codes()
            at = mask.find(1)
            while at >= 0:
                folded[codes[at]] = 1
                at = mask.find(1, at + 1)
            mask = folded
        ranges = _ranges(_invert(mask) if is_negated else mask)
        return f"[{ranges}]" if ranges else "(?!)"

    def _literal(self, unit: str) -> str:
        return re.escape(_upper(unit) if self._ignores_case else unit)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        unit = self._peek()
        if not unit:
            raise NotSupported("it ends too early")
        self._at += 1
        return unit

    def _take_if(self, unit: str) -> bool:
        if self._peek() != unit:
            return False
        self._at += 1
        return True


def _mask(described: str) -> Mask:
    """The code units of a description such as `0-9A-F_`."""
    mask = Mask(_UNITS)
    for part in re.findall(r"(?s)(.)-(.)|(.)", described):
        first, last = part[0] or part[2], part[1] or part[2]
        mask[ord(first) : ord(last) + 1] = b"\1" * (ord(last) - ord(first) + 1)
    return mask


def _invert(mask: Mask) -> Mask:
    return mask.translate(bytes([1, 0]) + bytes(254))


def _add(mask: Mask, one: str | Mask) -> None:
    if isinstance(one, str):
        mask[ord(one)] = 1
        return
    at = one.find(1)
    while at >= 0:
        mask[at] = 1
        at = one.find(1, at + 1)


def _ranges(mask: Mask) -> str:
    parts = []
    at = mask.find(1)
    while at >= 0:
        end = mask.find(0, at)
        last = (end if end >= 0 else _UNITS) - 1
        parts.append(f"\\u{at:04x}-\\u{last:04x}" if last > at else f"\\u{at:04x}")
        at = mask.find(1, last + 1)
    return "".join(parts)
