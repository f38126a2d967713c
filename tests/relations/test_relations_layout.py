"""Where notes lie on a map: linked ones together, the same picture each time, calm after edits."""

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.relations.layout import Edges, Positions, groups, lay_out


def ties_of(count: int, pairs: list[tuple[int, int]]) -> Edges:
    return Edges(count, np.array(pairs, dtype=np.int64).reshape(-1, 2), np.ones(len(pairs)))


def clusters(count: int, size: int, seed: int = 7) -> Edges:
    """Groups of notes with many links inside, and one link from each group to the next."""
    random = np.random.default_rng(seed)
    pairs = set()
    for group in range(count):
        first = group * size
        for note in range(1, size):
            pairs.add((first + int(random.integers(note)), first + note))
            pairs.add((first, first + note))
        if group:
            pairs.add((first - size, first))
    return ties_of(count * size, sorted(pairs))


def spread(places: Positions) -> float:
    return float(np.linalg.norm(places - places.mean(axis=0), axis=1).mean())


def moved(before: Positions, after: Positions) -> NDArray[np.float64]:
    """How far each note moved, as a share of the map's width."""
    return np.asarray(np.linalg.norm(after - before, axis=1) / np.ptp(before, axis=0).max())


def test_connected_notes_are_a_group() -> None:
    label = groups(ties_of(7, [(0, 1), (1, 2), (4, 5), (3, 6), (3, 4)]))
    assert label.tolist() == [0, 0, 0, 3, 3, 3, 3]
    chain = groups(ties_of(1000, [(at, at + 1) for at in reversed(range(999))]))
    assert set(chain.tolist()) == {0}


def test_no_notes_and_one_note_have_a_place() -> None:
    assert lay_out(ties_of(0, [])).shape == (0, 2)
    assert np.isfinite(lay_out(ties_of(1, []))).all()


def test_the_same_notes_make_the_same_picture() -> None:
    ties = clusters(4, 20)
    assert np.array_equal(lay_out(ties), lay_out(ties))


def test_a_cluster_lies_together() -> None:
    places = lay_out(clusters(5, 30))
    inside = np.mean([spread(places[at : at + 30]) for at in range(0, 150, 30)])
    assert inside < spread(places) / 2


def test_groups_do_not_lie_on_each_other_and_unlinked_notes_have_a_place_each() -> None:
    ties = clusters(1, 40)
    two = ties_of(90, [*map(tuple, ties.pairs), *map(tuple, ties.pairs + 40)])
    places = lay_out(two)
    left, right = places[:40], places[40:80]
    is_apart = (left.max(axis=0) < right.min(axis=0)) | (right.max(axis=0) < left.min(axis=0))
    assert is_apart.any()
    assert len({tuple(place) for place in places[80:].round(3)}) == 10


def test_after_an_edit_the_picture_stays_and_a_new_note_lies_beside_its_neighbour() -> None:
    ties = clusters(6, 40)
    before = lay_out(ties)
    new = ties_of(241, [*map(tuple, ties.pairs), (100, 240)])
    start = np.vstack([before, [np.nan, np.nan]])
    after = lay_out(new, start)
    assert np.median(moved(before, after[:240])) < 0.03
    distance = np.linalg.norm(after[240] - after[100])
    assert distance < spread(after) / 2


def test_without_a_step_the_picture_is_what_it_was() -> None:
    ties = clusters(3, 30)
    before = lay_out(ties)
    assert np.median(moved(before, lay_out(ties, before, steps=0))) < 0.01
