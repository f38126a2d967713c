"""One note, opened for an edit of its frontmatter, and the edit put in place.

Threat: a tool that may add an id could tell an agent that a note exists which says `rag: false`,
or put YAML into a file that is no note. So such a note is not found, and only Markdown is opened.
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
    """A note and its text with all its bytes, also the byte order mark that a note drops."""

    vault: Vault
    note: Note
    text: str
    hash: str

    @property
    def path(self) -> str:
        """The path of the note, relative to its vault."""
        return self.note.path

    def edited(self, edit: Callable[[str], str]) -> str:
        """The text after this edit; nothing is written.

        Raises:
            InvalidArgument: the frontmatter cannot be edited so.
        """
        try:
            return edit(self.text)
        except EditRefused as refused:
            raise InvalidArgument(
                f"{refused} '{self.path}' is unchanged.", "Correct its frontmatter and try again."
            ) from None

    def save(self, text: str) -> None:
        """Put this text in place of what was opened.

        Raises:
            NoteChanged: the note has been edited meanwhile.
            ReadOnly: it may not be written.
            SecurityViolation: it is hidden.
            IndexerFailed: the disk is full or failed; the note is as it was.
        """
        replace_note(self.vault.root, self.path, self.hash, text.encode("utf-8"))


def open_for_edit(vault: Vault, rel: str, *, is_owner: bool) -> NoteEdit:
    """The note at `rel`. Only its owner can open a note that says `rag: false`.

    Raises:
        NotFound: there is none, or none for you.
        InvalidArgument: it is no Markdown file.
        ReadOnly: its vault may not be written, or it is in another encoding than UTF-8.
        SecurityViolation: the path leaves the vault.
        IndexerFailed: it cannot be read.
        NoteChanged: somebody keeps writing to it.
    """
    vault.must_be_writable()
    path = check_relative(rel)
    _refuse_others(path, resolve(vault.root, path).name)
    file = vault.read(path)
    if not isinstance(file, NoteFile):
        if file.reason == "missing":
            raise _no_note(path)
        raise IndexerFailed(f"'{path}' cannot be read ({file.reason}).", "Open it in Obsidian.")
    if file.encoding is not None:
        raise ReadOnly(
            f"'{path}' is not UTF-8 (read as {file.encoding}); only UTF-8 notes are changed.",
            "Convert it to UTF-8, then try again.",
        )
    note = parse_note(path, file.text)
    if note.policy is RagPolicy.NEVER and not is_owner:
        raise _no_note(path)
    return NoteEdit(vault, note, file.data.decode("utf-8"), content_hash(file.data))


def read_head(vault: Vault, path: str) -> Note | SkippedFile:
    """The note at this path as far as its frontmatter goes; else why it is not read.

    Raises:
        SecurityViolation: the path leaves the vault.
        NoteChanged: somebody keeps writing to it.
    """
    file = vault.read(path)
    if not isinstance(file, NoteFile):
        return file
    return parse_note(path, file.text[: split_frontmatter(file.text)[1]])


def _refuse_others(path: str, real_name: str) -> None:
    kind = kind_of(path)
    if not kind.has_frontmatter:
        raise InvalidArgument(
            f"'{path}' is a {kind.name}, which has no frontmatter.", "Choose a Markdown note."
        )
    if not (is_markdown(path) and is_markdown(real_name)):
        raise InvalidArgument(f"'{path}' is not a Markdown note.", "Choose a Markdown note.")


def _no_note(path: str) -> NotFound:
    return NotFound(f"No note '{path}'.", "Search for it first.")
