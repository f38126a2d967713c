"""A note as the page shows it to its owner: text, private parts, outline, links both ways.

Only for the owner. Private parts are given by their lines, so that the page can label them. While
the privacy screen is on, their lines are blank, and nothing from them appears in the title, the
outline, the tags or the properties.
"""

import contextlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import unified_diff
from itertools import islice

from obsidian_rag.engine import Engine
from obsidian_rag.errors import InvalidArgument, ObsidianRagError
from obsidian_rag.notes import Heading, Note, file_title, kind_of
from obsidian_rag.relations import LinkedNotes, known_notes, linked_notes, preview_relation
from obsidian_rag.search import property_names
from obsidian_rag.tools.citation import find_note, obsidian_link
from obsidian_rag.tools.guard import OWNER, Caller, guard_settings
from obsidian_rag.tools.note_files import note_files
from obsidian_rag.tools.sections import NoteSections, section_end, sections_of_note, split_note

_MAX_CHOICES = 12
_CONTEXT_LINES = 2
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")


@dataclass(frozen=True, slots=True)
class PrivatePart:
    """Private lines of a note, both included, and whether they are blanked."""

    first: int
    last: int
    categories: tuple[str, ...]
    is_hidden: bool = False


@dataclass(frozen=True, slots=True)
class NoteView:
    """A note with everything the page shows next to it; hidden lines are blank."""

    note: Note
    title: str
    lines: list[str]
    tags: list[str]
    date: str | None
    properties: Mapping[str, object]
    outline: list[Heading]
    link: str
    private: tuple[PrivatePart, ...]
    links: LinkedNotes

    @property
    def text(self) -> str:
        """The visible text, with the line numbers of the file."""
        return "\n".join(self.lines)

    def lines_under(self, heading: str) -> tuple[int, int]:
        """The first and last line under a heading, of a block (`^id`), or of the whole note."""
        wanted, total = heading.rpartition("#")[2].casefold(), len(self.lines)
        if wanted.startswith("^"):
            return self._block(wanted) or (1, 0)
        for position, head in enumerate(self.note.headings):
            if wanted and head.text.casefold() == wanted:
                return head.line, section_end(self.note.headings, position, total)
        return 1, total

    def _block(self, mark: str) -> tuple[int, int] | None:
        """The lines of a block that ends with this id, or comes before a line with only the id."""
        marked = (n for n, line in enumerate(self.lines) if line.casefold().split()[-1:] == [mark])
        if (last := next(marked, None)) is None:
            return None
        first = last
        is_item = _ITEM.match(self.lines[first]) is not None
        if self.lines[last].strip().casefold() == mark:
            while first > 0 and not self.lines[first - 1].strip():
                first -= 1
        while not is_item and first > 0 and self.lines[first - 1].strip():
            first -= 1
        return first + 1, last + 1


def note_view(
    engine: Engine,
    name: str,
    vault_name: str | None = None,
    caller: Caller = OWNER,
    revealed: Collection[int] = (),
) -> NoteView:
    """Open the note called `name`, in one vault or in any.

    `revealed` are the first lines of private parts to show although the privacy screen is on.

    Raises:
        NotFound: there is no such note.
        InvalidArgument: several notes have this name.
        SecurityViolation: the path leaves the vault or is in a denied folder.
    """
    vault, path = find_note(engine, name, caller, vault_name)
    note, text = note_files(engine, vault.link_id).load(path)
    sections = sections_of_note(note, text, guard_settings(engine), caller)
    private = tuple(
        replace(part, is_hidden=caller.is_screened and part.first not in revealed)
        for part in _private_parts(sections)
    )
    hidden = [part for part in private if part.is_hidden]
    lines = split_note(text)
    for part in hidden:
        lines[part.first - 1 : part.last] = [""] * (part.last + 1 - part.first)
    if path.lower().endswith(".canvas"):  # its cards, not the JSON around them
        note = replace(note, text="\n".join(kind_of(path).outline(note)[0].lines))
    links = _links(engine, vault.link_id, note)
    if caller.is_screened:  # the title of another note may stand in a private part of it
        links = replace(
            links,
            backlinks=tuple(replace(one, title=file_title(one.path)) for one in links.backlinks),
        )
    return NoteView(
        note,
        sections.open_title() if hidden else note.title,
        lines,
        sections.open_tags(note.tags) if hidden else list(note.tags),
        sections.open_date(note.date) if hidden else note.date,
        {} if hidden and sections.hides_properties else note.frontmatter,
        [
            head
            for head in note.headings
            if not any(part.first <= head.line <= part.last for part in hidden)
        ],
        obsidian_link(vault.root, path),
        private,
        links,
    )


