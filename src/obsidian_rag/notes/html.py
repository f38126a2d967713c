"""Removes HTML from Markdown, in linear time.

Threat: a note's text is shown in a web page and passed to agents. So in the result no `<` precedes
a letter, `/`, `!` or `?`: nothing can open a tag, however it was nested. Line ends inside removed
HTML stay, so that every line keeps its number.
"""

import re

from obsidian_rag.notes.lines import code_spans

_OPENS = re.compile(r"<(?=[A-Za-z/!?])")
# No alternative reads past the next `<` (outside quotes it cannot), so all attempts are linear.
_TAG = re.compile(
    r"<(/?)([A-Za-z][^\s/<>]*+)((?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+)>|<(/?)([A-Za-z][^\s/<>]*+)([^<>]*+)>"
)
_DECLARATION = re.compile(r"<[!?/][^<>\n]*+>")
_BLANK_LINE = re.compile(r"\n[ \t]*+\n")
# A literal `<` in front lets the regex engine skip to it, which an optional letter would prevent.
_LEFTOVER = re.compile(r"<(?<!<<)<*+(?=[A-Za-z/!?])")
_PLACEHOLDER = re.compile(r"<(/?[A-Za-z][^<>\n]*+)>")
_CLOSING = {name: re.compile(rf"</{name}\s*+>", re.IGNORECASE) for name in ("script", "style")}
_INLINE_NAMES = """
    a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark meter nobr q rp
    rt ruby s samp small span strike strong sub sup time tt u var wbr
"""
_BLOCK_NAMES = """
    address area article aside audio base basefont blockquote body br button canvas caption
    center col colgroup datalist dd details dialog dir div dl dt embed fieldset figcaption
    figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe img
    input label legend li link main map marquee math menu meta nav noframes noscript object ol
    optgroup option output p param picture pre progress script search section select slot
    source style summary svg table tbody td template textarea tfoot th thead title tr track ul
    video
"""
_INLINE = frozenset(_INLINE_NAMES.split())
_BLOCK = frozenset(_BLOCK_NAMES.split())


def strip_html(text: str) -> str:
    """`text` without HTML: tags and comments are removed, `<placeholders>` lose their brackets."""
    if "<" not in text:
        return text
    if "`" in text:
        text = "\n".join(
            [
                _keep_words_in_code(line) if "<" in line and "`" in line else line
                for line in text.split("\n")
            ]
        )
    return _drop_leftovers(_Stripper(text).run())


def keep_words(text: str) -> str:
    """`text` with angle brackets dropped and every word kept, as for code and titles."""
    if "<" not in text:
        return text
    return _drop_leftovers(_PLACEHOLDER.sub(lambda found: _unbracketed(text, *found.span()), text))


def _drop_leftovers(text: str) -> str:
    return _LEFTOVER.sub(lambda match: _space_before(text, match.start()), text)


def _keep_words_in_code(line: str) -> str:
    parts = []
    position = 0
    for start, end in code_spans(line):
        parts.append(line[position:start])
        parts.append(keep_words(line[start:end]))
        position = end
    parts.append(line[position:])
    return "".join(parts)


class _Stripper:
    """One pass over a text; remembers which closing marks do not occur in the rest."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._missing: set[str] = set()

    def run(self) -> str:
        text = self._text
        parts = []
        position = 0
        for opening in _OPENS.finditer(text):
            start = opening.start()
            if start < position:
                continue
            end, instead = self._read_piece(start)
            if end > start:
                parts.append(text[position:start])
                parts.append(instead)
                position = end
        parts.append(text[position:])
        return "".join(parts)

    def _read_piece(self, start: int) -> tuple[int, str]:
        text = self._text
        if text.startswith("<!--", start):
            end = self._find_end("-->", start + 4)
            return (end, _line_ends(text, start, end)) if end else (start + 4, "")
        match = _TAG.match(text, start)
        if match is None:
            match = _DECLARATION.match(text, start)
            return (match.end(), _line_ends(text, start, match.end())) if match else (start, "")
        return self._read_tag(match)

    def _read_tag(self, match: re.Match[str]) -> tuple[int, str]:
        text = self._text
        start, end = match.span()
        slash, name = (match[1], match[2]) if match[2] else (match[4], match[5])
        name = name.lower()
        if _BLANK_LINE.search(text, start, end):
            return start, ""
        if name in _CLOSING and not slash:
            end = self._find_end(name, end) or end
        elif name not in _INLINE and name not in _BLOCK:
            return end, _unbracketed(text, start, end)
        if name == "sup" and not slash and _is_power(text, start, end):
            return end, "^"
        ends = _line_ends(text, start, end)
        joins = name in _INLINE or start == 0 or text[start - 1].isspace()
        return end, ends or ("" if joins else " ")

    def _find_end(self, mark: str, start: int) -> int:
        """The offset behind the next closing mark, or 0."""
        if mark in self._missing:
            return 0
        if mark == "-->":
            found = self._text.find(mark, start)
            end = found + 3 if found >= 0 else 0
        else:
            match = _CLOSING[mark].search(self._text, start)
            end = match.end() if match else 0
        if not end:
            self._missing.add(mark)
        return end


def _is_power(text: str, start: int, end: int) -> bool:
    """Whether dropping the tag would turn 10<sup>8</sup> into 108."""
    return start > 0 and text[start - 1].isalnum() and text[end : end + 1].isdigit()


def _line_ends(text: str, start: int, end: int) -> str:
    return "\n" * text.count("\n", start, end)


def _unbracketed(text: str, start: int, end: int) -> str:
    """The text between the brackets, with spaces where it would join its neighbours."""
    is_joined = end < len(text) and (text[end].isalnum() or text[end] in "<_")
    return _space_before(text, start) + text[start + 1 : end - 1] + (" " if is_joined else "")


def _space_before(text: str, start: int) -> str:
    return " " if start and (text[start - 1].isalnum() or text[start - 1] == "_") else ""
