"""Index runs from outside: consent, the writer lock, all vaults, and the outcome on file.

`carry_out` is what the worker does for a job; `run_index` and `index_in_foreground` do the same in
the process of a command.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.job import RunOrder
from obsidian_rag.engine.outcome import record_failure, record_outcome
from obsidian_rag.errors import (
    IndexerFailed,
    IndexIncomplete,
    NotFound,
    ObsidianRagError,
    VaultAway,
)
from obsidian_rag.index import (
    MEANING_PHASE,
    Failure,
    IndexResult,
    IndexRun,
    Listener,
    MeaningState,
    Mode,
    Progress,
    Rebuild,
    RunParts,
    Stop,
    finish_promotion,
    is_rebuild_due,
    meaning_after_run,
    paced,
)
from obsidian_rag.process import give_back
from obsidian_rag.relations import RelationsWriter
from obsidian_rag.store import (
    TAKEN_OVER,
    Database,
    Links,
    Queue,
    make_private,
    now,
    repair,
    verify_table,
    writer_lock,
)
from obsidian_rag.vault import Vault, sweep_data_folder

# Phase, done, total.
OnStep = Callable[[str, int, int], None]
_LINK_CHECK_INTERVAL_S = 0.25


def carry_out(engine: Engine, order: RunOrder, listener: Listener, stop: Stop) -> IndexResult:
    """Index all vaults, or some files of one, and write the outcome to sync-result.json.

    Raises:
        Busy: another process is writing the index.
        NotFound: no vault has the order's link id.
        ConfigInvalid: the user must first agree to send notes to an external server.
        ObsidianRagError: the run failed; the next one continues where it stopped.
    """
    home, mode = engine.config.home, order.mode
    begun = time.monotonic()
    engine.sending.must_be_agreed(mode)
    with writer_lock(home, mode.value):
        sweep_data_folder(home)
        started = now()
        try:
            make_private(home)
            repair_message = _repair(engine) if mode is Mode.REINDEX else ""
            root = engine.vaults.one(order.link_id).root
            result = _run(engine, order, listener, stop)
            took = round((time.monotonic() - begun) * 1000)
            taken_over = engine.database.get(TAKEN_OVER) or ""
            notes = (repair_message, taken_over, result.repair)
            result = replace(result, duration_ms=took, repair=" ".join(filter(None, notes)))
            status = "cancelled" if result.tally.is_cancelled else "complete"
            record_outcome(
                engine.config,
                {
                    "status": "partial" if result.tally.errors else status,
                    "vault_path": str(root),
                    "link_id": order.link_id,
                    "started_at": started,
                    **result.fields,
                },
            )
            if taken_over and not result.tally.is_cancelled:
                engine.database.put(TAKEN_OVER, None)  # said, and on record
        except (ObsidianRagError, OSError) as error:
            failure = _to_domain_error(error)
            with contextlib.suppress(OSError):  # on a full disk the old result stays
                record_failure(engine.config, mode, failure)
            raise failure from error
        return result


def run_index(
    engine: Engine,
    mode: str,
    listener: Listener = lambda _: None,
    stop: Stop = lambda: False,
    paths: Sequence[str] | None = None,
    *,
    accepts_removals: bool = False,
    link_id: str | None = None,
) -> IndexResult:
    """Index all vaults, or one, or some files of one; see `RunOrder`.

    Raises:
        Busy: another process is indexing.
        ObsidianRagError: the run could not finish; the next one resumes it.
    """
    some = tuple(paths) if paths is not None else None
    order = RunOrder(Mode(mode), some, link_id, accepts_removals)
    result = carry_out(engine, order, listener, stop)
    if paths is None:
        give_back()
    return result


def index_in_foreground(
    engine: Engine,
    mode: str,
    on_step: OnStep,
    stop: Callable[[], bool],
    *,
    accepts_removals: bool = False,
    waits_for_meaning: bool = False,
    vault: str | None = None,
) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    """The result of a run, and the meaning-vector state; None without a transformer.

    `vault` is a name or link id and limits the run to that vault.

    Raises:
        Busy: another process is indexing.
        ObsidianRagError: the run could not finish.
    """

    def listen(progress: Progress) -> None:
        on_step(progress.phase.value, progress.current, progress.total)

    def count(state: MeaningState) -> None:
        on_step(MEANING_PHASE, state.done, state.total)

    started = now()
    if vault is not None:
        link_id = engine.vaults.unpaused(vault).link_id
        result = run_index(engine, Mode.SYNC, paced(listen), stop, link_id=link_id)
    else:
        result = run_index(engine, mode, paced(listen), stop, accepts_removals=accepts_removals)
    since = started if result.tally.touched else None
    state = meaning_after_run(engine.parts, count, stop, since, waits=waits_for_meaning)
    return result.fields, state.shown if state is not None else None


def _run(engine: Engine, order: RunOrder, listener: Listener, stop: Stop) -> IndexResult:
    """Run with the writer lock held."""
    engine.chunks.claim([link.link_id for link in Links(engine.database).all()])
    if order.mode is not Mode.REINDEX and engine.chunks.exists():
        _check_table(engine, order.mode)
    engine.vaults.remember_primary()
    with engine.parts.relations_writer() as relations:
        runs = _Runs(engine, relations, listener, stop, order.accepts_removals)
        if is_rebuild_due(engine.parts, order.mode):
            result = runs.rebuild(order.mode)
        elif order.link_id is None and order.paths is None:
            result = runs.all(order.mode)
        else:
            result = runs.one(
                order.mode, engine.vaults.one(order.link_id), order.paths, order.is_resumed
            )
    engine.chunks.record()
    return result


def _check_table(engine: Engine, mode: Mode) -> None:
    """Check the table before writing to it, in depth if it has no checksums."""
    engine.chunks.check()
    if not engine.chunks.is_recorded() and not is_rebuild_due(engine.parts, mode):
        # An index of another version is not written to; the run itself reports what to do.
        with contextlib.suppress(IndexIncomplete):
            verify_table(engine.chunks)
            engine.chunks.record(begins=True)


@dataclass(frozen=True, slots=True)
class _Runs:
    """The kinds of run: over one vault, over each, or a rebuild of all."""

    engine: Engine
    relations: RelationsWriter
    listener: Listener
    stop: Stop
    accepts_removals: bool

    def one(
        self, mode: Mode, vault: Vault, paths: Sequence[str] | None = None, is_resumed: bool = False
    ) -> IndexResult:
        """Index one vault, or some files of it."""
        finish_promotion(self.engine.database, self.engine.chunks)
        parts = RunParts.of(self.engine.parts, vault, self.relations)
        stop = _stop_when_paused(self.engine.database, vault, self.stop)
        run = IndexRun(parts, self.listener, stop, accepts_removals=self.accepts_removals)
        if is_resumed and Queue(self.engine.database).is_waiting(vault.link_id):
            return run.go_on()
        return run.run(mode, paths)

    def all(self, mode: Mode) -> IndexResult:
        """Index the primary vault, then each linked one; a missing one does not stop the rest."""
        primary, *linked = self.engine.vaults
        result = self.one(mode, primary)
        for vault in linked:
            if vault.is_paused or result.tally.is_cancelled:
                continue
            try:
                # Without an index a reindex is a first run: the primary's run has created it.
                found = self.one(Mode.SYNC if mode is Mode.REINDEX else mode, vault)
            except (VaultAway, NotFound) as error:
                trouble = Failure(f"{vault.name}/", error.code, error.message, True, vault.link_id)
                result.tally.errors.append(trouble)
                continue
            result.tally.add(found.tally)
            result = replace(found, mode=mode, tally=result.tally)
        return result

    def rebuild(self, mode: Mode) -> IndexResult:
        """Build a second index of all vaults and swap it in."""
        vaults = list(self.engine.vaults)
        parts = RunParts.of(self.engine.parts, vaults[0], self.relations)
        rebuild = Rebuild(
            parts, vaults, self.listener, self.stop, accepts_removals=self.accepts_removals
        )
        return rebuild.run(mode)


def _stop_when_paused(database: Database, vault: Vault, stop: Stop) -> Stop:
    """A `stop` that is also true once any process has paused or removed the linked vault."""
    if vault.is_primary:
        return stop
    links, look_at, is_over = Links(database), 0.0, False

    def must_end() -> bool:
        nonlocal look_at, is_over
        if stop():
            return True
        if time.monotonic() >= look_at:
            look_at = time.monotonic() + _LINK_CHECK_INTERVAL_S
            link = links.get(vault.link_id)
            is_over = link is None or link.is_paused or not link.enabled
        return is_over

    return must_end


def _repair(engine: Engine) -> str:
    return repair(engine.config.database, lambda: engine.database, engine.close)


def _to_domain_error(error: ObsidianRagError | OSError) -> ObsidianRagError:
    if isinstance(error, ObsidianRagError):
        return error
    return IndexerFailed(
        f"The index cannot be written: {error.strerror or error}.",
        "Check free disk space and permissions, then run `obsidian-rag sync`.",
    )
