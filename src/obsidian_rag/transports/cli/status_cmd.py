"""status: is everything searchable, and if not, what is not and why."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from obsidian_rag.transports.cli.output import JsonFlag, ask_tool, print_envelope

_SHOWN = 20


def status(
    json_output: JsonFlag = False,
    show_all: Annotated[bool, typer.Option("--all", help="List every file, not only 20")] = False,
) -> int:
    """Show the health of the index and every file that is not in it

    Example:  obsidian-rag status --json
    """
    envelope = ask_tool("obsidian_rag_status", {})
    if json_output:
        print_envelope(envelope)
        return 0
    data: Any = envelope["data"]
    _print(data)
    if error := envelope["error"]:
        print(f"\n{error['code']}: {error['message']}\n  {error['suggestion']}")
    if data["watch_trouble"]:
        print(f"\nWatching: {data['watch_trouble']}")
    _print_notices(data["notices"], show_all)
    return 0


def _print(data: Any) -> None:
    unindexed = f"{data['unindexed_files']}"
    if not data["unindexed_checked"]:
        unindexed += " known; the vault was not walked"
    for name, value in (
        ("health", data["plugin_health"]),
        ("vault", data["vault_path"]),
        ("notes", data["total_docs"]),
        ("chunks", data["total_chunks"]),
        ("related", _related(data["relations"])),
        ("last sync", data["last_sync"] or "never"),
        ("to index", unindexed),
        ("embedder", data["embedder"]),
        ("daemon", _daemon(data)),
    ):
        print(f"{name:<10} {value}")
    if data["ollama_status"] != "not_used":
        print(f"{'ollama':<10} {data['ollama_status']}")


def _related(relations: Any) -> str:
    if relations is None or relations["updated_at"] is None:
        return "not indexed"
    notes = relations["notes"]
    ago = _ago(relations["updated_at"])
    return f"{notes} note{'' if notes == 1 else 's'} | updated {ago}"


def _ago(moment: str) -> str:
    seconds = (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    for length, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"


def _daemon(data: Any) -> str:
    if data["is_watching"] is None:
        return "not running"
    watching = "watching the vault" if data["is_watching"] else "not watching the vault"
    job = data["active_job"]
    if job is None:
        return f"running, {watching}"
    step = job["progress"]
    done = f" ({step['phase']} {step['current']} of {step['total']})" if step else ""
    return f"running {job['mode']}{done}, {watching}"


def _print_notices(notices: Any, show_all: bool) -> None:
    if not notices:
        return
    print("\nNot searchable, or only in part:")
    shown = notices if show_all else notices[:_SHOWN]
    for notice in shown:
        print(f"  {notice['status']:<8} {notice['file']}: {notice['reason']}")
    if len(notices) > len(shown):
        print(f"  … and {len(notices) - len(shown)} more; `obsidian-rag status --all` lists them")
