"""Answer a question from the index alone: no file of the vault is read.

Words, names, code and meaning are looked up side by side; the candidates are fetched once, scored
by letters too, fused, and cut into hits.
"""

import datetime
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from obsidian_rag.search.answer import Answer, Filters, Request, Signals, Suggestion
from obsidian_rag.search.filler import is_english
from obsidian_rag.search.filters import closeness, condition, saying, undated, visible, within
from obsidian_rag.search.meanings import Meanings, Vectoriser
from obsidian_rag.search.passages import Ranked, passages
from obsidian_rag.search.query import DateRange, Query, parse_query
from obsidian_rag.search.rank import (
    COLUMNS,
    MEANING,
    NO_VECTORS,
    WEAK,
    Balance,
    Case,
    Found,
    balance_of,
    bm25,
    normalised,
    rank,
)
from obsidian_rag.search.telling import Telling, rarity_of
from obsidian_rag.search.typos import corrected, has_unknown_name
from obsidian_rag.search.when import Span, find_span, without
from obsidian_rag.search.words import (
    folded,
    has_phrase,
    has_telling,
    question_words,
    root,
    stem,
    word_query,
    words_of,
)
from obsidian_rag.store import ChunkStore, Clause, Database, FoundRow, Lookup, summed

if TYPE_CHECKING:
    from concurrent.futures import Future

    import numpy as np
    from numpy.typing import NDArray

_CANDIDATES = 200
_FETCHED = 130
_DEEPEST = 20_000
_CANDIDATES_PER_HIT = 6
# Beyond that a word says next to nothing.
_MOST_COUNTED = 2000
# Of what a filter leaves, so many are looked at one by one when it leaves out most of the nearest.
_MOST_ADMITTED = 20_000
_NEAREST = 100
_NEARLY_ALL = 0.95
# How near to the time that was asked for a passage is that speaks of it.
_SAYING = 0.5
_LATIN = re.compile("[a-zA-Z\u00c0-\u024f]")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question on its way through the store; `where` admits the rows that may answer it.

    `visible` admits the rows that the caller may know of at all, if that is not all of them: how
    rare a word is among the others may not show in the answer.
    """

    lookup: Lookup
    request: Request
    query: Query
    where: str | None
    visible: str | None = None
    span: Span | None = None
    least_close: float = 0.0
    corrected: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The telling words."""
        return question_words(self.query.text) if self.query.text else ()

    def uses(self, signal: str) -> bool:
        """Whether a signal may have a say."""
        return signal not in self.request.leave_out


