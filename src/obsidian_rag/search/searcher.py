"""Answer a question from the index alone; no file of the vault is read.

Words, names, code and meaning are looked up in parallel. The candidates are fetched once, scored by
letters too, ranked, and cut into hits.
"""

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from obsidian_rag.search.answer import Answer, Request, Signals, Suggestion
from obsidian_rag.search.filters import (
    closeness,
    condition,
    mentioning,
    merge_filters,
    undated,
    visible,
    within,
)
from obsidian_rag.search.keywords import Keywords
from obsidian_rag.search.letters import correct_words, has_unknown_name
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
    normalise,
    rank,
    score_words,
)
from obsidian_rag.search.when import Span, find_span, without
from obsidian_rag.search.words import (
    Wording,
    folded,
    has_keywords,
    has_phrase,
    question_words,
    root,
    word_query,
    words_of,
)
from obsidian_rag.store import ChunkStore, Clause, Database, FoundRow, Lookup, MeaningStore, summed

if TYPE_CHECKING:
    from concurrent.futures import Future

    from numpy.typing import NDArray


# How many of the best notes are compared as a whole, and by how many passages in all.
_MAX_NOTES = 20
_MAX_NOTE_PASSAGES = 5000

Vectoriser = Callable[[str], "NDArray[np.float32] | None"]
_Note = tuple[str, str]
_MIN_CANDIDATES = 200
_MAX_FETCHED = 130
_MAX_CANDIDATES = 20_000
_CANDIDATES_PER_HIT = 6
# A word in more passages than this carries almost no information.
_MAX_COUNTED_PASSAGES = 2000
# How many rows are compared one by one when a filter removes most of the nearest.
_MAX_ADMITTED = 20_000
_NEAREST = 100
_COUNTS_AS_ALL = 0.95
# The closeness in time of a passage that only mentions the date asked for.
_MENTION_CLOSENESS = 0.5


