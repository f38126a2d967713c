"""From a file to its chunks: read, hash, parse, cut. In this process, or in ones of its own.

Parsing is pure Python and holds the interpreter, so a large run hands it to reader processes that
work beside the embedder. They speak pickles on their pipes and end when ours closes, however that
happens; a run whose reader dies reads on by itself.
"""

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from obsidian_rag.errors import NoteChanged, SecurityViolation
from obsidian_rag.index.ahead import Ahead
from obsidian_rag.notes import (
    Chunk,
    ChunkLimits,
    RagPolicy,
    chunk_note,
    parse_note,
    property_values,
)
from obsidian_rag.vault import FileEntry, SkippedFile, content_hash, read_note

_FILES_PER_REQUEST = 32
_REQUESTS_AHEAD = 3
_ANSWERS_AHEAD = 24
_MOST_READERS = 4
# Below this, starting a process takes longer than reading.
_WORTH_A_PROCESS = 300
# Not `-m`: the classes must be this module's, not those of a module called __main__.
_PROGRAM = "from obsidian_rag.index.reader import serve; serve()"


@dataclass(frozen=True, slots=True)
class Source:
    """One vault and how its notes are cut."""

    link_id: str
    root: Path
    max_bytes: int
    limits: ChunkLimits


@dataclass(frozen=True, slots=True)
class Request:
    """A file to read; one whose content has `known_hash` is not parsed."""

    path: str
    known_hash: str | None


@dataclass(frozen=True, slots=True)
class Read:
    """A file that was read whole. `chunks` is None where it need not or must not be indexed."""

    path: str
    entry: FileEntry
    content_hash: str
    title: str = ""
    aliases: tuple[str, ...] = ()
    date: str | None = None
    policy: RagPolicy = RagPolicy.INDEX
    parse_error: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    chunks: list[Chunk] | None = None


def read_file(source: Source, request: Request) -> Read | SkippedFile:
    """Read one file, and cut it into chunks if it is to be indexed."""
    try:
        file = read_note(source.root, request.path, source.max_bytes)
    except NoteChanged:
        return SkippedFile(request.path, "changing")
    except SecurityViolation:
        return SkippedFile(request.path, "outside_vault")
    if isinstance(file, SkippedFile):
        return file
    found = content_hash(file.data)
    if found == request.known_hash:
        return Read(request.path, file.entry, found)
    note = parse_note(request.path, file.text)
    if note.policy is RagPolicy.NEVER:
        return Read(request.path, file.entry, found, policy=note.policy)
    return Read(
        path=request.path,
        entry=file.entry,
        content_hash=found,
        title=note.title,
        aliases=note.aliases,
        date=note.date,
        policy=note.policy,
        parse_error=note.parse_error,
        properties=property_values(note.frontmatter),
        chunks=chunk_note(note, source.limits),
    )


def read_files(source: Source, requests: list[Request]) -> Iterator[Read | SkippedFile]:
    """Read files in order, by reader processes when there are many."""
    if len(requests) < _WORTH_A_PROCESS:
        yield from (read_file(source, request) for request in requests)
        return
    # A pipe holds little: a thread empties it, or the reader would wait while we embed.
    with Ahead(_read_by_others(source, requests), _ANSWERS_AHEAD) as answers:
        for found in answers:
            yield from found


def _read_by_others(source: Source, requests: list[Request]) -> Iterator[list[Read | SkippedFile]]:
    starts = range(0, len(requests), _FILES_PER_REQUEST)
    batches = (requests[start : start + _FILES_PER_REQUEST] for start in starts)
    readers = [_Reader(source) for _ in range(_reader_count())]
    waiting: deque[tuple[_Reader, list[Request]]] = deque()
    try:
        for turn, batch in enumerate(islice(batches, len(readers) * _REQUESTS_AHEAD)):
            waiting.append(readers[turn % len(readers)].ask(batch))
        while waiting:
            reader, asked = waiting.popleft()
            found = reader.answer(asked)
            for batch in islice(batches, 1):
                waiting.append(reader.ask(batch))
            yield found
    finally:
        for reader in readers:
            reader.close()


def _reader_count() -> int:
    """One core is the embedder's."""
    return max(1, min((os.cpu_count() or 2) - 1, _MOST_READERS))


class _Reader:
    """A reader process; when it is gone, its work is done here."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._is_alive = True
        self._send(source)

    def ask(self, requests: list[Request]) -> "tuple[_Reader, list[Request]]":
        """Hand over files to read."""
        self._send(requests)
        return self, requests

    def answer(self, requests: list[Request]) -> list[Read | SkippedFile]:
        """What was found for the oldest open request."""
        if self._is_alive:
            try:
                assert self._process.stdout is not None
                found: list[Read | SkippedFile] = pickle.load(self._process.stdout)
                return found
            except (EOFError, pickle.UnpicklingError, OSError):
                self._is_alive = False
        return [read_file(self._source, request) for request in requests]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _send(self, message: object) -> None:
        if self._is_alive:
            try:
                assert self._process.stdin is not None
                pickle.dump(message, self._process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
                self._process.stdin.flush()
            except OSError:
                self._is_alive = False


def serve() -> None:
    """Answer requests on the standard pipes until they close."""
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    try:
        source: Source = pickle.load(incoming)
        while True:
            requests: list[Request] = pickle.load(incoming)
            found = [read_file(source, request) for request in requests]
            pickle.dump(found, outgoing, protocol=pickle.HIGHEST_PROTOCOL)
            outgoing.flush()
    except (EOFError, OSError, KeyboardInterrupt):
        return
