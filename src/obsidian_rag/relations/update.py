"""Bring the indexes of related notes in line with the vault: all of it, or some paths."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from obsidian_rag.config import RelationsSettings
from obsidian_rag.errors import NoteChanged, ObsidianRagError, SecurityViolation
from obsidian_rag.notes import Note, RagPolicy, parse_note, read_id, split_frontmatter, split_lines
from obsidian_rag.relations.content import read_content
from obsidian_rag.relations.ids import AddOutcome, add_id
from obsidian_rag.relations.rows import Rows, Seen
from obsidian_rag.relations.words import Speller
from obsidian_rag.vault import (
    FileEntry,
    NoteFile,
    Rules,
    Scan,
    content_hash,
    read_note,
    scan,
    scan_paths,
)

# File systems tell times in ticks: of up to 10 ms mostly, of whole or even seconds some.
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000
_UNSETTLED = 0
_log = logging.getLogger(__name__)
_VERSION = 1
_NOTES_PER_COMMIT = 256
# When so many notes are new, what they share is looked at first.
_MANY = 64
_MANY_SHARE = 0.2
_SHARED_BY = 15
_SHARED_BY_SHARE = 0.05
_MOST_LOOKED_AT = 2000

Counted = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Ground:
    """The vault whose notes are related, and how."""

    root: Path
    rules: Rules
    settings: RelationsSettings


def format_of(settings: RelationsSettings) -> str:
    """What indexes must agree in to be used together: our version, and how notes are read."""
    made_by = (settings.ngram_size, settings.max_chars, settings.store_positions)
    # Who has ids added wants them in all notes, not only in those that change.
    return f"{_VERSION} {made_by} {settings.discount_boilerplate} {settings.auto_add_ids}"


@dataclass(slots=True)
class Updated:
    """What an update did; one that is not complete has not seen or not read everything."""

    is_complete: bool = False
    written: int = 0
    removed: int = 0
    unchanged: int = 0
    ids_added: list[str] = field(default_factory=list)


def update(
    rows: Rows,
    ground: Ground,
    paths: Sequence[str] | None = None,
    *,
    may_be_empty: bool = False,
    listener: Counted = lambda _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> Updated:
    """Read what changed and forget what is gone; what was done before a stop is kept.

    A folder among `paths` is for an update of everything to look into.

    Raises:
        NotFound: the vault's folder is not there.
        IndexerFailed: the disk is full or cannot be written.
    """
    known = rows.seen() if paths is None else rows.seen_at(paths)
    found = (
        scan(ground.root, ground.rules, None, stop)
        if paths is None
        else scan_paths(ground.root, ground.rules, {*paths, *known})
    )
    done = Updated()
    # A mount point without its disk looks like a vault whose notes were all deleted.
    is_emptied = paths is None and not found.files and found.folders <= 1
    if not found.is_complete or (is_emptied and not may_be_empty):
        return done
    files = [entry for entry in found.files if not _is_excluded(entry.rel_path, ground.settings)]
    work = [entry for entry in files if known.get(entry.rel_path, (None,))[:3] != entry[1:]]
    done.unchanged = len(files) - len(work)
    gone = _gone(known, files, found)
    rows.forget_terms()
    if gone:
        _forget(rows, ground.settings, known, work, gone)
        done.removed = sum(path in known for path in gone)
    is_much = len(work) >= max(_MANY, _MANY_SHARE * len(files))
    if is_much and paths is None and ground.settings.discount_boilerplate:
        with rows.database.transaction():
            rows.put_boilerplate(_shared_lines(ground, files, stop))
    _read_all(rows, ground, known, work, done, listener, stop)
    done.is_complete = not stop()
    return done


def _forget(
    rows: Rows,
    settings: RelationsSettings,
    known: dict[str, Seen],
    work: Sequence[FileEntry],
    gone: Sequence[str],
) -> None:
    """Take out what is gone; what has only moved is known by its new path afterwards."""
    with rows.changing():
        for old, new in _moved(known, gone, work):
            rows.move(old, new)
            known[new] = known.pop(old)._replace(content_hash="")
        for path in gone:
            if path in known:
                rows.remove(path, settings.ngram_size)


def _read_all(
    rows: Rows,
    ground: Ground,
    known: dict[str, Seen],
    work: Sequence[FileEntry],
    done: Updated,
    listener: Counted,
    stop: Callable[[], bool],
) -> None:
    reader = _Reader(rows, ground)
    for start in range(0, len(work), _NOTES_PER_COMMIT):
        if stop():
            return
        with rows.changing():
            for entry in work[start : start + _NOTES_PER_COMMIT]:
                reader.take(entry, known.get(entry.rel_path), done)
        listener(min(start + _NOTES_PER_COMMIT, len(work)), len(work))


class _Reader:
    """Reads notes into the indexes, one after the other."""

    def __init__(self, rows: Rows, ground: Ground) -> None:
        self._rows = rows
        self._ground = ground
        self._speller = Speller()
        is_discounted = ground.settings.discount_boilerplate
        self._boilerplate = rows.boilerplate() if is_discounted else frozenset()

    def take(self, entry: FileEntry, before: Seen | None, done: Updated) -> None:
        """Read one note and write it, unless its content is what the indexes hold."""
        path, settings = entry.rel_path, self._ground.settings
        read = _read(self._ground, path)
        if read is None:
            return
        file, note = read
        if note.policy is RagPolicy.NEVER:
            if before is not None:
                self._rows.remove(path, settings.ngram_size)
                done.removed += 1
            return
        if settings.auto_add_ids and read_id(note.frontmatter) is None and self._add_id(path):
            done.ids_added.append(path)
            read = _read(self._ground, path)
            if read is None:
                return
            file, note = read
        found, entry = content_hash(file.data), _settled(file.entry)
        if before is not None and before.content_hash == found:
            self._rows.confirm(path, entry)
            done.unchanged += 1
            return
        content = read_content(note, self._speller, settings.max_chars, self._boilerplate)
        self._rows.put(
            content,
            entry,
            found,
            self._speller,
            ngram_size=settings.ngram_size,
            with_places=settings.store_positions,
        )
        done.written += 1

    def _add_id(self, path: str) -> bool:
        try:
            return add_id(self._ground.root, path).outcome is AddOutcome.ADDED
        except ObsidianRagError as error:
            _log.warning("No id for %s: %s", path, error.message)
            return False


def _read(ground: Ground, path: str) -> tuple[NoteFile, Note] | None:
    file = _file(ground, path)
    return (file, parse_note(path, file.text)) if file is not None else None


def _file(ground: Ground, path: str) -> NoteFile | None:
    """A note as it is now; None for what is not one at this moment, and will be tried again."""
    try:
        file = read_note(ground.root, path, ground.rules.max_file_bytes)
    except (NoteChanged, SecurityViolation):
        return None
    return file if isinstance(file, NoteFile) else None


def _gone(known: dict[str, Seen], files: Iterable[FileEntry], found: Scan) -> list[str]:
    present = {entry.rel_path for entry in files}
    unreadable = tuple(f"{folder}/" for folder in found.unreadable_folders)
    return [path for path in known if path not in present and not path.startswith(unreadable)]


def _moved(
    known: dict[str, Seen], gone: Iterable[str], work: Iterable[FileEntry]
) -> Iterator[tuple[str, str]]:
    """Files that have another path and are otherwise what they were."""
    places = {known[path].file_id: path for path in gone}
    for path, size, mtime, file_id in work:
        old = places.get(file_id) if file_id is not None and path not in known else None
        if old is not None and known[old][:2] in ((size, mtime), (size, _UNSETTLED)):
            del places[file_id]
            yield old, path


def _settled(entry: FileEntry) -> FileEntry:
    """A file without its time if it was written just now: the next write could have the same."""
    tick = _COARSE_TICK_NS if entry.mtime_ns % 1_000_000_000 == 0 else _TICK_NS
    is_settled = time.time_ns() - entry.mtime_ns > tick
    return entry if is_settled else entry._replace(mtime_ns=_UNSETTLED)


def _is_excluded(path: str, settings: RelationsSettings) -> bool:
    return path.startswith(tuple(f"{folder.strip('/ ')}/" for folder in settings.excluded_folders))


def _shared_lines(ground: Ground, files: Sequence[FileEntry], stop: Callable[[], bool]) -> set[str]:
    """The lines that stand in so many notes that they come from a template."""
    notes: Counter[str] = Counter()
    # Of a large vault a part tells as much, and its lines fit into the memory.
    looked_at = sorted(files)[:: len(files) // _MOST_LOOKED_AT + 1]
    for entry in looked_at:
        if stop():
            break
        file = _file(ground, entry.rel_path)
        if file is not None:
            notes.update(set(split_lines(file.text)[split_frontmatter(file.text)[2] - 1 :]) - {""})
    fewest = max(_SHARED_BY, _SHARED_BY_SHARE * len(looked_at))
    return {line for line, count in notes.items() if count >= fewest}
