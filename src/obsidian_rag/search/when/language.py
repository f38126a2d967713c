"""The time words of each language, and their codes.

Each language has a data file beside this one. A table there has one row per meaning, and in a row
the words that have it, without accents and separated by `|`. Every word gets a code, one
letter, which `grammar` is written in:

m month    s season   w weekday  h feast     u unit       n number (2, two)
o ordinal in digits (3rd)        c ordinal as a word (third)
y year (2024, '24)    z two years (2023/24)  k week or month of a year (30/2023)
E days of a month (3-9)
l last, this, next before what they belong to; b the same after it; L on either side
D yesterday, today
a ago, after its number; g ago, before it; v German "vor": ago, or before
p early, mid, end of  H half     q the letter of a quarter or half (Q3, H1)   K calendar week
i in      j on        O over     f of        t the        x anything else
r since   < before    > after    e until     B between    F from    & and    T to
P a span of days         Z a year, C a month, W a week counted from today
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from obsidian_rag.notes import MONTH_NAMES

LANGUAGES = ("english", "german", "french", "spanish")
# A date has at least one piece with one of these codes.
DATE_CODES = "DPmswhuyzkdqoK"

_FEASTS = (
    "christmas",
    "christmas eve",
    "new year",
    "new year's eve",
    "easter",
    "halloween",
    "thanksgiving",
)
_SEASONS = ("spring", "summer", "autumn", "winter")
_PARTS = ("early", "mid", "late")
_UNITS = ("day", "week", "weekend", "month", "quarter", "year")


class Meaning(NamedTuple):
    """The meaning of a word: its code, and the month, unit or number it names."""

    code: str
    number: int = 0
    name: str = ""
    # Must be capitalised ("May") unless something else makes it a date.
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Language:
    """The phrases of a language by their first word, longest first."""

    phrases: dict[str, list[tuple[tuple[str, ...], Meaning]]]
    common: frozenset[str]
    # Words that mean something else in another language.
    shared: frozenset[str]
    # Words that only introduce a time.
    leading: frozenset[str]


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a language; see the module for the codes."""

    months: Sequence[str]
    weekdays: Sequence[str]
    seasons: Sequence[str]
    units: Sequence[str]
    numbers: Mapping[str, str]
    ordinals: Sequence[str]
    feasts: Sequence[str]
    parts: Sequence[str]
    half: str
    letters: Mapping[str, str]
    words: Mapping[str, str]
    common: str
    leading: str
    # Words by how many days or periods back: yesterday 1; last 1, this 0, next -1.
    days_back: Mapping[str, str]
    which_before: Mapping[str, str] = field(default_factory=dict)
    which_after: Mapping[str, str] = field(default_factory=dict)
    which_beside: Mapping[str, str] = field(default_factory=dict)
    verbs: str = ""
    shared: str = ""


@cache
def languages() -> tuple[Language, ...]:
    """All supported languages, read on first use."""
    return tuple(_read_language(name) for name in LANGUAGES)


@cache
def date_words() -> frozenset[str]:
    """The first words of all phrases that can be part of a date, in any language."""
    return frozenset(
        first
        for language in languages()
        for first, phrases in language.phrases.items()
        if any(meaning.code in DATE_CODES for _, meaning in phrases)
    )


@cache
def leading_words() -> frozenset[str]:
    """The words of all languages that only introduce a time."""
    return frozenset().union(*(language.leading for language in languages()))


def _read_language(name: str) -> Language:
    """The tables of one language merged; the first meaning of a word wins."""
    file = Path(__file__).with_name(f"{name}.toml")
    read: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    tables = Tables(months=MONTH_NAMES[name], **read)
    found: dict[str, Meaning] = {}
    for words, meaning in _rows(tables):
        for word in filter(None, words.split("|")):
            found.setdefault(word, meaning)
    phrases: dict[str, list[tuple[tuple[str, ...], Meaning]]] = {}
    for words in sorted(found, key=lambda words: -len(words.split())):
        parts = tuple(words.split())
        phrases.setdefault(parts[0], []).append((parts, found[words]))
    shared = frozenset(filter(None, tables.shared.split("|")))
    common, leading = frozenset(tables.common.split()), frozenset(tables.leading.split())
    return Language(phrases, common, shared, leading)


def _rows(tables: Tables) -> Iterator[tuple[str, Meaning]]:
    yield from _numbered_rows(tables)
    for code, names, rows in (
        ("s", _SEASONS, tables.seasons),
        ("u", _UNITS, tables.units),
        ("h", _FEASTS, tables.feasts),
        ("p", _PARTS, tables.parts),
        ("q", tables.letters, tables.letters.values()),
    ):
        for name, words in zip(names, rows, strict=True):
            yield words, Meaning(code, name=name)
    for code, words in tables.words.items():
        yield words, Meaning(code, name="week" if code == "K" else "")
    yield tables.half, Meaning("H")


def _numbered_rows(tables: Tables) -> Iterator[tuple[str, Meaning]]:
    """Numbers come first: French "sept" means seven more often than September."""
    for code, rows in (
        ("n", tables.numbers),
        ("w", {str(day): words for day, words in enumerate(tables.weekdays)}),
        ("c", {str(rank): words for rank, words in enumerate(tables.ordinals, start=1)}),
        ("D", tables.days_back),
        ("l", tables.which_before),
        ("b", tables.which_after),
        ("L", tables.which_beside),
    ):
        for key, words in rows.items():
            yield words, Meaning(code, int(key))
    verbs = set(tables.verbs.split("|"))
    for number, words in enumerate(tables.months, start=1):
        for position, word in enumerate(words.split("|")):
            is_doubtful = (position > 0 and len(word) <= 4) or word in verbs
            yield word, Meaning("m", number, is_doubtful=is_doubtful)
