"""One index run as the outside sees it: under the writer's lock, with its result on file."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.sending import not_agreed, owed_sending
from obsidian_rag.errors import IndexerFailed, NotFound, ObsidianRagError, VaultAway
from obsidian_rag.index import (
    Failure,
    IndexResult,
    IndexRun,
    Listener,
    Mode,
    NoteConsumer,
    Rebuild,
    Stop,
    finish_promotion,
    is_rebuild_due,
    read_outcome,
    record_failure,
    record_outcome,
)
from obsidian_rag.process import give_back
from obsidian_rag.store import Links, Queue, make_private, now, repaired, writer_lock
from obsidian_rag.vault import Vault, sweep_data_folder

_LOOK_EVERY_S = 0.25


def run_index(
    engine: Engine,
    mode: str,
    listener: Listener = lambda _: None,
    stop: Stop = lambda: False,
    paths: Sequence[str] | None = None,
    *,
    accepts_removals: bool = False,
    link_id: str | None = None,
    is_resumed: bool = False,
) -> IndexResult:
    """Index all vaults, or some files of one, and leave the outcome in sync-result.json.

    `mode` is a `Mode` or the name of one; `accepts_removals` is the user's word that notes which
    are missing are gone. With `link_id` only that vault is looked at; `paths` are of that vault,
    or of the primary one. `is_resumed` goes on with what a run that gave way has left.

    Raises:
        Busy: another process is at it.
        NotFound: no vault has this link id.
        ConfigInvalid: the user has to agree first that notes are sent to a server outside.
        ObsidianRagError: the run could not finish; the next one goes on where it stopped.
    """
    mode = Mode(mode)
    home = engine.config.home
    begun = time.monotonic()
    if (estimate := owed_sending(engine, mode)) is not None:
        raise not_agreed(estimate, mode)
    with writer_lock(home, mode.value):
        sweep_data_folder(home)
        started = now()
        try:
            make_private(home)
            repair = _repaired(engine) if mode is Mode.REINDEX else ""
            if mode is not Mode.REINDEX and engine.chunks.exists():
                engine.chunks.check()
            primary = engine.vaults.remember_primary()
            with engine.relations_consumer() as consumer:
                runs = _Runs(engine, consumer, listener, stop, accepts_removals=accepts_removals)
                if is_rebuild_due(engine.workplace(primary), mode):
                    result = runs.rebuild(mode)
                elif link_id is None and paths is None:
                    result = runs.all(mode)
                else:
                    result = runs.one(mode, engine.vaults.one(link_id), paths, is_resumed)
            engine.chunks.record()
            if paths is None:
                give_back()
            took = round((time.monotonic() - begun) * 1000)
            result = replace(result, duration_ms=took, repair=repair or result.repair)
            status = "cancelled" if result.tally.is_cancelled else "complete"
            record_outcome(
                engine.config,
                {
                    "status": "partial" if result.tally.errors else status,
                    "vault_path": str(engine.vaults.one(link_id).root),
                    "link_id": link_id,
                    "started_at": started,
                    **result_fields(result),
                },
            )
        except (ObsidianRagError, OSError) as error:
            failure = _known(error)
            with contextlib.suppress(OSError):  # on a full disk the old word has to do
                record_failure(engine.config, mode, failure)
            raise failure from error
        return result


class _Runs:
    """The runs of one call: over one vault, over each, or one rebuild of all."""

    def __init__(
        self,
        engine: Engine,
        consumer: NoteConsumer,
        listener: Listener,
        stop: Stop,
        *,
        accepts_removals: bool,
    ) -> None:
        self._engine = engine
        self._consumer = consumer
        self._listener = listener
        self._stop = stop
        self._accepts = accepts_removals

    def one(
        self, mode: Mode, vault: Vault, paths: Sequence[str] | None = None, is_resumed: bool = False
    ) -> IndexResult:
        """Index one vault, or some files of it."""
        finish_promotion(self._engine.database, self._engine.chunks)
        place = replace(self._engine.workplace(vault), consumer=self._consumer)
        stop = _ended_or_paused(self._engine, vault, self._stop)
        run = IndexRun(place, self._listener, stop, accepts_removals=self._accepts)
        if is_resumed and Queue(self._engine.database).is_waiting(vault.link_id):
            return run.go_on()
        return run.run(mode, paths)

    def all(self, mode: Mode) -> IndexResult:
        """Index the primary vault, then each that is linked; one that is away stops no other."""
        primary, *linked = self._engine.vaults
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
        vaults = list(self._engine.vaults)
        place = replace(self._engine.workplace(vaults[0]), consumer=self._consumer)
        rebuild = Rebuild(place, vaults, self._listener, self._stop, accepts_removals=self._accepts)
        return rebuild.run(mode)


def _ended_or_paused(engine: Engine, vault: Vault, stop: Stop) -> Stop:
    """A linked vault that is paused or removed meanwhile, by any process, ends its run."""
    if vault.is_primary:
        return stop
    links, look_at, is_over = Links(engine.database), 0.0, False

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


def _repaired(engine: Engine) -> str:
    return repaired(engine.config.database, lambda: engine.database, engine.close)


def _known(error: ObsidianRagError | OSError) -> ObsidianRagError:
    if isinstance(error, ObsidianRagError):
        return error
    return IndexerFailed(
        f"The index cannot be written: {error.strerror or error}.",
        "Check free disk space and permissions, then run `obsidian-rag sync`.",
    )


def result_fields(result: IndexResult) -> dict[str, Any]:
    """A run's outcome with the names of the plugin design, and ours beside them."""
    tally = asdict(result.tally)
    return {
        "mode": result.mode.value,
        "indexed_files": result.indexed_files,
        "total_chunks": result.total_chunks,
        "duration_ms": result.duration_ms,
        **({"repair": result.repair} if result.repair else {}),
        "errors": tally.pop("errors"),
        **tally,
    }


def read_result(engine: Engine) -> dict[str, object] | None:
    """The outcome of the last run, if there was one."""
    return read_outcome(engine.config)
