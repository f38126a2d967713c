"""Find the dates in a question: "last March", "in 2024", "vor zwei Wochen" name a span of days.

English, German, French, Spanish and ISO forms are supported: one file per language defines its
words, and one grammar for all languages combines them. Only phrases that clearly mean a time count:
a bare number such as 1984 may be a title, so a year needs a word before it ("in 1984") or a month
beside it, and "may" and "march" may be verbs.

A month or a day without a year is the latest one that has begun. 12/03/2024 is 12 March: the day
comes first unless there is no such day. Seasons are whole months; the winter of a year begins in
its December.
"""

import re
from dataclasses import dataclass
from datetime import date

from obsidian_rag.notes import LETTERS
from obsidian_rag.search.when.grammar import spans
from obsidian_rag.search.when.language import languages, leading_words
from obsidian_rag.search.when.pieces import pieces, read_tokens

__all__ = ["Span", "find_span", "without"]


@dataclass(frozen=True, slots=True)
class Span:
    """Days that a question names, both ends included, and the words that name them.

    `date.min` and `date.max` stand for an open end, as in "before 2022".
    """

    first: date
    last: date
    phrase: str


def find_span(question: str, today: date) -> Span | None:
    """The first span of time that the question names, if any."""
    tokens = read_tokens(question)
    found = [
        piece
        for order, language in enumerate(languages() if tokens else ())
        for piece in spans(pieces(question, tokens, language), today)
        if not piece.is_shared or _may_be_in(question, order)
    ]
    if not found:
        return None
    # Languages may match differently: one "in August", another "August last year".
    first = min(found, key=lambda piece: piece.start)
    beside = (piece for piece in found if piece.start < first.end)
    best = max(beside, key=lambda piece: piece.end - piece.start)
    return Span(*best.days, question[best.start : best.end]) if best.days else None


def without(question: str, span: Span) -> str:
    """The question without the words that name the time and those that introduce it."""
    phrase = re.escape(span.phrase)
    found = re.search(rf"(?<!\w){phrase}(?!\w)", question) or re.search(phrase, question)
    if found is None:
        return question
    before, after = question[: found.start()], question[found.end() :]
    while (last := re.search(r"(\w+)['’\s-]*$", before)) and last[1].casefold() in leading_words():
        before = before[: last.start()]
    after = re.sub(r"^['’]s\b", "", after)
    left = " ".join(f"{before} {after}".split())
    left = re.sub(r"\s+([?!.,;:])", r"\1", left)
    left = re.sub(r"[,;:]+(?=[?!.]|$)", "", left).lstrip(",;: ")
    return left if re.search(r"\w", left) else ""


def _may_be_in(question: str, order: int) -> bool:
    """Whether the question may be in that language, by its function words."""
    words = LETTERS.findall(question.casefold())
    counts = [sum(word in language.common for word in words) for language in languages()]
    return counts[order] >= max(counts)