class Searcher:
    """Searches one index. `vectorise` is None when no vectors can be had."""

    def __init__(
        self,
        chunks: ChunkStore,
        database: Database,
        vectorise: Vectoriser | None,
        provider: str,
        meanings: Meanings | None = None,
    ) -> None:
        self._chunks = chunks
        self._database = database
        self._vectorise = vectorise
        self._provider = provider
        self._meanings = meanings

    def search(self, request: Request) -> Answer:
        """The best passages for the question.

        Raises:
            IndexNotFound, IndexCorrupted: there is nothing to search.
            InvalidArgument: a filter names something unknown.
            ObsidianRagError: the question could not be embedded.
        """
        query = parse_query(request.question)
        filters = _joined(request.filters, query)
        lookup = Lookup(self._chunks)
        filters = replace(filters, with_private=filters.with_private or not lookup.has_private())
        fixed = condition(filters, self._database)
        span = self._span(request, query, filters)
        asked = _Asked(lookup, request, query, fixed, visible(filters))
        # The store compares vectors while words are counted. Not with those of a service: a slip
        # would be sent there, and what it should have been too.
        if span is None and self._provider == "builtin":
            self._near(asked, _most_candidates(request))
        asked = _spelt_right(asked, span)
        if span is None and asked.query is not query:  # a slip may have hidden it
            span = self._span(request, asked.query, filters)
        if span is not None and asked.uses("date"):
            answer = self._in_span(asked, span)
            if answer is not None:
                return answer
        suggestion = _suggestion(span, is_applied=False) if span else None
        return self._answer(asked, suggestion)

    def _span(self, request: Request, query: Query, filters: Filters) -> Span | None:
        if not request.use_dates or filters.dates is not None:
            return None
        return find_span(query.text, request.today or datetime.date.today())

    def _in_span(self, asked: _Asked, span: Span) -> Answer | None:
        """What is of the time that was asked for, what speaks of it, then what has no date.

        None if nothing is of that time.
        """
        text = without(asked.query.text, span)
        timeless = replace(asked.query, text=text if has_telling(text) else "")
        inside = replace(asked, query=timeless, span=span)
        dates = _range(span)
        best: list[Ranked] = []
        confidence, ahead = 0.0, 0
        for here, where in (
            (inside, within(dates)),
            (replace(inside, least_close=_SAYING), saying(dates)),
            (asked, undated()),
        ):
            if (
                len({(item.row.link_id, item.row.source_file) for item in best})
                >= asked.request.limit
            ):
                break
            if here is asked and not best:
                return None
            found, sure = self._ranked(replace(here, where=_all(asked.where, where)))
            if here is inside:
                found = [item for item in found if closeness(item.row.dates, dates)]
                # Who asks for a day wants all of it.
                ahead = len(found) if span.first == span.last else 0
            best += _below(best, found)
            confidence = max(confidence, sure if found and here is not asked else 0.0)
        return _answer(inside, best, confidence, _suggestion(span, is_applied=True), ahead)

    def _answer(self, asked: _Asked, suggestion: Suggestion | None) -> Answer:
        ranked, confidence = self._ranked(asked)
        return _answer(asked, ranked, confidence, suggestion)

    def _ranked(self, asked: _Asked) -> tuple[list[Ranked], float]:
        """Candidates in order of their score, all of them admitted; how sure the first ones are."""
        query = asked.query
        limit = _most_candidates(asked.request)
        words = asked.words
        total, having = asked.lookup.counts(words, _MOST_COUNTED, asked.visible)
        found, rows = self._candidates(asked, limit)
        # Exclusions hold after the lookup: when they leave nothing, look further down.
        while not rows and query.excluded and _is_cut_short(found, limit) and limit <= _DEEPEST:
            limit *= 8
            found, rows = self._candidates(asked, limit)
        telling = Telling.of(words, total, having)
        share = self._meaning_share(total)
        if asked.visible is not None:
            found.words = _own_word_scores(words, found, rows, (total, having))
        case = Case(
            telling,
            words,
            self._balance(asked, found, share),
            asked.request.leave_out,
            is_vectors_only=asked.request.signals is Signals.VECTORS,
            has_unknown_name=has_unknown_name(query.text, having),
            meaning_share=share,
            is_english=is_english(words_of(folded(query.text))),
        )
        ranking = rank(case, rows, found)
        return [Ranked(rows[n], score, shares) for n, score, shares in ranking.rows], (
            ranking.confidence
        )

    def _meaning_share(self, total: int) -> float:
        """How many of the passages have a meaning vector; nearly all count as all."""
        if self._meanings is None or not total:
            return 1.0
        share = self._meanings.store.count() / total
        return share if share < _NEARLY_ALL else 1.0

    def _balance(self, asked: _Asked, found: Found, share: float) -> Balance:
        if asked.request.signals is Signals.WORDS or not (found.static or found.meaning):
            return NO_VECTORS
        balance = balance_of(self._provider)
        if found.meaning:
            balance = MEANING.between(balance, share)
        knows_all = self._is_multilingual(has_meaning=bool(found.meaning))
        is_read = knows_all or is_english(words_of(folded(asked.query.text)))
        # A command or a message is looked for as it is.
        return balance.lessened() if asked.query.is_command or not is_read else balance

    def _is_multilingual(self, *, has_meaning: bool) -> bool:
        """Whether the vectors that decide know more than English."""
        if has_meaning and self._meanings is not None:
            return self._meanings.is_multilingual
        return self._provider not in ("builtin", "hash")

    def _candidates(self, asked: _Asked, limit: int) -> tuple[Found, dict[int, FoundRow]]:
        """What the signals found, and the rows worth ranking."""
        found, vector = self._looked_up(asked, limit)
        most = _FETCHED if limit == _CANDIDATES else limit
        promising = _promising(found, most)
        rows = asked.lookup.rows(promising, with_words_only=True)
        rows = {number: row for number, row in rows.items() if _is_wanted(row, asked)}
        if vector is not None and self._meanings is not None:
            unknown = {row.chunk_id: n for n, row in rows.items() if n not in found.meaning}
            near = self._meanings.store.similarities(vector, unknown)
            found.meaning |= {unknown[key]: score for key, score in near.items()}
            # Sections that are judged each by itself say nothing of each other.
            if not asked.request.by_section:
                best = (rows[number] for number in promising if number in rows)
                notes = self._meanings.of_notes(asked.lookup, vector, best)
                found.note = {
                    number: notes[row.link_id, row.source_file]
                    for number, row in rows.items()
                    if (row.link_id, row.source_file) in notes
                }
        if asked.span is not None:
            dates = _range(asked.span)
            found.date = {
                number: max(asked.least_close, closeness(row.dates, dates))
                for number, row in rows.items()
            }
        return found, rows

    def _looked_up(self, asked: _Asked, limit: int) -> "tuple[Found, NDArray[np.float32] | None]":
        lookup, text = asked.lookup, asked.query.text
        if not text:
            return Found(words={"text": lookup.admitted(asked.where, limit)}), None
        clauses = _clauses(asked)
        # The store works in threads of its own while the meaning vectors are compared here.
        by_words = lookup.begin_by_words([clause for _, clause in clauses], asked.where, limit)
        by_vector = self._near(asked, limit)
        vector, near = self._nearest(asked, text)
        numbers = lookup.numbers(list(near), asked.where)
        if vector is not None and asked.where and len(numbers) < _NEAREST // 2:
            near = self._admitted(asked, vector)
            numbers = lookup.numbers(list(near), asked.where)
        words: dict[str, dict[int, float]] = {}
        for (name, _), values in zip(clauses, by_words.result(), strict=True):
            words[name] = summed([(1.0, words[name]), (1.0, values)]) if name in words else values
        meaning = {numbers[key]: near[key] for key in near if key in numbers}
        static = {} if by_vector is None else by_vector.result()
        return Found(words, static, meaning), vector if meaning else None

    def _near(self, asked: _Asked, limit: int) -> "Future[dict[int, float]] | None":
        """Begin to look up the rows nearest to the question by static vectors."""
        text = asked.query.text
        if (
            not text
            or self._vectorise is None
            or asked.request.signals is Signals.WORDS
            or not asked.uses("static")
            # Its vocabulary is English: other scripts come out as single bytes.
            or (self._provider == "builtin" and not _is_latin(text))
        ):
            return None
        vector = self._vectorise(text)
        return None if vector is None else asked.lookup.begin_by_vector(vector, asked.where, limit)

    def _nearest(
        self, asked: _Asked, text: str
    ) -> "tuple[NDArray[np.float32] | None, dict[str, float]]":
        """The question's meaning vector, and the chunks nearest to it with their similarity."""
        meanings = self._meanings
        if (
            meanings is None
            or asked.request.signals is Signals.WORDS
            or not asked.uses("meaning")
            or not (meanings.is_multilingual or _is_latin(text))
        ):
            return None, {}
        vector = meanings.vectorise(text)
        if vector is None:
            return None, {}
        # Not all of them are admitted.
        most = _NEAREST if asked.where is None else 4 * _NEAREST
        return vector, meanings.store.nearest(vector, most)

    def _admitted(self, asked: _Asked, vector: "NDArray[np.float32]") -> dict[str, float]:
        """The nearest of those that a filter admits, where it leaves few."""
        if self._meanings is None or asked.where is None:
            return {}
        admitted = asked.lookup.chunk_ids(asked.where, _MOST_ADMITTED)
        return self._meanings.store.nearest(vector, _NEAREST, admitted)


