"""Lays out notes on a map: linked notes close together, groups apart. Pure functions on numpy.

Linked notes attract by the logarithm of their distance (LinLog, Noack 2007), which makes groups
visible; all notes repel. Repulsion is approximate but right on average: distant notes act as one
per grid cell, near ones by a random sample. The same seed gives the same layout.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.float64]
_CELLS = 26
_ROW = _CELLS + 3
_SAMPLES = 3
_FULL_ITERATIONS = 100
_WARM_ITERATIONS = 25
# The largest step at the start and at the end, as a share of the map's width.
_COLD_START_STEP, _WARM_START_STEP, _FINAL_STEP = 0.1, 0.004, 0.0005
_GRAVITY = 3.0  # towards the centre, or notes with one tie drift far out
_OUTLIERS = 1.0  # percent on each side ignored for the scale
_SPACING = 1.6
_GAP = 1.6
_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
# Smaller groups are placed in a spiral: they have no structure worth showing.
_MIN_FORCED_NOTES = 6


@dataclass(frozen=True, slots=True)
class Edges:
    """Which notes are tied, as pairs of numbers below `count`, and how strongly."""

    count: int
    pairs: NDArray[np.int64]
    weights: NDArray[np.float64]

    def degrees(self) -> NDArray[np.int64]:
        """How many ties each note has."""
        return np.bincount(self.pairs.ravel(), minlength=self.count)


def groups(ties: Edges) -> NDArray[np.int64]:
    """A label per note that connected notes share: the lowest number among them."""
    label = np.arange(ties.count)
    if not len(ties.pairs):
        return label
    left, right = ties.pairs[:, 0], ties.pairs[:, 1]
    while True:
        before = label.copy()
        lowest = np.minimum(label[left], label[right])
        np.minimum.at(label, label[left], lowest)
        np.minimum.at(label, label[right], lowest)
        label = label[label]
        if np.array_equal(label, before):
            return label


def lay_out(
    ties: Edges, start: Positions | None = None, *, steps: int | None = None, seed: int = 1
) -> Positions:
    """A position for each note; their spacing does not depend on their number.

    `start` has the positions of an earlier layout, nan for new notes, so that the picture changes
    only where notes have changed. Few `steps` give a rough layout sooner.
    """
    random = np.random.default_rng(seed)
    label = groups(ties)
    names, members = np.unique(label, return_inverse=True)
    sizes = np.bincount(members)
    order = np.argsort(members, kind="stable")
    ends = np.cumsum(sizes)
    placed = np.zeros((ties.count, 2))
    boxes: list[tuple[NDArray[np.int64], float]] = []
    for group in np.lexsort((names, -sizes)):
        notes = order[ends[group] - sizes[group] : ends[group]]
        if sizes[group] >= _MIN_FORCED_NOTES:
            part = _subgraph(ties, notes)
            earlier = None if start is None else start[notes]
            placed[notes] = _scale(_apply_forces(part, earlier, steps, random))
        else:
            placed[notes] = _spiral(int(sizes[group])) * _SPACING
        boxes.append((notes, float(np.abs(placed[notes]).max()) + _GAP / 2))
    _pack(placed, boxes)
    return placed


def _subgraph(ties: Edges, notes: NDArray[np.int64]) -> Edges:
    """The ties within a group, renumbered."""
    number = np.full(ties.count, -1)
    number[notes] = np.arange(len(notes))
    pairs = number[ties.pairs]
    inside = pairs[:, 0] >= 0
    return Edges(len(notes), pairs[inside], ties.weights[inside])


def _apply_forces(
    ties: Edges, start: Positions | None, steps: int | None, random: np.random.Generator
) -> Positions:
    """Lay out a connected group by forces, from a random start or an earlier layout."""
    width = _SPACING * np.sqrt(ties.count)
    known = np.zeros(ties.count, dtype=bool) if start is None else ~np.isnan(start[:, 0])
    is_warm = start is not None and known.mean() > 0.5
    places = _start_positions(ties, start if is_warm else None, known, random)
    hot = _WARM_START_STEP if is_warm else _COLD_START_STEP
    if steps is None:
        steps = _WARM_ITERATIONS if is_warm else _FULL_ITERATIONS
    mass = np.sqrt(1.0 + ties.degrees())
    for step in range(steps):
        places -= places.mean(axis=0)
        push = _repulsion(places, mass, random)
        pull = _attraction(places, ties) - mass[:, None] * places * (_GRAVITY / width)
        # Balance both, so that the layout neither grows nor shrinks, and does not drift.
        balance = -float((pull * places).sum()) / max(float((push * places).sum()), 1e-9)
        force = (pull + max(balance, 0.0) * push) / mass[:, None]
        length = np.sqrt((force**2).sum(axis=1)) + 1e-9
        most = width * (hot * (1 - step / steps) + _FINAL_STEP)
        places += force * (np.minimum(length, most) / length)[:, None]
    return places


def _start_positions(
    ties: Edges, start: Positions | None, known: NDArray[np.bool_], random: np.random.Generator
) -> Positions:
    """The start positions: earlier ones, or beside a neighbour; else a disc in note order.

    Notes are sorted by path, so a folder begins as a slice of the disc.
    """
    if start is None:
        angle = np.arange(ties.count) * (2 * np.pi / ties.count)
        radius = np.sqrt(random.random(ties.count)) * (_SPACING * np.sqrt(ties.count) / 2)
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    places = np.where(known[:, None], start, 0.0)
    centre = places[known].mean(axis=0)
    near = np.tile(centre, (ties.count, 1))
    for source, target in ((0, 1), (1, 0)):
        pairs = ties.pairs[known[ties.pairs[:, source]]]
        near[pairs[:, target]] = places[pairs[:, source]]
    jitter = random.normal(scale=0.5, size=(ties.count, 2))
    return np.where(known[:, None], places, near + jitter)


def _attraction(places: Positions, ties: Edges) -> Positions:
    left, right = ties.pairs[:, 0], ties.pairs[:, 1]
    way = places[right] - places[left]
    distance = np.sqrt((way**2).sum(axis=1)) + 1e-9
    pull = way * (ties.weights * np.log1p(distance) / distance)[:, None]
    return _sum_by_index(left, pull, ties.count) - _sum_by_index(right, pull, ties.count)


def _repulsion(
    places: Positions, mass: NDArray[np.float64], random: np.random.Generator
) -> Positions:
    low, high = np.percentile(places, (_OUTLIERS, 100 - _OUTLIERS), axis=0)
    width = max(float((high - low).max()), 1e-6) / _CELLS
    # The grid shifts each time, so that its lines do not show. A ring of cells around it stays
    # empty, so that every cell has neighbours.
    shifted = (places - low) / width + 1 + random.random(2)
    cell = np.clip(shifted.astype(np.int64), 1, _CELLS + 1)
    flat = cell[:, 0] * _ROW + cell[:, 1]
    order = np.argsort(flat, kind="stable")
    counts = np.bincount(flat, minlength=_ROW**2)
    firsts = np.concatenate([[0], np.cumsum(counts)])
    force = _far_repulsion(places, mass, flat, counts)
    # Three cells of a column are adjacent, so their notes are one range of the order.
    for column in (-_ROW, 0, _ROW):
        start = firsts[flat + column - 1]
        held = firsts[flat + column + 2] - start
        some = np.nonzero(held)[0]
        start, held = start[some], held[some]
        for _ in range(_SAMPLES):
            other = order[start + (random.random(len(some)) * held).astype(np.int64)]
            strength = mass[some] * mass[other] * held / _SAMPLES
            force[some] += _push_away(places[some] - places[other], strength)
    return force


def _far_repulsion(
    places: Positions,
    mass: NDArray[np.float64],
    flat: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> Positions:
    """The repulsion of all but neighbouring cells, each cell treated as one heavy note."""
    used = np.nonzero(counts)[0]
    weight = np.bincount(flat, mass, minlength=len(counts))[used]
    centre = _sum_by_index(flat, places * mass[:, None], len(counts))[used] / weight[:, None]
    across, down = np.divmod(used, _ROW)
    is_near = (np.abs(across[:, None] - across) <= 1) & (np.abs(down[:, None] - down) <= 1)
    x, y = centre.astype(np.float32).T
    aside, below = x[:, None] - x, y[:, None] - y
    share = weight.astype(np.float32) / (aside * aside + below * below + np.float32(1e-6))
    share[is_near] = 0
    push = np.column_stack([(aside * share).sum(axis=1), (below * share).sum(axis=1)])
    number = np.zeros(len(counts), dtype=np.int64)
    number[used] = np.arange(len(used))
    return np.asarray(push[number[flat]] * mass[:, None], dtype=np.float64)


def _push_away(away: Positions, strength: NDArray[np.float64]) -> Positions:
    square = (away**2).sum(axis=1) + 1e-2
    return np.asarray(away * (strength / square)[:, None])


def _sum_by_index(at: NDArray[np.int64], vectors: Positions, count: int) -> Positions:
    return np.column_stack([np.bincount(at, vectors[:, axis], count) for axis in (0, 1)])


def _spiral(count: int) -> Positions:
    """`count` points spread evenly over a disc of radius 1; a single one is its centre."""
    number = np.arange(count)
    radius = np.sqrt(number / max(count - 1, 1))
    return np.column_stack(
        [radius * np.cos(number * _GOLDEN_ANGLE), radius * np.sin(number * _GOLDEN_ANGLE)]
    )


def _scale(places: Positions) -> Positions:
    """Centre the positions, scale them to the number of notes, and pull in outliers."""
    low, high = np.percentile(places, (_OUTLIERS, 100 - _OUTLIERS), axis=0)
    places = places - (low + high) / 2
    radius = max(float((high - low).max()) / 2, 1e-6)
    places *= _SPACING * np.sqrt(len(places)) / 2 / radius
    most = _SPACING * np.sqrt(len(places)) / 2 * 1.15
    distance = np.sqrt((places**2).sum(axis=1)) + 1e-9
    return np.asarray(places * (np.minimum(distance, most) / distance)[:, None])


def _pack(placed: Positions, boxes: list[tuple[NDArray[np.int64], float]]) -> None:
    """Arrange the groups in rows of equal width, largest first."""
    area = sum((2 * half) ** 2 for _, half in boxes)
    width = max(1.1 * np.sqrt(area), max((2 * half for _, half in boxes), default=0))
    x = y = row = 0.0
    for notes, half in boxes:
        if x and x + 2 * half > width:
            x, y, row = 0.0, y + row, 0.0
        placed[notes] += (x + half, y + half)
        x += 2 * half
        row = max(row, 2 * half)
