"""Output of a sync: log lines and progress on stderr, the result on stdout."""

import contextlib
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from obsidian_rag.config import load
from obsidian_rag.transports.cli.livesync_setup_cmd import takes_database
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    ask_tool,
    counted,
    new_bar,
    print_envelope,
    print_failure,
    print_sections,
)
from obsidian_rag.transports.cli.related_text import plain
from obsidian_rag.transports.cli.streams import say
from obsidian_rag.transports.lazy import livesync, tools

if TYPE_CHECKING:
    from rich.progress import Progress

    from obsidian_rag.config import Config


OnStep = Callable[[str, int, int], None]

_SHOWN = 20
_LINE = "[livesync] [%(levelname)s] %(message)s"
_PLANNED = {
    "push": "send",
    "push_revived": "send again",
    "write": "take",
    "soft_delete": "delete there",
    "trash": "delete here",
    "rename_local": "rename here",
    "merge_or_conflict": "merge, or keep both",
    "report_conflict": "leave: changed in two places",
    "fetch": "compare",
}
_COUNTED = (
    ("pulled", "taken"),
    ("pushed", "sent"),
    ("deleted_here", "deleted here"),
    ("deleted_there", "deleted there"),
    ("renamed", "renamed"),
    ("merged", "merged"),
)


@contextlib.contextmanager
def said(level: str) -> Iterator[None]:
    """Context manager that prints the node's log to stderr."""
    logger = logging.getLogger("obsidian_rag.livesync")
    target = _OnStderr()
    target.setFormatter(logging.Formatter(_LINE))
    before = logger.level
    logger.addHandler(target)
    logger.setLevel(level.upper())
    try:
        yield
    finally:
        logger.removeHandler(target)
        logger.setLevel(before)


class _OnStderr(logging.Handler):
    """Writes to the current stderr, which prints above the bar while one is drawn."""

    def emit(self, record: logging.LogRecord) -> None:
        # A path may contain control characters.
        say(plain(self.format(record)))


@contextlib.contextmanager
def first_sync() -> Iterator[OnStep]:
    """Show the progress of a sync: a bar on a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _as_lines()
        return
    bar = _Bar()
    try:
        yield bar.draw
    finally:
        bar.remove()


class _Bar:
    """A bar that is shown while there is much to do."""

    def __init__(self) -> None:
        self._bars: Progress | None = None

    def draw(self, what: str, done: int, total: int) -> None:
        if what != "files" or (self._bars is None and total <= _SHOWN):
            return
        if self._bars is None:
            self._bars = new_bar(what)
            self._bars.start()
        self._bars.update(self._bars.task_ids[0], completed=done, total=total)
        if done >= total:
            self.remove()

    def remove(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


def _as_lines() -> OnStep:
    reported = 0

    def report(what: str, done: int, total: int) -> None:
        nonlocal reported
        # A line for each tenth, and none for a few files.
        if what == "files" and total > _SHOWN and (done - reported) * 10 >= total:
            reported = done
            say(f"[livesync] {done} of {total} {what}")

    return report


def print_result(result: "livesync.SyncReport") -> None:
    """Print what a sync did."""
    counts = result.state.counts()
    done = [f"{counts[name]} {word}" for name, word in _COUNTED if counts[name]]
    print(", ".join(done) or _nothing(result))
    for line in not_synced_lines([one.fields() for one in result.not_synced]):
        print(line)
    if result.conflicts:
        say(
            f"{len(result.conflicts)} changed in two places;"
            " `obsidian-rag livesync resolve` lists them."
        )
    if not result.is_complete:
        say(
            f"{max(result.owed, len(result.quarantined))} not synced;"
            " `obsidian-rag livesync check` says why."
        )
    if result.is_stopped:
        say("Stopped early; run it again to go on.")


def print_plan(result: "livesync.SyncReport") -> None:
    """Print what a sync would do."""
    for line in result.planned:
        action, _, path = line.partition(" ")
        print(f"would {_PLANNED.get(action, action)}: {plain(path)}")
    if not result.planned:
        print(_nothing(result))
    for line in not_synced_lines([one.fields() for one in result.not_synced]):
        print(line)


def not_synced_lines(groups: Iterable[Mapping[str, Any]]) -> list[str]:
    """Print what is not synced, a line for each reason with the first few names."""
    lines = []
    for group in groups:
        paths, count = group["paths"], group["count"]
        more = f" and {count - len(paths)} more" if count > len(paths) else ""
        names = f"{', '.join(map(plain, paths))}{more}"
        title = "synced, but" if group["kind"] == "elsewhere" else "not synced"
        lines.append(f"{title:<11} {count}: {plain(group['reason'])}: {names}")
    return lines


def _nothing(result: "livesync.SyncReport") -> str:
    """The message for an empty sync: both sides are equal only if nothing was left out."""
    if failed := len(result.quarantined):
        return f"Nothing was synced: {failed} {'file' if failed == 1 else 'files'} could not be"
    missing = sum(one.count for one in result.not_synced if one.kind != "elsewhere")
    if not missing:
        return "Nothing to do: both sides are the same"
    return f"Nothing to do, but {missing} {'file is' if missing == 1 else 'files are'} not synced"


def with_link(
    config: "Config", options: "livesync.Options", fields: Mapping[str, object]
) -> dict[str, object]:
    """Add the link id of the vault that is synced, if it is one."""
    return {"link_id": livesync.synced_link(config, options), **fields}


def result_fields(result: "livesync.SyncReport") -> dict[str, object]:
    """The result of a sync as JSON."""
    return {
        **result.state.counts(),
        "not_synced": [one.fields() for one in result.not_synced],
        "planned": [
            {"action": action, "path": path}
            for action, _, path in (line.partition(" ") for line in result.planned)
        ],
        "quarantined": [one.path or one.doc_id for one in result.quarantined],
        "conflicts": [one.path for one in result.conflicts],
        "left_out": dict(result.left_out),
        "owed": result.owed,
        "interrupted": result.is_stopped,
    }


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
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


def _check_fields(found: "livesync.SyncReport") -> dict[str, object]:
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
        "left_out": [{"path": path, "reason": why} for path, why in sorted(found.left_out.items())],
        "warnings": [{"path": path, "reason": why} for path, why in sorted(found.warnings.items())],
        "filtered": [{"path": path, "reason": why} for path, why in sorted(found.filtered.items())],
    }


def _print_check(found: "livesync.SyncReport", most: int | None) -> None:
    sections: tuple[tuple[str, list[str]], ...] = (
        (
            "Set aside",
            [f"{one.path or one.doc_id}: {one.message}" for one in found.quarantined],
        ),
        ("Changed in two places", [one.path for one in found.conflicts]),
        (
            "Not synced",
            [f"{path or 'the vault'}: {why}" for path, why in sorted(found.left_out.items())],
        ),
        (
            "Kept back by your filters",
            [f"{path}: {why}" for path, why in sorted(found.filtered.items())],
        ),
        (
            "Synced, but not written by every system",
            [f"{path}: {why}" for path, why in sorted(found.warnings.items())],
        ),
    )
    print_sections(sections, most, "--all")
    if found.trouble is not None:
        print_failure(found.trouble)
    if found.is_clean:
        kept_back = "nothing else" if found.filtered else "nothing"
        print(f"{counted(found.files, 'file')} in sync, {kept_back} left out")
