"""Which passages are private: by section, by tag and by word.

Threat: an agent shows or sends text that the user meant to keep in the notes. In doubt a passage
is sensitive: headings inside it and parents of nested tags match too.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from obsidian_rag.notes.note import Chunk
from obsidian_rag.notes.words import MARKS

HEALTH = "health"
RELATIONS = "relations"

# A word ends at a combining mark: in doubt a passage is sensitive.
_WORD = re.compile(r"\w+")
_DOLLARS = re.compile(r"\$[ \xa0]?\.?\d")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(\S.*)$", re.MULTILINE)
_TAG = re.compile(rf"(?<![\w/#&])#([\w{MARKS}\u200c\u200d/-]+)")
_SEPARATORS = re.compile(r"[\s_-]+")


@dataclass(frozen=True, slots=True)
class _Category:
    name: str
    words: frozenset[str]
    phrases: tuple[re.Pattern[str], ...]
    heads: frozenset[str]


def sensitive_categories(
    text: str,
    section: str | None,
    tags: Sequence[str],
    patterns: Mapping[str, Sequence[str]],
    sections: Sequence[str],
) -> tuple[str, ...]:
    """The categories a passage falls into, in the order of `patterns`; empty if none."""
    categories = _compile(tuple((name, tuple(words)) for name, words in patterns.items()))
    heads = frozenset(_passage_names(text, section, tags))
    words = frozenset(_WORD.findall(text.casefold()))
    found = [category.name for category in categories if _matches(category, text, words, heads)]
    healthy = next((c.heads for c in categories if c.name == HEALTH), frozenset[str]())
    for head in heads & _normalise_all(tuple(sections)):
        found.append(HEALTH if head in healthy else RELATIONS)
    return tuple(dict.fromkeys(found))


def chunk_categories(
    chunk: Chunk, patterns: Mapping[str, Sequence[str]], sections: Sequence[str]
) -> tuple[str, ...]:
    """`sensitive_categories` of a chunk, with its code and every heading above it."""
    names = [*chunk.tags, *(f"#{name}" for name in chunk.heading_path)]
    text = f"{chunk.text}\n{chunk.words_only}" if chunk.words_only else chunk.text
    return sensitive_categories(text, chunk.section, names, patterns, sections)


def _passage_names(text: str, section: str | None, tags: Sequence[str]) -> Iterator[str]:
    """The names of a passage (tags, section, headings inside it), and parents of nested tags."""
    names = [*tags, *([section] if section else [])]
    if "#" in text:
        names += _HEADING.findall(text)
        names += _TAG.findall(text)
    for name in names:
        for word in (name, *(name.split() if name.startswith("#") else ())):
            normal = _normalise(word)
            yield normal
            while "/" in normal:
                normal = normal.rpartition("/")[0]
                yield normal


def _matches(category: _Category, text: str, words: frozenset[str], heads: frozenset[str]) -> bool:
    if not words.isdisjoint(category.words) or not heads.isdisjoint(category.heads):
        return True
    return any(phrase.search(text) for phrase in category.phrases)


@lru_cache(maxsize=32)
def _compile(patterns: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[_Category, ...]:
    return tuple(_compile_category(name, written) for name, written in patterns)


def _compile_category(name: str, written: Sequence[str]) -> _Category:
    patterns = [pattern.strip() for pattern in written if pattern.strip("# \t\n")]
    heads = frozenset(_normalise(pattern) for pattern in patterns if pattern.startswith("#"))
    others = [pattern.casefold() for pattern in patterns if not pattern.startswith("#")]
    words = frozenset(pattern for pattern in others if _WORD.fullmatch(pattern))
    phrases = tuple(_compile_phrase(pattern) for pattern in others if pattern not in words)
    return _Category(name, words, phrases, heads)


def _compile_phrase(pattern: str) -> re.Pattern[str]:
    if pattern == "$":
        return _DOLLARS
    middle = r"\s+".join(re.escape(word) for word in pattern.split())
    before = r"(?<!\w)" if _WORD.match(pattern) else ""
    after = r"(?!\w)" if _WORD.match(pattern[-1]) else ""
    return re.compile(before + middle + after, re.IGNORECASE)


@lru_cache(maxsize=32)
def _normalise_all(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(normal for name in names if (normal := _normalise(name)))


def _normalise(name: str) -> str:
    return _SEPARATORS.sub("", name.lstrip("#").casefold())
