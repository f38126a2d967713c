"""From files to what the indexes need of them: in this process, or in ones beside it."""

import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from obsidian_rag.errors import NoteChanged, ObsidianRagError, SecurityViolation
from obsidian_rag.notes import RagPolicy, parse_note, read_id
from obsidian_rag.relations.content import read_content
from obsidian_rag.relations.ids import AddOutcome, add_id
from obsidian_rag.relations.rows import Draft, Terms
from obsidian_rag.relations.words import Speller
from obsidian_rag.vault import FileEntry, NoteFile, SkippedFile, content_hash, read_note

# File systems tell times in ticks: of up to 10 ms mostly, of whole or even seconds some.
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000
UNSETTLED = 0
# What may pass: until then the note stays what it was, as it does in the index.
_PASSING = ("unreadable", "changing")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Source:
    """A vault, and how its notes are read."""

    root: Path
    max_bytes: int
    max_chars: int | None
    templates: frozenset[int] | None
    adds_ids: bool


class Request(NamedTuple):
    """A note to read; one whose content has `known_hash` need not be written."""

    path: str
    known_hash: str | None


@dataclass(slots=True)
class Answer:
    """What became of the notes of a request.

    Files that are no notes are `barred`; those that cannot be read at this moment are `owed`.
    """

    terms: Terms
    drafts: list[Draft] = field(default_factory=list)
    unchanged: list[FileEntry] = field(default_factory=list)
    barred: list[str] = field(default_factory=list)
    owed: list[str] = field(default_factory=list)
    ids_added: list[str] = field(default_factory=list)


class Reading:
    """Reads notes; the numbers in what it answers are those of its own terms."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._speller = Speller()
        self._name = uuid.uuid4().hex
        self._told = 0

    def __call__(self, requests: Sequence[Request]) -> Answer:
        """Read notes, and tell the terms that were new in them."""
        answer = Answer(Terms(self._name, [], []))
        for request in requests:
            self._take(request, answer)
        answer.terms.terms.extend(self._speller.terms[self._told :])
        answer.terms.words.extend(self._speller.words[self._told :])
        self._told = len(self._speller.terms)
        return answer

    def _take(self, request: Request, answer: Answer) -> None:
        path, source = request.path, self._source
        file = self._read(path)
        if isinstance(file, NoteFile) and source.adds_ids and self._add_id(path, file):
            answer.ids_added.append(path)
            file = self._read(path)
        if isinstance(file, SkippedFile):
            (answer.owed if file.reason in _PASSING else answer.barred).append(path)
            return
        note = parse_note(path, file.text)
        if note.policy is RagPolicy.NEVER:
            answer.barred.append(path)
            return
        found, entry = content_hash(file.data), _settled(file.entry)
        if found == request.known_hash:
            answer.unchanged.append(entry)
            return
        content = read_content(note, self._speller, source.max_chars, source.templates)
        answer.drafts.append(Draft(content, entry, found))

    def _read(self, path: str) -> NoteFile | SkippedFile:
        return read_now(self._source.root, path, self._source.max_bytes)

    def _add_id(self, path: str, file: NoteFile) -> bool:
        note = parse_note(path, file.text)
        if note.policy is RagPolicy.NEVER or read_id(note.frontmatter) is not None:
            return False
        try:
            return add_id(self._source.root, path).outcome is AddOutcome.ADDED
        except ObsidianRagError as error:
            _log.warning("No id for %s: %s", path, error.message)
            return False


def read_now(root: Path, path: str, max_bytes: int) -> NoteFile | SkippedFile:
    """A note as it is now, or why it is none."""
    try:
        return read_note(root, path, max_bytes)
    except NoteChanged:
        return SkippedFile(path, "changing")
    except SecurityViolation:
        return SkippedFile(path, "outside_vault")


def _settled(entry: FileEntry) -> FileEntry:
    """A file without its time if it was written just now: the next write could have the same."""
    tick = _COARSE_TICK_NS if entry.mtime_ns % 1_000_000_000 == 0 else _TICK_NS
    is_settled = time.time_ns() - entry.mtime_ns > tick
    return entry if is_settled else entry._replace(mtime_ns=UNSETTLED)