def _links(engine: Engine, link_id: str, note: Note) -> LinkedNotes:
    """Resolve the links of a note, and find the notes that link to it."""
    targets, links = {link.target for link in note.links if link.target}, LinkedNotes({}, ())
    with contextlib.suppress(ObsidianRagError):  # a note can be read before it is related
        links = linked_notes(engine.relations, (link_id, note.path), targets)
    with contextlib.suppress(ObsidianRagError):
        files = note_files(engine, link_id)
        others = files.meant(targets.difference(links.targets), note.path)
        links = replace(links, targets={**others, **links.targets})
    return links


def _private_parts(sections: NoteSections) -> list[PrivatePart]:
    """Join adjacent sections that are private for the same reasons."""
    parts: list[PrivatePart] = []
    for section in sections.sections:
        found = sections.verdict(section.first, section.first).categories
        if not found:
            continue
        if parts and (parts[-1].last + 1, parts[-1].categories) == (section.first, found):
            parts[-1] = replace(parts[-1], last=section.last)
        else:
            parts.append(PrivatePart(section.first, section.last, found))
    return parts


def note_attachment(
    engine: Engine, name: str, source: str, vault_name: str | None = None
) -> tuple[str, bytes]:
    """Find a file embedded in a note as Obsidian finds it; returns its path and bytes.

    Raises:
        NotFound: there is no such file that may be read.
        SecurityViolation: the path leaves the vault, or the rules deny its folder.
    """
    return note_files(engine, vault_name).attachment(name, source)


@dataclass(frozen=True, slots=True)
class FilterChoice:
    """A filter to offer, and how many notes match it."""

    value: str
    count: int


def filter_choices(
    engine: Engine, kind: str, typed: str, caller: Caller = OWNER
) -> list[FilterChoice]:
    """Folders, tags or properties that start with or contain `typed`, the most common first.

    While the privacy screen is on, only folders are offered: tags are text of notes.

    Raises:
        InvalidArgument: there is no such kind.
    """
    counted = _count_values(engine, kind)
    if caller.is_screened and kind != "folder":
        return []
    wanted = typed.casefold().lstrip("#")
    fits = [
        (not name.casefold().startswith(wanted), -times, name)
        for name, times in counted.items()
        if wanted in name.casefold()
    ]
    return [FilterChoice(name, -times) for _, times, name in islice(sorted(fits), _MAX_CHOICES)]


def _count_values(engine: Engine, kind: str) -> Mapping[str, int]:
    if kind == "property":
        return dict(property_names(engine.database))
    if kind == "folder":
        return Counter(
            folder for card in known_notes(engine.relations) for folder in _folders(card.path)
        )
    if kind == "tag":
        return Counter(
            tag.lstrip("#") for card in known_notes(engine.relations) for tag in card.tags
        )
    raise InvalidArgument(f"There are no filters of '{kind}'.", "Use folder, tag or property.")


def _folders(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def relation_preview(
    engine: Engine,
    source: str,
    target: str,
    rel: str,
    vault_name: str | None = None,
    caller: Caller = OWNER,
) -> list[dict[str, object]]:
    """The lines that adding a relation would change, by note; writes nothing.

    Context lines are left out while the privacy screen is on.

    Raises:
        As `obsidian_rag_add_relation`.
    """
    vault = engine.vaults.writable(vault_name)
    paths = [find_note(engine, name, OWNER, vault.name)[1] for name in (source, target)]
    previews = preview_relation(
        vault,
        *paths,
        rel=rel,
        rich=engine.config.settings.relations.rich_format,
        is_owner=True,
    )
    around = 0 if caller.is_screened else _CONTEXT_LINES
    return [
        {"path": one.path, "lines": _changed_lines(one.before, one.after, around)}
        for one in previews
    ]


def _changed_lines(before: str, after: str, around: int) -> list[dict[str, str]]:
    """Each changed line with its context: ` `, `-` or `+`, and its text."""
    lines = unified_diff(before.splitlines(), after.splitlines(), n=around, lineterm="")
    return [
        {"sign": line[:1], "text": line[1:]}
        for line in islice(lines, 2, None)
        if not line.startswith("@@")
    ]
