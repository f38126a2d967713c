"""Checks the ids of a vault's notes, and adds missing ones."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from types import MappingProxyType

from obsidian_rag.errors import ErrorBody, ObsidianRagError
from obsidian_rag.notes import NoteId, make_id, read_id, with_id
from obsidian_rag.relations.note_edit import open_for_edit
from obsidian_rag.vault import Vault

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


class AddOutcome(StrEnum):
    """The outcome for a note that should get an id."""

    ADDED = "added"
    PLANNED = "planned"
    EXISTING = "existing"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class AddedId:
    """The outcome for one note; a planned id is not generated yet."""

    path: str
    outcome: AddOutcome
    id: str = ""
    error: ErrorBody | None = None


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


def add_id(
    vault: Vault,
    rel: str,
    *,
    is_dry_run: bool = False,
    is_owner: bool = False,
) -> AddedId:
    """Write an id into a note that has none; a valid id stays unchanged.

    Raises:
        NotFound: there is no such note, or it says `rag: false` and you are not its owner.
        InvalidArgument: it is not a Markdown note, or its id or frontmatter is invalid.
        SecurityViolation: the path leaves the vault or is hidden.
        NoteChanged: it has been edited meanwhile.
        ReadOnly: it is not writable.
        IndexerFailed: it cannot be read, or the disk failed.
    """
    opened = open_for_edit(vault, rel, is_owner=is_owner)
    present = read_id(opened.note.frontmatter)
    if present and not present.trouble:
        return AddedId(opened.path, AddOutcome.EXISTING, present.value)
    value = make_id()
    text = opened.edited(partial(with_id, value=value))
    if is_dry_run:
        return AddedId(opened.path, AddOutcome.PLANNED)
    opened.save(text)
    return AddedId(opened.path, AddOutcome.ADDED, value)


def add_note_ids(
    vault: Vault, paths: Iterable[str], *, is_dry_run: bool = False
) -> Iterator[AddedId]:
    """Add ids to many notes, for their owner; a failure does not stop the others.

    The next sync updates the indexes: no id is looked up before a relation refers to it.
    """
    for rel in dict.fromkeys(paths):
        try:
            yield add_id(vault, rel, is_dry_run=is_dry_run, is_owner=True)
        except ObsidianRagError as error:
            yield AddedId(rel, AddOutcome.FAILED, error=error.body)