def _spelt_right(asked: _Asked, span: Span | None) -> _Asked:
    """The question with the words that nobody wrote put right, where somebody wrote one alike.

    The words of a time stay: nobody need have written of Christmas to be asked about it.
    """
    text = asked.query.text
    # Where sections are withheld, the word put right might be one of theirs.
    if asked.query.is_command or not text or asked.request.by_section:
        return asked
    times = frozenset(question_words(span.phrase)) if span else frozenset[str]()
    _, having = asked.lookup.counts(asked.words, _MOST_COUNTED, asked.visible)
    unknown = {word: count for word, count in having.items() if word not in times}
    right = corrected(asked.lookup, text, unknown, asked.where, asked.request.filters.admits)
    if right is None:
        return asked
    query = replace(asked.query, text=right.text)
    return replace(asked, query=query, corrected=right.text if right.is_slip else None)


def _most_candidates(request: Request) -> int:
    return max(_CANDIDATES, request.limit * _CANDIDATES_PER_HIT)


def _is_latin(text: str) -> bool:
    """Whether most of it is in the script of English."""
    letters = len(_LETTER.findall(text))
    return letters == 0 or 2 * len(_LATIN.findall(text)) > letters


def _is_cut_short(found: Found, limit: int) -> bool:
    """Whether there may be more rows than were looked up."""
    return any(len(rows) >= limit for rows in found.words.values())


def _clauses(asked: _Asked) -> list[tuple[str, Clause]]:
    """What is looked for by word, each with the signal that it is of; phrases are of the text."""
    words = word_query(asked.query.text, is_command=asked.query.is_command)
    if asked.request.signals is Signals.VECTORS or not words:
        return []
    clauses = [(name, Clause(words, column)) for name, (column, _) in COLUMNS.items()]
    clauses += [("text", Clause(one, "chunk_text", is_phrase=True)) for one in asked.query.phrases]
    return [(name, clause) for name, clause in clauses if asked.uses(name)]


