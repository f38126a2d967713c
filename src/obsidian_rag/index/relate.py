"""Keeps the related notes of a vault in sync with its index.

A run writes both after reading a note once. This module handles the rest: notes whose relations
were lost, damaged or made with other settings, and notes whose shared lines became a template.

Both databases store the same mark when they agree on a vault. If the marks differ, the two are
compared, so an interrupted run needs no list of unfinished work.
"""

import contextlib
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from obsidian_rag.index.parts import Parts
from obsidian_rag.index.plan import spread
from obsidian_rag.index.prepare import TEMPORARY, add_outcome, is_temporary
from obsidian_rag.index.progress import Listener, Phase, Progress, Stop
from obsidian_rag.index.reader import Request, VaultSource, Wanted, read_files
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.relations import (
    RelatedChanges,
    RelationsWriter,
    differing_answers,
    find_rows,
    format_of,
    refresh_vectors,
)
from obsidian_rag.store import (
    Change,
    ChangeType,
    ChunkStore,
    Database,
    IndexFact,
    IndexState,
    LinkFact,
    LinkFacts,
    Links,
    Queue,
    writer_lock,
)
from obsidian_rag.vault import SkippedFile, Vault, scan_paths

_BATCH_FILES = 512
# More notes at once are left to an index run.
MAX_NOTES_AT_ONCE = 50
# The indexes may turn out damaged meanwhile, or lines may become a template.
_MAX_ROUNDS = 3


class RelationsUpdate:
    """The part of a run that updates related notes."""

    def __init__(
        self, database: Database, vault: Vault, limits: ChunkLimits, writer: RelationsWriter
    ) -> None:
        self._database = database
        self._vault = vault
        self._limits = limits
        self._writer = writer
        self._link_id = vault.link_id
        self._facts = LinkFacts(database, vault.link_id)
        self._state = IndexState(database)
        self._is_doubted = False

    def begin(
        self,
        fingerprint: str,
        *,
        is_rebuild: bool = False,
        is_whole: bool = True,
        is_doubted: bool = False,
    ) -> None:
        """Open the indexes; `is_doubted` forces a comparison with the chunk index."""
        self._writer.begin(fingerprint, is_rebuild=is_rebuild, is_whole=is_whole)
        self._is_doubted = is_doubted

    def finish(self, chunks: ChunkStore, listener: Listener, stop: Stop) -> None:
        """Add what the related notes lack, then compute what depends on all notes."""
        writer = self._writer
        for _ in range(_MAX_ROUNDS):
            if writer.is_lost:
                writer.start_over()
            agreed = self._facts.get(LinkFact.RELATED_MARK)
            if self._is_doubted or agreed != (writer.mark or ""):
                self._compare(listener, stop)
            writer.update_templates()
            again = writer.stale(self._link_id)
            self._read(again, listener, stop)
            if stop():
                return
            if again or writer.is_lost:
                continue
            mark = writer.finish(chunks, self._state.hashes, stop)
            if mark is not None:
                if mark != agreed:
                    self._facts.put(LinkFact.RELATED_MARK, mark)
                return

    def _compare(self, listener: Listener, stop: Stop) -> None:
        """Read the notes that differ, ignoring files that are not in the index."""
        writer, link_id = self._writer, self._link_id
        writer.keep_only([link.link_id for link in Links(self._database).all()])
        held = writer.contents(link_id)
        indexed = self._state.hashes(link_id, is_searchable=True)
        # Notes that are unreadable for now keep their relations.
        kept = {state.rel_path for state in self._state.troubled(link_id) if is_temporary(state)}
        gone = [
            path
            for path in held
            if not writer.admits(path) or (path not in indexed and path not in kept)
        ]
        writer.write(link_id, RelatedChanges(removed=gone))
        lacking = [
            path
            for path, content in indexed.items()
            if held.get(path) != content and writer.admits(path)
        ]
        self._read(spread(lacking), listener, stop)
        self._is_doubted = False

    def _read(self, paths: Sequence[str], listener: Listener, stop: Stop) -> None:
        if paths:
            postponed = read_for_relations(
                self._vault, self._limits, self._writer, paths, listener, stop
            )
            changes = (Change(path, ChangeType.UPDATE) for path in postponed)
            Queue(self._database).add(self._link_id, changes)


def doubt_relations(database: Database) -> None:
    """Force a comparison of relations and index in every vault."""
    for link in Links(database).all():
        LinkFacts(database, link.link_id).put(LinkFact.RELATED_MARK, None)


