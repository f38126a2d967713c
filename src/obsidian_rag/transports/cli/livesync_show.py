"""How a sync is shown: log lines and progress on stderr, and what came of it on stdout."""

import contextlib
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from obsidian_rag.transports.cli.progress import new_bar
from obsidian_rag.transports.cli.related_text import plain
from obsidian_rag.transports.cli.streams import say
from obsidian_rag.transports.lazy import livesync

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
    """Print what the node says to stderr for a while."""
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
    """Whatever stderr is by then: while a bar is drawn, it is one that prints above the bar."""

    def emit(self, record: logging.LogRecord) -> None:
        # A path may hold what moves a terminal's cursor.
        say(plain(self.format(record)))


@contextlib.contextmanager
def first_sync() -> Iterator[OnStep]:
    """Show the progress of a sync: a bar on a terminal, a line now and then otherwise."""
    if not sys.stderr.isatty():
        yield _as_lines()
        return
    bar = _Bar()
    try:
        yield bar.draw
    finally:
        bar.remove()


class _Bar:
    """A bar while there is much to do, and none afterwards."""

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
    told = 0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal told
        # A tenth at a time, and nothing about a few files.
        if what == "files" and total > _SHOWN and (done - told) * 10 >= total:
            told = done
            say(f"[livesync] {done} of {total} {what}")

    return tell


def print_result(result: "livesync.SyncResult") -> None:
    """What one sync did."""
    counts: dict[str, Any] = result.stats.fields()
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


def print_plan(result: "livesync.SyncResult") -> None:
    """What a sync would do."""
    for line in result.planned:
        action, _, path = line.partition(" ")
        print(f"would {_PLANNED.get(action, action)}: {plain(path)}")
    if not result.planned:
        print(_nothing(result))
    for line in not_synced_lines([one.fields() for one in result.not_synced]):
        print(line)


def not_synced_lines(groups: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is not synced, a line for each reason with the first few names."""
    lines = []
    for group in groups:
        paths, count = group["paths"], group["count"]
        more = f" and {count - len(paths)} more" if count > len(paths) else ""
        names = f"{', '.join(map(plain, paths))}{more}"
        title = "synced, but" if group["kind"] == "elsewhere" else "not synced"
        lines.append(f"{title:<11} {count}: {plain(group['reason'])}: {names}")
    return lines


def _nothing(result: "livesync.SyncResult") -> str:
    """Both sides are the same only if nothing was left out."""
    missing = sum(one.count for one in result.not_synced if one.kind != "elsewhere")
    if not missing:
        return "Nothing to do: both sides are the same"
    return f"Nothing to do, but {missing} {'file is' if missing == 1 else 'files are'} not synced"


def with_link(
    config: "Config", options: "livesync.Options", fields: Mapping[str, object]
) -> dict[str, object]:
    """An answer about the synced folder, with the link id of the vault that it is, if any."""
    return {"link_id": livesync.synced_link(config, options), **fields}


def result_fields(result: "livesync.SyncResult") -> dict[str, object]:
    """One sync for programs."""
    return {
        **result.stats.fields(),
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
