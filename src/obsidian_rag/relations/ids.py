"""Checks the ids of a vault's notes, and finds notes that lack one.

Ids are read from the files, so a check is current. Names and cycles in `related:` fields come from
the indexes, as of the last sync.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from obsidian_rag.config import RelationsSettings
from obsidian_rag.errors import (
    InvalidArgument,
    NoteChanged,
    NotFound,
    ObsidianRagError,
)
from obsidian_rag.notes import (
    Note,
    NoteId,
    RagPolicy,
    is_markdown,
    notes_called,
    read_id,
    read_related,
)
from obsidian_rag.relations.content import is_admitted
from obsidian_rag.relations.note_edit import read_head
from obsidian_rag.relations.query import RelationParts, relation_troubles, relations_state
from obsidian_rag.vault import SkippedFile, Vault

Counted = Callable[[int, int], None]
_MAX_NOTES_NAMED = 10
_COMPARABLE_TROUBLES = frozenset({"", "not_lower_case", "not_v4"})


@dataclass(frozen=True, slots=True)
class FoundId:
    """A note and the id in its frontmatter."""

    path: str
    id: NoteId


@dataclass(frozen=True, slots=True)
class DuplicateId:
    """An id that several notes have: the first in path order keeps it."""

    id: str
    kept: str
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IdReport:
    """Which notes break a rule for ids, in path order; `owners` maps ids to paths."""

    notes: int
    missing: tuple[str, ...]
    invalid: tuple[FoundId, ...]
    not_lower_case: tuple[FoundId, ...]
    duplicates: tuple[DuplicateId, ...]
    legacy: tuple[str, ...]
    owners: Mapping[str, str]

    @property
    def is_clean(self) -> bool:
        """Whether every note has a valid, unique id; the older field is accepted."""
        return not (self.missing or self.invalid or self.not_lower_case or self.duplicates)


def check_ids(notes: Iterable[tuple[str, NoteId | None]]) -> IdReport:
    """Check the ids of a vault, given as (path, id) in any order, against the rules."""
    ordered = sorted(notes, key=lambda pair: pair[0])
    found = [FoundId(path, note_id) for path, note_id in ordered if note_id]
    holders: dict[str, list[str]] = {}
    for one in found:
        if one.id.trouble in _COMPARABLE_TROUBLES:
            holders.setdefault(one.id.key, []).append(one.path)
    return IdReport(
        notes=len(ordered),
        missing=tuple(path for path, note_id in ordered if note_id is None),
        invalid=tuple(one for one in found if one.id.trouble not in ("", "not_lower_case")),
        not_lower_case=tuple(one for one in found if one.id.trouble == "not_lower_case"),
        duplicates=tuple(
            DuplicateId(key, paths[0], tuple(paths[1:]))
            for key, paths in holders.items()
            if len(paths) > 1
        ),
        legacy=tuple(one.path for one in found if one.id.field == "uuid"),
        owners=MappingProxyType({key: paths[0] for key, paths in holders.items()}),
    )


@dataclass(frozen=True, slots=True)
class DanglingRelation:
    """An entry of `related:` without a target: its note, and what it names."""

    path: str
    target: str


@dataclass(frozen=True, slots=True)
class IdCheck:
    """The findings of a check. Cycles are harmless; None while nothing is indexed."""

    report: IdReport
    dangling: tuple[DanglingRelation, ...]
    cycles: tuple[tuple[str, ...], ...] | None
    unread: tuple[SkippedFile, ...]

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to correct."""
        return self.report.is_clean and not self.dangling and not self.unread


def check_note_ids(
    parts: RelationParts, vault: Vault, listener: Counted = lambda _done, _total: None
) -> IdCheck:
    """Check every note's id against the rules, and find dangling relations and cycles.

    Notes that say `rag: false` and those in `relations.excluded_folders` need no id.

    Raises:
        NotFound: the vault's folder is missing.
    """
    notes, unread = _read(parts.settings, vault, listener)
    report = _report(notes)
    lost: set[tuple[str, str]] = set()
    cycles = None
    if (relations_state(parts) or {}).get("notes"):
        lost, ways = relation_troubles(parts, vault.link_id)
        cycles = tuple(sorted(map(_rotate_to_first, ways)))
    return IdCheck(report, tuple(_dangling(notes, report, lost)), cycles, tuple(unread))


def notes_without_id(
    parts: RelationParts, vault: Vault, listener: Counted = lambda _done, _total: None
) -> list[str]:
    """The notes without a valid id, in path order.

    Raises:
        NotFound: the vault's folder is missing.
    """
    report = _report(_read(parts.settings, vault, listener)[0])
    bad = (one.path for one in (*report.invalid, *report.not_lower_case))
    return sorted((*report.missing, *bad))


def note_for_id(vault: Vault, name: str) -> str:
    """The path of the note called `name`: a path, or a unique end of one, with or without .md.

    Raises:
        NotFound: the note does not exist.
        InvalidArgument: there are several.
        SecurityViolation: the path leaves the vault.
    """
    wanted = vault.relative(name)
    files = [entry.rel_path for entry in vault.scan().files]
    named = notes_called(wanted, files)
    if len(named) == 1:
        return named[0]
    if named:
        some = ", ".join(f"'{path}'" for path in named[:_MAX_NOTES_NAMED])
        raise InvalidArgument(
            f"Several notes are called '{name}': {some}.", "Name one by its path."
        )
    raise NotFound(f"No note '{name}'.", "Search for it first.")


def has_id(vault: Vault, path: str) -> bool:
    """Whether a note has an id now, valid or not."""
    head = _head(vault, path)
    return isinstance(head, Note) and read_id(head.frontmatter) is not None


def _read(
    settings: RelationsSettings, vault: Vault, listener: Counted
) -> tuple[list[Note], list[SkippedFile]]:
    """The frontmatter of the notes that need an id, and the files that cannot be read."""
    found = (entry.rel_path for entry in vault.scan().files)
    paths = [path for path in found if is_markdown(path) and is_admitted(path, settings)]
    notes, unread = [], []
    for done, path in enumerate(paths, start=1):
        head = _head(vault, path)
        if isinstance(head, Note):
            if head.policy is not RagPolicy.NEVER:
                notes.append(head)
        elif head.reason != "missing":  # the file was deleted since the scan
            unread.append(head)
        listener(done, len(paths))
    return notes, unread


def _head(vault: Vault, path: str) -> Note | SkippedFile:
    try:
        return read_head(vault, path)
    except NoteChanged:
        return SkippedFile(path, "changing")
    except ObsidianRagError:
        return SkippedFile(path, "unreadable")


def _report(notes: Iterable[Note]) -> IdReport:
    return check_ids((note.path, read_id(note.frontmatter)) for note in notes)


def _dangling(
    notes: Iterable[Note], report: IdReport, lost: set[tuple[str, str]]
) -> Iterator[DanglingRelation]:
    """Ids that no note has now, and names without a target at the last sync."""
    for note in notes:
        for relation in read_related(note.frontmatter):
            is_lost = (
                (note.path, relation.target) in lost
                if relation.is_link
                else relation.target not in report.owners
            )
            if is_lost:
                yield DanglingRelation(note.path, relation.target)


def _rotate_to_first(way: list[str]) -> tuple[str, ...]:
    """The same cycle, rotated to begin at the first note by path."""
    at = way.index(min(way))
    return (*way[at:], *way[:at])