def _answer(
    asked: _Asked,
    ranked: list[Ranked],
    confidence: float,
    suggestion: Suggestion | None,
    ahead: int = 0,
) -> Answer:
    request = asked.request
    # As the user wrote them, where only another form of a word was looked for.
    written = {root(word): word for word in question_words(request.question)}
    hits = passages(
        ranked,
        tuple(written.get(root(word), word) for word in asked.words),
        request.limit,
        one_each=request.group_by_note,
        by_section=request.by_section,
        ahead=ahead,
    )
    return Answer(
        tuple(hits),
        suggestion,
        len(ranked),
        is_weak=confidence < WEAK,
        confidence=round(confidence, 4),
        corrected=asked.corrected,
    )


def _promising(found: Found, most: int) -> list[int]:
    """The candidates worth fetching: rows are what an answer's time goes into."""
    words = summed([(COLUMNS[name][1], values) for name, values in found.words.items()])
    top = max(words.values(), default=0.0) or 1.0
    rough = summed(
        [
            (1 / top, words),
            (0.5, normalised(found.static)),
            (1.0, normalised(found.meaning)),
        ]
    )
    return sorted(rough, key=lambda number: -rough[number])[:most]


def _below(first: list[Ranked], others: list[Ranked]) -> list[Ranked]:
    """The others with scores below those of the first."""
    if not first or not others:
        return others
    scale = 0.99 * first[-1].score / (others[0].score or 1.0)
    if scale >= 1:
        return others
    return [
        replace(
            item,
            score=item.score * scale,
            shares={name: share * scale for name, share in item.shares.items()},
        )
        for item in others
    ]


def _all(*conditions: str | None) -> str:
    return " AND ".join(filter(None, conditions))


def _range(span: Span) -> DateRange:
    return DateRange(span.first.isoformat(), span.last.isoformat())


def _joined(filters: Filters, query: Query) -> Filters:
    """The filters of the call and those written into the question; all of them hold."""
    return replace(
        filters,
        tags=(*filters.tags, *((tag,) for tag in query.tags)),
        paths=(*filters.paths, *query.paths),
        dates=_narrowest(filters.dates, query.dates),
        properties=(*filters.properties, *query.properties),
        vaults=(*filters.vaults, *((query.vaults,) if query.vaults else ())),
    )


def _narrowest(one: DateRange | None, other: DateRange | None) -> DateRange | None:
    if one is None or other is None:
        return one or other
    firsts = [day for day in (one.first, other.first) if day is not None]
    lasts = [day for day in (one.last, other.last) if day is not None]
    return DateRange(max(firsts, default=None), min(lasts, default=None))


def _suggestion(span: Span, *, is_applied: bool) -> Suggestion:
    return Suggestion(span.phrase, span.first.isoformat(), span.last.isoformat(), is_applied)


def _is_wanted(row: FoundRow, asked: _Asked) -> bool:
    """Whether the row may answer, and has every phrase and none of the excluded words."""
    query, admits = asked.query, asked.request.filters.admits
    if admits is not None and not admits(row.link_id, row.source_file):
        return False
    if not query.phrases and not query.excluded:
        return True
    text = " ".join(folded(f"{row.names}\n{row.chunk_text}\n{row.words_only}").split())
    has = has_phrase if asked.request.by_section else _has_letters
    if not all(has(text, phrase) for phrase in query.phrases):
        return False
    padded = f" {' '.join(_words(text))} "
    return not any(f" {' '.join(_words(folded(word)))} " in padded for word in query.excluded)


def _has_letters(text: str, phrase: str) -> bool:
    """Whether a folded text has the letters of a phrase one after the other."""
    return " ".join(folded(phrase).split()) in text


def _own_word_scores(
    words: tuple[str, ...],
    found: Found,
    rows: dict[int, FoundRow],
    counts: tuple[int, dict[str, int]],
) -> dict[str, dict[int, float]]:
    """BM25 as the store has it, but by how rare a word is in notes that may be known."""
    total, having = counts
    rarity = {stem(word): rarity_of(total, having[word]) for word in words}
    texts = {
        "text": {number: folded(row.chunk_text) for number, row in rows.items()},
        "heading": {number: folded(row.names) for number, row in rows.items()},
        "code": {number: folded(row.words_only) for number, row in rows.items()},
    }
    return {name: bm25(rarity, texts[name]) for name in found.words}


def _words(text: str) -> list[str]:
    return words_of(text.replace("_", " "))
