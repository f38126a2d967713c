"""What notes are compared with, and the signals: one raw score per note and signal."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.notes import Note, body_lines
from obsidian_rag.relations.memory_index import Ints, MemoryIndex
from obsidian_rag.relations.packed import VectorKind, exact
from obsidian_rag.relations.words import LINE_END, NEXT_LINE, Vocabulary, prose
from obsidian_rag.search import bm25, length_damping

K1 = 1.5
_MAX_NOTES_READ = 64
_NAME_PRIOR = 3.0
_MENTION, _COVER, _MENTION_BACK = 0.6, 0.2, 0.2

Scores = NDArray[np.float64]


class Signal(StrEnum):
    """The ways in which notes can be related; the first four are those of the `seed` profile."""

    BM25 = "bm25"
    TAGS = "tags"
    TERMS = "terms"
    GRAPH = "graph"
    COSINE = "cosine"
    NEIGHBOURS = "neighbours"
    TITLE = "title"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class Source:
    """What notes are compared with: a note or a text."""

    sequence: Ints
    tags: frozenset[str]
    slot: int | None = None
    vector: NDArray[np.float32] | None = None
    # For evaluation: ignore the link to this note.
    without: int | None = None
    # For display: the word the source uses for a term.
    words: Mapping[str, str] = field(default_factory=dict)
    vector_kind: VectorKind = VectorKind.STATIC

    @property
    def terms(self) -> tuple[Ints, NDArray[np.int64]]:
        """The distinct terms and their counts."""
        return np.unique(self.sequence, return_counts=True)


def note_source(
    loaded: MemoryIndex, slot: int, tags: Iterable[str] = (), words: Mapping[str, str] | None = None
) -> Source:
    """A note as source; `tags` are added to its own, `words` come from `words_in`."""
    card = loaded.cards[slot]
    places = loaded.rows.places([card.number]).get(card.number)
    sequence = places.terms if places else _unordered_terms(loaded, card.number)
    return Source(sequence, frozenset((*card.tags, *_normalise(tags))), slot, words=words or {})


def text_source(
    loaded: MemoryIndex,
    text: str,
    tags: Iterable[str] = (),
    vector: NDArray[np.float32] | None = None,
    *,
    vector_kind: VectorKind = VectorKind.STATIC,
    slot: int | None = None,
    without: int | None = None,
) -> Source:
    """A text as source; with `slot`, it stands in for the text of that note."""
    vocabulary = Vocabulary()
    sequence = loaded.rows.numbers_of(vocabulary, vocabulary.name(prose(text)))
    # Ignore words found only in removed notes, or in notes the caller may not see.
    sequence = sequence[(sequence <= NEXT_LINE) | loaded.in_use(sequence)]
    own = loaded.cards[slot].tags if slot is not None else ()
    words = dict(zip(vocabulary.terms, vocabulary.words, strict=True))
    every = frozenset((*own, *_normalise(tags)))
    return Source(sequence, every, slot, vector, without, words, vector_kind)


def words_in(note: Note) -> dict[str, str]:
    """For each term of a note the first word that yields it."""
    vocabulary = Vocabulary()
    vocabulary.read(prose(LINE_END.join(body_lines(note)[1])))
    return dict(zip(vocabulary.terms, vocabulary.words, strict=True))


def _unordered_terms(loaded: MemoryIndex, number: int) -> NDArray[np.int32]:
    """The terms of a note without stored positions."""
    row = loaded.rows.database.row("SELECT terms, counts FROM note WHERE number = ?", (number,))
    if row is None:
        return np.zeros(0, dtype=np.int32)
    terms, counts = (bytes(part) for part in row if isinstance(part, bytes))
    numbers = np.frombuffer(terms, np.int32)
    spelled = loaded.rows.terms_of(numbers.tolist())
    # Alphabetical: the order of the numbers depends on which note was read first.
    order = sorted(range(len(numbers)), key=lambda at: spelled[int(numbers[at])][0])
    return np.repeat(numbers[order], np.frombuffer(counts, np.uint16)[order])


def _normalise(tags: Iterable[str]) -> Iterable[str]:
    return (tag.strip().lstrip("#").lower() for tag in tags if tag.strip().lstrip("#"))


class SourcePostings:
    """All postings of the source's terms."""

    def __init__(self, loaded: MemoryIndex, source: Source) -> None:
        self.loaded = loaded
        self.terms, self.asked = source.terms
        self.which, self.slots, self.counts = loaded.terms.among(self.terms)
        self.idf = loaded.idf_of(self.terms)

    def bm25(self, *, is_damped: bool) -> Scores:
        """Okapi BM25 of every note for the source's terms, weighted by their counts there.

        If damped, each repetition in the source counts less.
        """
        asked = bm25(self.asked, K1, K1) if is_damped else self.asked
        lengths = np.maximum(self.loaded.words, 1)
        damping = length_damping(lengths, self.loaded.average, K1)
        part = bm25(self.counts, damping[self.slots], K1)
        return self._sum(exact((asked * self.idf)[self.which] * part, len(self.terms)))

    def shared_terms(self) -> Scores:
        """Jaccard similarity of the vocabularies."""
        common = self._sum(None)
        every = len(self.terms) + self.loaded.unique - common
        return np.divide(common, every, out=np.zeros(len(common)), where=every > 0)

    def cosine(self) -> Scores:
        """Cosine similarity of the tf-idf vectors."""
        asked = (1 + np.log(self.asked)) * self.idf * self.idf
        weights = asked[self.which] * (1 + np.log(self.counts))
        found, norms = self._sum(exact(weights, len(self.terms))), self.loaded.norms
        return np.divide(found, norms, out=np.zeros(len(found)), where=norms > 0)

    def _sum(self, weights: Scores | None) -> Scores:
        return np.bincount(self.slots, weights, minlength=self.loaded.size).astype(np.float64)