@dataclass(frozen=True, slots=True)
class Meanings:
    """Meaning vectors of questions, and of the passages that have one."""

    vectorise: Vectoriser
    store: MeaningStore
    is_multilingual: bool = False

    def of_notes(
        self, lookup: Lookup, vector: "NDArray[np.float32]", rows: Iterable[FoundRow]
    ) -> dict[_Note, float]:
        """Similarity of the first notes of these rows, by the mean of each note's vectors."""
        notes: dict[_Note, None] = {}
        for row in rows:
            notes[row.link_id, row.source_file] = None
            if len(notes) == _MAX_NOTES:
                break
        ids = lookup.chunks_of_notes(list(notes), _MAX_NOTE_PASSAGES)
        vectors = self.store.vectors([one for some in ids.values() for one in some])
        near = {}
        for note, some in ids.items():
            known = [vectors[one] for one in some if one in vectors]
            mean = np.sum(known, axis=0) if known else np.zeros_like(vector)
            if (length := float(np.linalg.norm(mean))) > 0:
                near[note] = float(mean @ vector) / length
        return near


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question as the store is asked: its words and its conditions.

    `where` admits the rows that may answer it, `visible` those that the caller may know of at all;
    None admits all. Word counts use only visible rows, so that scores reveal nothing about others.
    """

    lookup: Lookup
    request: Request
    query: Query
    wording: Wording
    # How many candidates a lookup finds.
    limit: int
    where: str | None
    visible: str | None = None
    span: Span | None = None
    least_close: float = 0.0
    corrected: str | None = None

    def uses(self, signal: str) -> bool:
        """Whether the request lets a signal count."""
        return signal not in self.request.leave_out


class Searcher:
    """Searches one index; `vectorise` is None when there are no vectors."""

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
        filters = merge_filters(request.filters, query)
        lookup = Lookup(self._chunks)
        filters = replace(filters, with_private=filters.with_private or not lookup.has_private())
        may_have_span = request.use_dates and filters.dates is None
        today = request.today or datetime.date.today()
        span = find_span(query.text, today) if may_have_span else None
        asked = _Asked(
            lookup,
            request,
            query,
            Wording.of(query.text),
            max(_MIN_CANDIDATES, request.limit * _CANDIDATES_PER_HIT),
            condition(filters, self._database),
            visible(filters),
        )
        # Start comparing vectors while words are counted. Not with a remote service: both the
        # misspelt and the corrected question would be sent there.
        if span is None and self._provider == "builtin":
            self._begin_by_vector(asked)
        original, asked = asked, _correct_spelling(asked, span)
        # A typo may have hidden the date.
        if span is None and may_have_span and asked is not original:
            span = find_span(asked.wording.text, today)
        if span is not None and asked.uses("date"):
            answer = self._search_span(asked, span)
            if answer is not None:
                return answer
        ranked, confidence = self._rank(asked)
        suggestion = _suggest(span, is_applied=False) if span else None
        return _answer(asked, ranked, confidence, suggestion)

    def _search_span(self, asked: _Asked, span: Span) -> Answer | None:
        """Passages of the time asked for, then those that mention it, then undated ones.

        None if there are none of that time.
        """
        text = without(asked.wording.text, span)
        timeless = Wording.of(text if has_keywords(text) else "")
        inside = replace(asked, wording=timeless, span=span)
        dates = _range(span)
        best: list[Ranked] = []
        confidence, ahead = 0.0, 0
        for here, where in (
            (inside, within(dates)),
            (replace(inside, least_close=_MENTION_CLOSENESS), mentioning(dates)),
            (asked, undated()),
        ):
            if len({item.note for item in best}) >= asked.request.limit:
                break
            if here is asked and not best:
                return None
            conditions = " AND ".join(filter(None, (asked.where, where)))
            found, sure = self._rank(replace(here, where=conditions))
            if here is inside:
                found = [item for item in found if closeness(item.row.dates, dates)]
                # A question about a single day gets everything from it.
                ahead = len(found) if span.first == span.last else 0
            best += _scale_below(best, found)
            confidence = max(confidence, sure if found and here is not asked else 0.0)
        return _answer(inside, best, confidence, _suggest(span, is_applied=True), ahead)

    def _rank(self, asked: _Asked) -> tuple[list[Ranked], float]:
        """Admitted candidates, best first, and the confidence in the first ones."""
        wording, words = asked.wording, asked.wording.keywords
        total, having = asked.lookup.counts(words, _MAX_COUNTED_PASSAGES, asked.visible)
        found, rows = self._find_candidates(asked)
        # Exclusions apply after the lookup: if they leave nothing, look further down.
        while not rows and asked.query.excluded and asked.limit <= _MAX_CANDIDATES:
            if all(len(matches) < asked.limit for matches in found.words.values()):
                break
            asked = replace(asked, limit=8 * asked.limit)
            found, rows = self._find_candidates(asked)
        share = self._meaning_share(total)
        found.words = score_words(words, found, rows, (total, having))
        case = Case(
            Keywords.of(words, total, having),
            words,
            self._choose_balance(asked, found, share),
            asked.request.leave_out,
            is_vectors_only=asked.request.signals is Signals.VECTORS,
            has_unknown_name=has_unknown_name(wording.text, having),
            is_wordless=bool(wording.text) and not wording.words,
            meaning_share=share,
            is_english=wording.is_english,
        )
        ranking = rank(case, rows, found)
        ranked = [Ranked(rows[number], score, shares) for number, score, shares in ranking.rows]
        return ranked, ranking.confidence

    def _meaning_share(self, total: int) -> float:
        """The share of passages with a meaning vector; 1 if nearly all have one."""
        if self._meanings is None or not total:
            return 1.0
        share = self._meanings.store.count() / total
        return share if share < _COUNTS_AS_ALL else 1.0

    def _choose_balance(self, asked: _Asked, found: Found, share: float) -> Balance:
        if asked.request.signals is Signals.WORDS or not (found.static or found.meaning):
            return NO_VECTORS
        balance = balance_of(self._provider)
        is_multilingual = self._provider not in ("builtin", "hash")
        if found.meaning and self._meanings is not None:
            balance = MEANING.between(balance, share)
            is_multilingual = self._meanings.is_multilingual
        is_read = is_multilingual or asked.wording.is_english
        # Commands and messages are searched literally.
        return balance.lessened() if asked.query.is_command or not is_read else balance

    def _find_candidates(self, asked: _Asked) -> tuple[Found, dict[int, FoundRow]]:
        """What the signals found, and the rows worth ranking."""
        found, vector = self._look_up(asked)
        most = _MAX_FETCHED if asked.limit == _MIN_CANDIDATES else asked.limit
        promising = _choose_promising(found, most)
        rows = asked.lookup.rows(promising, with_words_only=True)
        rows = {number: row for number, row in rows.items() if _may_answer(row, asked)}
        if vector is not None and self._meanings is not None:
            unknown = {row.chunk_id: n for n, row in rows.items() if n not in found.meaning}
            near = self._meanings.store.similarities(vector, unknown)
            found.meaning |= {unknown[key]: score for key, score in near.items()}
            # When sections are judged separately, one must not affect the score of another.
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

    def _look_up(self, asked: _Asked) -> "tuple[Found, NDArray[np.float32] | None]":
        lookup, limit = asked.lookup, asked.limit
        if not asked.wording.text:
            return Found(words={"text": lookup.admitted(asked.where, limit)}), None
        clauses = _clauses(asked)
        # The store works in its own threads while the meaning vectors are compared here.
        by_words = lookup.begin_by_words([clause for _, clause in clauses], asked.where, limit)
        by_vector = self._begin_by_vector(asked)
        vector, near = self._find_nearest(asked)
        numbers = lookup.numbers(list(near), asked.where)
        if vector is not None and asked.where and len(numbers) < _NEAREST // 2:
            near = self._find_nearest_admitted(asked, vector)
            numbers = lookup.numbers(list(near), asked.where)
        words: dict[str, dict[int, float]] = {}
        for (name, _), values in zip(clauses, by_words.result(), strict=True):
            words[name] = summed([(1.0, words[name]), (1.0, values)]) if name in words else values
        meaning = {numbers[key]: near[key] for key in near if key in numbers}
        static = {} if by_vector is None else by_vector.result()
        return Found(words, static, meaning), vector if meaning else None

    def _begin_by_vector(self, asked: _Asked) -> "Future[dict[int, float]] | None":
        """Start looking up the rows nearest to the question by static vectors."""
        wording = asked.wording
        if (
            not wording.text
            or self._vectorise is None
            or asked.request.signals is Signals.WORDS
            or not asked.uses("static")
            # Its vocabulary is English; other scripts are tokenized as single bytes.
            or (self._provider == "builtin" and not wording.is_latin)
        ):
            return None
        vector = self._vectorise(wording.text)
        if vector is None:
            return None
        return asked.lookup.begin_by_vector(vector, asked.where, asked.limit)

    def _find_nearest(self, asked: _Asked) -> "tuple[NDArray[np.float32] | None, dict[str, float]]":
        """The question's meaning vector, and the nearest chunks with their similarity."""
        meanings = self._meanings
        if (
            meanings is None
            or asked.request.signals is Signals.WORDS
            or not asked.uses("meaning")
            or not (meanings.is_multilingual or asked.wording.is_latin)
        ):
            return None, {}
        vector = meanings.vectorise(asked.wording.text)
        if vector is None:
            return None, {}
        # The filter will reject some of them.
        most = _NEAREST if asked.where is None else 4 * _NEAREST
        return vector, meanings.store.nearest(vector, most)

    def _find_nearest_admitted(
        self, asked: _Asked, vector: "NDArray[np.float32]"
    ) -> dict[str, float]:
        """The nearest of the chunks that a filter admits."""
        if self._meanings is None or asked.where is None:
            return {}
        admitted = asked.lookup.chunk_ids(asked.where, _MAX_ADMITTED)
        return self._meanings.store.nearest(vector, _NEAREST, admitted)


