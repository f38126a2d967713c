"""link add, list, remove, mode, sync, status, pause and resume: vaults beside the primary one."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from obsidian_rag.config import load
from obsidian_rag.transports.cli.backend import ask_tool, the_daemon
from obsidian_rag.transports.cli.index_cmd import NdjsonFlag, run_command
from obsidian_rag.transports.cli.index_run import RunRequest
from obsidian_rag.transports.cli.note_names import complete_vault
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    about_duration,
    command_group,
    counted,
    local_time,
    plain,
    print_answer,
    print_envelope,
)
from obsidian_rag.transports.cli.streams import paint, say, style

_INDENT = "  "
_PHASES = {
    "scan": "looking at its files",
    "hash": "comparing its files",
    "parse": "reading its notes",
    "embed": "adding its notes",
}
_FLAGS = {
    "link_id": "the vault",
    "root_path": "the path",
    "mode": "the mode",
    "include": "--include",
    "exclude": "--exclude",
    "name": "--name",
    "limit": "--limit",
}
app = command_group("Search other vaults as well, without copying them")
VaultArgument = Annotated[
    str,
    typer.Argument(
        metavar="VAULT",
        help="Its name or link id",
        autocompletion=complete_vault,
        show_default=False,
    ),
]


@app.command("add")
def add(
    path: Annotated[str, typer.Argument(help="The vault's folder", show_default=False)],
    include: Annotated[
        list[str] | None, typer.Option(help="Only this folder; may be repeated")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Skip this folder; may be repeated")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the vault; by default that of its folder")
    ] = None,
    wait: Annotated[
        bool,
        typer.Option("--wait/--background", help="Wait until it is imported, or return at once"),
    ] = True,
    json_output: JsonFlag = False,
    ndjson: NdjsonFlag = False,
) -> int:
    """Make another vault searchable, without copying or changing it

    Its newest notes come first. Ctrl-C stops the import safely; `link sync` continues it.

    Example:  obsidian-rag link add ~/Work/Wiki --exclude Archive
    """
    # An empty path, as from an unset variable, must not mean the current folder.
    root = str(Path(path).expanduser().absolute()) if path else ""
    arguments: dict[str, object] = {"root_path": root}
    for key, value in (("include", include), ("exclude", exclude), ("name", name)):
        if value:
            arguments[key] = value
    envelope = ask_tool("obsidian_link_add", arguments, _FLAGS)
    link: Any = envelope["data"]
    if not json_output and not ndjson:
        _print_added(link)
    if wait:
        wanted = RunRequest("sync", link_id=link["link_id"], is_new=True)
        return run_command(wanted, json_output, ndjson)
    if json_output:
        print_envelope(envelope)
    elif the_daemon(load()) is not None:
        say(f"The daemon imports it; `obsidian-rag link status {link['name']}` shows how far.")
    else:
        say(f"No daemon is running; `obsidian-rag link sync {link['name']}` imports it.")
    return 0


@app.command("list")
def list_(json_output: JsonFlag = False) -> int:
    """List every vault that is searched, the primary one first

    Example:  obsidian-rag link list
    """
    return print_answer(ask_tool("obsidian_link_list", {}), json_output, _print_links)


@app.command("remove")
def remove(
    vault: VaultArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask")] = False,
    json_output: JsonFlag = False,
) -> int:
    """Stop searching a linked vault; its files stay as they are

    Example:  obsidian-rag link remove wiki
    """
    found: Any = ask_tool("obsidian_link_sync_status", {"link_id": vault, "limit": 0}, _FLAGS)
    link = found["data"]
    if not yes and sys.stdin.isatty() and not link["is_primary"]:
        say(f"The index of its {counted(link['totals']['indexed'], 'note')} is deleted.")
        say(f"The files in {plain(link['root_path'])} are not touched.")
        typer.confirm(f"Stop searching '{link['name']}'?", abort=True, err=True)
    envelope = ask_tool("obsidian_link_remove", {"link_id": link["link_id"]}, _FLAGS)
    return print_answer(envelope, json_output, _print_removed)


@app.command("mode")
def mode(
    vault: VaultArgument,
    mode: Annotated[str, typer.Argument(help="read_only; read_write is refused for now")],
    json_output: JsonFlag = False,
) -> int:
    """Set whether a linked vault may be written to

    Example:  obsidian-rag link mode wiki read_only
    """
    return _change_link(vault, {"mode": mode}, json_output, "is {mode}")


@app.command("sync")
def sync(vault: VaultArgument, json_output: JsonFlag = False, ndjson: NdjsonFlag = False) -> int:
    """Update the index of one vault

    Example:  obsidian-rag link sync wiki
    """
    return run_command(RunRequest("sync", link_id=vault), json_output, ndjson)


@app.command("status")
def status(
    vault: Annotated[
        str | None,
        typer.Argument(
            metavar="VAULT",
            help="Its name or link id; all vaults if left out",
            autocompletion=complete_vault,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, max=500, help="List at most this many files")] = 20,
    json_output: JsonFlag = False,
) -> int:
    """Show how far a vault is indexed, and which files wait or failed

    Example:  obsidian-rag link status wiki
    """
    if vault is None:
        return list_(json_output)
    arguments = {"link_id": vault, "limit": limit}
    envelope = ask_tool("obsidian_link_sync_status", arguments, _FLAGS)
    return print_answer(envelope, json_output, _print_link_and_queue)


@app.command("pause")
def pause(vault: VaultArgument, json_output: JsonFlag = False) -> int:
    """Leave a linked vault alone until `link resume`

    Example:  obsidian-rag link pause wiki
    """
    return _change_link(vault, {"paused": True}, json_output, "is paused")


@app.command("resume")
def resume(vault: VaultArgument, json_output: JsonFlag = False) -> int:
    """Continue with a paused vault

    Example:  obsidian-rag link resume wiki
    """
    return _change_link(vault, {"paused": False}, json_output, "is no longer paused")


def _change_link(vault: str, change: dict[str, object], json_output: bool, what: str) -> int:
    return print_answer(
        ask_tool("obsidian_link_set_mode", {"link_id": vault, **change}, _FLAGS),
        json_output,
        lambda link: print(f"{plain(link['name'])} {what.format(**link)}"),
    )


def _print_links(data: Any) -> None:
    for link in data["links"]:
        _print_link(link)
    if not data["links"]:
        say("No vault is indexed yet; run `obsidian-rag index`.")


def _print_added(link: Any) -> None:
    print(f"Linked {plain(link['root_path'])} as '{plain(link['name'])}' (read-only)")
    for warning in link["warnings"]:
        say(f"{paint('note', 'yellow')}  {plain(warning)}")


def _print_removed(removed: Any) -> None:
    counts = removed["removed"]
    print(
        f"Removed '{removed['name']}' from the index:"
        f" {counted(counts['files'], 'note')}, {counted(counts['chunks'], 'chunk')}"
    )
    say(f"Its files in {plain(removed['root_path'])} are untouched.")


def _print_link(link: Any) -> None:
    print(f"{style(plain(link['name']), bold=True)}  {link['label']}")
    print(f"{_INDENT}{style(plain(link['root_path']), fg='cyan')}")
    print(f"{_INDENT}{_size(link['totals'])}; {_state(link)}")
    if link["include"]:
        print(f"{_INDENT}only {plain(', '.join(link['include']))}")
    if link["exclude"]:
        print(f"{_INDENT}without {plain(', '.join(link['exclude']))}")
    if trouble := link["trouble"]:
        code = style(trouble["code"], stream=sys.stderr, fg="yellow")
        say(f"{_INDENT}{code}: {plain(trouble['message'])}")


def _print_link_and_queue(link: Any) -> None:
    """Print a vault with the files that wait or failed, and the time of the last check."""
    _print_link(link)
    totals = link["totals"]
    if link["last_scan_at"]:
        print(f"{_INDENT}last checked {local_time(link['last_scan_at'])}")
    if link["last_error"]:
        say(f"{_INDENT}{plain(link['last_error'])}")
    for row in link["queue"]:
        why = f": {plain(row['reason'])}" if row["reason"] else ""
        tries = f", tried {row['attempts']} times" if row["attempts"] > 1 else ""
        print(f"{_INDENT}{row['status']}  {plain(row['rel_path'])}{tries}{why}")
    rest = totals["pending"] - len(link["queue"])
    if link["queue"] and rest > 0:
        print(f"{_INDENT}… and {rest:,} more")


def _size(totals: Any) -> str:
    parts = [counted(totals["indexed"], "note"), counted(totals["chunks"], "chunk")]
    parts += [f"{totals[kind]:,} {kind}" for kind in ("failed", "skipped") if totals[kind]]
    return ", ".join(parts)


def _state(link: Any) -> str:
    """The progress in words."""
    if link["paused"]:
        return f"paused; `obsidian-rag link resume {plain(link['name'])}` continues"
    progress = link["progress"]
    if progress["phase"] == "done":
        return "up to date" if link["last_scan_at"] else "not imported yet"
    if not progress["is_running"]:
        return f"{counted(link['totals']['pending'], 'file')} to do"
    return f"{_PHASES[progress['phase']]}, {_share(progress)}"


def _share(progress: Any) -> str:
    share = f"{progress['current']:,}"
    if progress["total"]:
        share += f" of {progress['total']:,}"
    if progress["files_per_s"]:
        share += f", {progress['files_per_s']:,.0f} a second"
    if progress["seconds_left"]:
        share += f", {about_duration(progress['seconds_left'])} left"
    return share
