"""Who is tied to whom: relations and links between notes, both ways, up to three steps."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from obsidian_rag.notes import NoteNames, asked_name, names_of

MOST_STEPS = 3
# A name or an id in a vault.
_Call = tuple[str, str]


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
    """The ties of all notes, by slot. A tie to nothing is dangling and never an error."""

    def __init__(self, notes: Mapping[int, Ties]) -> None:
        self._notes: dict[int, Ties] = {}
        self._names: dict[str, NoteNames[int]] = defaultdict(NoteNames)  # by vault
        self._holders: dict[_Call, set[int]] = defaultdict(set)  # by vault and id
        # Who asks for a name or an id: when its owner changes, their ties do too.
        self._asking: dict[_Call, set[int]] = defaultdict(set)
        self._is_tied = False
        self._outgoing: dict[int, frozenset[int]] = {}
        self._incoming: dict[int, set[int]] = defaultdict(set)
        for slot, ties in notes.items():
            self._enter(slot, ties)

    def change(self, notes: Mapping[int, Ties | None]) -> None:
        """Take up what some notes are now; None for one that is gone."""
        moved: set[_Call] = set()
        for slot, ties in notes.items():
            before = self._notes.pop(slot, None)
            if before is not None:
                self._names[before.link_id].remove(slot)
                if before.uid is not None:
                    self._holders[before.link_id, before.uid].discard(slot)
            if ties is not None:
                self._enter(slot, ties)
            if (before and before[:3]) != (ties and ties[:3]):
                moved.update(*(_calls(one) for one in (before, ties) if one))
        if self._is_tied:
            asking = (self._asking.get(call, set()) for call in moved)
            for slot in set(notes).union(*asking):
                self._tie(slot)

    def find(self, target: str, source: int) -> int | None:
        """The note that a link in the note `source` means, as Obsidian finds it."""
        ties = self._notes[source]
        meant = self._names[ties.link_id].meant(target, ties.path)
        return meant[0] if meant else None

    @property
    def outgoing(self) -> Mapping[int, frozenset[int]]:
        """Whom each note points at, by a link or a relation; of those that point at any."""
        if not self._is_tied:
            self._is_tied = True
            for slot in self._notes:
                self._tie(slot)
        return self._outgoing

    @property
    def related(self) -> Mapping[int, frozenset[int]]:
        """Whom each note names in its `related:` field; of those that name any."""
        named = ((slot, ties.related) for slot, ties in self._notes.items() if ties.related)
        found = {slot: {self._related(slot, *one) for one in some} for slot, some in named}
        return {
            slot: frozenset(one for one in targets if one is not None and one != slot)
            for slot, targets in found.items()
        }

    def neighbours(self, slot: int) -> frozenset[int]:
        """Who is tied to a note, whichever side says so."""
        return self.outgoing.get(slot, frozenset()).union(self._incoming.get(slot, ()))

    def dangling(self) -> list[tuple[int, str]]:
        """Relations that lead nowhere: the note, and the id or name it gives."""
        return [
            (slot, target)
            for slot in self._in_order()
            for target, is_link in self._notes[slot].related
            if self._related(slot, target, is_link) is None
        ]

    def cycles(self) -> list[tuple[int, ...]]:
        """Relations that come back to where they began, along one direction, each once."""
        ahead = {}
        for slot in self._in_order():
            found = (self._related(slot, *one) for one in self._notes[slot].related)
            ahead[slot] = sorted(
                {target for target in found if target is not None}, key=self._order
            )
        return _cycles({slot: targets for slot, targets in ahead.items() if targets})

    def distances(self, source: int, without: int | None = None) -> dict[int, int]:
        """How many steps away notes are, up to three; visited ones are not visited again."""
        found: dict[int, int] = {}
        edge = [source]
        for steps in range(1, MOST_STEPS + 1):
            following = []
            for slot in edge:
                for near in self._near(slot, source, without):
                    if near != source and near not in found:
                        found[near] = steps
                        following.append(near)
            edge = following
        return found

    def shared(self, source: int, without: int | None = None) -> dict[int, float]:
        """Notes that have neighbours in common; one with few neighbours says more."""
        found: dict[int, float] = defaultdict(float)
        for middle in sorted(self._near(source, source, without), key=self._order):
            weight = 1 / len(self.neighbours(middle))
            for slot in self._near(middle, source, without):
                if slot != source:
                    found[slot] += weight
        return found

    def path(self, source: int, target: int) -> list[int]:
        """The notes on a shortest way from one to the other; empty if it is too far."""
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
                for near in sorted(self.neighbours(slot), key=self._order):
                    if near not in came:
                        came[near] = slot
                        waiting.append((near, steps + 1))
        return []

    def _enter(self, slot: int, ties: Ties) -> None:
        self._notes[slot] = ties
        self._names[ties.link_id].add(slot, ties.path)
        if ties.uid is not None:
            self._holders[ties.link_id, ties.uid].add(slot)

    def _tie(self, slot: int) -> None:
        """Find out whom a note points at, and let those know."""
        for before in self._outgoing.pop(slot, ()):
            self._incoming[before].discard(slot)
        ties = self._notes.get(slot)
        if ties is None or not (ties.links or ties.related):
            return
        vault = ties.link_id
        for link in ties.links:
            self._asking[vault, asked_name(link)].add(slot)
        for named, is_link in ties.related:
            self._asking[vault, asked_name(named) if is_link else f"//{named}"].add(slot)
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
            found = self._related(slot, target, is_link)
            if found is not None:
                yield found

    def _related(self, slot: int, target: str, is_link: bool) -> int | None:
        if is_link:
            return self.find(target, slot)
        # Of two notes with one id the first, by path, has it.
        holders = self._holders.get((self._notes[slot].link_id, target), ())
        return min(holders, key=self._order, default=None)

    def _near(self, slot: int, source: int, without: int | None) -> Iterable[int]:
        """The neighbours of a slot, as if `source` did not point at `without`."""
        near = self.neighbours(slot)
        if without is None or slot not in (source, without):
            return near
        other = without if slot == source else source
        is_answered = source in self.outgoing.get(without, frozenset())
        return near if is_answered else near - {other}

    def _order(self, slot: int) -> tuple[str, str]:
        ties = self._notes[slot]
        return ties.path, ties.link_id

    def _in_order(self) -> list[int]:
        return sorted(self._notes, key=self._order)


def _calls(ties: Ties) -> Iterator[_Call]:
    """By what a note is called; two slashes in front tell an id from a name."""
    for name in names_of(ties.path):
        yield ties.link_id, name
    if ties.uid is not None:
        yield ties.link_id, f"//{ties.uid}"


def _cycles(ahead: Mapping[int, list[int]]) -> list[tuple[int, ...]]:
    """The cycles that a walk in depth closes, without recursion: a chain may be long."""
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
