"""A bar on stderr while something takes its time, if that is a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterator

from obsidian_rag.transports.cli.streams import bar_console


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Draw so many of so many; whoever calls need not know whether somebody looks."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=bar_console(), transient=True) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
