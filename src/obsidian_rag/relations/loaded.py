"""The indexes in memory: arrays over all notes, made when first asked for, kept up note by note.

Every note has a slot. A note that changes gets a new slot and leaves the old one dead, so that
the large arrays stay as they are; when many have changed everything is loaded anew.
"""

import json
import threading
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.relations.graph import Graph
from obsidian_rag.relations.rows import Rows, phrases_in

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
_COLUMNS = (
    "number, path, is_gone, uid, kind, title, is_daily, is_private, tags, links, related, words,"
    " terms, counts, phrases"
)
_MOST_DEAD = 256
_MOST_DEAD_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Card:
    """What is known of one note without its text."""

    number: int
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


class Postings:
    """An inverted index: for each term the slots that have it, and how often."""

    def __init__(self, terms: Ints, slots: Ints, counts: NDArray[np.uint16]) -> None:
        # One sort of whole numbers is much faster than sorting positions by term.
        order = (terms.astype(np.int64) << 32) | np.arange(len(terms), dtype=np.int64)
        order.sort()
        positions = (order & 0xFFFF_FFFF).astype(np.int32)
        ordered = (order >> 32).astype(np.int32)
        del order
        self.slots = slots[positions]
        self.counts = counts[positions]
        self.terms, starts = np.unique(ordered, return_index=True)
        self.starts = np.append(starts, len(ordered)).astype(np.int64)

    def among(self, terms: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The places of these terms' entries, and for each which of the terms it is of."""
        at = np.searchsorted(self.terms, terms)
        at = np.minimum(at, max(len(self.terms) - 1, 0))
        is_there = self.terms[at] == terms if len(self.terms) else np.zeros(len(terms), bool)
        which = np.nonzero(is_there)[0]
        begin = self.starts[at[which]]
        length = self.starts[at[which] + 1] - begin
        ends = np.cumsum(length)
        total = int(ends[-1]) if len(ends) else 0
        places = np.arange(total) + np.repeat(begin - (ends - length), length)
        return places, np.repeat(which, length)

    def frequencies(self, size: int) -> NDArray[np.int64]:
        """In how many notes each term stands."""
        found = np.zeros(size, dtype=np.int64)
        found[self.terms] = np.diff(self.starts)
        return found

    def terms_of(self, slot: int) -> Ints:
        """The terms of one slot."""
        places = np.nonzero(self.slots == slot)[0]
        return self.terms[np.searchsorted(self.starts, places, side="right") - 1]


class Loaded:
    """All notes at hand; `follow` takes up what other processes have written."""

    def __init__(self, rows: Rows, *, use_links: bool) -> None:
        self.rows = rows
        self.lock = threading.RLock()
        self._use_links = use_links
        self._file = _identity(rows.database.path)
        self._load()

    def is_current(self) -> bool:
        """Whether the file is still the one that was opened; another process may replace it."""
        return _identity(self.rows.database.path) == self._file

    def _load(self) -> None:
        self.change = self.rows.change
        found = self.rows.database.rows(f"SELECT {_COLUMNS} FROM note WHERE is_gone = 0")
        self.cards: list[Card] = []
        self.slot_of: dict[int, int] = {}
        self.words = np.zeros(0, dtype=np.int32)
        self.is_alive = np.zeros(0, dtype=bool)
        self.parts: list[Postings] = []
        self._dead = 0
        self._add(found)
        self.frequency = (
            self.parts[0].frequencies(self._vocabulary()) if self.parts else np.zeros(1, np.int64)
        )
        self._renew()

    def follow(self) -> None:
        """Take up changes; cheap when there are none."""
        with self.lock:
            if self.rows.change == self.change:
                return
            change = self.rows.change
            found = self.rows.database.rows(
                f"SELECT {_COLUMNS} FROM note WHERE change > ?", (self.change,)
            )
            if self._dead + len(found) > max(_MOST_DEAD, _MOST_DEAD_SHARE * len(self.cards)):
                self._load()
                return
            self.change = change
            for row in found:
                self._kill(cast("int", row[0]))
            fresh = [row for row in found if not row[2]]
            if fresh:
                self._add(fresh)
                grown = max(self._vocabulary(), len(self.frequency))
                self.frequency = np.pad(self.frequency, (0, grown - len(self.frequency)))
                self.frequency += self.parts[-1].frequencies(grown)
            self._renew()

    def _vocabulary(self) -> int:
        return max((int(part.terms[-1]) for part in self.parts if len(part.terms)), default=0) + 1

    def _add(self, found: list[tuple[object, ...]]) -> None:
        terms, counts, lengths, first = [], [], [], len(self.cards)
        for row in found:
            card, words, term_bytes, count_bytes = _card(row)
            self.slot_of[card.number] = len(self.cards)
            self.cards.append(card)
            terms.append(term_bytes)
            counts.append(count_bytes)
            lengths.append((words, len(term_bytes) // 4))
        sizes = np.array(lengths, dtype=np.int32).reshape(-1, 2)
        self.words = np.append(self.words, sizes[:, 0])
        self.is_alive = np.append(self.is_alive, np.ones(len(found), dtype=bool))
        slots = np.arange(first, len(self.cards), dtype=np.int32)
        self.parts.append(
            Postings(
                np.frombuffer(b"".join(terms), dtype=np.int32),
                np.repeat(slots, sizes[:, 1]),
                np.frombuffer(b"".join(counts), dtype=np.uint16),
            )
        )

    def _kill(self, number: int) -> None:
        slot = self.slot_of.pop(number, None)
        if slot is None:
            return
        self.is_alive[slot] = False
        self._dead += 1
        for part in self.parts:
            np.subtract.at(self.frequency, part.terms_of(slot), 1)

    def _renew(self) -> None:
        for name in (
            "idf",
            "unique",
            "norms",
            "graph",
            "vectors",
            "by_path",
            "by_tag",
            "names",
            "average",
            "name_terms",
        ):
            self.__dict__.pop(name, None)

    @property
    def size(self) -> int:
        """How many slots there are, dead ones too."""
        return len(self.cards)

    @property
    def count(self) -> int:
        """How many notes there are."""
        return len(self.slot_of)

    @cached_property
    def idf(self) -> NDArray[np.float64]:
        """How telling each term is: log((N - n + 0.5) / (n + 0.5) + 1)."""
        known = self.frequency
        telling: NDArray[np.float64] = np.log((self.count - known + 0.5) / (known + 0.5) + 1)
        return telling

    @cached_property
    def unique(self) -> Ints:
        """How many different terms each slot has."""
        return np.asarray(
            sum(np.bincount(part.slots, minlength=self.size) for part in self.parts), dtype=np.int32
        )

    @cached_property
    def average(self) -> float:
        """The average length of the notes, in terms; an empty note counts as one word."""
        alive = np.maximum(self.words[self.is_alive], 1)
        return float(alive.mean()) if len(alive) else 1.0

    @cached_property
    def norms(self) -> NDArray[np.float64]:
        """The length of each slot's vector of damped counts times idf."""
        squares = np.zeros(self.size)
        for part in self.parts:
            idf = np.repeat(self.idf[part.terms], np.diff(part.starts))
            weights = (1 + np.log(part.counts)) * idf
            squares += np.bincount(part.slots, weights * weights, minlength=self.size)
        return np.sqrt(squares)

    @cached_property
    def graph(self) -> Graph:
        """Who is tied to whom."""
        alive = {slot: self.cards[slot] for slot in self.slot_of.values()}
        return Graph(
            {slot: (card.path, card.uid) for slot, card in alive.items()},
            {
                slot: (card.links if self._use_links else (), card.related)
                for slot, card in alive.items()
            },
        )

    @cached_property
    def by_path(self) -> dict[str, int]:
        """The slot of each path."""
        return {self.cards[slot].path: slot for slot in self.slot_of.values()}

    @cached_property
    def by_tag(self) -> dict[str, list[int]]:
        """The slots that have a tag."""
        found = defaultdict(list)
        for slot in self.slot_of.values():
            for tag in self.cards[slot].tags:
                found[tag].append(slot)
        return dict(found)

    @cached_property
    def names(self) -> dict[int, list[tuple[tuple[int, ...], int]]]:
        """Titles, file names and aliases by their first term: the phrase and its slot."""
        found = defaultdict(list)
        for slot in self.slot_of.values():
            for phrase in self.cards[slot].phrases:
                found[phrase[0]].append((phrase, slot))
        return dict(found)

    @cached_property
    def name_terms(self) -> Postings:
        """Which slots have a term in one of their names."""
        pairs = [
            (term, slot)
            for slot in self.slot_of.values()
            for term in {term for phrase in self.cards[slot].phrases for term in phrase}
        ]
        both = np.array(pairs, dtype=np.int32).reshape(-1, 2)
        return Postings(both[:, 0], both[:, 1], np.ones(len(both), dtype=np.uint16))

    @cached_property
    def vectors(self) -> NDArray[np.float16] | None:
        """The meaning of each slot, as a row of length one or nothing; None if none is known."""
        found = self.rows.database.rows(
            "SELECT number, vector FROM note WHERE is_gone = 0 AND vector IS NOT NULL"
        )
        if not found:
            return None
        width = max(len(cast("bytes", data)) for _, data in found) // 2
        matrix = np.zeros((self.size, width), dtype=np.float16)
        for number, data in found:
            slot = self.slot_of.get(cast("int", number))
            if slot is not None and len(cast("bytes", data)) == width * 2:
                matrix[slot] = np.frombuffer(cast("bytes", data), dtype=np.float16)
        return matrix


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _card(row: tuple[object, ...]) -> tuple[Card, int, bytes, bytes]:
    (number, path, _, uid, kind, title, daily, private, tags, links, related, words, *blobs) = row
    terms, counts, phrases = cast("list[bytes]", blobs)
    card = Card(
        number=cast("int", number),
        path=str(path),
        title=str(title),
        kind=str(kind),
        uid=None if uid is None else str(uid),
        tags=tuple(json.loads(str(tags))),
        links=tuple(json.loads(str(links))),
        related=tuple((one["target"], one["is_link"]) for one in json.loads(str(related))),
        phrases=tuple(phrases_in(phrases)),
        is_daily=bool(daily),
        is_private=bool(private),
    )
    return card, cast("int", words), terms, counts
