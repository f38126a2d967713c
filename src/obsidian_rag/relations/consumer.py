"""Keeps the indexes of related notes in line with the index: what it reads is handed over here.

Whoever writes has the process to himself as far as templates go; single notes may be taken up by
another process meanwhile.
"""

import contextlib
import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, cast

from obsidian_rag.config import RelationsSettings
from obsidian_rag.errors import IndexCorrupted, ObsidianRagError
from obsidian_rag.notes import Note, RagPolicy, read_id
from obsidian_rag.relations.content import Content, Draft, Terms, read_content
from obsidian_rag.relations.ids import add_id
from obsidian_rag.relations.note_edit import read_head
from obsidian_rag.relations.rows import Rows
from obsidian_rag.relations.rows_file import (
    begin_anew,
    discard,
    find_rows,
    forget_notes,
    format_of,
    open_rows,
    promote,
)
from obsidian_rag.relations.vectors import refresh_vectors, static_vector
from obsidian_rag.relations.words import Speller
from obsidian_rag.store import ChunkStore, now
from obsidian_rag.vault import Vault, VaultMode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CHECKED = "checked_at"
# What SQLite checks in a fraction of a second.
_QUICKLY_CHECKED = 64_000_000
# So many notes tell which lines most of them share: few have to be counted again in the end.
_SAMPLE = 1024
_log = logging.getLogger(__name__)


class ParsedNote(Protocol):
    """A note as it is handed over, with the passages that were stored with it, if any."""

    @property
    def content_hash(self) -> str: ...
    @property
    def content(self) -> object: ...
    @property
    def passages(self) -> "Sequence[tuple[str, NDArray[np.float32]]] | None": ...


class Delivery(Protocol):
    """What is handed over in one go. Renames are old path, new path."""

    @property
    def notes(self) -> Sequence[ParsedNote]: ...
    @property
    def renamed(self) -> Sequence[tuple[str, str]]: ...
    @property
    def removed(self) -> Sequence[str]: ...


class ContentReader:
    """Makes the content of notes in the process in which they are read, with terms of its own."""

    def __init__(self, max_chars: int | None, with_lines: bool) -> None:
        self._max_chars = max_chars
        self._with_lines = with_lines
        self._speller = Speller()
        self._name = uuid.uuid4().hex
        self._told = 0

    def __call__(self, note: Note) -> tuple[Content, Terms]:
        """The content of a note, and the terms that were new in it."""
        speller, told = self._speller, self._told
        content = read_content(note, speller, self._max_chars, with_lines=self._with_lines)
        self._told = len(speller.terms)
        return content, Terms(self._name, speller.terms[told:], speller.words[told:])


