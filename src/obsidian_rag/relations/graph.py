"""Who is tied to whom: relations and links between notes, both ways, up to three steps."""

import posixpath
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from functools import cached_property

MOST_STEPS = 3
_EXTENSION = ".md"

# Per note: its links, and its relations as (id or name, whether it is a name).
Ties = tuple[tuple[str, ...], tuple[tuple[str, bool], ...]]


class Graph:
    """The ties of all notes, by slot. A tie to nothing is dangling and never an error."""

    def __init__(
        self, notes: Mapping[int, tuple[str, str | None]], ties: Mapping[int, Ties]
    ) -> None:
        self._paths = {slot: path for slot, (path, _) in notes.items()}
        self._ties = ties
        self._by_path = {path.lower(): slot for slot, (path, _) in notes.items()}
        self._by_name = _by_name(self._paths)
        self._by_uid: dict[str, int] = {}
        # Of two notes with one id the first, by path, has it.
        for slot, (_, uid) in sorted(notes.items(), key=lambda item: item[1][0]):
            if uid is not None:
                self._by_uid.setdefault(uid, slot)

    def find(self, target: str, source: int | None = None) -> int | None:
        """The note that a link's target means, as Obsidian finds it."""
        plain = target.strip().lower().strip("/")
        if not plain:
            return None
        folder = posixpath.dirname(self._paths[source].lower()) if source is not None else ""
        near = posixpath.normpath(posixpath.join(folder, plain))
        for path in (plain, plain + _EXTENSION, near, near + _EXTENSION):
            if path in self._by_path:
                return self._by_path[path]
        named = self._by_name.get(posixpath.basename(plain).removesuffix(_EXTENSION), ())
        fits = [slot for slot in named if "/" not in plain or _ends_with(self._paths[slot], plain)]
        # Obsidian prefers the shortest path.
        return min(fits, key=lambda slot: (len(self._paths[slot]), slot), default=None)

    @cached_property
    def outgoing(self) -> dict[int, frozenset[int]]:
        """Whom each note points at, by a link or a relation."""
        return {
            slot: frozenset(self._targets(slot, links, related)) - {slot}
            for slot, (links, related) in self._ties.items()
            if links or related
        }

    @cached_property
    def neighbours(self) -> dict[int, frozenset[int]]:
        """Who is tied to whom, whichever side says so."""
        found = defaultdict(set)
        for slot, targets in self.outgoing.items():
            for target in targets:
                found[slot].add(target)
                found[target].add(slot)
        return {slot: frozenset(near) for slot, near in found.items()}

    def dangling(self) -> list[tuple[int, str]]:
        """Relations that lead nowhere: the note, and the id or name it gives."""
        return [
            (slot, target)
            for slot, (_, related) in self._ties.items()
            for target, is_link in related
            if self._related(slot, target, is_link) is None
        ]

    def cycles(self) -> list[tuple[int, ...]]:
        """Relations that come back to where they began, along one direction, each once."""
        ahead = {
            slot: sorted(
                {
                    found
                    for target, is_link in related
                    if (found := self._related(slot, target, is_link)) is not None
                }
            )
            for slot, (_, related) in self._ties.items()
            if related
        }
        return _cycles(ahead)

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
        for middle in self._near(source, source, without):
            near = self._near(middle, source, without)
            for slot in near:
                if slot != source:
                    found[slot] += 1 / len(self.neighbours[middle])
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
                for near in sorted(self.neighbours.get(slot, ())):
                    if near not in came:
                        came[near] = slot
                        waiting.append((near, steps + 1))
        return []

    def _near(self, slot: int, source: int, without: int | None) -> Iterable[int]:
        """The neighbours of a slot, as if `source` did not point at `without`."""
        near = self.neighbours.get(slot, frozenset())
        if without is None or slot not in (source, without):
            return near
        other = without if slot == source else source
        is_answered = source in self.outgoing.get(without, frozenset())
        return near if is_answered else near - {other}

    def _targets(
        self, slot: int, links: Iterable[str], related: Iterable[tuple[str, bool]]
    ) -> Iterable[int]:
        for link in links:
            found = self.find(link, slot)
            if found is not None:
                yield found
        for target, is_link in related:
            found = self._related(slot, target, is_link)
            if found is not None:
                yield found

    def _related(self, slot: int, target: str, is_link: bool) -> int | None:
        return self.find(target, slot) if is_link else self._by_uid.get(target)


def _by_name(paths: Mapping[int, str]) -> dict[str, list[int]]:
    found = defaultdict(list)
    for slot, path in paths.items():
        found[posixpath.basename(path).lower().removesuffix(_EXTENSION)].append(slot)
    return dict(found)


def _ends_with(path: str, target: str) -> bool:
    plain = path.lower().removesuffix(_EXTENSION)
    return f"/{plain}".endswith(f"/{target.removesuffix(_EXTENSION)}")


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
