"""An index run in this process, followed by meaning vectors if the caller waits for them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from obsidian_rag.engine.engine import Engine
from obsidian_rag.index import (
    MEANING_PHASE,
    IndexResult,
    Listener,
    MeaningState,
    Mode,
    Progress,
    RunOrder,
    Stop,
    carry_out,
    meaning_after_run,
    paced,
)
from obsidian_rag.process import give_back
from obsidian_rag.store import now

# Phase, done, total.
OnStep = Callable[[str, int, int], None]


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
    state = meaning_after_run(engine, count, stop, since, waits=waits_for_meaning)
    return result.fields, state.shown if state is not None else None