def _correct_spelling(asked: _Asked, span: Span | None) -> _Asked:
    """Replace words that no note has by similar ones that occur in the vault.

    Words that name a time are kept: a question about Christmas is fine in a vault without the word.
    """
    text = asked.wording.text
    # If sections may be withheld, a correction could reveal a word from one of them.
    if asked.query.is_command or not text or asked.request.by_section:
        return asked
    times = frozenset(question_words(span.phrase)) if span else frozenset[str]()
    _, having = asked.lookup.counts(asked.wording.keywords, _MAX_COUNTED_PASSAGES, asked.visible)
    unknown = {word: count for word, count in having.items() if word not in times}
    right = correct_words(asked.lookup, text, unknown, asked.where, asked.request.filters.admits)
    if right is None:
        return asked
    shown = right.text if right.is_slip else None
    return replace(asked, wording=Wording.of(right.text), corrected=shown)


def _clauses(asked: _Asked) -> list[tuple[str, Clause]]:
    """The word lookups, each with its signal; phrases belong to the text signal."""
    words = word_query(asked.wording.text, is_command=asked.query.is_command)
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
    # Show words as the user wrote them, even if another form was searched.
    written = {root(word): word for word in question_words(request.question)}
    hits = passages(
        ranked,
        tuple(written.get(root(word), word) for word in asked.wording.keywords),
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


def _choose_promising(found: Found, most: int) -> list[int]:
    """The candidates worth fetching: fetching rows is the slowest part of an answer."""
    words = summed([(COLUMNS[name][1], values) for name, values in found.words.items()])
    top = max(words.values(), default=0.0) or 1.0
    rough = summed(
        [
            (1 / top, words),
            (0.5, normalise(found.static)),
            (1.0, normalise(found.meaning)),
        ]
    )
    return sorted(rough, key=lambda number: -rough[number])[:most]


def _scale_below(first: list[Ranked], others: list[Ranked]) -> list[Ranked]:
    """The others, with their scores scaled below those of the first."""
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


def _range(span: Span) -> DateRange:
    return DateRange(span.first.isoformat(), span.last.isoformat())


def _suggest(span: Span, *, is_applied: bool) -> Suggestion:
    return Suggestion(span.phrase, span.first.isoformat(), span.last.isoformat(), is_applied)


def _may_answer(row: FoundRow, asked: _Asked) -> bool:
    """Whether the row is admitted, and has every phrase and none of the excluded words."""
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
    """Whether a folded text contains a phrase, also inside words."""
    return " ".join(folded(phrase).split()) in text


def _words(text: str) -> list[str]:
    return words_of(text.replace("_", " "))