def read_for_relations(
    vault: Vault,
    limits: ChunkLimits,
    writer: RelationsWriter,
    paths: Sequence[str],
    listener: Listener = lambda _: None,
    stop: Stop = lambda: False,
) -> list[str]:
    """Read notes for their relations only; returns those that could not be read now.

    Missing ones are included: only a scan of the vault decides whether they were removed.
    """
    link_id = vault.link_id
    writer.before_reading(vault, paths)
    held = writer.contents(link_id, paths)
    requests = [Request(path, for_relations=Wanted(held.get(path))) for path in paths]
    changes, postponed = RelatedChanges(), list[str]()
    reads = read_files(VaultSource.of(vault, limits, writer), requests)
    for number, (path, found) in enumerate(zip(paths, reads, strict=False), start=1):
        if isinstance(found, SkippedFile) and found.reason in {"missing", *TEMPORARY}:
            postponed.append(path)
        else:
            add_outcome(changes, found, is_admitted=True)
        if number % _BATCH_FILES == 0 or number == len(paths):
            writer.write(link_id, changes)
            changes = RelatedChanges()
            listener(Progress(Phase.RELATING, number, len(paths)))
            if stop():
                break
    return postponed


def relate_anew(parts: Parts, vaults: Iterable[Vault]) -> None:
    """Rebuild lost relations of indexed notes, without looking for changes."""
    made = parts.database.get(IndexFact.FINGERPRINT)
    with parts.relations_writer() as writer:
        for vault in vaults if made is not None else ():
            if vault.link_id:
                relations_update = RelationsUpdate(parts.database, vault, parts.limits, writer)
                relations_update.begin(made or "")
                relations_update.finish(parts.chunks, lambda _: None, lambda: False)


def relate_now(parts: Parts, vault: Vault, paths: Sequence[str]) -> tuple[int, int] | None:
    """Relate a few changed notes before their run: returns how many were written and removed.

    None if nothing is related yet, or if a run must do it. The next run still sees the files as
    changed and indexes them.

    Raises:
        Busy: a run is writing them.
    """
    with (
        writer_lock(parts.config.home, "relations"),
        parts.relations_writer() as writer,
    ):
        if not vault.link_id or not writer.open_existing():
            return None
        relate_paths(vault, parts.limits, writer, paths)
        return None if writer.is_lost else (writer.written, writer.removed)


def relate_paths(
    vault: Vault, limits: ChunkLimits, writer: RelationsWriter, paths: Sequence[str]
) -> None:
    """Relate the files at these paths, unless that needs a scan of the vault."""
    held = writer.contents_below(vault.link_id, paths)
    # A folder that vanished may be an unmounted disk.
    if len(held) > MAX_NOTES_AT_ONCE:
        return
    found = scan_paths(vault.root, vault.rules, {*paths, *held})
    if not found.is_complete:  # a folder is among them
        return
    present = [one.rel_path for one in found.files if writer.admits(one.rel_path)]
    unreadable = tuple(f"{folder}/" for folder in found.unreadable_folders)
    gone = [path for path in held.keys() - set(present) if not path.startswith(unreadable)]
    writer.write(vault.link_id, RelatedChanges(removed=gone))
    read_for_relations(vault, limits, writer, present)


def differing_relations(parts: Parts, vaults: Sequence[Vault]) -> list[str]:
    """Notes whose related notes differ from those of freshly built indexes.

    Raises:
        IndexCorrupted: the indexes are damaged.
    """
    settings = parts.config.settings.relations
    rows = find_rows(parts.config.home, format_of(settings), is_strict=True)
    if rows is None:
        return []
    # A comparison must not write: no note gets an id.
    unwritten = settings.model_copy(update={"auto_add_ids": False})
    with (
        contextlib.closing(rows),
        tempfile.TemporaryDirectory(dir=parts.config.home, prefix=".compared-") as folder,
        RelationsWriter(Path(folder), unwritten) as clean,
    ):
        clean.begin("")
        for vault in vaults:
            paths = [one.rel_path for one in vault.scan().files if clean.admits(one.rel_path)]
            read_for_relations(vault, parts.limits, clean, paths)
        clean.update_templates()
        for vault in vaults:
            # Notes whose context was not kept are read again.
            while stale := clean.stale(vault.link_id):
                read_for_relations(vault, parts.limits, clean, stale)
            refresh_vectors(clean.rows, parts.chunks, vault.link_id)
        return differing_answers(rows, clean.rows, settings)
