"""The indexes in memory: arrays over all notes, loaded on first use and updated note by note.

Every note keeps its slot; the slot of a removed note is dead. When many notes have changed,
everything is reloaded.
"""

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.notes import Scope
from obsidian_rag.relations.graph import Graph, Ties
from obsidian_rag.relations.packed import VectorKind, exact, phrases_in
from obsidian_rag.relations.rows import Rows
from obsidian_rag.relations.vectors import NoteVectors, VectorsInUse
from obsidian_rag.store import file_identity

Ints = NDArray[np.int32]
Counts = NDArray[np.uint16]
_COLUMNS = (
    "number, path, is_gone, uid, kind, title, is_daily, is_private, tags, links, related, words,"
    " terms, counts, phrases, vault"
)
_BY_SLOT = ("words", "unique", "is_alive", "is_daily")
_TERM_BYTES = 4
# Drops ten bits of a logarithm: its last digits differ between processors.
_IDF_ROUNDING = 1 << 10
_MAX_FOLLOWED_NOTES = 256
_MAX_FOLLOWED_SHARE = 0.1
_MAX_CHANGED_ENTRIES = 20_000
_MAX_CHANGED_SHARE = 0.1
# Cached views of the same notes, for callers that may not see all of them.
_MAX_PARTS = 4


