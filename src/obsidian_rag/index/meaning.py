"""The background pass: adds the transformer's vector to every chunk that lacks one.

The work is always the difference between the chunk table and the store, so a kill at any point
costs only a few vectors, which are computed again. The pass stops between two texts when other work
is waiting, and resumes later. Changed notes come first, then the newest ones.
"""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from obsidian_rag.embed import Embedder
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.index.embedding import Transformer
from obsidian_rag.index.parts import Parts
from obsidian_rag.notes import text_parts
from obsidian_rag.relations import refresh_meanings
from obsidian_rag.store import (
    ChunkPlace,
    EmbeddedChunk,
    IndexFact,
    IndexState,
    MeaningStore,
    chunk_places,
    embedded_chunks,
    pack_ids,
    stored_vectors,
    text_digest,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Chunks written at once: the most that a kill can lose.
_BATCH_CHUNKS = 16
_MAX_BATCH_AGE_S = 1.0
_BATCH_NOTES = 16
# Above this, reading the whole table is faster than filtering.
_MAX_FILTERED_NOTES = 2000
_REPORT_INTERVAL_S = 1.0
_RATE_SAMPLES = 30
# After this many failed texts in a row the transformer counts as broken.
_MAX_FAILURES_IN_A_ROW = 3
MEANING_PHASE = "meaning"
_Note = tuple[str, str]


@dataclass(frozen=True, slots=True)
class MeaningState:
    """How many of all chunks have their meaning vector.

    `is_over` means that a pass is finished, or cannot continue because of `trouble`.
    """

    model: str
    done: int
    total: int
    is_paused: bool = False
    is_over: bool = False
    per_second: float | None = None
    trouble: str | None = None

    @property
    def seconds_left(self) -> float | None:
        """Estimated time left; None if nothing is being added."""
        if not self.per_second or self.is_paused or self.is_over or self.trouble:
            return None
        return round((self.total - self.done) / self.per_second, 1)

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "MeaningState":
        """Read the state from a worker's message."""
        return cls(**{name: fields[name] for name in cls.__slots__})

    @property
    def shown(self) -> dict[str, object]:
        """The state as status shows it."""
        return {
            "model": self.model,
            "done": self.done,
            "total": self.total,
            "is_paused": self.is_paused,
            "per_second": self.per_second,
            "seconds_left": self.seconds_left,
            "trouble": self.trouble,
        }


def meaning_fields(state: MeaningState) -> dict[str, object]:
    """The state as a progress event, without a job."""
    return {
        "job_id": None,
        "mode": None,
        "phase": MEANING_PHASE,
        "current": state.done,
        "total": state.total,
        "is_over": state.is_over,
        "is_paused": state.is_paused,
        "per_second": state.per_second,
        "seconds_left": state.seconds_left,
        "trouble": state.trouble,
    }


MeaningListener = Callable[[MeaningState], None]


@dataclass(slots=True)
class _Plan:
    """The result of the last comparison of table and store."""

    key: tuple[str, str]
    seen_until: str = ""
    total: int = 0
    # Notes with chunks that lack a vector: how many, and the sort key of each note.
    waiting: dict[_Note, int] = field(default_factory=dict)
    ranks: dict[_Note, tuple[bool, str]] = field(default_factory=dict)
    # Waiting notes taken over from an earlier plan, unchanged since.
    carried: set[_Note] = field(default_factory=set)
    failed: int = 0
    is_whole: bool = False

    @property
    def lacking(self) -> int:
        """Number of chunks without a vector."""
        return sum(self.waiting.values()) + self.failed

    def in_order(self) -> list[_Note]:
        """Changed notes first, then the newest."""
        return sorted(self.waiting, key=lambda note: self.ranks[note], reverse=True)


class MeaningPass:
    """Adds meaning vectors until none is missing; can be stopped and rerun at any time."""

    def __init__(self, parts: Parts, listener: MeaningListener, since: str = "") -> None:
        """`since`: notes read before this time are assumed to be unchanged."""
        self._parts = parts
        self._listener = listener
        self._since = since
        self._plan: _Plan | None = None
        self._finished_notes: set[_Note] = set()  # not yet passed on to the related notes
        self._reported_at_s = 0.0
        self._rates: deque[tuple[float, int]] = deque(maxlen=_RATE_SAMPLES)

    def is_due(self) -> bool:
        """Whether there may be work; cheap."""
        store = self._parts.transformer.store
        if store is None or not self._parts.chunks.exists():
            return False
        plan = self._plan
        if plan is None or not plan.is_whole or plan.key != self._key(store):
            return True
        if lost_vectors(self._parts):
            return not self._parts.config.settings.meaning.is_paused
        return bool(plan.waiting) and not self._parts.config.settings.meaning.is_paused

    def run(self, stop: Callable[[], bool], *, adds: bool = True) -> MeaningState | None:
        """Add missing vectors; without `adds`, only copy those of chunks with the same text.

        None if there is no transformer. Errors are returned in the state, never raised.
        """
        parts = self._parts
        embedder, store = parts.transformer.embedder, parts.transformer.store
        if embedder is None or store is None or not parts.chunks.exists():
            return self._report(is_over=True)
        self._rates.clear()
        self._report()
        try:
            with store.writing():
                self._compare(store, stop)
                if self._plan is not None and self._plan.is_whole and not self._is_on_hold(adds):
                    self._add(embedder, store, stop)
        except ObsidianRagError as error:
            self._plan = None
            return self._report(is_over=True, trouble=error.message)
        is_over = not stop() or not self._has_work_left()
        with contextlib.suppress(ObsidianRagError):  # the next run retries
            _relate(parts, None if is_over else self._finished_notes)
        self._finished_notes.clear()
        if is_over:
            embedder.close()  # frees a hundred megabytes
        return self._report(is_over=is_over)

    def report_end(self) -> None:
        """Report that the pass cannot continue because of the transformer's error."""
        self._plan = None
        self._report(is_over=True)

    def _has_work_left(self) -> bool:
        plan = self._plan
        return plan is None or not plan.is_whole or bool(plan.waiting)

    def _is_on_hold(self, adds: bool) -> bool:
        return self._parts.config.settings.meaning.is_paused or not adds

    def _key(self, store: MeaningStore) -> tuple[str, str]:
        return store.fingerprint, self._parts.database.get(IndexFact.VERSION) or "0"

    # Planning.

    def _compare(self, store: MeaningStore, stop: Callable[[], bool]) -> None:
        """Compare the table with the store: reuse vectors of known texts, drop orphans."""
        key = self._key(store)
        before, lost = self._plan, lost_vectors(self._parts)
        if before is not None and before.is_whole and before.key == key and not lost:
            return
        if before is None or not before.is_whole or before.key[0] != key[0]:
            before = _Plan(key, self._since)
        plan = self._plan = _Plan(key)
        self._parts.chunks.close()
        ids: list[NDArray[np.uint64]] = []
        is_quick = bool(before.seen_until)
        started = _iso_time(store.created_ns)
        looked = (
            self._read_changed(store, plan, before, ids) if is_quick else self._read_all(plan, ids)
        )
        for batch in looked:
            _examine(store, plan, batch, started)
            if stop():
                return
        plan.total = sum(map(len, ids))
        plan.is_whole = True
        # Lost vectors stay counted until they are restored, also after a kill.
        self._remember(min(plan.total, plan.total - plan.lacking + lost))
        store.keep_only(ids)

    def _read_all(
        self, plan: _Plan, ids: "list[NDArray[np.uint64]]"
    ) -> Iterator[list[EmbeddedChunk]]:
        for batch in embedded_chunks(self._parts.chunks):
            ids.append(_ids([chunk.place for chunk in batch]))
            plan.seen_until = max([plan.seen_until, *(chunk.place.indexed_at for chunk in batch)])
            yield batch

    def _read_changed(
        self, store: MeaningStore, plan: _Plan, before: _Plan, ids: "list[NDArray[np.uint64]]"
    ) -> Iterator[list[EmbeddedChunk]]:
        """The chunks of notes that were read since the last comparison, or that lack a vector.

        Only their texts are read; `ids` collects the ids of all chunks.
        """
        suspects: dict[_Note, None] = {}
        plan.seen_until = before.seen_until
        for places in chunk_places(self._parts.chunks):
            packed = _ids(places)
            ids.append(packed)
            for place, is_there in zip(places, store.has(packed), strict=True):
                note = (place.link_id, place.source_file)
                plan.seen_until = max(plan.seen_until, place.indexed_at)
                if place.indexed_at > before.seen_until:
                    suspects[note] = None
                elif note in before.waiting:
                    plan.carried.add(note)
                elif not is_there:
                    suspects[note] = None
        for note in plan.carried:
            plan.waiting[note], plan.ranks[note] = before.waiting[note], before.ranks[note]
        if suspects:
            some = suspects if len(suspects) <= _MAX_FILTERED_NOTES else None
            yield from embedded_chunks(self._parts.chunks, some)

    # Adding.

    def _add(self, embedder: Embedder, store: MeaningStore, stop: Callable[[], bool]) -> None:
        plan = self._plan
        assert plan is not None
        self._rates.append((time.monotonic(), plan.total - plan.lacking))
        order = iter(plan.in_order())
        with contextlib.closing(_Batch(store)) as batch:
            failures = _Failures(self._parts.transformer)
            while notes := list(islice(order, _BATCH_NOTES)):
                for note, chunks in self._read_texts(notes).items():
                    if not self._add_note(embedder, batch, chunks, failures, stop):
                        return
                    plan.waiting.pop(note, None)
                    self._finished_notes.add(note)
        self._remember(min(store.count(), plan.total - plan.lacking))
        if not plan.failed:
            store.remove_others()

    def _remember(self, count: int) -> None:
        config, database = self._parts.config, self._parts.database
        stored = f"{config.settings.meaning.model} {count}"
        if database.get(IndexFact.MEANING_ADDED) != stored:
            database.put(IndexFact.MEANING_ADDED, stored)

    def _read_texts(self, notes: Sequence[_Note]) -> dict[_Note, list[EmbeddedChunk]]:
        """The chunks of these notes, in the notes' order."""
        found: dict[_Note, list[EmbeddedChunk]] = {note: [] for note in notes}
        table = self._parts.chunks
        batches = table.look_up(lambda: list(embedded_chunks(table, notes)))
        for chunk in (chunk for batch in batches for chunk in batch):
            found[chunk.place.link_id, chunk.place.source_file].append(chunk)
        return found

    def _add_note(
        self,
        embedder: Embedder,
        batch: "_Batch",
        chunks: list[EmbeddedChunk],
        failures: "_Failures",
        stop: Callable[[], bool],
    ) -> bool:
        """Add the vectors of a note; false if stopped."""
        plan = self._plan
        assert plan is not None
        for chunk, digest in batch.lacking(chunks):
            if stop():
                return False
            try:
                vectors = embedder.embed_documents(
                    [chunk.text, *text_parts(chunk.text, chunk.head_chars)]
                )
            except ObsidianRagError as error:
                plan.failed += 1
                failures.add(error)
            else:
                failures.in_a_row = 0
                batch.add((chunk.place.chunk_id, digest), vectors)
            self._count(chunk.place)
        return True

    def _count(self, place: ChunkPlace) -> None:
        plan = self._plan
        assert plan is not None
        note = (place.link_id, place.source_file)
        plan.waiting[note] = max(0, plan.waiting.get(note, 0) - 1)
        if time.monotonic() - self._reported_at_s >= _REPORT_INTERVAL_S:
            self._report()

    # Reporting.

    def _report(self, *, is_over: bool = False, trouble: str | None = None) -> MeaningState | None:
        """Send the current state to the listener."""
        parts, plan = self._parts, self._plan
        embedder, store = parts.transformer.embedder, parts.transformer.store
        now = time.monotonic()
        self._reported_at_s = now
        if trouble is None and parts.transformer.trouble is not None:
            trouble = parts.transformer.trouble.message
        if (embedder is None or store is None) and trouble is None:
            return None
        if plan is not None and plan.is_whole:
            total, done = plan.total, plan.total - plan.lacking
        else:
            total = IndexState(parts.database).totals()[1] if parts.chunks.exists() else 0
            done = min(total, store.count()) if store else 0
        self._rates.append((now, done))
        took, made = now - self._rates[0][0], done - self._rates[0][1]
        is_paused = parts.config.settings.meaning.is_paused
        state = MeaningState(
            model=embedder.model if embedder else parts.config.settings.meaning.model,
            done=done,
            total=total,
            is_paused=is_paused,
            is_over=is_over,
            per_second=round(made / took, 2) if took > 0 and made > 0 and not is_over else None,
            trouble=trouble,
        )
        self._listener(state)
        return state


def _examine(store: MeaningStore, plan: _Plan, batch: list[EmbeddedChunk], started: str) -> None:
    """Reuse vectors of known texts, then plan the chunks that still lack one."""
    rows = [(chunk.place.chunk_id, text_digest(chunk.text)) for chunk in batch]
    if not rows:
        return
    lacking = np.flatnonzero(store.lacking(rows))
    if store.adopt([rows[place] for place in lacking]):
        lacking = np.flatnonzero(store.lacking(rows))
    for position in lacking:
        place = batch[position].place
        note = (place.link_id, place.source_file)
        if note not in plan.carried:
            plan.waiting[note] = plan.waiting.get(note, 0) + 1
            plan.ranks[note] = (place.indexed_at > started, place.modified_at)


class _Failures:
    """Counts failed texts; many in a row mean that the transformer is broken."""

    def __init__(self, transformer: Transformer) -> None:
        self.in_a_row = 0
        self._transformer = transformer

    def add(self, error: ObsidianRagError) -> None:
        self.in_a_row += 1
        if self.in_a_row >= _MAX_FAILURES_IN_A_ROW:
            self._transformer.fail(error)
            raise error


class _Batch:
    """Buffers vectors and writes a few at a time."""

    def __init__(self, store: MeaningStore) -> None:
        self._store = store
        self._rows: list[tuple[str, bytes]] = []
        self._vectors: list[NDArray[np.float32]] = []
        self._since = time.monotonic()

    def lacking(self, chunks: list[EmbeddedChunk]) -> list[tuple[EmbeddedChunk, bytes]]:
        """The chunks that lack a vector, each with its digest."""
        if not chunks:
            return []
        digests = [text_digest(chunk.text) for chunk in chunks]
        ids = [chunk.place.chunk_id for chunk in chunks]
        lacking = np.flatnonzero(self._store.lacking(list(zip(ids, digests, strict=True))))
        return [(chunks[position], digests[position]) for position in lacking]

    def add(self, row: tuple[str, bytes], vectors: "NDArray[np.float32]") -> None:
        self._rows.append(row)
        self._vectors.append(vectors)
        if len(self._rows) >= _BATCH_CHUNKS or time.monotonic() - self._since >= _MAX_BATCH_AGE_S:
            self.close()

    def close(self) -> None:
        """Write the buffered vectors."""
        if self._rows:
            self._store.put(self._rows, self._vectors)
        self._rows, self._vectors = [], []
        self._since = time.monotonic()


def _ids(places: Sequence[ChunkPlace]) -> "NDArray[np.uint64]":
    return pack_ids([place.chunk_id for place in places])


def _iso_time(nanoseconds: int | None) -> str:
    """A time in the table's format; None sorts after every time."""
    if nanoseconds is None:
        return "9"
    at = time.gmtime(nanoseconds // 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', at)}.{nanoseconds // 1000 % 1_000_000:06}Z"


def _relate(parts: Parts, notes: Collection[_Note] | None) -> None:
    """Pass the vectors of these notes, or of all, on to the related notes."""
    refresh_meanings(
        parts.config.home,
        parts.config.settings.relations,
        parts.transformer.store,
        parts.chunks,
        parts.database,
        notes,
    )


def meaning_state(parts: Parts, reported: MeaningState | None = None) -> MeaningState | None:
    """Progress of the meaning vectors; None if there is no transformer. Cheap.

    `reported` is the last state from the worker process that adds them.
    """
    transformer = parts.transformer
    embedder, store, trouble = transformer.embedder, transformer.store, transformer.trouble
    if store is None and trouble is None:
        return None
    _, total = IndexState(parts.database).totals()
    settings = parts.config.settings.meaning
    count = store.count() if store else stored_vectors(parts.config.home / "meaning")
    if trouble is None and reported is not None and reported.trouble is not None:
        message: str | None = reported.trouble
    else:
        message = trouble.message if trouble else None
    return MeaningState(
        model=embedder.model if embedder else settings.model,
        done=min(count, total),
        total=total,
        is_paused=settings.is_paused,
        per_second=reported.per_second if reported and count < total else None,
        trouble=message,
    )


def lost_vectors(parts: Parts, stored: str | None = None) -> int:
    """How many chunks lost their meaning vector, because its file or the model is damaged.

    `stored` is the stored `MEANING_ADDED` fact, if the caller has it already.
    """
    transformer = parts.transformer
    if transformer.store is None and transformer.trouble is None:
        return 0
    model, _, count = (stored or parts.database.get(IndexFact.MEANING_ADDED) or "").rpartition(" ")
    if model != parts.config.settings.meaning.model or not count.isdecimal():
        return 0
    there = transformer.store.count() if transformer.store is not None else 0
    return max(0, int(count) - there)


def reuse_meaning(parts: Parts, since: str) -> None:
    """After an index run: reuse vectors of known texts and drop those of deleted chunks.

    Computes none. Notes read before `since` are assumed to be unchanged.
    """
    MeaningPass(parts, lambda _: None, since).run(lambda: False, adds=False)


def add_meaning(
    parts: Parts, listener: MeaningListener, stop: Callable[[], bool]
) -> MeaningState | None:
    """Add all missing meaning vectors; None if there is no transformer."""
    state = MeaningPass(parts, listener).run(stop)
    if state is None or state.trouble is not None:
        return state
    return meaning_state(parts)


def meaning_after_run(
    parts: Parts,
    listener: MeaningListener,
    stop: Callable[[], bool],
    since: str | None,
    *,
    waits: bool,
) -> MeaningState | None:
    """Progress of the vectors after an index run; None if there is no transformer.

    `since` is when the run began, or None if it changed no notes. If the caller `waits` for the
    vectors, or some were lost, missing ones are added first.
    """
    if (waits or lost_vectors(parts)) and not stop():
        return add_meaning(parts, listener, stop)
    if since is not None:
        reuse_meaning(parts, since)
    return meaning_state(parts)
