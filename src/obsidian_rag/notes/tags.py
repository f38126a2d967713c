"""Tags by Obsidian's rule: `#word`, with letters of any script, digits, `_`, `-` and `/`."""

import re
from collections.abc import Iterable

from obsidian_rag.notes.lines import blank_spans, without_code

MAX_TAG_LINE_CHARS = 500

# Obsidian's own list of what ends a tag (joiners inside emoji are allowed here), plus CJK marks.
_END = (
    r"\s\u2000-\u200c\u200e-\u206f\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\uff01-\uff0f\uff1a-\uff20"
    r"\uff3b-\uff3d\uff5b-\uff65'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\\x00-\x1f\x7f"
)
_TAG = rf"#[^{_END}]++"
# The `#` comes first so that the regex engine can skip to it; lookbehinds check what precedes it.
_INLINE = re.compile(rf"#(?<![^\s({{（「]#)(?<!\]\(#)[^{_END}]++")
_TAG_LINE = re.compile(rf" {{0,3}}{_TAG}(?:[,\s]++{_TAG})*+[,\s]*+")
_NOT_WORDS = re.compile(r"!?\[\[[^\[\]]*+\]\]|\]\([^()\s]*+(?:[^()]*+\))?|</?[A-Za-z][^<>]*+>")


def inline_tags(line: str) -> list[str]:
    """The tags written in one line of prose, in order, with their `#`."""
    if not _INLINE.search(line):
        return []
    line = without_code(line)
    if "[" in line or "<" in line:
        line = blank_spans(line, [match.span() for match in _NOT_WORDS.finditer(line)])
    return [tag for match in _INLINE.finditer(line) if (tag := _normalise(match[0]))]


def tag_line(line: str) -> list[str]:
    """The tags of a line that contains only tags; empty for any other line."""
    if len(line) > MAX_TAG_LINE_CHARS or not _TAG_LINE.fullmatch(line):
        return []
    words = [word.rstrip(",") for word in line.replace(",", ", ").split()]
    tags = [_normalise(word) for word in words if word]
    return tags if all(tags) else []


def property_tags(value: object) -> list[str]:
    """The tags of a frontmatter value: a list, or a string with commas or spaces."""
    if isinstance(value, (list, tuple)):
        return [tag for entry in value for tag in property_tags(entry)]
    if value is None or isinstance(value, (bool, dict)):
        return []
    words = str(value).replace(",", " ").split()
    bare = (word.lstrip("#").strip("/") for word in words)
    return [f"#{word}" for word in bare if word]


def unique_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """`tags` without duplicates, ignoring case; the first spelling is kept."""
    first: dict[str, str] = {}
    for tag in tags:
        first.setdefault(tag.casefold(), tag)
    return tuple(first.values())


def tag_keys(tags: Iterable[str]) -> list[str]:
    """The keys of a tag filter: each tag and its parents, without '#', in lower case."""
    keys: dict[str, None] = {}
    for tag in tags:
        parts = tag.lstrip("#").strip("/").casefold().split("/")
        keys.update((("/".join(parts[:end])), None) for end in range(1, len(parts) + 1))
    return [key for key in keys if key]


def _normalise(tag: str) -> str:
    tag = tag.rstrip("/")
    word = tag[1:]
    is_number = word.replace("/", "").isdigit()
    return "" if is_number or not word.strip("-_/") else tag
