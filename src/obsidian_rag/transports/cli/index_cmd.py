"""index, sync and reindex: a bar on a terminal, NDJSON in a pipe."""

import json
import sys
import threading
from collections.abc import Callable
from typing import Annotated, Any

import typer

from obsidian_rag.config import load
from obsidian_rag.errors import InvalidArgument, ObsidianRagError, unexpected
from obsidian_rag.transports.cli.backend import open_engine, the_daemon
from obsidian_rag.transports.cli.index_run import (
    OnStep,
    RunOutcome,
    RunRequest,
    run_here,
    run_there,
)
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    counted,
    meaning_text,
    print_envelope,
    stop_on_signals,
)
from obsidian_rag.transports.cli.streams import bar_console, escape_json, say
from obsidian_rag.transports.daemon_client import daemon_or_here

Run = Callable[[OnStep], RunOutcome]
_writing = threading.Lock()
NdjsonFlag = Annotated[bool, typer.Option("--ndjson", help="Print progress as NDJSON lines")]
AcceptFlag = Annotated[
    bool, typer.Option("--accept-removals", help="Treat missing notes as deleted")
]
YesFlag = Annotated[
    bool, typer.Option("--yes", help="Send notes to the embedder you agreed to, without asking")
]


def index(
    json_output: JsonFlag = False,
    ndjson: NdjsonFlag = False,
    accept_removals: AcceptFlag = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until all meaning vectors are added")
    ] = False,
    yes: YesFlag = False,
) -> int:
    """Index the whole vault, checking the content of every file

    Example:  obsidian-rag index
    """
    _confirm_sending("full", yes)
    return run_command(RunRequest("full", accept_removals, wait), json_output, ndjson)


def sync(
    json_output: JsonFlag = False,
    ndjson: NdjsonFlag = False,
    accept_removals: AcceptFlag = False,
    deep_vectors: Annotated[
        bool, typer.Option("--deep-vectors", help="Wait until all meaning vectors are added")
    ] = False,
) -> int:
    """Update the index with the files that changed

    If many notes are missing at once, nothing is removed (VAULT_AWAY), because a disk may be
    unplugged. Use --accept-removals if you deleted them.

    Example:  obsidian-rag sync | jq .
    """
    return run_command(RunRequest("sync", accept_removals, deep_vectors), json_output, ndjson)


def reindex(
    json_output: JsonFlag = False,
    ndjson: NdjsonFlag = False,
    accept_removals: AcceptFlag = False,
    yes: YesFlag = False,
) -> int:
    """Build a new index beside the old one, then switch to it

    Use it after changing the embedding model, or to repair a damaged index.

    Example:  obsidian-rag reindex
    """
    _confirm_sending("reindex", yes)
    return run_command(RunRequest("reindex", accept_removals), json_output, ndjson)


def run_command(wanted: RunRequest, json_output: bool, ndjson: bool) -> int:
    """Run the index with the output that flags and terminal need; returns the exit code."""
    if json_output and ndjson:
        raise InvalidArgument("--json and --ndjson exclude each other.", "Choose one.")
    stop = stop_on_signals("notes")

    def run(on_step: OnStep) -> RunOutcome:
        return daemon_or_here(
            the_daemon(load()),
            lambda daemon: run_there(daemon, wanted, on_step, stop),
            lambda: run_here(wanted, on_step, stop),
        )

    if ndjson or not (json_output or sys.stdout.isatty()):
        return _as_lines(run)
    outcome = _with_bar(run) if sys.stderr.isatty() else run(lambda *_: None)
    if json_output:
        print_envelope(outcome.envelope)
    else:
        _summarise(outcome.fields)
        _summarise_meaning(outcome, wanted)
    return outcome.exit_code


def _confirm_sending(mode: str, yes: bool) -> None:
    """Show what a run would send to a provider, and ask; `yes` answers for a script.

    Raises:
        ConfigInvalid: the user cannot be asked, or said no.
    """
    if load().settings.security.local_only:
        return
    with open_engine() as opened:
        estimate = opened.sending.estimate(mode)
        if estimate is None:
            return
        if not yes and not sys.stdin.isatty():
            raise estimate.refusal(mode)
        say(estimate.text)
        if not yes and not typer.confirm("Private passages stay here. Send the rest?", err=True):
            raise estimate.refusal(mode)
        opened.sending.agree()


def _as_lines(run: Run) -> int:
    def show(phase: str, current: int, total: int) -> None:
        _line(type="progress", phase=phase, current=current, total=total)

    try:
        outcome = run(show)
    except Exception as error:
        known = error if isinstance(error, ObsidianRagError) else unexpected(error)
        _line(type="error", **known.body)
        raise
    _line(type="complete", **outcome.fields)
    return outcome.exit_code


def _line(**fields: object) -> None:
    """Write a line at once: `print` writes the line end separately, and threads could mix."""
    line = escape_json(json.dumps(fields, ensure_ascii=False)) + "\n"
    with _writing:
        sys.stdout.write(line)
        sys.stdout.flush()


def _with_bar(run: Run) -> RunOutcome:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description:<11}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=bar_console(), transient=True) as bars:
        tasks = {}

        def draw(phase: str, current: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, total=None, rate="")
            task = tasks[phase]
            speed = next(
                (one.finished_speed or one.speed for one in bars.tasks if one.id == task), None
            )
            rate = f"{speed:,.0f}/s" if speed else ""
            bars.update(task, completed=current, total=total or None, rate=rate)

        return run(draw)


def _summarise(fields: dict[str, Any]) -> None:
    words = ("added", "changed", "renamed", "removed", "unchanged", "skipped")
    parts = [f"{fields[word]:,} {word}" for word in words if fields[word]]
    print(
        f"{counted(fields['indexed_files'], 'note')}, {counted(fields['total_chunks'], 'chunk')}"
        " searchable"
        f" ({', '.join(parts) or 'nothing to do'}; {fields['duration_ms'] / 1000:.1f} s)"
    )
    if fields.get("repair"):
        say(fields["repair"])
    errors = fields["errors"]
    for failure in errors[:20]:
        say(f"  failed: {failure['message']}")
    if len(errors) > 20:
        say(f"  … and {len(errors) - 20:,} more")
    if fields["is_cancelled"]:
        say("Stopped early; run `obsidian-rag sync` to continue.")
    elif fields["skipped"] or errors:
        say("`obsidian-rag status` lists what is not searchable and why.")


def _summarise_meaning(outcome: RunOutcome, wanted: RunRequest) -> None:
    meaning = outcome.fields["meaning"]
    if meaning is None:
        if wanted.waits_for_meaning:
            say(
                "No transformer is installed, so there are no meaning vectors;"
                " `obsidian-rag model get minilm` installs one."
            )
        return
    has_rest = meaning["done"] < meaning["total"]
    is_being_added = meaning["seconds_left"] or meaning["trouble"] or meaning["is_paused"]
    what = "the daemon" if outcome.is_in_daemon else "`obsidian-rag sync --deep-vectors`"
    hint = f"; {what} adds the rest"
    print(meaning_text(meaning) + (hint if has_rest and not is_being_added else ""))
