"""One index run as the outside sees it: under the writer's lock, with its result on file."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from obsidian_rag.errors import IndexerFailed, NotFound, ObsidianRagError, VaultAway
from obsidian_rag.index.consumer import NoteConsumer
from obsidian_rag.index.order import RunOrder
from obsidian_rag.index.outcome import record_failure, record_outcome
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.progress import Failure, IndexResult, Listener, Mode, Stop
from obsidian_rag.index.rebuild import Rebuild, is_rebuild_due
from obsidian_rag.index.run import IndexRun, Workplace, finish_promotion
from obsidian_rag.index.sending import Sending
from obsidian_rag.store import Links, Queue, make_private, now, repaired, writer_lock
from obsidian_rag.vault import Vault, sweep_data_folder

_LOOK_EVERY_S = 0.25


def carry_out(place: IndexPlace, order: RunOrder, listener: Listener, stop: Stop) -> IndexResult:
    """Index all vaults, or some files of one, and leave the outcome in sync-result.json.

    Raises:
        Busy: another process is at it.
        NotFound: no vault has the link id of the order.
        ConfigInvalid: the user has to agree first that notes are sent to a server outside.
        ObsidianRagError: the run could not finish; the next one goes on where it stopped.
    """
    home, mode = place.config.home, order.mode
    begun = time.monotonic()
    Sending(place).must_be_agreed(mode)
    with writer_lock(home, mode.value):
        sweep_data_folder(home)
        started = now()
        try:
            make_private(home)
            repair = _repaired(place) if mode is Mode.REINDEX else ""
            result = _run(place, order, listener, stop)
            took = round((time.monotonic() - begun) * 1000)
            result = replace(result, duration_ms=took, repair=repair or result.repair)
            status = "cancelled" if result.tally.is_cancelled else "complete"
            record_outcome(
                place.config,
                {
                    "status": "partial" if result.tally.errors else status,
                    "vault_path": str(place.vaults.one(order.link_id).root),
                    "link_id": order.link_id,
                    "started_at": started,
                    **result.fields,
                },
            )
        except (ObsidianRagError, OSError) as error:
            failure = _known(error)
            with contextlib.suppress(OSError):  # on a full disk the old word has to do
                record_failure(place.config, mode, failure)
            raise failure from error
        return result


def _run(place: IndexPlace, order: RunOrder, listener: Listener, stop: Stop) -> IndexResult:
    """The run itself, with the writer's lock held."""
    if order.mode is not Mode.REINDEX and place.chunks.exists():
        place.chunks.check()
    place.vaults.remember_primary()
    with place.relations_consumer() as consumer:
        runs = _Runs(place, consumer, listener, stop, order.accepts_removals)
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


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of one call: over one vault, over each, or one rebuild of all."""

    place: IndexPlace
    consumer: NoteConsumer
    listener: Listener
    stop: Stop
    accepts_removals: bool

    def one(
        self, mode: Mode, vault: Vault, paths: Sequence[str] | None = None, is_resumed: bool = False
    ) -> IndexResult:
        """Index one vault, or some files of it."""
        finish_promotion(self.place.database, self.place.chunks)
        place = Workplace.of(self.place, vault, self.consumer)
        stop = _ended_or_paused(self.place, vault, self.stop)
        run = IndexRun(place, self.listener, stop, accepts_removals=self.accepts_removals)
        if is_resumed and Queue(self.place.database).is_waiting(vault.link_id):
            return run.go_on()
        return run.run(mode, paths)

    def all(self, mode: Mode) -> IndexResult:
        """Index the primary vault, then each that is linked; one that is away stops no other."""
        primary, *linked = self.place.vaults
        result = self.one(mode, primary)
        for vault in linked:
            if vault.is_paused or result.tally.is_cancelled:
                continue
            try:
                # The first run has made what a reindex makes anew where there was no index.
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
        place = Workplace.of(self.place, vaults[0], self.consumer)
        rebuild = Rebuild(
            place, vaults, self.listener, self.stop, accepts_removals=self.accepts_removals
        )
        return rebuild.run(mode)


def _ended_or_paused(place: IndexPlace, vault: Vault, stop: Stop) -> Stop:
    """A linked vault that is paused or removed meanwhile, by any process, ends its run."""
    if vault.is_primary:
        return stop
    links, look_at, is_over = Links(place.database), 0.0, False

    def is_to_end() -> bool:
        nonlocal look_at, is_over
        if stop():
            return True
        if time.monotonic() >= look_at:
            look_at = time.monotonic() + _LOOK_EVERY_S
            link = links.get(vault.link_id)
            is_over = link is None or link.is_paused or not link.enabled
        return is_over

    return is_to_end


def _repaired(place: IndexPlace) -> str:
    return repaired(place.config.database, lambda: place.database, place.close)


def _known(error: ObsidianRagError | OSError) -> ObsidianRagError:
    if isinstance(error, ObsidianRagError):
        return error
    return IndexerFailed(
        f"The index cannot be written: {error.strerror or error}.",
        "Check free disk space and permissions, then run `obsidian-rag sync`.",
    )