@dataclass(frozen=True, slots=True)
class Card:
    """The metadata of one note, without its text."""

    number: int
    link_id: str
    path: str
    title: str
    kind: str
    uid: str | None
    tags: tuple[str, ...]
    links: tuple[str, ...]
    related: tuple[tuple[str, bool], ...]
    phrases: tuple[tuple[int, ...], ...]
    is_daily: bool
    is_private: bool

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the note."""
        return self.link_id, self.path

    @property
    def order(self) -> tuple[str, str]:
        """The sort key of notes."""
        return self.path, self.link_id


class Entries(NamedTuple):
    """Entries of the index: which term, in which slot, how often."""

    terms: NDArray[np.int64]
    slots: Ints
    counts: Counts


class Postings:
    """An inverted index: which slots contain a term and how often, updated by slot.

    A large sorted part has most entries, and a small one the changes.
    """

    def __init__(self, entries: Entries) -> None:
        self._base = _SortedEntries(entries)
        self._changes = _SortedEntries(
            Entries(entries.terms[:0], entries.slots[:0], entries.counts[:0])
        )

    @property
    def is_worn(self) -> bool:
        """Whether so much has changed that the index should be rebuilt."""
        return len(self._changes.slots) > max(
            _MAX_CHANGED_ENTRIES, _MAX_CHANGED_SHARE * len(self._base.slots)
        )

    def among(self, terms: Ints) -> Entries:
        """The entries of these terms; `terms` of the result are positions in the argument."""
        return _join(self._base.among(terms), self._changes.among(terms))

    def all(self) -> Entries:
        """All entries, with the numbers of their terms."""
        return _join(self._base.all(), self._changes.all())

    def replace(self, slots: Ints, fresh: Entries) -> NDArray[np.int64]:
        """Replace all entries of some slots; returns the terms of the old ones."""
        gone = np.concatenate((self._base.drop(slots), self._changes.drop(slots)))
        self._changes = _SortedEntries(_join(self._changes.all(), fresh))
        return gone


class _SortedEntries:
    """Entries in the order of their terms."""

    def __init__(self, entries: Entries) -> None:
        # One sort of whole numbers is much faster than sorting positions by term.
        order = (entries.terms << 32) | np.arange(len(entries.terms), dtype=np.int64)
        order.sort()
        positions = (order & 0xFFFF_FFFF).astype(np.int32)
        ordered = (order >> 32).astype(np.int32)
        del order
        self.slots = entries.slots[positions]
        self.counts = entries.counts[positions]
        self.terms, starts = np.unique(ordered, return_index=True)
        self.starts = np.append(starts, len(ordered)).astype(np.int64)

    def among(self, terms: Ints) -> Entries:
        at = np.searchsorted(self.terms, terms)
        at = np.minimum(at, max(len(self.terms) - 1, 0))
        is_there = self.terms[at] == terms if len(self.terms) else np.zeros(len(terms), bool)
        which = np.nonzero(is_there)[0]
        begin = self.starts[at[which]]
        length = self.starts[at[which] + 1] - begin
        ends = np.cumsum(length)
        total = int(ends[-1]) if len(ends) else 0
        places = np.arange(total) + np.repeat(begin - (ends - length), length)
        return Entries(np.repeat(which, length), self.slots[places], self.counts[places])

    def all(self) -> Entries:
        terms = np.repeat(self.terms.astype(np.int64), np.diff(self.starts))
        return Entries(terms, self.slots, self.counts)

    def drop(self, slots: Ints) -> NDArray[np.int64]:
        places = np.nonzero(np.isin(self.slots, slots))[0]
        terms = self.terms[np.searchsorted(self.starts, places, side="right") - 1]
        self.slots = np.delete(self.slots, places)
        self.counts = np.delete(self.counts, places)
        self.starts -= np.searchsorted(places, self.starts)
        return terms.astype(np.int64)


def _join(some: Entries, more: Entries) -> Entries:
    return Entries(
        np.concatenate((some.terms, more.terms)),
        np.concatenate((some.slots, more.slots)),
        np.concatenate((some.counts, more.counts)),
    )


class MemoryIndex:
    """All notes in memory; `follow` applies what other processes have written."""

    def __init__(
        self,
        rows: Rows,
        *,
        use_links: bool,
        meanings_of: str | None = None,
        shows: Callable[[str, str, bool], bool] | None = None,
    ) -> None:
        """`meanings_of` is the transformer whose vectors are compared; by default static ones are.

        `shows` decides, by link id, path and whether it is private, if a note exists in this view.
        """
        self.rows = rows
        self.lock = threading.RLock()
        self._use_links = use_links
        self._meanings_of = meanings_of
        self._shows = shows
        self._parts: dict[tuple[Scope, bool, frozenset[tuple[str, str]]], MemoryIndex] = {}
        self._file = file_identity(rows.database.path)
        self._load()

    def is_current(self) -> bool:
        """Whether the opened file is still the current one; another process may replace it."""
        return file_identity(self.rows.database.path) == self._file

    def part(
        self,
        scope: Scope,
        *,
        with_private: bool,
        without: frozenset[tuple[str, str]] = frozenset(),
    ) -> "MemoryIndex":
        """A view of the notes in scope, optionally without those that say `rag: private`.

        All others, and those in `without`, do not exist in it. Filtering the answers would not be
        enough: idf, neighbours and paths would reveal the notes that were filtered out.
        """
        with self.lock:
            with_private = with_private or not self._private
            if with_private and not scope.is_limited and not without:
                return self
            # Least recently used goes first.
            part = self._parts.pop((scope, with_private, without), None)
            if part is not None:
                part.follow()
            else:
                part = MemoryIndex(
                    self.rows,
                    use_links=self._use_links,
                    meanings_of=self._meanings_of,
                    shows=lambda link_id, path, is_private: (
                        (with_private or not is_private)
                        and scope.admits(link_id, path)
                        and (link_id, path) not in without
                    ),
                )
            self._parts[scope, with_private, without] = part
            if len(self._parts) > _MAX_PARTS:
                del self._parts[next(iter(self._parts))]
            return part

    def by_static_vectors(self) -> "MemoryIndex":
        """The same notes, compared as if there were no meaning vectors."""
        return MemoryIndex(self.rows, use_links=self._use_links, shows=self._shows)

    def _load(self) -> None:
        self.change = self.rows.change
        self._link_ids = self.rows.link_ids()
        found = self.rows.database.rows(f"SELECT {_COLUMNS} FROM note WHERE is_gone = 0")
        found = self._filter_visible(found)
        self._private: set[int] = set()
        self.cards: list[Card] = []
        self.slot_of: dict[int, int] = {}
        self._slots: dict[int, int] = {}
        # By link id and path.
        self.by_path: dict[tuple[str, str], int] = {}
        self.by_tag: dict[str, set[int]] = defaultdict(set)
        # By the first term of a name, and by the name.
        self.by_name: dict[int, dict[tuple[int, ...], list[int]]] = defaultdict(dict)
        # How many terms each slot has, and how many different ones.
        self.words = np.zeros(0, dtype=np.int32)
        self.unique = np.zeros(0, dtype=np.int32)
        self.is_alive = np.zeros(0, dtype=bool)
        self.is_daily = np.zeros(0, dtype=bool)
        with self.rows.database.decoding():
            terms, names = self._add_rows(found)
            self.terms, self.name_terms = Postings(terms), Postings(names)
        self.frequency = np.bincount(terms.terms, minlength=1)
        self._vectors: dict[VectorKind, NoteVectors | None] = {}
        self.__dict__.pop("graph", None)
        self._clear_cached()

    def follow(self) -> None:
        """Apply changes; cheap when there are none."""
        with self.lock:
            change = self.rows.change
            if change == self.change:
                return
            found = self.rows.database.rows(
                f"SELECT {_COLUMNS} FROM note WHERE change > ?", (self.change,)
            )
            most = max(_MAX_FOLLOWED_NOTES, _MAX_FOLLOWED_SHARE * len(self.cards))
            if len(found) > most or self.terms.is_worn:
                self._load()
                return
            since, self.change = self.change, change
            self._link_ids = self.rows.link_ids()
            self.__dict__.pop("vectors_in_use", None)
            if not found:
                return
            with self.rows.database.decoding():
                self._update_rows(found)
            for kind in list(self._vectors):
                self._follow_vectors(kind, since)

    def _update_rows(self, found: list[tuple[object, ...]]) -> None:
        numbers = [cast("int", row[0]) for row in found]
        for number in numbers:
            self._remove(number)
        terms, names = self._add_rows(self._filter_visible([row for row in found if not row[2]]))
        known = [self._slots[number] for number in numbers if number in self._slots]
        slots = np.array(known, dtype=np.int32)
        gone = self.terms.replace(slots, terms)
        self.name_terms.replace(slots, names)
        highest = max(int(terms.terms.max(initial=0)) + 1, len(self.frequency))
        self.frequency = np.pad(self.frequency, (0, highest - len(self.frequency)))
        self.frequency += np.bincount(terms.terms, minlength=highest)
        self.frequency -= np.bincount(gone, minlength=highest)
        if "graph" in self.__dict__:
            self.graph.change({slot: self._ties(slot) for slot in known})
        self._clear_cached()

    def _filter_visible(self, found: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
        """The rows whose notes exist in this view."""
        if self._shows is None:
            return found
        return [
            row
            for row in found
            if self._shows(self._link_ids[cast("int", row[-1])], str(row[1]), bool(row[7]))
        ]

    def _add_rows(self, found: list[tuple[object, ...]]) -> tuple[Entries, Entries]:
        """Give each of these notes a slot; returns the entries of their texts and names."""
        cards = [_card(row, self._link_ids) for row in found]
        slots = np.array([self._add_card(card) for card in cards], dtype=np.int32)
        grown = len(self.cards) - len(self.words)
        for name in _BY_SLOT:
            setattr(self, name, np.pad(getattr(self, name), (0, grown)))
        sizes = [len(cast("bytes", row[12])) // _TERM_BYTES for row in found]
        self.is_alive[slots], self.words[slots] = True, [cast("int", row[11]) for row in found]
        self.unique[slots], self.is_daily[slots] = sizes, [card.is_daily for card in cards]
        terms = _concatenate(found, 12).astype(np.int64)
        names = [sorted({term for phrase in card.phrases for term in phrase}) for card in cards]
        named = np.array([term for some in names for term in some], dtype=np.int64)
        self._check_terms(terms, named)
        where = np.repeat(slots, [len(some) for some in names])
        return (
            Entries(terms, np.repeat(slots, sizes), _concatenate(found, 13, np.uint16)),
            Entries(named, where, np.ones(len(named), dtype=np.uint16)),
        )

    def _check_terms(self, *numbers: NDArray[np.int64]) -> None:
        """Reject unknown term numbers: they are damage, and could allocate huge arrays."""
        row = self.rows.database.row("SELECT coalesce(max(number), 0) FROM term")
        last = cast("int", row[0]) if row else 0
        if any(some.min(initial=0) < 0 or some.max(initial=0) > last for some in numbers):
            raise ValueError("a number that no term has")

    def _add_card(self, card: Card) -> int:
        slot = self._slots.setdefault(card.number, len(self.cards))
        if slot == len(self.cards):
            self.cards.append(card)
        self.cards[slot] = card
        self.slot_of[card.number] = slot
        self.by_path[card.key] = slot
        if card.is_private:
            self._private.add(slot)
        for tag in card.tags:
            self.by_tag[tag].add(slot)
        for phrase in card.phrases:
            self.by_name[phrase[0]].setdefault(phrase, []).append(slot)
        return slot

    def _remove(self, number: int) -> None:
        slot = self.slot_of.pop(number, None)
        if slot is None:
            return
        card = self.cards[slot]
        self._private.discard(slot)
        self.is_alive[slot] = False
        self.words[slot] = self.unique[slot] = 0
        # Unless another note has taken its path.
        if self.by_path.get(card.key) == slot:
            del self.by_path[card.key]
        for tag in card.tags:
            self.by_tag[tag].discard(slot)
        for phrase in card.phrases:
            self.by_name[phrase[0]][phrase].remove(slot)

    def _clear_cached(self) -> None:
        for name in ("idf", "norms", "average", "name_weights", "vectors_in_use"):
            self.__dict__.pop(name, None)

    @property
    def size(self) -> int:
        """The number of slots, including dead ones."""
        return len(self.cards)

    @property
    def count(self) -> int:
        """The number of notes."""
        return len(self.slot_of)

    @cached_property
    def idf(self) -> NDArray[np.float64]:
        """The idf of each term: log((N - n + 0.5) / (n + 0.5) + 1)."""
        known = self.frequency
        return exact(np.log((self.count - known + 0.5) / (known + 0.5) + 1), _IDF_ROUNDING)

    def idf_of(self, terms: NDArray[np.integer]) -> NDArray[np.float64]:
        """The idf of these terms; a term found only in names gets the highest."""
        is_known = terms < len(self.idf)
        return np.where(is_known, self.idf[np.where(is_known, terms, 0)], self.idf[0])

    @cached_property
    def name_weights(self) -> NDArray[np.float64]:
        """The summed idf of the terms in the names of each slot."""
        terms, slots, _ = self.name_terms.all()
        return np.bincount(slots, self.idf_of(terms), minlength=self.size).astype(np.float64)

    def in_use(self, terms: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these terms occur in a text or name; others are left over from removed notes."""
        is_read = terms < len(self.frequency)
        is_read[is_read] = self.frequency[terms[is_read]] > 0
        different, at = np.unique(terms, return_inverse=True)
        is_name = np.zeros(len(different), dtype=bool)
        is_name[self.name_terms.among(different).terms] = True
        return is_read | is_name[at]

    def is_known(self, terms: Sequence[int]) -> bool:
        """Whether each of these terms occurs in the text of a note."""
        return max(terms) < len(self.frequency) and bool(self.frequency[list(terms)].all())

    @cached_property
    def average(self) -> float:
        """The average length of the notes, in terms; an empty note counts as one word."""
        alive = np.maximum(self.words[self.is_alive], 1)
        return float(alive.mean()) if len(alive) else 1.0

    @cached_property
    def norms(self) -> NDArray[np.float64]:
        """The norm of each slot's vector of damped counts times idf."""
        terms, slots, counts = self.terms.all()
        weights = (1 + np.log(counts)) * self.idf[terms]
        squares = exact(weights * weights, int(self.unique.max(initial=1)))
        return np.sqrt(np.bincount(slots, squares, minlength=self.size))

    @cached_property
    def graph(self) -> Graph:
        """The graph of links and relations."""
        ties = ((slot, self._ties(slot)) for slot in self.slot_of.values())
        return Graph({slot: one for slot, one in ties if one is not None})

    def _ties(self, slot: int) -> Ties | None:
        card = self.cards[slot]
        if not self.is_alive[slot]:
            return None
        return Ties(
            card.link_id, card.path, card.uid, card.links if self._use_links else (), card.related
        )

    @cached_property
    def vectors_in_use(self) -> VectorsInUse:
        """The vectors that notes are compared by."""
        return VectorsInUse.of(self.rows, self._meanings_of)

    def vectors(self, kind: VectorKind) -> NoteVectors | None:
        """The vectors of one kind by slot; None if there are none."""
        if kind not in self._vectors:
            self._vectors[kind] = self._load_vectors(kind)
        return self._vectors[kind]

    @property
    def meanings(self) -> NoteVectors | None:
        """The vectors by which notes are compared; None if there are none."""
        return self.vectors(self.vectors_in_use.kind)

    def _load_vectors(self, kind: VectorKind) -> NoteVectors | None:
        found = self._vectors_since(kind, -1)
        width = max((len(vector) for _, vector in found), default=0)
        if not width:
            return None
        made = NoteVectors(self.size, width)
        for slot, vector in found:
            # A replaced model leaves vectors of another width until they are rebuilt.
            made.put(slot, vector if len(vector) == width else None)
        return made

    def _vectors_since(
        self, kind: VectorKind, change: int
    ) -> list[tuple[int, NDArray[np.float32]]]:
        found = self.rows.database.rows(
            f"SELECT number, {kind} FROM note WHERE change > ?", (change,)
        )
        # Only a note of this view has a vector: a private one may be left out.
        slots = (
            (self._slots.get(cast("int", number)), data if number in self.slot_of else None)
            for number, data in found
        )
        with self.rows.database.decoding():
            return [
                (slot, kind.unpack(cast("bytes", data or b"")))
                for slot, data in slots
                if slot is not None
            ]

    def _follow_vectors(self, kind: VectorKind, since: int) -> None:
        found = self._vectors_since(kind, since)
        known = self._vectors[kind]
        width = known.width if known is not None else 0
        if any(len(vector) not in (0, width) for _, vector in found):
            del self._vectors[kind]
        elif known is not None:
            known.grow(self.size)
            for slot, vector in found:
                known.put(slot, vector if len(vector) else None)


def _concatenate(
    found: list[tuple[object, ...]], column: int, kind: type = np.int32
) -> NDArray[Any]:
    return np.frombuffer(b"".join(cast("bytes", row[column]) for row in found), dtype=kind)


def _card(row: tuple[object, ...], link_ids: Mapping[int, str]) -> Card:
    (number, path, _, uid, kind, title, daily, private, tags, links, related, *_) = row
    *_, phrases, vault = row
    return Card(
        number=cast("int", number),
        link_id=link_ids[cast("int", vault)],
        path=str(path),
        title=str(title),
        kind=str(kind),
        uid=None if uid is None else str(uid),
        tags=_list(tags),
        links=_list(links),
        related=tuple((one["target"], one["is_link"]) for one in _list(related)),
        phrases=tuple(phrases_in(cast("bytes", phrases))),
        is_daily=bool(daily),
        is_private=bool(private),
    )


def _list(value: object) -> tuple[Any, ...]:
    return tuple(json.loads(str(value))) if value != "[]" else ()
