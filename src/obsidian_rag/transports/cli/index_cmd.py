"""index, sync and reindex: a bar on a terminal, NDJSON in a pipe."""

import contextlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer

from obsidian_rag.config import load
from obsidian_rag.errors import IndexerFailed, InvalidArgument, ObsidianRagError
from obsidian_rag.transports.cli.following import OnStep, Outcome, Step, run_here, run_there
from obsidian_rag.transports.cli.output import JsonFlag, print_envelope, the_daemon
from obsidian_rag.transports.cli.stopping import stop_on_signals
from obsidian_rag.transports.running import DaemonGone

Run = Callable[[OnStep], Outcome]
NdjsonFlag = Annotated[bool, typer.Option("--ndjson", help="Print progress as NDJSON lines")]


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
    if json_output and ndjson:
        raise InvalidArgument("--json and --ndjson exclude each other.", "Choose one.")
    stop = stop_on_signals("notes")

    def run(on_step: OnStep) -> Outcome:
        daemon = the_daemon(load())
        if daemon is not None:
            with contextlib.suppress(DaemonGone):
                return run_there(daemon, mode, on_step, stop)
        return run_here(mode, on_step, stop)

    if ndjson or not (json_output or sys.stdout.isatty()):
        return _as_lines(run)
    outcome = _with_bar(run) if sys.stderr.isatty() else run(lambda _: None)
    if json_output:
        print_envelope(outcome.envelope)
    else:
        _summarise(outcome.fields)
    return outcome.exit_code


def _as_lines(run: Run) -> int:
    try:
        outcome = run(lambda step: _line(type="progress", **asdict(step)))
    except Exception as error:
        known = error if isinstance(error, ObsidianRagError) else IndexerFailed(str(error))
        _line(type="error", **known.body)
        raise
    _line(type="complete", **outcome.fields)
    return outcome.exit_code


def _line(**fields: object) -> None:
    print(json.dumps(fields, ensure_ascii=False), flush=True)


def _with_bar(run: Run) -> Outcome:
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

        def draw(step: Step) -> None:
            if step.phase not in tasks:
                tasks[step.phase] = bars.add_task(step.phase, total=None)
            bars.update(tasks[step.phase], completed=step.current, total=step.total or None)

        return run(draw)


def _summarise(fields: dict[str, Any]) -> None:
    words = ("added", "changed", "renamed", "removed", "unchanged", "skipped")
    parts = [f"{fields[word]} {word}" for word in words if fields[word]]
    print(
        f"{fields['indexed_files']} notes, {fields['total_chunks']} chunks searchable"
        f" ({', '.join(parts) or 'nothing to do'}; {fields['duration_ms'] / 1000:.1f} s)"
    )
    errors = fields["errors"]
    for failure in errors[:20]:
        print(f"  failed: {failure['message']}", file=sys.stderr)
    if len(errors) > 20:
        print(f"  … and {len(errors) - 20} more", file=sys.stderr)
    if fields["is_cancelled"]:
        print("Stopped early; run `obsidian-rag sync` to go on.", file=sys.stderr)
    elif fields["skipped"] or errors:
        print("`obsidian-rag status` lists what is not searchable and why.", file=sys.stderr)
