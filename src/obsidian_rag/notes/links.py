"""Links out of a note: wikilinks, embeds and Markdown links to other files of the vault."""

import re
from urllib.parse import unquote

from obsidian_rag.notes.lines import without_code
from obsidian_rag.notes.note import Link, LinkKind

# Every repeat is possessive or stops at the character that starts the next attempt: linear.
# Each alternative starts with a literal, which lets the regex engine skip to the next candidate.
_TOKEN = re.compile(
    r"""
      \\.
    | \[\[([^\[\]]++)\]\]
    | \[
    | \]\(\s*+
        (<[^<>]*+>|[^\s()<>]*+(?:\([^\s()]*+\)[^\s()<>]*+){0,8})
        (?:\s++(?:"[^"]*+"|'[^']*+'|\([^()]*+\)))?+\s*+\)
    | \]
    """,
    re.VERBOSE,
)
_WIKILINK = 1
_TARGET = 2
_DEFINITION = re.compile(r" {0,3}\[(?!\^)([^\[\]]++)\]:[ \t]*+(<[^<>]++>|\S++)")
_EXTERNAL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:|//")
_PIPE = re.compile(r"\\?\|")


def line_links(line: str, number: int) -> list[Link]:
    """The links of one line of prose."""
    if "[[" not in line and line.count("](") == line.count("](http"):
        return []
    links = []
    opened: list[tuple[int, bool]] = []
    for token in _TOKEN.finditer(without_code(line)):
        start, end = token.span()
        mark = token[0]
        if token.lastindex == _WIKILINK:
            links.append(_wikilink(token[_WIKILINK], _is_embed(line, start), number))
        elif mark == "[":
            opened.append((end, _is_embed(line, start)))
        elif mark[0] == "]":
            text_start, is_embed = opened.pop() if opened else (start, False)
            text = line[text_start:start]
            if link := _markdown_link(token[_TARGET] or "", text, is_embed, number):
                links.append(link)
    return links


def _is_embed(line: str, start: int) -> bool:
    return start > 0 and line[start - 1] == "!"


def definition_link(line: str, number: int) -> Link | None:
    """The link of a reference definition, `[name]: target`."""
    match = _DEFINITION.match(line)
    return _markdown_link(match[2], match[1], False, number) if match else None


def _wikilink(inner: str, is_embed: bool, number: int) -> Link:
    path, *display = _PIPE.split(inner, maxsplit=1)
    target, heading, block = _anchor(path)
    return Link(
        LinkKind.EMBED if is_embed else LinkKind.WIKILINK,
        target,
        heading,
        block,
        display[0].strip() or None if display else None,
        number,
    )


def _markdown_link(target: str, text: str, is_embed: bool, number: int) -> Link | None:
    if target.startswith("<"):
        target = target[1:-1]
    if not target or _EXTERNAL.match(target):
        return None
    path, heading, block = _anchor(target, is_encoded="%" in target)
    kind = LinkKind.EMBED if is_embed else LinkKind.MARKDOWN
    return Link(kind, path, heading, block, text.strip() or None, number)


def _anchor(path: str, *, is_encoded: bool = False) -> tuple[str, str | None, str | None]:
    target, _, anchor = path.partition("#")
    if is_encoded:
        target, anchor = unquote(target), unquote(anchor)
    target, anchor = target.strip(), anchor.strip()
    if anchor.startswith("^"):
        return target, None, anchor[1:] or None
    heading, _, block = anchor.partition("#^")
    return target, heading or None, block or None
