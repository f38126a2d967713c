"""What is read from a note's properties: aliases, filter values and words for search."""

import re
from collections.abc import Iterator, Mapping

from obsidian_rag.notes.words import LETTERS

MAX_WORDS_CHARS = 2000

_NOT_WORDS = re.compile(
    r"title|tags?|aliases|alias|rag|related|cssclass(?:es)?|publish|permalink|u?uid|uuid"
    r"|.*[_ -]?id|id"
    r"|date.*|.*[_ -]date|created.*|updated.*|modified.*|last[_ -]?mod.*|day|time",
    re.IGNORECASE,
)
_MAX_NESTING = 4
_MAX_VALUES = 100
_MAX_KEY_CHARS = 100
_MAX_VALUE_CHARS = 500


def lookup(frontmatter: Mapping[str, object], *names: str) -> object:
    """The first property with one of those names, ignoring case; None if not found."""
    for name in names:
        if (value := frontmatter.get(name)) is not None:
            return value
    if all(map(str.islower, frontmatter)):
        return None
    lowered = {key.lower(): value for key, value in frontmatter.items() if value is not None}
    return next((lowered[name] for name in names if name in lowered), None)


def read_aliases(frontmatter: Mapping[str, object]) -> tuple[str, ...]:
    """Other names of the note."""
    value = lookup(frontmatter, "aliases", "alias")
    if isinstance(value, str):
        value = value.split(",")
    names = value if isinstance(value, list) else [value]
    texts = (str(name).strip() for name in names if isinstance(name, (str, int, float)))
    return tuple(dict.fromkeys(text for text in texts if text))


def property_values(frontmatter: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Every (key, value) of the properties, both in lower case; a list gives one pair per entry."""
    pairs: dict[tuple[str, str], None] = {}
    for key, value in frontmatter.items():
        entries = value if isinstance(value, list) else [value]
        for entry in entries[:_MAX_VALUES]:
            if isinstance(entry, bool):
                entry = str(entry).lower()
            if isinstance(entry, (str, int, float)) and (text := str(entry).strip().casefold()):
                pairs[key.strip().casefold()[:_MAX_KEY_CHARS], text[:_MAX_VALUE_CHARS]] = None
    return tuple(pairs)


def property_words(frontmatter: Mapping[str, object]) -> str:
    """The text of properties that describe the note, for word search."""
    words = "\n".join(
        text
        for key, value in frontmatter.items()
        if not _NOT_WORDS.fullmatch(key)
        for text in _collect_texts(value, 0)
    )
    return words[:MAX_WORDS_CHARS]


def _collect_texts(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if LETTERS.search(value):
            yield value
    elif depth < _MAX_NESTING and isinstance(value, (list, dict)):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _collect_texts(entry, depth + 1)
