"""The inverted index in memory: what goes in comes out, also after many slots have changed."""

from collections.abc import Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from obsidian_rag.relations.memory_index import Entries, Postings

# Slot to the terms in it and how often each occurs.
Slots = Mapping[int, Mapping[int, int]]
words = st.dictionaries(st.integers(2, 9), st.integers(1, 0xFFFF), max_size=5)
slots = st.dictionaries(st.integers(0, 6), words, max_size=7)


def entries(slots: Slots) -> Entries:
    every = [(term, slot, n) for slot, terms in slots.items() for term, n in terms.items()]
    terms, where, counts = zip(*every, strict=True) if every else ((), (), ())
    return Entries(
        np.array(terms, dtype=np.int64),
        np.array(where, dtype=np.int32),
        np.array(counts, dtype=np.uint16),
    )


def seen(entries: Entries) -> set[tuple[int, int, int]]:
    return set(zip(*(column.tolist() for column in entries), strict=True))


def test_the_entries_of_some_terms_tell_which_of_them_they_are_of() -> None:
    made = Postings(entries({0: {2: 1, 5: 3}, 1: {5: 7}}))
    assert seen(made.among(np.array([4, 5, 9], dtype=np.int32))) == {(1, 0, 3), (1, 1, 7)}
    assert seen(made.among(np.array([], dtype=np.int32))) == set()


def test_an_empty_index_answers() -> None:
    made = Postings(entries({}))
    assert seen(made.among(np.array([1, 2], dtype=np.int32))) == set()
    assert seen(made.all()) == set()
    assert not made.is_worn


def test_an_index_is_worn_when_much_of_it_has_changed() -> None:
    made = Postings(entries({0: {2: 1}}))
    terms = dict.fromkeys(range(2, 30000), 1)
    made.replace(np.array([0], dtype=np.int32), entries({0: terms}))
    assert made.is_worn


@given(slots, st.lists(slots, max_size=4))
def test_replacing_slots_gives_the_index_made_anew(before: Slots, rounds: list[Slots]) -> None:
    made = Postings(entries(before))
    now = dict(before)
    for changed in rounds:
        had = sorted(term for slot in changed for term in now.get(slot, {}))
        gone = made.replace(np.array(list(changed), dtype=np.int32), entries(changed))
        assert sorted(gone.tolist()) == had
        now |= changed
        asked = np.arange(12, dtype=np.int32)
        assert seen(made.among(asked)) == seen(Postings(entries(now)).among(asked))
        assert seen(made.all()) == seen(entries(now))
