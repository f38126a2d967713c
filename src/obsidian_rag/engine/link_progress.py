"""How far the import of a linked vault is: its phase, counts, rate and the time left."""

import time
from dataclasses import dataclass

from obsidian_rag.engine.engine import Engine
from obsidian_rag.index import Phase

_PHASES = {Phase.SCANNING: "scan", Phase.HASHING: "hash", Phase.PARSING: "parse"}


@dataclass(frozen=True, slots=True)
class LinkProgress:
    """`phase` is scan, hash, parse, embed or done; a total of 0 is not known yet."""

    phase: str
    current: int
    total: int
    is_running: bool = False
    files_per_s: float | None = None
    seconds_left: float | None = None


def progress_of(engine: Engine, link_id: str, indexed: int, pending: int) -> LinkProgress:
    """From the job under way if there is one for this link, and from the queue otherwise."""
    job = engine.live.jobs.for_link(link_id) if engine.live is not None else None
    if job is None or job.progress is None:
        phase = "parse" if pending else "done"
        return LinkProgress(phase, indexed, indexed + pending, is_running=job is not None)
    progress, rate, left = job.progress, None, None
    if job.stored is not None and job.began is not None and job.stored.current:
        rate = job.stored.current / max(time.monotonic() - job.began, 0.001)
        left = (job.stored.total - job.stored.current) / rate
    return LinkProgress(
        _PHASES.get(progress.phase, "embed"),
        progress.current,
        progress.total,
        is_running=True,
        files_per_s=rate,
        seconds_left=left,
    )
