"""Bring the indexes of related notes in line with the vault: all of it, or some paths."""

import contextlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from obsidian_rag.config import RelationsSettings
from obsidian_rag.notes import split_frontmatter, split_lines
from obsidian_rag.relations.reading import (
    UNSETTLED,
    Answer,
    Reading,
    Request,
    Source,
    read_now,
)
from obsidian_rag.relations.rows import Rows, Seen
from obsidian_rag.relations.templates import fewest_notes, line_numbers
from obsidian_rag.vault import (
    WORTH_A_PROCESS,
    FileEntry,
    NoteFile,
    Rules,
    Scan,
    read_beside,
    scan,
    scan_paths,
)

_VERSION = 3
_NOTES_PER_COMMIT = 256
_BYTES_PER_COMMIT = 8_000_000
_ANSWERS_AHEAD = 2
# When so many notes are new, what they share is looked at first: few have to be read twice then.
_MANY = 64
_MANY_SHARE = 0.2
_MOST_LOOKED_AT = 2000
_MOST_TURNS = 3

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
    is_early: bool = False,
    may_be_empty: bool = False,
    listener: Counted = lambda _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> Updated:
    """Read what changed and forget what is gone; what was done before a stop is kept.

    A folder among `paths` is for an update of everything to look into. An early update takes up
    the notes at `paths` and nothing else; what it cannot know is owed to the next one.

    Raises:
        NotFound: the vault's folder is not there.
        IndexerFailed: the disk is full or cannot be written.
    """
    run = _Run(rows, ground, listener, stop)
    if is_early:
        rows.owed.add(paths or ())
        return run.look(paths)
    owed = rows.owed.turns()
    done = run.look(None if paths is None else sorted({*paths, *owed, *rows.stale()}), may_be_empty)
    if done.is_complete:
        rows.owed.settle(owed.values())
        run.settle(done)
    rows.owed.add(run.owed)
    return done


class _Run:
    """One update: what it works with, and what it could not do."""

    def __init__(
        self, rows: Rows, ground: Ground, listener: Counted, stop: Callable[[], bool]
    ) -> None:
        self._rows = rows
        self._ground = ground
        self._listener = listener
        self._stop = stop
        self.owed: set[str] = set()
        rows.forget_terms()

    def look(self, paths: Sequence[str] | None, may_be_empty: bool = False) -> Updated:
        """Take up what changed, in the whole vault or at some paths."""
        rows, ground = self._rows, self._ground
        known = rows.seen() if paths is None else rows.seen_at(paths)
        found = (
            scan(ground.root, ground.rules, None, self._stop)
            if paths is None
            else scan_paths(ground.root, ground.rules, {*paths, *known})
        )
        done = Updated()
        # A mount point without its disk looks like a vault whose notes were all deleted.
        is_emptied = paths is None and not found.files and found.folders <= 1
        if not found.is_complete or (is_emptied and not may_be_empty):
            return done
        files = [entry for entry in found.files if not _is_excluded(entry.rel_path, ground)]
        work = [entry for entry in files if _is_new(known.get(entry.rel_path), entry)]
        done.unchanged = len(files) - len(work)
        gone = _gone(known, files, found)
        if gone:
            _forget(rows, ground.settings, known, work, gone)
            done.removed = sum(path in known for path in gone)
        is_much = len(work) >= max(_MANY, _MANY_SHARE * len(files))
        if is_much and paths is None and ground.settings.discount_boilerplate:
            guessed = _shared_lines(ground, files, self._stop)
            with rows.database.transaction():
                rows.read_without(guessed)
        self._read_all(known, work, done)
        done.is_complete = not self._stop()
        return done

    def settle(self, done: Updated) -> None:
        """Read again what depends on notes that have changed: until nothing does, or nearly."""
        if not self._ground.settings.discount_boilerplate:
            return
        for _ in range(_MOST_TURNS):
            self._rows.settle()
            stale = self._rows.stale()
            if not stale or self._stop():
                break
            self.look(stale)
        done.is_complete = not self._stop()

    def _read_all(self, known: dict[str, Seen], work: Sequence[FileEntry], done: Updated) -> None:
        rows, ground, settings = self._rows, self._ground, self._ground.settings
        edition = rows.templates.edition
        source = Source(
            ground.root,
            ground.rules.max_file_bytes,
            settings.max_chars,
            rows.templates.lines() if settings.discount_boilerplate else None,
            settings.auto_add_ids,
        )
        batches = list(_batches(work, known))
        read = 0
        with contextlib.closing(_answers(source, batches)) as answers:
            for batch in batches:
                if self._stop():
                    return
                answer = next(answers)
                with rows.changing():
                    _write(rows, settings, known, answer, done)
                    if rows.templates.edition != edition:
                        rows.make_stale(draft.content.path for draft in answer.drafts)
                self.owed.update(answer.owed)
                read += len(batch)
                self._listener(read, len(work))


