"""Write one relation into a note's `related:` field, in the configured form."""

import contextlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

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
from obsidian_rag.relations.note_edit import MAX_BYTES, NoteEdit, open_for_edit
from obsidian_rag.vault import resolve


@dataclass(frozen=True, slots=True)
class WrittenRelation:
    """A relation as it stands in the source now; `is_existing` if it stood there before."""

    source: str
    target: str
    target_id: str
    rel: str
    auto: bool
    is_existing: bool
    is_id_added: bool


def add_relation(
    root: Path,
    source_rel: str,
    target_rel: str,
    *,
    rel: str,
    auto: bool,
    rich: bool,
    may_add_id: bool = False,
    is_owner: bool = False,
    max_bytes: int = MAX_BYTES,
) -> WrittenRelation:
    """Name the target's id in the source's `related:`; a relation that is there stays as it is.

    A target without an id gets one if `may_add_id`. It is written first: should the source then
    change under our hands, the vault has one good id more and is otherwise as it was.

    Raises:
        NotFound: there is no such note, or it says `rag: false` and you are not its owner.
        InvalidArgument: a note with itself, a target without a good id, or no place to write.
        SecurityViolation: a path leaves the vault or is hidden.
        NoteChanged: a note has been edited meanwhile.
        ReadOnly: a note may not be written.
        IndexerFailed: a note cannot be read, or the disk failed.
    """
    source = open_for_edit(root, source_rel, is_owner=is_owner, max_bytes=max_bytes)
    target = open_for_edit(root, target_rel, is_owner=is_owner, max_bytes=max_bytes)
    _refuse_itself(source, target)
    note_id = _good_id(target, may_add_id)
    target_id = note_id.value if note_id else make_id()
    for relation in read_related(source.note.frontmatter).relations:
        if relation.target == target_id and not relation.is_link:
            return _written(source, target, relation, is_existing=True)
    relation = Relation(target_id, rel.strip(), auto) if rich else Relation(target_id)
    # Both edits are known to work before the first of them is written.
    source_text = source.edited(partial(with_related, entries=[relation], rich=rich))
    if note_id is None:
        target.save(target.edited(partial(with_id, value=target_id)))
    source.save(source_text)
    return _written(source, target, relation, is_id_added=note_id is None)


def _refuse_itself(source: NoteEdit, target: NoteEdit) -> None:
    # By file, because links and disks that ignore case give one note several names.
    with contextlib.suppress(FileNotFoundError):  # then saving says that it is gone
        places = [resolve(opened.root, opened.path) for opened in (source, target)]
        if places[0].samefile(places[1]):
            raise InvalidArgument("A note cannot be related to itself.", "Name two notes.")


def _good_id(target: NoteEdit, may_add_id: bool) -> NoteId | None:
    """The target's id; None if it has none and may get one."""
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


def _written(
    source: NoteEdit,
    target: NoteEdit,
    relation: Relation,
    *,
    is_existing: bool = False,
    is_id_added: bool = False,
) -> WrittenRelation:
    return WrittenRelation(
        source=source.path,
        target=target.path,
        target_id=relation.target,
        rel=relation.rel,
        auto=relation.auto,
        is_existing=is_existing,
        is_id_added=is_id_added,
    )
