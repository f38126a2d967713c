"""A vault on a terminal: what it is, where it is, and how far it is searchable."""

import sys
from typing import Any

from obsidian_rag.transports.cli.meaning_text import about_duration
from obsidian_rag.transports.cli.output import counted, local_time
from obsidian_rag.transports.cli.related_text import plain
from obsidian_rag.transports.cli.streams import say, style

_INDENT = "  "
_PHASES = {
    "scan": "looking at its files",
    "hash": "comparing its files",
    "parse": "reading its notes",
    "embed": "adding its notes",
}


def print_link(link: Any) -> None:
    """A few lines about one vault."""
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


def print_link_and_queue(link: Any) -> None:
    """The same, with the files that wait or failed, and when the vault was last looked at."""
    print_link(link)
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
    """How far it is, in words."""
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