class RelationsConsumer:
    """The indexes of related notes while an index run, or a single edit, is handed over to them."""

    def __init__(self, home: Path, settings: RelationsSettings) -> None:
        self._home = home
        self._settings = settings
        self._rows: Rows | None = None
        self._is_rebuild = False
        self._is_sampled = False
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
        """Makes what is needed of a note; to be called in each process that reads."""
        settings = self._settings
        return partial(ContentReader, settings.max_chars, settings.discount_boilerplate)

    @property
    def rows(self) -> Rows:
        """What is written to, once it has begun."""
        assert self._rows is not None
        return self._rows

    @property
    def mark(self) -> str | None:
        """A name for this state, if it agreed with an index once and admits the same notes."""
        mark = self.rows.mark
        return mark if mark is not None and mark.endswith(self._admitted) else None

    @property
    def _admitted(self) -> str:
        return f" {self._settings.excluded_folders}"

    def begin(self, fingerprint: str, *, is_rebuild: bool = False, is_whole: bool = True) -> None:
        """Open the indexes; damaged ones, and ones that are made otherwise, begin afresh."""
        self.close()
        self._is_rebuild = is_rebuild
        self._open()
        if is_whole and not is_rebuild:
            try:
                _must_be_sound(self.rows)
            except IndexCorrupted:
                self.start_over()
        self.rows.expect_vectors_of(fingerprint)

    def begin_early(self) -> bool:
        """Open the indexes for a few notes; whether there are any that can be followed."""
        self._rows = find_rows(self._home, format_of(self._settings))
        with self._noticing_damage():
            return self._rows is not None and self._rows.count > 0
        return False

    def _open(self) -> None:
        make = begin_anew if self._is_rebuild else open_rows
        self._rows = make(self._home, format_of(self._settings))

    def start_over(self) -> None:
        """Throw away what is damaged; everything will be handed over again."""
        self.is_lost = True
        self.close()
        self._open()
        self.is_lost = self._is_sampled = False

    def close(self) -> None:
        """Let go of the file; a damaged one is removed, to be made again."""
        if self._rows is not None:
            self._rows.close()
            self._rows = None
            if self.is_lost and not self._is_rebuild:
                discard(self._home)

    def admits(self, path: str) -> bool:
        """Whether the note at this path is related to others."""
        return is_admitted(path, self._settings)

    def contents(self, link_id: str, paths: Sequence[str] | None = None) -> Mapping[str, str]:
        """The content hash of a vault's notes: of all, or of those at some paths."""
        with self._noticing_damage():
            return self.rows.contents(link_id, paths)
        return {}

    def contents_below(self, link_id: str, paths: Iterable[str]) -> Mapping[str, str]:
        """The same of the notes at some paths, and of those below these folders."""
        with self._noticing_damage():
            return self.rows.contents_below(link_id, paths)
        return {}

    def keep_only(self, link_ids: Collection[str]) -> None:
        """Let go of the notes of all other vaults: nobody knows of these any more."""
        with self._noticing_damage():
            for link_id in self.rows.link_ids().values():
                if link_id not in link_ids:
                    forget_notes(self.rows, link_id, self._settings.ngram_size)

    def before_reading(self, vault: Vault, paths: Iterable[str]) -> None:
        """Give these notes ids, if the settings say so and the vault may be written."""
        if not self._settings.auto_add_ids or vault.mode is not VaultMode.READ_WRITE:
            return
        for path in filter(self.admits, paths):
            try:
                if _lacks_id(vault, path):
                    add_id(vault, path)
                    self.ids_added.append(path)
            except ObsidianRagError as error:
                _log.warning("No id for %s: %s", path, error.message)

    def take(self, link_id: str, delivery: Delivery) -> bool:
        """Take up a vault's notes that were read, renamed or removed; whether it could."""
        if not self.is_lost and (delivery.notes or delivery.renamed or delivery.removed):
            with self._noticing_damage(), self.rows.changing():
                self._write(link_id, delivery)
            if self.written >= _SAMPLE and not self._is_sampled:
                self._is_sampled = True
                self.settle()
        return not self.is_lost

    def _write(self, link_id: str, delivery: Delivery) -> None:
        rows, settings = self.rows, self._settings
        concerned = [*delivery.removed, *(path for pair in delivery.renamed for path in pair)]
        known = rows.contents(link_id, concerned)
        for old, new in delivery.renamed:
            if old in known and new not in known:
                rows.move(link_id, old, new)
            elif old in known:
                rows.remove(link_id, old, settings.ngram_size)
        removed = [path for path in delivery.removed if path in known]
        for path in removed:
            rows.remove(link_id, path, settings.ngram_size)
        rows.put(
            link_id,
            [_draft(note) for note in delivery.notes],
            ngram_size=settings.ngram_size,
            with_places=settings.store_positions,
        )
        rows.is_unsettled = True
        self.written += len(delivery.notes)
        self.removed += len(removed)

    def settle(self) -> list[tuple[str, str]]:
        """Find out which lines come from templates; notes, of any vault, to be read again."""
        with self._noticing_damage():
            if self.rows.is_unsettled and self._settings.discount_boilerplate:
                return self.rows.settle()
        return []

    def finish(
        self,
        chunks: ChunkStore,
        indexed: Callable[[str, Sequence[str]], Mapping[str, str | None]],
        stop: Callable[[], bool],
    ) -> str | None:
        """Give notes their vectors; the mark of what is in use now, if all of it is done."""
        with self._noticing_damage():
            if self.rows.is_unsettled:
                for link_id in self.rows.link_ids().values():
                    of_vault = partial(indexed, link_id)
                    refresh_vectors(self.rows, chunks, link_id, indexed=of_vault, stop=stop)
                if stop():
                    return None
                self.rows.is_unsettled = False
            if self.mark is None:
                self.rows.mark = f"{uuid.uuid4().hex}{self._admitted}"
            mark = self.mark
            if self._is_rebuild:
                self.close()
                promote(self._home)
            return mark
        return None

    @contextlib.contextmanager
    def _noticing_damage(self) -> Iterator[None]:
        try:
            yield
        except IndexCorrupted:
            self.is_lost = True


def is_admitted(path: str, settings: RelationsSettings) -> bool:
    """Whether the note at this path is related to others."""
    folders = settings.excluded_folders
    return not path.startswith(tuple(f"{folder.strip('/ ')}/" for folder in folders))


def _lacks_id(vault: Vault, path: str) -> bool:
    head = read_head(vault, path)
    if not isinstance(head, Note):
        return False
    return head.policy is not RagPolicy.NEVER and read_id(head.frontmatter) is None


def _draft(note: ParsedNote) -> Draft:
    content, fresh = cast("tuple[Content, Terms]", note.content)
    if note.passages is None:
        return Draft(content, note.content_hash, fresh)
    vector = static_vector(note.passages)
    return Draft(content, note.content_hash, fresh, vector, note.content_hash)


def _must_be_sound(rows: Rows) -> None:
    """A whole run notices damage, which is then built anew; of a large file not every time.

    Raises:
        IndexCorrupted: the file is damaged.
    """
    database = rows.database
    checked = database.get(_CHECKED) or ""
    if database.path.stat().st_size > _QUICKLY_CHECKED and checked[:10] == now()[:10]:
        return
    if database.check() is not None:
        raise IndexCorrupted(f"{database.path} is damaged.", "Run `obsidian-rag sync`.")
    if checked[:10] != now()[:10]:
        database.put(_CHECKED, now())