def _is_new(before: Seen | None, entry: FileEntry) -> bool:
    """Whether a file must be read: it is not what it was, or what it says counts otherwise now."""
    return before is None or not before.content_hash or before[:3] != entry[1:]


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


def _answers(source: Source, batches: Sequence[list[Request]]) -> Generator[Answer, None, None]:
    # What writes into the vault does so in this process.
    if sum(map(len, batches)) >= WORTH_A_PROCESS and not source.adds_ids:
        yield from read_beside(Reading, source, batches, _ANSWERS_AHEAD)
    else:
        yield from map(Reading(source), batches)


def _batches(work: Sequence[FileEntry], known: dict[str, Seen]) -> Iterator[list[Request]]:
    """As many notes as are written together: fewer where they are large."""
    batch: list[Request] = []
    size = 0
    for entry in work:
        if batch and (len(batch) == _NOTES_PER_COMMIT or size > _BYTES_PER_COMMIT):
            yield batch
            batch, size = [], 0
        before = known.get(entry.rel_path)
        batch.append(Request(entry.rel_path, before.content_hash if before else None))
        size += entry.size_bytes
    if batch:
        yield batch


def _write(
    rows: Rows, settings: RelationsSettings, known: dict[str, Seen], answer: Answer, done: Updated
) -> None:
    for path in answer.barred:
        if path in known:
            rows.remove(path, settings.ngram_size)
            done.removed += 1
    for entry in answer.unchanged:
        rows.confirm(entry)
    done.unchanged += len(answer.unchanged)
    done.ids_added += answer.ids_added
    rows.put(
        answer.drafts,
        answer.terms,
        ngram_size=settings.ngram_size,
        with_places=settings.store_positions,
    )
    done.written += len(answer.drafts)


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
        if old is not None and known[old][:2] in ((size, mtime), (size, UNSETTLED)):
            del places[file_id]
            yield old, path


def _is_excluded(path: str, ground: Ground) -> bool:
    folders = ground.settings.excluded_folders
    return path.startswith(tuple(f"{folder.strip('/ ')}/" for folder in folders))


def _shared_lines(
    ground: Ground, files: Sequence[FileEntry], stop: Callable[[], bool]
) -> frozenset[int]:
    """The lines that probably stand in so many notes that they come from a template."""
    notes: Counter[int] = Counter()
    # Of a large vault a part tells as much, and its lines fit into the memory.
    looked_at = sorted(files)[:: len(files) // _MOST_LOOKED_AT + 1]
    for entry in looked_at:
        if stop():
            break
        file = read_now(ground.root, entry.rel_path, ground.rules.max_file_bytes)
        if isinstance(file, NoteFile):
            body = split_lines(file.text)[split_frontmatter(file.text)[2] - 1 :]
            notes.update(line_numbers(body).tolist())
    fewest = fewest_notes(len(looked_at))
    return frozenset(line for line, count in notes.items() if count >= fewest)
