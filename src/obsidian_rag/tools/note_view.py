"""A note as its owner sees it on the page: text, sections to veil, outline, links both ways.

Only for the owner: nothing is withheld. What is sensitive is told by its lines, for the page to
veil until it is asked for.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice

from obsidian_rag.engine import Engine
from obsidian_rag.errors import InvalidArgument, ObsidianRagError
from obsidian_rag.notes import Note, RagPolicy
from obsidian_rag.relations import LinkedNotes, known_notes, linked_notes, preview_relation
from obsidian_rag.search import property_names
from obsidian_rag.tools.citation import find_note, obsidian_link
from obsidian_rag.tools.guard import OWNER, guard_settings
from obsidian_rag.tools.sections import section_end, sections_of_note

_MOST_SUGGESTED = 12


@dataclass(frozen=True, slots=True)
class NoteView:
    """A note with all that the page shows beside it."""

    note: Note
    text: str
    link: str
    # First line, last line and categories of what is sensitive.
    veiled: tuple[tuple[int, int, tuple[str, ...]], ...]
    links: LinkedNotes

    @property
    def is_private(self) -> bool:
        """Whether the note itself says so."""
        return self.note.policy is not RagPolicy.INDEX

    def lines_under(self, heading: str) -> tuple[int, int]:
        """The first and last line under a heading, or of all."""
        wanted, total = heading.rpartition("#")[2].casefold(), len(self.text.splitlines())
        for position, head in enumerate(self.note.headings):
            if wanted and head.text.casefold() == wanted:
                return head.line, section_end(self.note.headings, position, total)
        return 1, total


def note_view(engine: Engine, name: str, vault_name: str | None = None) -> NoteView:
    """The note called `name`, of a vault by its name or of any.

    Raises:
        NotFound: there is no such note.
        InvalidArgument: several notes are called so.
        SecurityViolation: the path leaves the vault or is in a denied folder.
    """
    vault, path = find_note(engine, name, OWNER, vault_name)
    note, text = engine.vaults.files(vault.link_id).load(path)
    sections = sections_of_note(note, text, guard_settings(engine), OWNER)
    veiled = tuple(
        (section.first, section.last, verdict.categories)
        for section in sections.sections
        if (verdict := sections.verdict(section.first, section.first)).is_sensitive
    )
    links = LinkedNotes({}, ())
    with contextlib.suppress(ObsidianRagError):  # a note can be read before it is related
        targets = {link.target for link in note.links if link.target}
        links = linked_notes(engine, (vault.link_id, path), targets)
    link = obsidian_link(vault.root, path)
    return NoteView(note, text, link, veiled, links)


def note_attachment(
    engine: Engine, name: str, source: str, vault_name: str | None = None
) -> tuple[str, bytes]:
    """A file that a note shows, found as Obsidian finds it: its path and bytes.

    Raises:
        NotFound: there is none that may be read.
        SecurityViolation: the path leaves the vault, or the rules deny its folder.
    """
    return engine.vaults.files(vault_name).attachment(name, source)


@dataclass(frozen=True, slots=True)
class FilterChoice:
    """A filter to offer: what it says, and how many notes it is about."""

    value: str
    count: int


def filter_choices(engine: Engine, kind: str, typed: str) -> list[FilterChoice]:
    """Folders, tags or properties that begin so, or else contain it, the commonest first.

    Raises:
        InvalidArgument: there is no such kind.
    """
    counted = _counted(engine, kind)
    wanted = typed.casefold().lstrip("#")
    fits = [
        (not name.casefold().startswith(wanted), -times, name)
        for name, times in counted.items()
        if wanted in name.casefold()
    ]
    return [FilterChoice(name, -times) for _, times, name in islice(sorted(fits), _MOST_SUGGESTED)]


def _counted(engine: Engine, kind: str) -> Mapping[str, int]:
    if kind == "property":
        return dict(property_names(engine.database))
    if kind == "folder":
        return Counter(folder for card in known_notes(engine) for folder in _folders(card.path))
    if kind == "tag":
        return Counter(tag.lstrip("#") for card in known_notes(engine) for tag in card.tags)
    raise InvalidArgument(f"There are no filters of '{kind}'.", "Use folder, tag or property.")


def _folders(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def relation_preview(
    engine: Engine, source: str, target: str, rel: str, vault_name: str | None = None
) -> list[dict[str, object]]:
    """The lines that adding a relation would change, note by note; writes nothing.

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
    return [{"path": one.path, "lines": _changed_lines(one.before, one.after)} for one in previews]


def _changed_lines(before: str, after: str) -> list[dict[str, str]]:
    """Each changed line with two around it: ` `, `-` or `+`, and its text."""
    lines = unified_diff(before.splitlines(), after.splitlines(), n=2, lineterm="")
    return [
        {"sign": line[:1], "text": line[1:]}
        for line in islice(lines, 2, None)
        if not line.startswith("@@")
    ]
