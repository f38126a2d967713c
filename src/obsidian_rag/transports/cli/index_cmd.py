"""index, sync and reindex: a bar on a terminal, NDJSON in a pipe."""

import contextlib
import json
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Annotated

import typer

from obsidian_rag.errors import IndexerFailed, InvalidArgument, ObsidianRagError
from obsidian_rag.transports.cli.output import JsonFlag, open_engine, print_envelope

if TYPE_CHECKING:
    from collections.abc import Callable

    from obsidian_rag.engine import IndexResult, Progress
    from obsidian_rag.tools import Envelope

    Run = Callable[[Callable[[Progress], None]], tuple[IndexResult, Envelope]]

NdjsonFlag = Annotated[bool, typer.Option("--ndjson", help="Print progress as NDJSON lines")]
_LINES_PER_S = 10


def index(json_output: JsonFlag = False, ndjson: NdjsonFlag = False) -> int:
    """Index the whole vault, checking the content of every file

    Example:  obsidian-rag index
    """
    return _run("full", json_output, ndjson)


def sync(json_output: JsonFlag = False, ndjson: NdjsonFlag = False) -> int:
    """Bring the index up to date with the files that changed

    Example:  obsidian-rag sync | jq .
    """
    return _run("sync", json_output, ndjson)


def reindex(json_output: JsonFlag = False, ndjson: NdjsonFlag = False) -> int:
    """Build a new index beside the old one, then swap

    Needed after changing the embedding model, and the repair for a damaged index.

    Example:  obsidian-rag reindex
    """
    return _run("reindex", json_output, ndjson)


def _run(mode: str, json_output: bool, ndjson: bool) -> int:
    from obsidian_rag import tools
    from obsidian_rag.engine import Mode, run_index

    if json_output and ndjson:
        raise InvalidArgument("--json and --ndjson exclude each other.", "Choose one.")
    stop = _stop_on_signals()

    def run(listener: "Callable[[Progress], None]") -> "tuple[IndexResult, Envelope]":
        with contextlib.closing(open_engine()) as engine:
            result = run_index(engine, Mode(mode), listener, stop.is_set)
            return result, tools.index_outcome(engine, result)

    if ndjson or not (json_output or sys.stdout.isatty()):
        return _as_lines(run)
    result, envelope = _with_bar(run) if sys.stderr.isatty() else run(lambda _: None)
    if json_output:
        print_envelope(envelope)
    else:
        _summarise(result)
    return result.exit_code


def _stop_on_signals() -> threading.Event:
    """The first interrupt ends the run tidily, the second at once."""
    stop = threading.Event()

    def request(number: int, _: object) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()
        print("\nStopping after the notes under way …", file=sys.stderr)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, request)
    return stop


def _as_lines(run: "Run") -> int:
    from obsidian_rag.engine import result_fields

    spoken: dict[str, float] = {}

    def say(progress: "Progress") -> None:
        now = time.monotonic()
        is_last = progress.current == progress.total
        if is_last or now - spoken.get(progress.phase, 0) >= 1 / _LINES_PER_S:
            spoken[progress.phase] = now
            _line(
                type="progress",
                phase=progress.phase.value,
                current=progress.current,
                total=progress.total,
            )

    try:
        result, _ = run(say)
    except Exception as error:
        known = error if isinstance(error, ObsidianRagError) else IndexerFailed(str(error))
        _line(
            type="error",
            code=known.code,
            message=known.message,
            recoverable=known.recoverable,
            suggestion=known.suggestion,
        )
        raise
    _line(type="complete", **result_fields(result))
    return result.exit_code


def _line(**fields: object) -> None:
    print(json.dumps(fields, ensure_ascii=False), flush=True)


def _with_bar(run: "Run") -> "tuple[IndexResult, Envelope]":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description:<11}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {}

        def draw(progress: "Progress") -> None:
            if progress.phase not in tasks:
                tasks[progress.phase] = bars.add_task(progress.phase.value, total=None)
            total = progress.total or None
            bars.update(tasks[progress.phase], completed=progress.current, total=total)

        return run(draw)


def _summarise(result: "IndexResult") -> None:
    tally = result.tally
    parts = [
        f"{count} {word}"
        for count, word in (
            (tally.added, "added"),
            (tally.changed, "changed"),
            (tally.renamed, "renamed"),
            (tally.removed, "removed"),
            (tally.unchanged, "unchanged"),
            (tally.skipped, "skipped"),
        )
        if count
    ]
    print(
        f"{result.indexed_files} notes, {result.total_chunks} chunks searchable"
        f" ({', '.join(parts) or 'nothing to do'}; {result.duration_ms / 1000:.1f} s)"
    )
    for failure in tally.errors[:20]:
        print(f"  failed: {failure.message}", file=sys.stderr)
    if len(tally.errors) > 20:
        print(f"  … and {len(tally.errors) - 20} more", file=sys.stderr)
    if tally.is_cancelled:
        print("Stopped early; run `obsidian-rag sync` to go on.", file=sys.stderr)
    elif tally.skipped or tally.errors:
        print("`obsidian-rag status` lists what is not searchable and why.", file=sys.stderr)
