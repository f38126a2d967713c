"""Opens one note for an edit of its frontmatter, and saves the edit.

Threat: a tool that adds ids could reveal to an agent that a note with `rag: false` exists, or put
YAML into a file that is not a note. So such a note is not found, and only Markdown is opened.
"""

from collections.abc import Callable
from dataclasses import dataclass

from obsidian_rag.errors import IndexerFailed, InvalidArgument, NotFound, ReadOnly
from obsidian_rag.notes import (
    EditRefused,
    Note,
    RagPolicy,
    is_markdown,
    kind_of,
    parse_note,
    split_frontmatter,
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
