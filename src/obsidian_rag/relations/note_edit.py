"""Edits the frontmatter of one note: adds its id, or a relation to its `related:` field.

Threat: a tool that adds ids could reveal to an agent that a note with `rag: false` exists, or put
YAML into a file that is not a note. So such a note is not found, and only Markdown is opened.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import PurePosixPath

from obsidian_rag.errors import (
    ErrorBody,
    IndexerFailed,
    InvalidArgument,
    NotFound,
    ObsidianRagError,
    ReadOnly,
)
from obsidian_rag.notes import (
    EditRefused,
    Note,
    NoteId,
    RagPolicy,
    Relation,
    is_markdown,
    kind_of,
    make_id,
    parse_note,
    read_id,
    read_related,
    split_frontmatter,
    with_id,
    with_related,
)
from obsidian_rag.vault import (
    NoteFile,
    SkippedFile,
    Vault,
    check_relative,
    content_hash,
    replace_note,
    resolve,
)


@dataclass(frozen=True, slots=True)
class NoteEdit:
    """A note and its exact text, including the byte order mark that parsing drops."""

    vault: Vault
    note: Note
    text: str
    hash: str

    @property
    def path(self) -> str:
        """The path of the note, relative to its vault."""
        return self.note.path

    def edited(self, edit: Callable[[str], str]) -> str:
        """The text after this edit; writes nothing.

        Raises:
            InvalidArgument: the frontmatter cannot be edited this way.
        """
        try:
            return edit(self.text)
        except EditRefused as refused:
            raise InvalidArgument(
                f"{refused} '{self.path}' is unchanged.", "Correct its frontmatter and try again."
            ) from None

    def save(self, text: str) -> None:
        """Replace the note with this text.

        Raises:
            NoteChanged: the note has been edited meanwhile.
            ReadOnly: it is not writable.
            SecurityViolation: it is hidden.
            IndexerFailed: the disk is full or failed; the note is unchanged.
        """
        replace_note(self.vault.root, self.path, self.hash, text.encode("utf-8"))


def open_for_edit(vault: Vault, rel: str, *, is_owner: bool) -> NoteEdit:
    """Open the note at `rel`. Only its owner can open a note that says `rag: false`.

    Raises:
        NotFound: it does not exist, or you may not see it.
        InvalidArgument: it is not a Markdown file.
        ReadOnly: its vault is not writable, or it is not UTF-8.
        SecurityViolation: the path leaves the vault.
        IndexerFailed: it cannot be read.
        NoteChanged: another program keeps writing to it.
    """
    vault.must_be_writable()
    path = check_relative(rel)
    _check_markdown(path, resolve(vault.root, path).name)
    file = vault.read(path)
    if not isinstance(file, NoteFile):
        if file.reason == "missing":
            raise _not_found(path)
        raise IndexerFailed(f"'{path}' cannot be read ({file.reason}).", "Open it in Obsidian.")
    if file.encoding is not None:
        raise ReadOnly(
            f"'{path}' is not UTF-8 (read as {file.encoding}); only UTF-8 notes are changed.",
            "Convert it to UTF-8, then try again.",
        )
    note = parse_note(path, file.text)
    if note.policy is RagPolicy.NEVER and not is_owner:
        raise _not_found(path)
    return NoteEdit(vault, note, file.data.decode("utf-8"), content_hash(file.data))


def read_head(vault: Vault, path: str) -> Note | SkippedFile:
    """The frontmatter of the note at this path, as a note; or why it was not read.

    Raises:
        SecurityViolation: the path leaves the vault.
        NoteChanged: another program keeps writing to it.
    """
    file = vault.read(path)
    if not isinstance(file, NoteFile):
        return file
    return parse_note(path, file.text[: split_frontmatter(file.text)[1]])


def _check_markdown(path: str, real_name: str) -> None:
    kind = kind_of(path)
    if not kind.has_frontmatter:
        raise InvalidArgument(
            f"'{path}' is a {kind.name}, which has no frontmatter.", "Choose a Markdown note."
        )
    if not (is_markdown(path) and is_markdown(real_name)):
        raise InvalidArgument(f"'{path}' is not a Markdown note.", "Choose a Markdown note.")


def _not_found(path: str) -> NotFound:
    return NotFound(f"No note '{path}'.", "Search for it first.")


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