def tags(loaded: MemoryIndex, wanted: frozenset[str]) -> Scores:
    """Jaccard similarity of the tags."""
    common: dict[int, int] = defaultdict(int)
    for tag in wanted:
        for slot in loaded.by_tag.get(tag, ()):
            common[slot] += 1
    found = np.zeros(loaded.size)
    for slot, shared in common.items():
        found[slot] = shared / (len(wanted) + len(loaded.cards[slot].tags) - shared)
    return found


def proximity(loaded: MemoryIndex, source: Source) -> Scores:
    """Closeness in the graph: 1 / (steps + 1), up to three steps."""
    found = np.zeros(loaded.size)
    if source.slot is not None:
        for slot, steps in loaded.graph.distances(source.slot, source.without).items():
            found[slot] = 1 / (steps + 1)
    return found


def neighbours(loaded: MemoryIndex, source: Source) -> Scores:
    """Shared neighbours in the graph."""
    found = np.zeros(loaded.size)
    if source.slot is not None:
        for slot, shared in loaded.graph.shared(source.slot, source.without).items():
            found[slot] = shared
    return found


def names(loaded: MemoryIndex, source: Source) -> Scores:
    """Mentions by name: the source names the note, or most of its name, or is named by it."""
    asked, _ = source.terms
    which, slots, _ = loaded.name_terms.among(asked)
    weights = np.bincount(slots, loaded.idf_of(asked)[which], minlength=loaded.size)
    cover = weights / (loaded.name_weights + _NAME_PRIOR)
    return (
        _MENTION * to_one(_mentions(loaded, source))
        + _COVER * to_one(cover)
        + _MENTION_BACK * _mentions_back(loaded, source, cover)
    )


def kind_of(loaded: MemoryIndex, source: Source) -> VectorKind:
    """The kind of vectors to compare by: static ones if the note has no other."""
    if source.vector is not None:
        return source.vector_kind
    known = (
        loaded.vectors(VectorKind.MEANING)
        if loaded.vectors_in_use.kind is VectorKind.MEANING
        else None
    )
    if known is None or source.slot is None or known.of(source.slot) is None:
        return VectorKind.STATIC
    return VectorKind.MEANING


