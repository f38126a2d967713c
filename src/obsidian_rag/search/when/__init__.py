"""Dates in a question: "last March", "in 2024", "vor zwei Wochen" name a span of days.

English, German, French, Spanish and the ISO forms are understood: a file per language says what
its words mean, and one grammar for all of them puts the meanings together. Only phrases that speak
of time are taken: a bare number such as 1984 may be a title, so a year needs a word before it
("in 1984") or a month beside it, and "may" and "march" may be verbs.

A month or a day without a year is the latest one that has begun. 12/03/2024 is March 12: the day
comes first unless there is no such day. Seasons are whole months; winter begins in December of
the year it is called by.
"""

import re
from dataclasses import dataclass
from datetime import date

from obsidian_rag.search.when.english import ENGLISH
from obsidian_rag.search.when.french import FRENCH
from obsidian_rag.search.when.german import GERMAN
from obsidian_rag.search.when.grammar import spans
from obsidian_rag.search.when.pieces import pieces
from obsidian_rag.search.when.spanish import SPANISH

__all__ = ["Span", "find_span", "without"]

_LANGUAGES = (ENGLISH, GERMAN, FRENCH, SPANISH)
_WORD = re.compile(r"[^\W\d_]+")
# Words that only lead to the time, and go with it.
_LEADING = (
    "in on at during over the of from for since within throughout "
    "im am an der die das den dem des vom von zu zum wahrend während über um "
    "en au aux à le la les l du de d pendant durant dans ces el los las del durante para"
)
_LEADING_WORDS = frozenset(_LEADING.split())


@dataclass(frozen=True, slots=True)
class Span:
    """Days that a question speaks of, both ends included, and the words that say so.

    `date.min` and `date.max` stand for an open end, as in "before 2022".
    """

    first: date
    last: date
    phrase: str


def find_span(question: str, today: date) -> Span | None:
    """The first span of time that the question names, if any."""
    found = [
        piece
        for order, language in enumerate(_LANGUAGES)
        for piece in spans(pieces(question, language), today)
        if not piece.is_shared or _speaks(question, order)
    ]
    if not found:
        return None
    # What one language reads as "in August", another one reads as "August last year".
    first = min(found, key=lambda piece: piece.start)
    beside = (piece for piece in found if piece.start < first.end)
    best = max(beside, key=lambda piece: piece.end - piece.start)
    return Span(*best.days, question[best.start : best.end]) if best.days else None


def without(question: str, span: Span) -> str:
    """The question without the words that name the time, and those that only lead to them."""
    phrase = re.escape(span.phrase)
    found = re.search(rf"(?<!\w){phrase}(?!\w)", question) or re.search(phrase, question)
    if found is None:
        return question
    before, after = question[: found.start()], question[found.end() :]
    while (last := re.search(r"(\w+)['’\s-]*$", before)) and last[1].casefold() in _LEADING_WORDS:
        before = before[: last.start()]
    after = re.sub(r"^['’]s\b", "", after)
    left = " ".join(f"{before} {after}".split())
    left = re.sub(r"\s+([?!.,;:])", r"\1", left)
    left = re.sub(r"[,;:]+(?=[?!.]|$)", "", left).lstrip(",;: ")
    return left if re.search(r"\w", left) else ""


def _speaks(question: str, order: int) -> bool:
    """Whether the question may well be in that language, by its smallest words."""
    words = _WORD.findall(question.casefold())
    counts = [sum(word in language.common for word in words) for language in _LANGUAGES]
    return counts[order] >= max(counts)
