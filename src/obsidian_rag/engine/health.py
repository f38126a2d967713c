"""The health of an engine: collects the facts; a daemon's are probed regularly and remembered.

`facts_of` runs for every answer: a few rows of SQLite and the last probe's results, no walk of the
vault, no model, no network; a daemon keeps its snapshot until one of them changes. `probe` runs
every half minute: it also probes the embedder and checks the store's files. Neither raises if the
database is damaged: its error becomes the `store` fact.
"""

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.events import Bus, EventKind
from obsidian_rag.engine.outcome import read_outcome
from obsidian_rag.errors import (
    EmbeddingMismatch,
    IndexIncomplete,
    IndexStale,
    NotFound,
    ObsidianRagError,
    Status,
)
from obsidian_rag.health import (
    HealthAnswer,
    HealthChange,
    HealthFacts,
    assess,
    change_of,
    indexer_trouble,
    missing_index,
    see_vaults,
    store_trouble,
    with_progress,
)
from obsidian_rag.index import Parts, changed_files, check_fingerprint, lost_vectors, meaning_state
from obsidian_rag.livesync import livesync_trouble
from obsidian_rag.store import IndexFact, LinkFact, LinkFacts, no_index, now

_MAX_CHANGES = 50
_STALE_AFTER_S = 3600.0
_RECHECK_INTERVAL_S = 300.0
_MAX_WALK_S = 0.3


class Health:
    """The last known facts of a daemon's engine; any thread may read and update them.

    `is_followed` is set while the scheduler probes regularly: then requests need not.
    """

    def __init__(self, bus: Bus) -> None:
        self.is_followed = False
        self._bus = bus
        self._lock = threading.RLock()
        self._facts: HealthFacts | None = None
        self._changes: deque[HealthChange] = deque(maxlen=_MAX_CHANGES)

    @property
    def state(self) -> Status | None:
        """The current state; None before the first probe."""
        with self._lock:
            return self._changes[-1].state if self._changes else None

    @property
    def changes(self) -> tuple[HealthChange, ...]:
        """The last changes, oldest first."""
        with self._lock:
            return tuple(self._changes)

    @property
    def facts(self) -> HealthFacts:
        """The last known facts; no errors before the first probe."""
        with self._lock:
            return self._facts or HealthFacts()

    @property
    def trouble(self) -> ObsidianRagError | None:
        """The most serious known error."""
        return assess(self.facts).error

    def note(self, **seen: Any) -> None:
        """Update some facts, by name."""
        with self._lock:
            self.take(replace(self.facts, **seen))

    def take(self, facts: HealthFacts) -> None:
        """Replace all facts; the state changes only here."""
        with self._lock:
            self._facts = facts
            before = self._changes[-1] if self._changes else None
            change = change_of(before, assess(facts), now())
            if change is None:
                return
            self._changes.append(change)
            # Inside the lock, so that changes are published in order.
            self._bus.publish(EventKind.HEALTH, asdict(change))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A daemon's health, and what it was computed from."""

    facts: HealthFacts
    health: HealthAnswer
    probed: HealthFacts
    parts: Parts
    # The stamp of the database, whether the table is there, and whether a job is running.
    state: tuple[tuple[int, int] | None, bool, bool]


def health_of(engine: Engine) -> HealthAnswer:
    """The health to report with an answer."""
    kept = _take_snapshot(engine)
    return kept.health if kept is not None else assess(_collect(engine))


def facts_of(engine: Engine) -> HealthFacts:
    """The facts that need no probe."""
    kept = _take_snapshot(engine)
    return kept.facts if kept is not None else _collect(engine)


def _take_snapshot(engine: Engine) -> Snapshot | None:
    """The kept snapshot if nothing has changed, or a new one; None unless probed regularly."""
    engine.follow_database()
    live, parts = engine.live, engine.parts
    if live.jobs is None or not live.is_followed or not parts.file.exists:
        return None
    probed, kept = live.known, engine.health_snapshot
    try:
        state = (parts.database.stamp, parts.chunks.exists(), live.jobs.active is not None)
    except ObsidianRagError:
        return None
    if kept is None or kept.probed is not probed or kept.parts is not parts or kept.state != state:
        facts = _collect(engine)
        kept = Snapshot(facts, assess(facts), probed, parts, state)
        engine.health_snapshot = kept if state[0] is not None else None
    return kept


def _collect(engine: Engine) -> HealthFacts:
    seen, is_followed = engine.live.known, engine.live.is_followed
    facts = seen or HealthFacts()
    if not engine.parts.file.exists:  # reading must not create a file
        return replace(facts, store=no_index())
    try:
        database, meta = engine.database, engine.database.facts()
        known = (facts.vault, *facts.linked) if seen is not None and is_followed else ()
        primary, linked = see_vaults(engine.vaults, database, known)
        facts = replace(
            _with_progress(engine, facts, meta),
            store=missing_index(engine.chunks, meta, facts.store),
            meaning=_meaning_trouble(engine, meta),
            vault=primary,
            linked=linked,
        )
        return facts if seen is not None else _with_files(engine, facts, meta)
    except ObsidianRagError as error:
        return replace(facts, store=error)