def meaning(loaded: MemoryIndex, source: Source) -> Scores:
    """Cosine of the vectors, centred on the average note."""
    kind = kind_of(loaded, source)
    found = _similarity(loaded, source, kind)
    if kind is VectorKind.STATIC or source.slot is None or not loaded.vectors_in_use.is_mixed:
        return found
    # Notes with only a static vector so far are compared by it; each kind is scaled to its best.
    is_late = _with_vector(loaded, VectorKind.STATIC) & ~_with_vector(loaded, VectorKind.MEANING)
    static = _similarity(loaded, source, VectorKind.STATIC)
    return np.where(is_late, to_one(static, source.slot), to_one(found, source.slot))


def _similarity(loaded: MemoryIndex, source: Source, kind: VectorKind) -> Scores:
    known = loaded.vectors(kind)
    if known is None:
        return np.zeros(loaded.size)
    vector = source.vector
    if vector is None and source.slot is not None:
        vector = known.of(source.slot)
    if vector is None or len(vector) != known.width or not vector.any():
        return np.zeros(loaded.size)
    return known.alike(vector.astype(np.float32))


def _with_vector(loaded: MemoryIndex, kind: VectorKind) -> NDArray[np.bool_]:
    known = loaded.vectors(kind)
    return known.is_known & loaded.is_alive if known is not None else np.zeros(loaded.size, bool)


def _mentions(loaded: MemoryIndex, source: Source) -> Scores:
    """Scores the notes whose full name occurs in the source."""
    sequence = source.sequence.tolist()
    places: dict[int, list[int]] = defaultdict(list)
    for position, term in enumerate(sequence):
        places[term].append(position)
    has = set(places).issuperset
    named = [
        (phrase, slots)
        for term, at in places.items()
        for phrase, slots in loaded.by_name.get(term, {}).items()
        if len(phrase) == 1
        or (has(phrase) and any(tuple(sequence[one : one + len(phrase)]) == phrase for one in at))
    ]
    found = np.zeros(loaded.size)
    if named:
        terms = np.array([term for phrase, _ in named for term in phrase])
        starts = np.cumsum([0, *(len(phrase) for phrase, _ in named[:-1])])
        weights = np.add.reduceat(loaded.idf_of(terms), starts)
        for (_, slots), weight in zip(named, weights, strict=True):
            found[slots] = np.maximum(found[slots], weight)
    return found


def _mentions_back(loaded: MemoryIndex, source: Source, cover: Scores) -> Scores:
    """Scores the notes that mention the source by name."""
    found = np.zeros(loaded.size)
    phrases = loaded.cards[source.slot].phrases if source.slot is not None else ()
    known = [one for one in phrases if loaded.is_known(one)]
    if not known:
        return found
    # Of equally rare names, the first.
    phrase = max(known, key=lambda one: loaded.idf_of(np.array(one)).sum())
    terms = np.unique(np.array(phrase, dtype=np.int32))
    having = np.bincount(loaded.terms.among(terms).slots, minlength=loaded.size)
    slots = np.nonzero(having == len(terms))[0]
    if len(phrase) > 1:
        first = sorted(slots.tolist(), key=lambda one: (-cover[one], loaded.cards[one].order))
        slots = _with_phrase(loaded, first[:_MAX_NOTES_READ], phrase)
    found[slots] = 1
    return found


def _with_phrase(
    loaded: MemoryIndex, slots: list[int], phrase: tuple[int, ...]
) -> NDArray[np.int64]:
    """The slots whose text contains the phrase as consecutive words."""
    read = loaded.rows.places([loaded.cards[slot].number for slot in slots])
    having = []
    for slot in slots:
        places = read.get(loaded.cards[slot].number)
        if places is None or _contains(places.terms, phrase):
            having.append(slot)
    return np.array(having, dtype=np.int64)


def _contains(sequence: Ints, phrase: Sequence[int]) -> bool:
    if len(sequence) < len(phrase):
        return False
    last = len(sequence) - len(phrase) + 1
    fits = np.ones(last, dtype=bool)
    for offset, term in enumerate(phrase):
        fits &= sequence[offset : offset + last] == term
    return bool(fits.any())


def to_one(scores: Scores, left_out: int | None = None) -> Scores:
    """The scores divided by the highest; the note that is left out gets 0."""
    others = scores.copy()
    if left_out is not None:
        others[left_out] = 0
    highest = others.max(initial=0)
    return others / highest if highest > 0 else others
