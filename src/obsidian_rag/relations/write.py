"""Write one relation into a note's `related:` field, in the configured form."""

import contextlib
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.notes import (
    NoteId,
    Relation,
    make_id,
    read_id,
    read_related,
    with_id,
    with_related,
)
from obsidian_rag.relations.note_edit import NoteEdit, open_for_edit
from obsidian_rag.vault import Vault, resolve


@dataclass(frozen=True, slots=True)
class WrittenRelation:
    """A relation in the source note; `is_existing` if it was there before."""

    source: str
    target: str
    target_id: str
    rel: str
    auto: bool
    is_existing: bool
    is_id_added: bool


@dataclass(frozen=True, slots=True)
class NotePreview:
    """A note's text before and after a change that is not written yet."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class _Plan:
    """A relation and the new texts; None for an unchanged note."""

    relation: Relation
    source_text: str | None
    target_text: str | None


def add_relation(
    vault: Vault,
    source_rel: str,
    target_rel: str,
    *,
    rel: str,
    auto: bool,
    rich: bool,
    may_add_id: bool = False,
    is_owner: bool = False,
) -> WrittenRelation:
    """Add the target's id to the source's `related:`; an existing relation stays unchanged.

    A target without an id gets one if `may_add_id`. It is written first: if the source changes
    meanwhile, the vault has gained one valid id and nothing else has changed.

    Raises:
        NotFound: there is no such note, or it says `rag: false` and you are not its owner.
        InvalidArgument: both notes are the same, the target has no valid id, or the frontmatter
            cannot be edited.
        SecurityViolation: a path leaves the vault or is hidden.
        NoteChanged: a note has been edited meanwhile.
        ReadOnly: a note may not be written.
        IndexerFailed: a note cannot be read, or the disk failed.
    """
    source = open_for_edit(vault, source_rel, is_owner=is_owner)
    target = open_for_edit(vault, target_rel, is_owner=is_owner)
    # Plan both edits before writing the first.
    plan = _plan_write(source, target, rel=rel, auto=auto, rich=rich, may_add_id=may_add_id)
    if plan.target_text is not None:
        target.save(plan.target_text)
    if plan.source_text is not None:
        source.save(plan.source_text)
    return WrittenRelation(
        source=source.path,
        target=target.path,
        target_id=plan.relation.target,
        rel=plan.relation.rel,
        auto=plan.relation.auto,
        is_existing=plan.source_text is None,
        is_id_added=plan.target_text is not None,
    )


def preview_relation(
    vault: Vault, source_rel: str, target_rel: str, *, rel: str, rich: bool, is_owner: bool = False
) -> list[NotePreview]:
    """What `add_relation` would change, with an id for a target that has none; writes nothing.

    Raises:
        As `add_relation`.
    """
    source = open_for_edit(vault, source_rel, is_owner=is_owner)
    target = open_for_edit(vault, target_rel, is_owner=is_owner)
    plan = _plan_write(source, target, rel=rel, auto=False, rich=rich, may_add_id=True)
    edits = [(target, plan.target_text), (source, plan.source_text)]
    return [NotePreview(one.path, one.text, text) for one, text in edits if text is not None]


def _plan_write(
    source: NoteEdit, target: NoteEdit, *, rel: str, auto: bool, rich: bool, may_add_id: bool
) -> _Plan:
    """The relation and the new texts; writes nothing."""
    _check_distinct(source, target)
    note_id = _valid_id(target, may_add_id)
    target_id = note_id.value if note_id else make_id()
    for relation in read_related(source.note.frontmatter):
        if relation.target == target_id and not relation.is_link:
            return _Plan(relation, None, None)
    relation = Relation(target_id, rel.strip(), auto) if rich else Relation(target_id)
    source_text = source.edited(partial(with_related, entries=[relation], rich=rich))
    target_text = target.edited(partial(with_id, value=target_id)) if note_id is None else None
    return _Plan(relation, source_text, target_text)


def _check_distinct(source: NoteEdit, target: NoteEdit) -> None:
    # Compare files: symlinks and case-insensitive disks give one note several names.
    with contextlib.suppress(FileNotFoundError):  # saving reports it
        places = [resolve(opened.vault.root, opened.path) for opened in (source, target)]
        if places[0].samefile(places[1]):
            raise InvalidArgument("A note cannot be related to itself.", "Name two notes.")


def _valid_id(target: NoteEdit, may_add_id: bool) -> NoteId | None:
    """The target's id; None if it has none and one may be added."""
    found = read_id(target.note.frontmatter)
    if found and found.trouble:
        raise InvalidArgument(
            f"The `{found.field}` of '{target.path}' is not a UUID v4 in lower case.",
            "Correct it, then try again.",
        )
    if found is None and not may_add_id:
        raise InvalidArgument(
            f"{PurePosixPath(target.path).stem} has no id yet.", "Add one with add_missing_id."
        )
    return found
