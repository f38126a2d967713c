"""Which note a name, a path or the target of a link means. The one place that decides.

A note is meant by its path, or by any end of it at a slash, with or without `.md`, in any case.
"""

import posixpath
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

_EXTENSION = ".md"
K = TypeVar("K", bound=Hashable)


def without_extension(path: str) -> str:
    """A path as a link writes it: only Markdown notes lose their extension."""
    return path[: -len(_EXTENSION)] if path.lower().endswith(_EXTENSION) else path


def file_title(path: str) -> str:
    """The file name without its extension, whatever it is."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def exact_paths(name: str) -> tuple[str, str]:
    """The paths that a name may spell out."""
    return name, name + _EXTENSION


def notes_called(name: str, paths: Collection[str]) -> list[str]:
    """The note at exactly this path, or else all notes whose path ends so, in their order."""
    exact = next((path for path in exact_paths(name) if path in paths), None)
    return list(notes_ending(name, paths)) if exact is None else [exact]


def notes_ending(name: str, paths: Iterable[str]) -> Iterator[str]:
    """Notes whose path ends so."""
    end = _plain(name)
    return (path for path in paths if _ends_with(_plain(path), end))


class NoteNames(Generic[K]):
    """The notes of a vault by all that a link may call them, changed note by note."""

    def __init__(self, paths: Iterable[tuple[K, str]] = ()) -> None:
        self._paths: dict[K, str] = {}
        self._called: dict[str, set[K]] = defaultdict(set)
        for note, path in paths:
            self.add(note, path)

    def add(self, note: K, path: str) -> None:
        """Know a note by its path."""
        self._paths[note] = path
        for name in names_of(path):
            self._called[name].add(note)

    def remove(self, note: K) -> None:
        """Forget a note."""
        for name in names_of(self._paths.pop(note)):
            self._called[name].discard(note)

    def meant(self, target: str, source: str = "") -> list[K]:
        """The notes that a link in the note at `source` can mean, as Obsidian finds them.

        A path from the vault's folder or from that of the note means that note alone. Else every
        note whose path ends so is meant, and Obsidian prefers the shortest path.
        """
        plain = target.strip().casefold().strip("/")
        if not self._called.get(asked_name(plain)):
            return []
        near = posixpath.join(posixpath.dirname(source.casefold()), plain)
        for path in (plain, posixpath.normpath(near)):
            if (found := self._at(path)) is not None:
                return [found]
        end = _bare(plain)
        named = self._called.get(_tail(end), ())
        fits = [n for n in named if "/" not in plain or _ends_with(_plain(self._paths[n]), end)]
        return sorted(fits, key=lambda note: (len(self._paths[note]), self._paths[note]))

    def _at(self, path: str) -> K | None:
        found = self._called.get(f"/{path}") or self._called.get(f"/{path}{_EXTENSION}")
        return min(found, key=self._paths.__getitem__) if found else None


def names_of(path: str) -> Iterator[str]:
    """By what a note is looked up: its path behind a slash, its name, its last folder and name."""
    path = path.casefold()
    yield f"/{path}"
    bare = _bare(path)
    yield bare.rpartition("/")[2]
    if "/" in bare:
        yield _tail(bare)


def asked_name(target: str) -> str:
    """One of the names of every note that this target of a link can mean, now or later."""
    path = posixpath.normpath(target.strip().strip("/"))
    return _bare(path.rpartition("/")[2].casefold())


def _plain(path: str) -> str:
    return _bare(path.casefold())


def _bare(folded: str) -> str:
    return folded.removesuffix(_EXTENSION)


def _tail(bare: str) -> str:
    """The name, with the last folder if there is one: many notes may be called "index"."""
    return "/".join(bare.rsplit("/", 2)[-2:])


def _ends_with(plain: str, end: str) -> bool:
    return f"/{plain}".endswith(f"/{end}")
