"""The graph of notes: relations and links, in both directions, up to three steps."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from obsidian_rag.notes import NoteNames, asked_name, names_of

MOST_STEPS = 3
# Link id of a vault, and a name or id in it.
_Reference = tuple[str, str]


class Ties(NamedTuple):
    """A note by vault, path and id, its links, and its relations.

    These are (id or name, whether it is a name). Names and ids are of the note's own vault.
    """

    link_id: str
    path: str
    uid: str | None
    links: tuple[str, ...]
    related: tuple[tuple[str, bool], ...]


class Graph:
    """The ties of all notes, by slot. A dangling tie is never an error."""

    def __init__(self, notes: Mapping[int, Ties]) -> None:
        self._notes: dict[int, Ties] = {}
        self._names: dict[str, NoteNames[int]] = defaultdict(NoteNames)  # by vault
        self._holders: dict[_Reference, set[int]] = defaultdict(set)  # by vault and id
        # The slots that refer to a name or id: when its owner changes, their ties do too.
        self._referrers: dict[_Reference, set[int]] = defaultdict(set)
        self._are_ties_resolved = False
        self._outgoing: dict[int, frozenset[int]] = {}
        self._incoming: dict[int, set[int]] = defaultdict(set)
        for slot, ties in notes.items():
            self._add(slot, ties)

    def change(self, notes: Mapping[int, Ties | None]) -> None:
        """Update some notes; None for a removed one."""
        moved: set[_Reference] = set()
        for slot, ties in notes.items():
            before = self._notes.pop(slot, None)
            if before is not None:
                self._names[before.link_id].remove(slot)
                if before.uid is not None:
                    self._holders[before.link_id, before.uid].discard(slot)
            if ties is not None:
                self._add(slot, ties)
            if (before and before[:3]) != (ties and ties[:3]):
                moved.update(*(_references(one) for one in (before, ties) if one))
        if self._are_ties_resolved:
            asking = (self._referrers.get(call, set()) for call in moved)
            for slot in set(notes).union(*asking):
                self._resolve_ties(slot)

    def find(self, target: str, source: int) -> int | None:
        """The note that a link in the note `source` resolves to, as in Obsidian."""
        ties = self._notes[source]
        meant = self._names[ties.link_id].resolve(target, ties.path)
        return meant[0] if meant else None

    @property
    def outgoing(self) -> Mapping[int, frozenset[int]]:
        """The targets of each note's links and relations; only notes that have any."""
        if not self._are_ties_resolved:
            self._are_ties_resolved = True
            for slot in self._notes:
                self._resolve_ties(slot)
        return self._outgoing

    @property
    def related(self) -> Mapping[int, frozenset[int]]:
        """The targets of each note's `related:` field; only notes that have any."""
        named = ((slot, ties.related) for slot, ties in self._notes.items() if ties.related)
        found = {slot: {self._resolve_relation(slot, *one) for one in some} for slot, some in named}
        return {
            slot: frozenset(one for one in targets if one is not None and one != slot)
            for slot, targets in found.items()
        }

    def neighbours(self, slot: int) -> frozenset[int]:
        """The notes tied to a note, in either direction."""
        return self.outgoing.get(slot, frozenset()).union(self._incoming.get(slot, ()))

    def dangling(self) -> list[tuple[int, str]]:
        """Relations without a target: the note, and the id or name it gives."""
        return [
            (slot, target)
            for slot in self._sorted_slots()
            for target, is_link in self._notes[slot].related
            if self._resolve_relation(slot, target, is_link) is None
        ]

    def cycles(self) -> list[tuple[int, ...]]:
        """Directed cycles of relations, each once."""
        ahead = {}
        for slot in self._sorted_slots():
            found = (self._resolve_relation(slot, *one) for one in self._notes[slot].related)
            ahead[slot] = sorted(
                {target for target in found if target is not None}, key=self._sort_key
            )
        return _find_cycles({slot: targets for slot, targets in ahead.items() if targets})

    def distances(self, source: int, without: int | None = None) -> dict[int, int]:
        """The distance of notes in steps, up to three."""
        found: dict[int, int] = {}
        edge = [source]
        for steps in range(1, MOST_STEPS + 1):
            following = []
            for slot in edge:
                for near in self._neighbours_without(slot, source, without):
                    if near != source and near not in found:
                        found[near] = steps
                        following.append(near)
            edge = following
        return found

    def shared(self, source: int, without: int | None = None) -> dict[int, float]:
        """Notes with neighbours in common; a neighbour with few ties weighs more."""
        found: dict[int, float] = defaultdict(float)
        for middle in sorted(self._neighbours_without(source, source, without), key=self._sort_key):
            weight = 1 / len(self.neighbours(middle))
            for slot in self._neighbours_without(middle, source, without):
                if slot != source:
                    found[slot] += weight
        return found

    def path(self, source: int, target: int) -> list[int]:
        """The notes on a shortest path between two; empty if they are too far apart."""
        came: dict[int, int] = {source: source}
        waiting = deque([(source, 0)])
        while waiting:
            slot, steps = waiting.popleft()
            if slot == target:
                way = [target]
                while way[-1] != source:
                    way.append(came[way[-1]])
                return way[::-1]
            if steps < MOST_STEPS:
                for near in sorted(self.neighbours(slot), key=self._sort_key):
                    if near not in came:
                        came[near] = slot
                        waiting.append((near, steps + 1))
        return []

    def _add(self, slot: int, ties: Ties) -> None:
        self._notes[slot] = ties
        self._names[ties.link_id].add(slot, ties.path)
        if ties.uid is not None:
            self._holders[ties.link_id, ties.uid].add(slot)

    def _resolve_ties(self, slot: int) -> None:
        """Resolve the targets of a note and update both directions."""
        for before in self._outgoing.pop(slot, ()):
            self._incoming[before].discard(slot)
        ties = self._notes.get(slot)
        if ties is None or not (ties.links or ties.related):
            return
        vault = ties.link_id
        for link in ties.links:
            self._referrers[vault, asked_name(link)].add(slot)
        for named, is_link in ties.related:
            self._referrers[vault, asked_name(named) if is_link else f"//{named}"].add(slot)
        targets = frozenset(self._targets(slot, ties)) - {slot}
        if targets:
            self._outgoing[slot] = targets
        for target in targets:
            self._incoming[target].add(slot)

    def _targets(self, slot: int, ties: Ties) -> Iterator[int]:
        for link in ties.links:
            found = self.find(link, slot)
            if found is not None:
                yield found
        for target, is_link in ties.related:
            found = self._resolve_relation(slot, target, is_link)
            if found is not None:
                yield found

    def _resolve_relation(self, slot: int, target: str, is_link: bool) -> int | None:
        if is_link:
            return self.find(target, slot)
        # Of several notes with one id, the first by path owns it.
        holders = self._holders.get((self._notes[slot].link_id, target), ())
        return min(holders, key=self._sort_key, default=None)

    def _neighbours_without(self, slot: int, source: int, without: int | None) -> Iterable[int]:
        """The neighbours of a slot, as if `source` did not point at `without`."""
        near = self.neighbours(slot)
        if without is None or slot not in (source, without):
            return near
        other = without if slot == source else source
        is_answered = source in self.outgoing.get(without, frozenset())
        return near if is_answered else near - {other}

    def _sort_key(self, slot: int) -> tuple[str, str]:
        ties = self._notes[slot]
        return ties.path, ties.link_id

    def _sorted_slots(self) -> list[int]:
        return sorted(self._notes, key=self._sort_key)


def _references(ties: Ties) -> Iterator[_Reference]:
    """The names and id of a note; a prefix of two slashes marks an id."""
    for name in names_of(ties.path):
        yield ties.link_id, name
    if ties.uid is not None:
        yield ties.link_id, f"//{ties.uid}"


def _find_cycles(ahead: Mapping[int, list[int]]) -> list[tuple[int, ...]]:
    """The cycles closed by a depth-first walk; not recursive, because a chain may be long."""
    found: list[tuple[int, ...]] = []
    done: set[int] = set()
    for start in ahead:
        way: list[int] = []
        place: dict[int, int] = {}
        stack: list[tuple[int, int]] = [(start, 0)] if start not in done else []
        while stack:
            slot, at = stack.pop()
            if at == 0:
                place[slot] = len(way)
                way.append(slot)
            following = ahead.get(slot, [])
            if at < len(following):
                stack.append((slot, at + 1))
                target = following[at]
                if target in place:
                    found.append(tuple(way[place[target] :]))
                elif target not in done:
                    stack.append((target, 0))
            else:
                done.add(slot)
                del place[way.pop()]
    return found