def probe(engine: Engine) -> HealthFacts:
    """Probe everything, and update a daemon's health."""
    engine.follow_database()
    outcome = read_outcome(engine.config)
    facts = HealthFacts(
        config=engine.settings_file.trouble,
        restart=engine.settings_file.restart_trouble,
        embedder=_embedder_trouble(engine),
        indexer=indexer_trouble(outcome, _last_ended(engine)),
    )
    try:
        database, meta = engine.database, engine.database.facts()
        known = _with_progress(engine, facts, meta)
        primary, linked = see_vaults(engine.vaults, database)
        facts = replace(
            known,
            store=store_trouble(
                database, engine.chunks, engine.vaults, meta, is_running=known.is_running
            ),
            settings=_settings_trouble(engine, meta),
            meaning=_meaning_trouble(engine, meta),
            staleness=_staleness(engine, outcome),
            vault=primary,
            linked=linked,
        )
    except ObsidianRagError as error:
        facts = replace(facts, store=error)
    engine.live.note_all(facts)
    return facts


def _with_progress(engine: Engine, facts: HealthFacts, meta: Mapping[str, str]) -> HealthFacts:
    jobs = engine.live.jobs
    is_running = jobs is not None and jobs.active is not None
    primary = engine.vaults.primary
    return with_progress(facts, engine.database, meta, primary, is_running=is_running)


def _with_files(engine: Engine, facts: HealthFacts, meta: Mapping[str, str]) -> HealthFacts:
    """Add facts from files, for short-lived processes; a daemon has probed them."""
    outcome = read_outcome(engine.config)
    return replace(
        facts,
        indexer=indexer_trouble(outcome, None),
        settings=_settings_trouble(engine, meta),
        staleness=_staleness(engine, outcome),
    )


def _last_ended(engine: Engine) -> tuple[str, ObsidianRagError | None] | None:
    """When the last index run of this engine ended, and why if it failed."""
    last = engine.live.jobs.latest if engine.live.jobs is not None else None
    return (last.finished_at or "", last.error) if last is not None else None


def _embedder_trouble(engine: Engine) -> ObsidianRagError | None:
    try:
        engine.embedder.probe()
        return engine.sending.trouble
    except ObsidianRagError as error:
        return error


def _settings_trouble(engine: Engine, meta: Mapping[str, str]) -> ObsidianRagError | None:
    """A mismatch of index and settings; None if the embedder is down, so unknown."""
    try:
        check_fingerprint(meta.get(IndexFact.FINGERPRINT), engine.parts.fingerprint)
    except (EmbeddingMismatch, IndexIncomplete) as error:
        return error
    except ObsidianRagError:
        return None
    return None


def _meaning_trouble(engine: Engine, meta: Mapping[str, str]) -> IndexIncomplete | None:
    """An error if meaning vectors were lost; those never added are only counted in `status`."""
    stored = meta.get(IndexFact.MEANING_ADDED)
    if stored is None or engine.config.settings.meaning.is_paused:
        return None
    lost = lost_vectors(engine.parts, stored)
    if not lost or (state := meaning_state(engine.parts)) is None:
        return None
    why = f" {state.trouble}" if state.trouble else ""
    return IndexIncomplete(
        f"{max(0, state.total - lost):,} of {state.total:,} passages can be found by meaning: the"
        f" meaning vectors of {lost:,} are damaged or missing.{why}",
        "Run `obsidian-rag model get` or `model add` again, then `obsidian-rag sync`."
        if state.trouble
        else "Run `obsidian-rag sync`: it adds them again.",
    )


def _staleness(engine: Engine, outcome: Mapping[str, object] | None) -> IndexStale | None:
    """An error if the index is old and the vault has changed; rechecked at intervals."""
    last = str((outcome or {}).get("last_sync") or "")
    try:
        age = time.time() - datetime.fromisoformat(last).astimezone(UTC).timestamp()
    except ValueError:
        return None
    if age <= _STALE_AFTER_S:
        return None
    at, looked = time.monotonic(), engine.looked_for_changes
    if looked is None or at - looked[0] > _RECHECK_INTERVAL_S:
        looked = engine.looked_for_changes = at, _has_changed(engine)
    if not looked[1]:
        return None
    return IndexStale(
        f"The vault has changed since the last sync, {age / 3600:.0f} h ago.",
        "Run `obsidian-rag sync`.",
    )


def _has_changed(engine: Engine) -> bool:
    try:
        return changed_files(engine.vaults, engine.database, _MAX_WALK_S)[0] > 0
    except NotFound:
        return False


def index_stamp(engine: Engine) -> tuple[str, str | None]:
    """The version of the index, and the time of the newest note of all vaults at the last runs."""
    facts = LinkFacts.of_all(engine.database).values()
    known = [int(one[LinkFact.NEWEST_NOTE]) for one in facts if LinkFact.NEWEST_NOTE in one]
    newest = max(known, default=0)
    at = time.gmtime(newest // 1_000_000_000)
    return engine.index_version, time.strftime("%Y-%m-%dT%H:%M:%SZ", at) if newest else None


def livesync_of(engine: Engine) -> ObsidianRagError | None:
    """The LiveSync error, if any; health does not cover it."""
    ours = engine.live.livesync()
    return livesync_trouble(engine.config, engine.database, ours)
