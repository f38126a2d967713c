"""What the words of one language mean when they speak of time.

A table has one row per meaning, and in a row the words that have it, without accents and
separated by `|`. Every word gets a code, one letter, which `grammar` is written in:

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
P days that are known    Z a year, C a month, W a week counted from today
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

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
    """What a word says: its code, and which month, unit, number it names."""

    code: str
    number: int = 0
    name: str = ""
    # Whether it has to be written as a name ("May") where nothing else makes it a date.
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Language:
    """The words of a language, by their first word and the longest first."""

    phrases: dict[str, list[tuple[tuple[str, ...], Meaning]]]
    common: frozenset[str]
    # Words of this language that are other words in another one.
    shared: frozenset[str]


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a language; see the module for the codes."""

    months: tuple[str, ...]
    weekdays: tuple[str, ...]
    seasons: tuple[str, str, str, str]
    units: tuple[str, str, str, str, str, str]
    numbers: dict[int, str]
    ordinals: tuple[str, ...]
    feasts: tuple[str, ...]
    # By how many days, periods back: yesterday 1; last 1, this 0, next -1.
    days_back: dict[int, str]
    which_before: dict[int, str]
    which_after: dict[int, str]
    which_beside: dict[int, str]
    parts: tuple[str, str, str]
    half: str
    letters: dict[str, str]
    words: dict[str, str]
    common: str
    verbs: str = ""
    shared: str = ""


def language(tables: Tables) -> Language:
    """The tables as one list of words; of two meanings the first counts."""
    found: dict[str, Meaning] = {}
    for words, meaning in _rows(tables):
        for word in filter(None, words.split("|")):
            found.setdefault(word, meaning)
    phrases: dict[str, list[tuple[tuple[str, ...], Meaning]]] = {}
    for words in sorted(found, key=lambda words: -len(words.split())):
        parts = tuple(words.split())
        phrases.setdefault(parts[0], []).append((parts, found[words]))
    shared = frozenset(filter(None, tables.shared.split("|")))
    return Language(phrases, frozenset(tables.common.split()), shared)


def _rows(tables: Tables) -> Iterator[tuple[str, Meaning]]:
    yield from _numbered(tables)
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


def _numbered(tables: Tables) -> Iterator[tuple[str, Meaning]]:
    """Numbers first: French "sept" is seven more often than September."""
    for code, rows in (
        ("n", tables.numbers),
        ("w", dict(enumerate(tables.weekdays))),
        ("c", dict(enumerate(tables.ordinals, start=1))),
        ("D", tables.days_back),
        ("l", tables.which_before),
        ("b", tables.which_after),
        ("L", tables.which_beside),
    ):
        for number, words in rows.items():
            yield words, Meaning(code, number)
    verbs = set(tables.verbs.split("|"))
    for number, words in enumerate(tables.months, start=1):
        for position, word in enumerate(words.split("|")):
            is_doubtful = (position > 0 and len(word) <= 4) or word in verbs
            yield word, Meaning("m", number, is_doubtful=is_doubtful)
