"""Writes the indexes of related notes during an index run; each note is read once for both.

Only the process that holds the writer lock does this.
"""

import contextlib
import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from obsidian_rag.config import RelationsSettings
from obsidian_rag.errors import IndexCorrupted, ObsidianRagError
from obsidian_rag.notes import Note, RagPolicy, read_id
from obsidian_rag.relations.content import Content, Draft, Terms, is_admitted, read_content
from obsidian_rag.relations.note_edit import add_id, read_head
from obsidian_rag.relations.packed import VectorKind
from obsidian_rag.relations.rows import (
    MADE_BY,
    MARK,
    Rows,
    begin_anew,
    discard,
    find_rows,
    forget_notes,
    format_of,
    open_rows,
    promote,
)
from obsidian_rag.relations.vectors import (
    refresh_meaning_vectors,
    refresh_vectors,
    static_vector,
)
from obsidian_rag.relations.words import Vocabulary
from obsidian_rag.store import ChunkStore, MeaningStore, now
from obsidian_rag.vault import Vault, VaultMode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CHECKED_AT = "checked_at"
# Bytes that SQLite checks in a fraction of a second.
_MAX_BYTES_ALWAYS_CHECKED = 64_000_000
# After this many notes most template lines are known, so few notes are recounted at the end.
_SAMPLE_NOTES = 1024
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RelatedText:
    """A note read for its relations, with its stored passages, if any."""

    path: str
    content_hash: str
    content: Content
    terms: Terms
    passages: "Sequence[tuple[str, NDArray[np.float32]]] | None" = None


@dataclass(slots=True)
class RelatedChanges:
    """The changes of a group of notes. Renames are (old path, new path)."""

    notes: list[RelatedText] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.notes or self.renamed or self.removed)


class ContentReader:
    """Extracts the content of notes in the reading process, with its own term numbers."""

    def __init__(self, max_chars: int | None, with_lines: bool) -> None:
        self._max_chars = max_chars
        self._with_lines = with_lines
        self._vocabulary = Vocabulary()
        self._name = uuid.uuid4().hex
        self._terms_sent = 0

    def __call__(self, note: Note) -> tuple[Content, Terms]:
        """The content of a note, and the terms that were new in it."""
        vocabulary, sent = self._vocabulary, self._terms_sent
        content = read_content(note, vocabulary, self._max_chars, with_lines=self._with_lines)
        self._terms_sent = len(vocabulary.terms)
        return content, Terms(self._name, vocabulary.terms[sent:], vocabulary.words[sent:])


