"""service install, uninstall and status: the daemon at login."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from obsidian_rag.config import data_home
from obsidian_rag.errors import InvalidArgument
from obsidian_rag.transports.cli.output import JsonFlag, command_group, print_data
from obsidian_rag.transports.cli.streams import say
from obsidian_rag.transports.daemon_client import find_daemon
from obsidian_rag.transports.lazy import autostart, tools

if TYPE_CHECKING:
    from obsidian_rag.autostart import Entry

app = command_group("Start the daemon when you log in")
_STATE_NAMES = {
    "is_installed": "installed",
    "is_current": "current",
    "is_enabled": "enabled",
    "is_running": "running",
}
PrintFlag = Annotated[
    bool, typer.Option("--print", help="Print what would be written and run; change nothing")
]
PlatformOption = Annotated[
    str | None, typer.Option("--platform", hidden=True, help="linux, macos or windows")
]


@app.command("install")
def install(
    only_print: PrintFlag = False, json_output: JsonFlag = False, platform: PlatformOption = None
) -> int:
    """Start the daemon now and whenever you log in

    Run it again after an upgrade or a move.

    Example:  obsidian-rag service install --print
    """
    config = autostart.daemon_config(os.environ)
    roots = config.vault_roots
    entry = _entry(platform, only_print)
    notes = _notes(entry)
    if only_print:
        return _plan_install(entry, notes, json_output)
    notes += _daemon_of_another(entry)
    autostart.install_entry(entry)
    if json_output:
        print_data(
            {**_fields(entry), "installed": True, "vault_path": str(roots[0]), "notes": notes}
        )
    else:
        print(f"entry   {entry.file}\nstarts  {_line(entry, entry.command)}")
    for note in notes:
        say(note)
    return 0


@app.command("uninstall")
def uninstall(
    only_print: PrintFlag = False, json_output: JsonFlag = False, platform: PlatformOption = None
) -> int:
    """Stop the daemon, and do not start it at login any more

    Your notes, index and settings stay.

    Example:  obsidian-rag service uninstall
    """
    entry = _entry(platform, only_print)
    if only_print:
        return _plan_removal(entry, json_output)
    complaints = autostart.remove_entry(entry)
    if json_output:
        was_there = complaints is not None
        print_data({**_fields(entry), "removed": was_there, "notes": complaints or []})
    elif complaints is None:
        print("Nothing is installed")
    else:
        print(f"removed  {entry.file}")
    if complaints:
        for complaint in complaints:
            say(complaint)
        say("If the daemon still runs, `obsidian-rag serve --stop` ends it.")
    return 0


@app.command("status")
def status(json_output: JsonFlag = False) -> int:
    """Show whether the daemon starts at login and whether it runs

    Example:  obsidian-rag service status
    """
    entry = _entry(None, False)
    state = autostart.observe_entry(entry)
    daemon = find_daemon(data_home())
    if json_output:
        found = {"url": daemon.url, "pid": daemon.pid} if daemon else None
        print_data({**_fields(entry), **tools.to_json(state, _STATE_NAMES), "daemon": found})
        return 0
    print(f"entry    {entry.file if state.is_installed else 'not installed'}")
    print(f"enabled  {_word(state.is_enabled)}")
    print(f"running  {_word(state.is_running)}")
    print(f"daemon   {f'{daemon.url} (process {daemon.pid})' if daemon else 'none'}")
    if state.is_installed and not state.is_current:
        say("The entry is from another version; `obsidian-rag service install` updates it.")
    return 0


def _entry(platform: str | None, only_print: bool) -> "Entry":
    if platform is not None and not only_print:
        raise InvalidArgument("--platform only goes with --print.", "Add --print.")
    here = autostart.platform_of(platform or sys.platform)
    user_id = os.getuid() if sys.platform != "win32" else 0
    return autostart.entry_for(autostart.Machine(here, Path(sys.executable), user_id, os.environ))


def _notes(entry: "Entry") -> list[str]:
    """What the user should know."""
    notes = [
        f"{name} is set here only; the daemon reads the config file (`obsidian-rag config set`)."
        for name in autostart.unseen_settings(os.environ)
    ]
    if sys.platform != "win32" and os.geteuid() == 0:
        notes.append("You are root: the daemon starts when root logs in, and reads what root can.")
    if entry.platform is autostart.Platform.LINUX:
        notes.append(
            "It runs while you are logged in; `loginctl enable-linger` keeps it running after."
        )
    return notes


def _daemon_of_another(entry: "Entry") -> list[str]:
    daemon = find_daemon(data_home())
    # A daemon started for an agent is replaced.
    if daemon is None or daemon.while_used or autostart.observe_entry(entry).is_running:
        return []
    return [
        f"A daemon is already running (process {daemon.pid}), and a second one cannot start:"
        " run `obsidian-rag serve --stop`, then `obsidian-rag service install`."
    ]


def _plan_install(entry: "Entry", notes: list[str], json_output: bool) -> int:
    commands = entry.install_commands
    if json_output:
        print_data({**_fields(entry), "text": entry.text, "commands": commands, "notes": notes})
        return 0
    print(f"# write {entry.file}\n{entry.text}\n# run")
    for command in commands:
        print(_line(entry, command))
    for note in notes:
        say(note)
    return 0


def _plan_removal(entry: "Entry", json_output: bool) -> int:
    if json_output:
        print_data({**_fields(entry), "commands": entry.remove_commands})
        return 0
    print("# run")
    for command in entry.remove_commands:
        print(_line(entry, command))
    print("# remove")
    for file in (entry.file, *entry.leftovers):
        print(file)
    return 0


def _line(entry: "Entry", command: tuple[str, ...]) -> str:
    is_windows = entry.platform is autostart.Platform.WINDOWS
    return subprocess.list2cmdline(command) if is_windows else shlex.join(command)


def _fields(entry: "Entry") -> dict[str, object]:
    return {"platform": entry.platform, "file": str(entry.file)}


def _word(fact: bool | None) -> str:
    return "unknown" if fact is None else "yes" if fact else "no"
