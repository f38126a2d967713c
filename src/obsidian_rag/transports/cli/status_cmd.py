"""status: the health of the index, and files that are not searchable, with the reason."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from obsidian_rag.errors import ErrorBody
from obsidian_rag.transports.cli.backend import ask_tool
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    cells,
    counted,
    local_time,
    meaning_text,
    plain,
    print_answer,
    print_trouble,
    width,
    wrap,
)
from obsidian_rag.transports.cli.streams import put, screen, style

_SHOWN = 20
_REASON = " " * 11
_REASON_LINES = 4
_COLOURS = {"healthy": "green", "degraded": "yellow", "failed": "red", "skipped": "cyan"}


def status(
    json_output: JsonFlag = False,
    show_all: Annotated[bool, typer.Option("--all", help="List every file, not only 20")] = False,
) -> int:
    """Show the health of the index and every file that is not in it

    Example:  obsidian-rag status --json
    """
    envelope = ask_tool("obsidian_rag_status", {})
    error = envelope["error"]
    return print_answer(envelope, json_output, lambda data: _show(data, error, show_all))


def _show(data: Any, error: ErrorBody | None, show_all: bool) -> None:
    _print_facts(data)
    if error:
        put()
        print_trouble(error, screen().out)
    if data["restart_needed"]:
        names = ", ".join(data["restart_needed"])
        put(f"\nSettings: {names} takes effect after `obsidian-rag serve --detach`.")
    if data["livesync"]:
        put()
        print_trouble(data["livesync"], screen().out)
    if data["watch_trouble"]:
        put(f"\nWatching: {data['watch_trouble']}")
    _print_notices(data["notices"], show_all)


def _print_facts(data: Any) -> None:
    health = data["plugin_health"]
    last = data["last_sync"]
    lines = [
        ("health", style(health, fg=_COLOURS.get(health, "red"), bold=True) + _left_out(data)),
        ("vault", plain(data["vault_path"])),
        ("notes", f"{data['total_docs']:,}"),
        ("chunks", f"{data['total_chunks']:,}"),
        ("related", _related(data["relations"])),
        ("last sync", f"{local_time(last)} ({_ago(last)})" if last else "never"),
        ("to index", _unindexed(data)),
        ("embedder", data["embedder"]),
        *([("", plain(data["embedder_notice"]))] if data["embedder_notice"] else []),
        *([("", plain(meaning_text(data["meaning"])))] if data["meaning"] else []),
        ("daemon", _daemon(data)),
    ]
    if data["ollama_status"] != "not_used":
        lines.append(("ollama", data["ollama_status"]))
    for name, value in lines:
        put(f"{style(f'{name:<10}', dim=True)} {value}")


def _left_out(data: Any) -> str:
    """The files that are left out, which "healthy" does not cover."""
    count = data["left_out_files"]
    if not count:
        return ""
    files = f"{counted(count, 'file')} left out"
    is_healthy = data["plugin_health"] == "healthy"
    return f": all that can be read; {files}" if is_healthy else f"; {files}"


def _unindexed(data: Any) -> str:
    known = data["unindexed_files"]
    if data["unindexed_checked"]:
        return f"{known:,}"
    return f"{f'at least {known:,}' if known else 'not checked'}; `sync` checks"


def _related(relations: Any) -> str:
    if relations is None or relations["updated_at"] is None:
        return "not indexed"
    return f"{counted(relations['notes'], 'note')}, updated {_ago(relations['updated_at'])}"


def _ago(moment: str) -> str:
    seconds = (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    for length, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            return f"{counted(int(seconds // length), unit)} ago"
    return "just now"


def _daemon(data: Any) -> str:
    if data["is_watching"] is None:
        return "not running"
    watching = "watching the vault" if data["is_watching"] else "not watching the vault"
    job = data["active_job"]
    if job is None:
        return f"running, {watching}"
    step = job["progress"]
    done = f" ({step['phase']} {step['current']:,} of {step['total']:,})" if step else ""
    return f"running {job['mode']}{done}, {watching}"


def _print_notices(notices: Any, show_all: bool) -> None:
    if not notices:
        return
    put("\nNot searchable, or only in part:")
    shown = notices if show_all else notices[:_SHOWN]
    for notice in shown:
        kind = style(f"{notice['status']:<8}", fg=_COLOURS.get(notice["status"], "yellow"))
        head, reason = f"  {kind} {plain(notice['file'])}: ", plain(notice["reason"])
        room = width() - len(f"  {'':<8} {plain(notice['file'])}: ")
        if cells(reason) <= room:
            put(f"{head}{reason}")
            continue
        put(head.rstrip())
        for line in wrap(reason, width() - len(_REASON), _REASON_LINES):
            put(f"{_REASON}{line}")
    if len(notices) > len(shown):
        more = len(notices) - len(shown)
        put(f"  … and {more:,} more; `obsidian-rag status --all` lists them")
