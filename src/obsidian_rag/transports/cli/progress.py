"""A bar on stderr while something takes its time, if that is a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from obsidian_rag.transports.cli.streams import bar_console

if TYPE_CHECKING:
    from rich.progress import Progress


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Draw so many of so many; without a terminal, nothing is drawn."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    with new_bar(what) as bars:
        yield lambda done, total: bars.update(bars.task_ids[0], completed=done, total=total)


def new_bar(what: str) -> "Progress":
    """One bar, not drawn yet."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bars = Progress(*columns, console=bar_console(), transient=True)
    bars.add_task(what, total=None)
    return bars
