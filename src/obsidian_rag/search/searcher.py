"""Answer a question from the index alone: no file of the vault is read.

Words, names, code and meaning are looked up side by side; the candidates are fetched once, scored
by letters too, fused, and cut into hits.
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from obsidian_rag.search.answer import Answer, Filters, Request, Signals, Suggestion
from obsidian_rag.search.filters import condition, within
from obsidian_rag.search.passages import Ranked, passages
from obsidian_rag.search.query import DateRange, Query, parse_query
from obsidian_rag.search.rank import (
    NAME_SHARE,
    VECTORS_ONLY,
    WORDS_ONLY,
    Weights,
    coverage,
    covered,
    hybrid_weights,
    letter_scores,
    name_scores,
    normalised,
)
from obsidian_rag.search.when import Span, find_span
from obsidian_rag.search.words import folded, letter_groups, question_words, stem, word_query
from obsidian_rag.store import ChunkStore, Clause, Database, FoundRow, Lookup, summed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CANDIDATES = 80
_FETCHED = 100
_DEEPEST = 20_000
_CANDIDATES_PER_HIT = 6
_COLUMN_WEIGHTS = (("chunk_text", 1.0), ("names", 1.0), ("words_only", 0.7))
_FUZZY_WEIGHT = 0.5
_IN_SPAN = 0.2
_MOST_FORGIVEN = 3
_SHORTEST_FUZZY = 4
# LanceDB refuses to look for near matches of longer words (an automaton of 10,000 states).
_LONGEST_FUZZY = 40

Vectoriser = Callable[[str], "NDArray[np.float32]"]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question on its way through the store; `where` admits the rows that may answer it."""

    lookup: Lookup
    request: Request
    query: Query
    words: tuple[str, ...]
    vector: "NDArray[np.float32] | None"
    where: str | None
    has_span: bool = False


@dataclass(frozen=True, slots=True)
class _Scores:
    """What each signal says, by row number."""

    words: dict[int, float]
    vector: dict[int, float]


class Searcher:
    """Searches one index. `vectorise` is None when no vectors can be had."""

    def __init__(
        self,
        chunks: ChunkStore,
        database: Database,
        vectorise: Vectoriser | None,
        provider: str,
    ) -> None:
        self._chunks = chunks
        self._database = database
        self._vectorise = vectorise
        self._provider = provider

    def search(self, request: Request) -> Answer:
        """The best passages for the question.

        Raises:
            IndexNotFound, IndexCorrupted: there is nothing to search.
            InvalidArgument: a filter names something unknown.
            ObsidianRagError: the question could not be embedded.
        """
        query = parse_query(request.question)
        filters = _joined(request.filters, query)
        fixed = condition(filters, self._database)
        span = self._span(request, query, filters)
        asked = _Asked(
            lookup=Lookup(self._chunks),
            request=request,
            query=query,
            words=question_words(query.text),
            vector=self._vector(request, query),
            where=fixed,
        )
        if span is not None:
            dates = DateRange(span.first.isoformat(), span.last.isoformat())
            narrowed = " AND ".join(filter(None, (fixed, within(dates))))
            ranked = self._ranked(replace(asked, where=narrowed, has_span=True))
            if any(item.row.date and item.shares.get("date") for item in ranked):
                return _answer(asked, ranked, _suggestion(span, is_applied=True))
        suggestion = _suggestion(span, is_applied=False) if span else None
        return _answer(asked, self._ranked(asked), suggestion)

    def _span(self, request: Request, query: Query, filters: Filters) -> Span | None:
        if not request.use_dates or filters.dates is not None:
            return None
        return find_span(query.text, request.today or datetime.date.today())

    def _vector(self, request: Request, query: Query) -> "NDArray[np.float32] | None":
        if self._vectorise is None or request.signals is Signals.WORDS or not query.text:
            return None
        return self._vectorise(query.text)

    def _ranked(self, asked: _Asked) -> list[Ranked]:
        """Candidates in order of their score, all of them admitted."""
        query = asked.query
        limit = max(_CANDIDATES, asked.request.limit * _CANDIDATES_PER_HIT)
        scores, rows = _candidates(asked, limit)
        # Exclusions hold after the lookup: when they leave nothing, look further down.
        while not rows and query.excluded and len(scores.words) >= limit and limit <= _DEEPEST:
            limit *= 8
            scores, rows = _candidates(asked, limit)
        texts = {number: _plain(row) for number, row in rows.items()}
        if asked.request.signals is not Signals.VECTORS:
            _forgive(asked, scores, rows, texts)
        return self._fused(asked, scores, rows, texts)

    def _fused(
        self,
        asked: _Asked,
        scores: _Scores,
        rows: dict[int, FoundRow],
        texts: dict[int, str],
    ) -> list[Ranked]:
        words = asked.words
        weights = self._weights_now(asked.request, scores)
        share = coverage([stem(word) for word in words], texts)
        letters = letter_scores(letter_groups(words), texts) if weights.letters else {}
        shares = {
            "words": (weights.words, normalised(covered(scores.words, share), floor=0.0)),
            "vector": (weights.vector, normalised(scores.vector)),
            "letters": (weights.letters, normalised(letters)),
        }
        names = {}
        if asked.request.signals is not Signals.VECTORS:
            names = name_scores(words, {number: folded(row.names) for number, row in rows.items()})
        ranked = []
        for number, row in rows.items():
            named = NAME_SHARE * names.get(number, 0.0)
            parts = {
                name: (1 - named) * weight * part.get(number, 0.0)
                for name, (weight, part) in shares.items()
            }
            if named:
                parts["name"] = named
            if asked.has_span:
                parts = {name: share * (1 - _IN_SPAN) for name, share in parts.items()}
                parts["date"] = _IN_SPAN if row.date is not None else 0.0
            ranked.append(Ranked(row, min(1.0, sum(parts.values())), parts, number))
        ranked.sort(key=lambda item: (-item.score, item.row.source_file, item.row.chunk_index))
        return ranked

    def _weights_now(self, request: Request, scores: _Scores) -> Weights:
        if request.signals is Signals.VECTORS:
            return VECTORS_ONLY
        if not scores.vector:
            return WORDS_ONLY
        return hybrid_weights(self._provider, scores.vector, request.question)


