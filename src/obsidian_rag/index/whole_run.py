"""Runs one index run from outside: holds the writer lock and records the result."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from obsidian_rag.errors import (
    IndexerFailed,
    IndexIncomplete,
    NotFound,
    ObsidianRagError,
    VaultAway,
)
from obsidian_rag.index.checks import verify_table
from obsidian_rag.index.order import RunOrder
from obsidian_rag.index.outcome import record_failure, record_outcome
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.progress import Failure, IndexResult, Listener, Mode, Stop
from obsidian_rag.index.rebuild import Rebuild, is_rebuild_due
from obsidian_rag.index.run import IndexRun, Workplace, finish_promotion
from obsidian_rag.index.sending import Sending
from obsidian_rag.relations import RelationsWriter
from obsidian_rag.store import TAKEN_OVER, Links, Queue, make_private, now, repaired, writer_lock
from obsidian_rag.vault import Vault, sweep_data_folder

_LINK_CHECK_INTERVAL_S = 0.25


def carry_out(place: IndexPlace, order: RunOrder, listener: Listener, stop: Stop) -> IndexResult:
    """Index all vaults, or some files of one, and write the outcome to sync-result.json.

    Raises:
        Busy: another process is writing the index.
        NotFound: no vault has the order's link id.
        ConfigInvalid: the user must first agree to send notes to an external server.
        ObsidianRagError: the run failed; the next one continues where it stopped.
    """
    home, mode = place.config.home, order.mode
    begun = time.monotonic()
    Sending(place).must_be_agreed(mode)
    with writer_lock(home, mode.value):
        sweep_data_folder(home)
        started = now()
        try:
            make_private(home)
            repaired_now = _repair(place) if mode is Mode.REINDEX else ""
            root = place.vaults.one(order.link_id).root
            result = _run(place, order, listener, stop)
            took = round((time.monotonic() - begun) * 1000)
            taken_over = place.database.get(TAKEN_OVER) or ""
            notes = (repaired_now, taken_over, result.repair)
            result = replace(result, duration_ms=took, repair=" ".join(filter(None, notes)))
            status = "cancelled" if result.tally.is_cancelled else "complete"
            record_outcome(
                place.config,
                {
                    "status": "partial" if result.tally.errors else status,
                    "vault_path": str(root),
                    "link_id": order.link_id,
                    "started_at": started,
                    **result.fields,
                },
            )
            if taken_over and not result.tally.is_cancelled:
                place.database.put(TAKEN_OVER, None)  # said, and on record
        except (ObsidianRagError, OSError) as error:
            failure = _to_domain_error(error)
            with contextlib.suppress(OSError):  # on a full disk the old result stays
                record_failure(place.config, mode, failure)
            raise failure from error
        return result


def _run(place: IndexPlace, order: RunOrder, listener: Listener, stop: Stop) -> IndexResult:
    """Run with the writer lock held."""
    place.chunks.claim([link.link_id for link in Links(place.database).all()])
    if order.mode is not Mode.REINDEX and place.chunks.exists():
        _check_table(place, order.mode)
    place.vaults.remember_primary()
    with place.relations_writer() as relations:
        runs = _Runs(place, relations, listener, stop, order.accepts_removals)
        if is_rebuild_due(place, order.mode):
            result = runs.rebuild(order.mode)
        elif order.link_id is None and order.paths is None:
            result = runs.all(order.mode)
        else:
            result = runs.one(
                order.mode, place.vaults.one(order.link_id), order.paths, order.is_resumed
            )
    place.chunks.record()
    return result


def _check_table(place: IndexPlace, mode: Mode) -> None:
    """Check the table before writing to it, in depth if it has no checksums."""
    place.chunks.check()
    if not place.chunks.is_recorded() and not is_rebuild_due(place, mode):
        # An index of another version is not written to; the run itself reports what to do.
        with contextlib.suppress(IndexIncomplete):
            verify_table(place)
            place.chunks.record(begins=True)


@dataclass(frozen=True, slots=True)
class _Runs:
    """The kinds of run: over one vault, over each, or a rebuild of all."""

    place: IndexPlace
    relations: RelationsWriter
    listener: Listener
    stop: Stop
    accepts_removals: bool

    def one(
        self, mode: Mode, vault: Vault, paths: Sequence[str] | None = None, is_resumed: bool = False
    ) -> IndexResult:
        """Index one vault, or some files of it."""
        finish_promotion(self.place.database, self.place.chunks)
        place = Workplace.of(self.place, vault, self.relations)
        stop = _stop_when_paused(self.place, vault, self.stop)
        run = IndexRun(place, self.listener, stop, accepts_removals=self.accepts_removals)
        if is_resumed and Queue(self.place.database).is_waiting(vault.link_id):
            return run.go_on()
        return run.run(mode, paths)

    def all(self, mode: Mode) -> IndexResult:
        """Index the primary vault, then each linked one; a missing one does not stop the rest."""
        primary, *linked = self.place.vaults
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
        vaults = list(self.place.vaults)
        place = Workplace.of(self.place, vaults[0], self.relations)
        rebuild = Rebuild(
            place, vaults, self.listener, self.stop, accepts_removals=self.accepts_removals
        )
        return rebuild.run(mode)


def _stop_when_paused(place: IndexPlace, vault: Vault, stop: Stop) -> Stop:
    """A `stop` that is also true once any process has paused or removed the linked vault."""
    if vault.is_primary:
        return stop
    links, look_at, is_over = Links(place.database), 0.0, False

    def is_to_end() -> bool:
        nonlocal look_at, is_over
        if stop():
            return True
        if time.monotonic() >= look_at:
            look_at = time.monotonic() + _LINK_CHECK_INTERVAL_S
            link = links.get(vault.link_id)
            is_over = link is None or link.is_paused or not link.enabled
        return is_over

    return is_to_end


def _repair(place: IndexPlace) -> str:
    return repaired(place.config.database, lambda: place.database, place.close)


def _to_domain_error(error: ObsidianRagError | OSError) -> ObsidianRagError:
    if isinstance(error, ObsidianRagError):
        return error
    return IndexerFailed(
        f"The index cannot be written: {error.strerror or error}.",
        "Check free disk space and permissions, then run `obsidian-rag sync`.",
    )