class RelationsWriter:
    """The indexes of related notes during an index run."""

    def __init__(
        self, home: Path, settings: RelationsSettings, meanings: MeaningStore | None = None
    ) -> None:
        """`meanings` are the meaning vectors of passages, if a transformer is in use."""
        self._home = home
        self._settings = settings
        self._meanings = meanings
        self._rows: Rows | None = None
        self._is_rebuild = False
        self._is_sampled = False
        self._mark: str | None = None
        # Whether notes were written since the steps over all notes were last done.
        self._is_incomplete = False
        self.is_lost = False
        self.written = 0
        self.removed = 0
        self.ids_added: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def make_content(self) -> Callable[[], ContentReader]:
        """Factory for content readers; called in each reading process."""
        settings = self._settings
        return partial(ContentReader, settings.max_chars, settings.discount_boilerplate)

    @property
    def rows(self) -> Rows:
        """The open indexes; `begin` opens them."""
        assert self._rows is not None
        return self._rows

    @property
    def mark(self) -> str | None:
        """Identifies this state, if it once matched an index and admits the same notes."""
        mark = self._mark
        return mark if mark is not None and mark.endswith(self._admission_suffix) else None

    @property
    def _admission_suffix(self) -> str:
        return f" {self._settings.excluded_folders}"

    def begin(self, fingerprint: str, *, is_rebuild: bool = False, is_whole: bool = True) -> None:
        """Open the indexes; damaged ones, and ones of another format, start empty."""
        self.close()
        self._is_rebuild = is_rebuild
        self._open()
        if is_whole and not is_rebuild:
            try:
                _check_soundness(self.rows)
            except IndexCorrupted:
                self.start_over()
        if self.rows.known_facts.get(MADE_BY[VectorKind.STATIC]) != fingerprint:
            self._is_incomplete = True
            self.rows.expect_vectors_of(fingerprint)

    def open_existing(self) -> bool:
        """Open the indexes to update a few notes; false if there are none to update."""
        self._rows = find_rows(self._home, format_of(self._settings))
        with self._noticing_damage():
            return self._rows is not None and self._rows.count > 0
        return False

    def _open(self) -> None:
        make = begin_anew if self._is_rebuild else open_rows
        self._rows = make(self._home, format_of(self._settings))
        self._mark = self._rows.known_facts.get(MARK)
        self._is_incomplete = self._rows.was_incomplete()

    def start_over(self) -> None:
        """Discard damaged indexes and start empty."""
        self.is_lost = True
        self.close()
        self._open()
        self.is_lost = self._is_sampled = False

    def close(self) -> None:
        """Close the file; a damaged one is removed and will be rebuilt."""
        if self._rows is not None:
            self._rows.close()
            self._rows = None
            if self.is_lost and not self._is_rebuild:
                discard(self._home)

    def admits(self, path: str) -> bool:
        """Whether the note at this path is related to others."""
        return is_admitted(path, self._settings)

    def contents(self, link_id: str, paths: Sequence[str] | None = None) -> Mapping[str, str]:
        """The content hashes of a vault's notes, or of those at these paths."""
        with self._noticing_damage():
            return self.rows.contents(link_id, paths)
        return {}

    def contents_below(self, link_id: str, paths: Iterable[str]) -> Mapping[str, str]:
        """The content hashes of the notes at these paths and below these folders."""
        with self._noticing_damage():
            return self.rows.contents_below(link_id, paths)
        return {}

    def keep_only(self, link_ids: Collection[str]) -> None:
        """Remove the notes of all other vaults: they are no longer linked."""
        with self._noticing_damage():
            for link_id in self.rows.link_ids().values():
                if link_id not in link_ids:
                    forget_notes(self.rows, link_id)

    def before_reading(self, vault: Vault, paths: Iterable[str]) -> None:
        """Add missing ids to these notes, if the settings say so and the vault is writable."""
        if not self._settings.auto_add_ids or vault.mode is not VaultMode.READ_WRITE:
            return
        for path in filter(self.admits, paths):
            try:
                if _lacks_id(vault, path):
                    add_id(vault, path)
                    self.ids_added.append(path)
            except ObsidianRagError as error:
                _log.warning("No id for %s: %s", path, error.message)

    def write(self, link_id: str, changes: RelatedChanges) -> None:
        """Write the changes of a vault's notes in one transaction."""
        if self.is_lost or changes.is_empty:
            return
        with self._noticing_damage(), self.rows.changing():
            self._write(link_id, changes)
        if self.written >= _SAMPLE_NOTES and not self._is_sampled:
            self._is_sampled = True
            self.update_templates()

    def _write(self, link_id: str, changes: RelatedChanges) -> None:
        rows, settings = self.rows, self._settings
        concerned = [*changes.removed, *(path for pair in changes.renamed for path in pair)]
        known = rows.contents(link_id, concerned) if concerned else {}
        for old, new in changes.renamed:
            if old in known and new not in known:
                rows.move(link_id, old, new)
            elif old in known:
                rows.remove(link_id, old)
        removed = [path for path in changes.removed if path in known]
        for path in removed:
            rows.remove(link_id, path)
        rows.put(
            link_id,
            [_draft(note) for note in changes.notes],
            with_places=settings.store_positions,
        )
        self._is_incomplete = True
        self.written += len(changes.notes)
        self.removed += len(removed)

    def update_templates(self) -> None:
        """Find out which lines come from templates."""
        with self._noticing_damage():
            if self._is_incomplete and self._settings.discount_boilerplate:
                self.rows.update_templates()

    def stale(self, link_id: str) -> list[str]:
        """Unchanged notes of a vault that have to be read again."""
        with self._noticing_damage():
            return self.rows.stale(link_id)
        return []

    def finish(
        self,
        chunks: ChunkStore,
        indexed: Callable[[str, Sequence[str]], Mapping[str, str | None]],
        stop: Callable[[], bool],
    ) -> str | None:
        """Update the vectors; returns the mark of the indexes in use, or None if not finished."""
        with self._noticing_damage():
            is_new = self._mark is None
            for link_id in self.rows.known_vaults() if is_new or self._is_incomplete else ():
                of_vault = partial(indexed, link_id)
                refresh_vectors(self.rows, chunks, link_id, indexed=of_vault, stop=stop)
                # The meaning pass covers new vectors only, not those of a lost index.
                if is_new and self._meanings is not None and not self._is_rebuild:
                    refresh_meaning_vectors(
                        self.rows, chunks, link_id, self._meanings, indexed=of_vault, stop=stop
                    )
            if stop():
                return None
            if self._is_incomplete:
                self.rows.mark_complete()
                self._is_incomplete = False
            mark = self.mark
            if mark is None:
                mark = self._mark = self.rows.mark = f"{uuid.uuid4().hex}{self._admission_suffix}"
            if self._is_rebuild:
                self.close()
                promote(self._home)
                self._is_rebuild = False
                self._open()
            return mark
        return None

    @contextlib.contextmanager
    def _noticing_damage(self) -> Iterator[None]:
        try:
            yield
        except IndexCorrupted:
            self.is_lost = True


def _lacks_id(vault: Vault, path: str) -> bool:
    head = read_head(vault, path)
    if not isinstance(head, Note):
        return False
    return head.policy is not RagPolicy.NEVER and read_id(head.frontmatter) is None


def _draft(note: RelatedText) -> Draft:
    if note.passages is None:
        return Draft(note.content, note.content_hash, note.terms)
    vector = static_vector(note.passages)
    return Draft(note.content, note.content_hash, note.terms, vector, note.content_hash)


def _check_soundness(rows: Rows) -> None:
    """Raise IndexCorrupted if the file is damaged; a large file is checked once a day."""
    database = rows.database
    checked = database.get(_CHECKED_AT) or ""
    if database.path.stat().st_size > _MAX_BYTES_ALWAYS_CHECKED and checked[:10] == now()[:10]:
        return
    if database.check() is not None:
        raise IndexCorrupted(f"{database.path} is damaged.", "Run `obsidian-rag sync`.")
    if checked[:10] != now()[:10]:
        database.put(_CHECKED_AT, now())