def _answer(asked: _Asked, ranked: list[Ranked], suggestion: Suggestion | None) -> Answer:
    request = asked.request
    hits = passages(
        ranked,
        asked.words,
        request.limit,
        one_each=request.group_by_note,
        read_words_only=asked.lookup.words_only,
    )
    return Answer(tuple(hits), suggestion, len(ranked))


def _candidates(asked: _Asked, limit: int) -> tuple[_Scores, dict[int, FoundRow]]:
    """What the signals found, and the rows worth ranking."""
    query = asked.query
    scores = _looked_up(asked, limit)
    promising = _promising(scores, max(_FETCHED, limit))
    rows = asked.lookup.rows(promising, with_words_only=_needs_words_only(query))
    return scores, {number: row for number, row in rows.items() if _is_wanted(row, query)}


def _looked_up(asked: _Asked, limit: int) -> _Scores:
    lookup, query, where = asked.lookup, asked.query, asked.where
    if not query.text:
        return _Scores(lookup.admitted(where, limit), {})
    clauses = []
    if asked.request.signals is not Signals.VECTORS and (words := word_query(query.text)):
        clauses = [Clause(words, column, weight) for column, weight in _COLUMN_WEIGHTS]
        clauses += [Clause(phrase, "chunk_text", is_phrase=True) for phrase in query.phrases]
    return _Scores(*lookup.by_both(clauses, asked.vector, where, limit))


def _forgive(
    asked: _Asked, scores: _Scores, rows: dict[int, FoundRow], texts: dict[int, str]
) -> None:
    """Look again, with room for wrong letters, for words that no candidate contains."""
    lookup, query = asked.lookup, asked.query
    missing = [
        word
        for word in asked.words
        if _SHORTEST_FUZZY <= len(word) <= _LONGEST_FUZZY
        and not any(stem(word) in text for text in texts.values())
    ]
    # The store's words are stemmed and these are not, which costs a letter by itself.
    clauses = [
        Clause(word, column, _FUZZY_WEIGHT, 2 if len(word) > _SHORTEST_FUZZY else 1)
        for word in missing[:_MOST_FORGIVEN]
        for column in ("names", "chunk_text")
    ]
    if not clauses:
        return
    found = lookup.by_words(clauses, asked.where, _CANDIDATES // 4)
    unseen = [number for number in found if number not in rows]
    new = lookup.rows(unseen, with_words_only=_needs_words_only(query))
    rows.update({number: row for number, row in new.items() if _is_wanted(row, query)})
    texts |= {number: _plain(row) for number, row in rows.items() if number not in texts}
    for number, score in found.items():
        scores.words[number] = scores.words.get(number, 0.0) + score


def _promising(scores: _Scores, most: int) -> list[int]:
    """The candidates worth fetching: rows are what an answer's time goes into."""
    rough = summed([(1.0, normalised(scores.words, floor=0.0)), (0.5, normalised(scores.vector))])
    return sorted(rough, key=lambda number: -rough[number])[:most]


def _joined(filters: Filters, query: Query) -> Filters:
    """The filters of the call and those written into the question; all of them hold."""
    return replace(
        filters,
        tags=(*filters.tags, *((tag,) for tag in query.tags)),
        paths=(*filters.paths, *query.paths),
        dates=_narrowest(filters.dates, query.dates),
        properties=(*filters.properties, *query.properties),
    )


def _narrowest(one: DateRange | None, other: DateRange | None) -> DateRange | None:
    if one is None or other is None:
        return one or other
    firsts = [day for day in (one.first, other.first) if day is not None]
    lasts = [day for day in (one.last, other.last) if day is not None]
    return DateRange(max(firsts, default=None), min(lasts, default=None))


def _suggestion(span: Span, *, is_applied: bool) -> Suggestion:
    return Suggestion(span.phrase, span.first.isoformat(), span.last.isoformat(), is_applied)


def _is_wanted(row: FoundRow, query: Query) -> bool:
    """Whether the row has every phrase and none of the excluded words."""
    if not query.phrases and not query.excluded:
        return True
    text = " ".join(folded(f"{row.names}\n{row.chunk_text}\n{row.words_only}").split())
    if not all(" ".join(folded(phrase).split()) in text for phrase in query.phrases):
        return False
    padded = f" {' '.join(_words(text))} "
    return not any(f" {' '.join(_words(folded(word)))} " in padded for word in query.excluded)


def _needs_words_only(query: Query) -> bool:
    """Phrases and exclusions are looked for in code and properties too."""
    return bool(query.phrases or query.excluded)


def _plain(row: FoundRow) -> str:
    return folded(f"{row.names}\n{row.chunk_text}")


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text).split()
