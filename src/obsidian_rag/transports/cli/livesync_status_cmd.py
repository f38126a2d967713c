"""livesync status and check: how the sync is doing, and what is not synced."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from obsidian_rag.config import load
from obsidian_rag.transports.cli.livesync_flags import takes_database
from obsidian_rag.transports.cli.livesync_show import not_synced_lines, with_link
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    ask_tool,
    counted,
    print_envelope,
    print_failure,
    print_sections,
)
from obsidian_rag.transports.lazy import livesync, tools

_SHOWN = 20


def add_to(app: typer.Typer) -> None:
    """Offer the commands."""
    app.command("status")(status)
    app.command("check")(takes_database(check))


def status(json_output: JsonFlag = False) -> int:
    """Show whether the vault is in sync and what waits

    Example:  obsidian-rag livesync status
    """
    envelope = ask_tool("obsidian_sync_status", {})
    if json_output:
        print_envelope(envelope)
        return 0
    data: Any = envelope["data"]
    if not data["configured"]:
        print(data["message"])
        return 0
    for name, value in _lines(data):
        print(f"{name:<10} {value}")
    for line in not_synced_lines(one for one in data["not_synced"] if "paths" in one):
        print(line)
    if error := envelope["error"]:
        print(f"\n{error['code']}: {error['message']}\n  {error['suggestion']}")
    return 0


def check(
    show_all: Annotated[
        bool, typer.Option("--all", help="List everything, not only 20 each")
    ] = False,
    json_output: JsonFlag = False,
    *,
    options: "livesync.Options",
) -> int:
    """List what is not synced, and why

    Documents, files, conflicts, and names that other systems cannot write.
    Asks the database, changes nothing. Ends with 1 if something is to be looked at.

    Example:  obsidian-rag livesync check
    """
    config = load()
    found = livesync.check_livesync(config, options)
    if json_output:
        fields = with_link(config, options, _check_fields(found))
        print_envelope(tools.success(fields, trouble=found.trouble))
    else:
        _print_check(found, None if show_all else _SHOWN)
    return 0 if found.is_clean else 1


def _lines(data: Any) -> Iterable[tuple[str, object]]:
    stats = data["stats"]
    yield "sync", _state(data)
    yield "server", data["server"]
    yield "database", data["database"]
    yield "vault", data["vault"]
    yield "files", data["files"]
    yield "taken", f"{stats['pulled']}, deleted here {stats['deleted_here']}"
    yield "sent", f"{stats['pushed']}, deleted there {stats['deleted_there']}"
    yield "merged", stats["merged"]
    yield "conflicts", _waiting(stats["conflicts"], "resolve")
    yield "unread", _waiting(stats["quarantined"], "check")
    yield "trash", _waiting(stats["trash"], "restore")
    if stats["lag"]:
        yield "behind", counted(stats["lag"], "change")


def _state(data: Any) -> str:
    if not data["running"]:
        return "not running"
    progress = data["progress"]
    if progress is not None and progress["total"]:
        return f"catching up ({progress['current']} of {progress['total']})"
    connected = "connected" if data["connected"] else "not connected"
    return f"running, {connected}{', watching the vault' if data['watching'] else ''}"


def _waiting(number: int, command: str) -> str:
    return f"{number} (`obsidian-rag livesync {command}`)" if number else "0"


def _check_fields(found: "livesync.LivesyncCheck") -> dict[str, object]:
    return {
        "is_clean": found.is_clean,
        "files": found.files,
        "quarantined": [
            {
                "path": one.path,
                "id": one.doc_id,
                "code": one.code,
                "message": one.message,
                "since": one.since,
            }
            for one in found.quarantined
        ],
        "conflicts": [{"path": one.path, "kept_as": one.kept_as} for one in found.conflicts],
        "left_out": [{"path": path, "reason": why} for path, why in found.left_out],
        "warnings": [{"path": path, "reason": why} for path, why in found.warnings],
        "filtered": [{"path": path, "reason": why} for path, why in found.filtered],
    }


def _print_check(found: "livesync.LivesyncCheck", most: int | None) -> None:
    sections: tuple[tuple[str, list[str]], ...] = (
        (
            "Set aside",
            [f"{one.path or one.doc_id}: {one.message}" for one in found.quarantined],
        ),
        ("Changed in two places", [one.path for one in found.conflicts]),
        ("Not synced", [f"{path or 'the vault'}: {why}" for path, why in found.left_out]),
        ("Kept back by your filters", [f"{path}: {why}" for path, why in found.filtered]),
        (
            "Synced, but not written by every system",
            [f"{path}: {why}" for path, why in found.warnings],
        ),
    )
    print_sections(sections, most, "--all")
    if found.trouble is not None:
        print_failure(found.trouble)
    if found.is_clean:
        kept_back = "nothing else" if found.filtered else "nothing"
        print(f"{counted(found.files, 'file')} in sync, {kept_back} left out")
