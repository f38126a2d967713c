"""Section heads: ATX and Setext headings, and what their text says without its markup."""

import re

from obsidian_rag.notes.html import keep_words
from obsidian_rag.notes.invisible import drop_invisible

MAX_HEADING_CHARS = 500

_LIST_OR_QUOTE = re.compile(r"[-*+>|]|\d{1,9}[.)]\s|#|```|~~~")
_WIKILINK = re.compile(r"!?\[\[(?:[^\[\]|]*+\|)?([^\[\]|]*+)\]\]")
_LINK = re.compile(r"!?\[([^\[\]]*+)\]\([^()]*+\)")
_PLAIN = re.compile(
    rf"[\w.,:;/()'\"?!+&-](?:[\w .,:;/()'\"?!+&-]{{0,{MAX_HEADING_CHARS - 2}}}[^ ])?"
)
_EMPHASIS = re.compile(r"\*\*|~~|`")


def atx(line: str) -> tuple[int, str] | None:
    """Level and text of `# heading`; None if the line is something else or has no text."""
    start = line.lstrip(" ") if line[:1] == " " else line
    if len(line) - len(start) > 3 or start[:1] != "#":
        return None
    head = start[:7]
    level = len(head) - len(head.lstrip("#"))
    if level > 6 or head[level : level + 1] not in (" ", "\t"):
        return None
    text = start[level:].strip()
    bare = text.rstrip("#")
    if len(bare) < len(text) and (not bare or bare[-1] in " \t"):
        text = bare.rstrip()
    text = plain_text(text)
    return (level, text) if text else None


def setext(previous: str, before: str, underline: str) -> tuple[int, str] | None:
    """Level and text of a one-line paragraph `previous` underlined with === or ---."""
    mark = underline[0]
    if underline.rstrip().strip(mark) or before.strip() or not previous.strip():
        return None
    if len(previous) > MAX_HEADING_CHARS or previous[:4] == "    " or previous[0] == "\t":
        return None
    text = previous.strip()
    if _LIST_OR_QUOTE.match(text) or not (text := plain_text(text)):
        return None
    return (1 if mark == "=" else 2), text


def plain_text(text: str) -> str:
    """A heading or title as a reader sees it: one line, no links, emphasis or angle brackets."""
    if _PLAIN.fullmatch(text) and "  " not in text:
        return text
    text = text[: 4 * MAX_HEADING_CHARS]
    if "[" in text:
        text = _LINK.sub(r"\1", _WIKILINK.sub(r"\1", text))
    if "*" in text or "`" in text or "~" in text:
        text = _EMPHASIS.sub("", text).strip("*")
    if "<" in text:
        text = keep_words(text)
    return " ".join(drop_invisible(text).split())[:MAX_HEADING_CHARS].rstrip()
