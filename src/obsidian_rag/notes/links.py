"""Links out of a note: wikilinks, embeds and Markdown links to other files of the vault."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Generic, TypeVar
from urllib.parse import unquote

from obsidian_rag.notes.lines import without_code
from obsidian_rag.notes.note import Link, LinkKind

_EXTENSION = ".md"
K = TypeVar("K", bound=Hashable)
# Every repeat is possessive or stops at the character that starts the next attempt: linear.
# Each alternative starts with a literal, which lets the regex engine skip to the next candidate.
_TOKEN = re.compile(
    r"""
      \\.
    | \[\[([^\[\]]++)\]\]
    | \[
    | \]\(\s*+
        (<[^<>]*+>|[^\s()<>]*+(?:\([^\s()]*+\)[^\s()<>]*+){0,8})
        (?:\s++(?:"[^"]*+"|'[^']*+'|\([^()]*+\)))?+\s*+\)
    | \]
    """,
    re.VERBOSE,
)
_WIKILINK = 1
_TARGET = 2
_DEFINITION = re.compile(r" {0,3}\[(?!\^)([^\[\]]++)\]:[ \t]*+(<[^<>]++>|\S++)")
_EXTERNAL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:|//")
_PIPE = re.compile(r"\\?\|")


def without_extension(path: str) -> str:
    """A path as a link writes it: only Markdown notes lose their extension."""
    return path[: -len(_EXTENSION)] if path.lower().endswith(_EXTENSION) else path


def file_title(path: str) -> str:
    """The file name without its extension, whatever it is."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def exact_paths(name: str) -> tuple[str, str]:
    """The paths that a name may stand for: as it is, and with `.md`."""
    return name, name + _EXTENSION


def notes_called(name: str, paths: Collection[str]) -> list[str]:
    """The note at exactly this path, else all notes whose path ends with it, in order."""
    exact = next((path for path in exact_paths(name) if path in paths), None)
    return list(notes_ending(name, paths)) if exact is None else [exact]


def notes_ending(name: str, paths: Iterable[str]) -> Iterator[str]:
    """The notes whose path ends with this name."""
    end = _plain(name)
    return (path for path in paths if _ends_with(_plain(path), end))


class NoteNames(Generic[K]):
    """Looks up notes by every name that a link may use; updated note by note."""

    def __init__(self, paths: Iterable[tuple[K, str]] = ()) -> None:
        self._paths: dict[K, str] = {}
        self._called: dict[str, set[K]] = defaultdict(set)
        for note, path in paths:
            self.add(note, path)

    def add(self, note: K, path: str) -> None:
        """Add a note."""
        self._paths[note] = path
        for name in names_of(path):
            self._called[name].add(note)

    def remove(self, note: K) -> None:
        """Remove a note."""
        for name in names_of(self._paths.pop(note)):
            self._called[name].discard(note)

    def resolve(self, target: str, source: str = "") -> list[K]:
        """The notes that a link in the note at `source` can lead to, in Obsidian's order.

        A path relative to the vault or to the source note leads to that note alone. Otherwise it
        can be any note whose path ends with it, and Obsidian prefers the shortest path.
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
    """The lookup keys of a note: its path after a slash, its name, its last folder and name."""
    path = path.casefold()
    yield f"/{path}"
    bare = _bare(path)
    yield bare.rpartition("/")[2]
    if "/" in bare:
        yield _tail(bare)


def asked_name(target: str) -> str:
    """A key that every note has to which this link target can lead, now or later."""
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


def line_links(line: str, number: int) -> list[Link]:
    """The links of one line of prose."""
    if "[[" not in line and line.count("](") == line.count("](http"):
        return []
    links = []
    opened: list[tuple[int, bool]] = []
    for token in _TOKEN.finditer(without_code(line)):
        start, end = token.span()
        mark = token[0]
        if token.lastindex == _WIKILINK:
            links.append(_wikilink(token[_WIKILINK], _is_embed(line, start), number))
        elif mark == "[":
            opened.append((end, _is_embed(line, start)))
        elif mark[0] == "]":
            text_start, is_embed = opened.pop() if opened else (start, False)
            text = line[text_start:start]
            if link := _markdown_link(token[_TARGET] or "", text, is_embed, number):
                links.append(link)
    return links


def _is_embed(line: str, start: int) -> bool:
    return start > 0 and line[start - 1] == "!"


def definition_link(line: str, number: int) -> Link | None:
    """The link of a reference definition, `[name]: target`."""
    match = _DEFINITION.match(line)
    return _markdown_link(match[2], match[1], False, number) if match else None


def _wikilink(inner: str, is_embed: bool, number: int) -> Link:
    path, *display = _PIPE.split(inner, maxsplit=1)
    target, heading, block = _anchor(path)
    return Link(
        LinkKind.EMBED if is_embed else LinkKind.WIKILINK,
        target,
        heading,
        block,
        display[0].strip() or None if display else None,
        number,
    )


def _markdown_link(target: str, text: str, is_embed: bool, number: int) -> Link | None:
    if target.startswith("<"):
        target = target[1:-1]
    if not target or _EXTERNAL.match(target):
        return None
    path, heading, block = _anchor(target, is_encoded="%" in target)
    kind = LinkKind.EMBED if is_embed else LinkKind.MARKDOWN
    return Link(kind, path, heading, block, text.strip() or None, number)


def _anchor(path: str, *, is_encoded: bool = False) -> tuple[str, str | None, str | None]:
    target, _, anchor = path.partition("#")
    if is_encoded:
        target, anchor = unquote(target), unquote(anchor)
    target, anchor = target.strip(), anchor.strip()
    if anchor.startswith("^"):
        return target, None, anchor[1:] or None
    heading, _, block = anchor.partition("#^")
    return target, heading or None, block or None
