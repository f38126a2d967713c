"""An inverted index in memory: which slots have a term and how often, changed slot by slot."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Counts = NDArray[np.uint16]
_WORN = 20_000
_WORN_SHARE = 0.1


class Entries(NamedTuple):
    """Entries of the index: which term, in which slot, how often."""

    terms: NDArray[np.int64]
    slots: Ints
    counts: Counts


class Postings:
    """All entries; what has changed lies beside the rest, which keeps its order."""

    def __init__(self, entries: Entries) -> None:
        self._many = _Ordered(entries)
        self._few = _Ordered(Entries(entries.terms[:0], entries.slots[:0], entries.counts[:0]))

    @property
    def is_worn(self) -> bool:
        """Whether so much has changed that everything should be put in order again."""
        return len(self._few.slots) > max(_WORN, _WORN_SHARE * len(self._many.slots))

    def among(self, terms: Ints) -> Entries:
        """The entries of these terms, each with the position of its term among them."""
        return _joined(self._many.among(terms), self._few.among(terms))

    def all(self) -> Entries:
        """All entries, with the numbers of their terms."""
        return _joined(self._many.all(), self._few.all())

    def replace(self, slots: Ints, fresh: Entries) -> NDArray[np.int64]:
        """Put these entries in place of all that some slots had; the terms of what they had."""
        gone = np.concatenate((self._many.drop(slots), self._few.drop(slots)))
        self._few = _Ordered(_joined(self._few.all(), fresh))
        return gone


class _Ordered:
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


def _joined(some: Entries, more: Entries) -> Entries:
    return Entries(
        np.concatenate((some.terms, more.terms)),
        np.concatenate((some.slots, more.slots)),
        np.concatenate((some.counts, more.counts)),
    )
