"""An in-memory inverted index: which slots contain a term and how often, updated by slot."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Counts = NDArray[np.uint16]
_MAX_CHANGED_ENTRIES = 20_000
_MAX_CHANGED_SHARE = 0.1


class Entries(NamedTuple):
    """Entries of the index: which term, in which slot, how often."""

    terms: NDArray[np.int64]
    slots: Ints
    counts: Counts


class Postings:
    """All entries: a large sorted part, and a small one with the changes."""

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
        return _concatenate(self._base.among(terms), self._changes.among(terms))

    def all(self) -> Entries:
        """All entries, with the numbers of their terms."""
        return _concatenate(self._base.all(), self._changes.all())

    def replace(self, slots: Ints, fresh: Entries) -> NDArray[np.int64]:
        """Replace all entries of some slots; returns the terms of the old ones."""
        gone = np.concatenate((self._base.drop(slots), self._changes.drop(slots)))
        self._changes = _SortedEntries(_concatenate(self._changes.all(), fresh))
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


def _concatenate(some: Entries, more: Entries) -> Entries:
    return Entries(
        np.concatenate((some.terms, more.terms)),
        np.concatenate((some.slots, more.slots)),
        np.concatenate((some.counts, more.counts)),
    )
