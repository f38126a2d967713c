"""An index run that somebody waits for, in this process, and the meaning vectors after it."""

from collections.abc import Callable, Mapping
from typing import Any

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.indexing import result_fields, run_index
from obsidian_rag.engine.linking import sync_link
from obsidian_rag.index import (
    MEANING_PHASE,
    IndexResult,
    MeaningState,
    Progress,
    add_meaning,
    meaning_state,
    paced,
    settle_meaning,
)
from obsidian_rag.store import now

# A phase, and so many of so many.
OnStep = Callable[[str, int, int], None]


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
    """The outcome of a run, and how far the meaning vectors are; None without a transformer.

    With the name or link id of a `vault`, only that one is looked at.

    Raises:
        Busy: another process is at it.
        ObsidianRagError: the run could not finish.
    """

    def listen(progress: Progress) -> None:
        on_step(progress.phase.value, progress.current, progress.total)

    def count(state: MeaningState) -> None:
        on_step(MEANING_PHASE, state.done, state.total)

    started = now()
    if vault is not None:
        result = sync_link(engine, vault, paced(listen), stop)
    else:
        result = run_index(engine, mode, paced(listen), stop, accepts_removals=accepts_removals)
    assert isinstance(result, IndexResult)  # only a living engine makes a job of it
    if waits_for_meaning and not stop():
        state = add_meaning(engine, count, stop)
    else:
        if result.tally.touched:
            settle_meaning(engine, started)
        state = meaning_state(engine)
    return result_fields(result), state.shown if state is not None else None
