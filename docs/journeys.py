"""Trace what an edit and a question call, and draw it in docs/architecture.md.

Each journey is traced in this process, on a copy of the sample vault. `tests/test_journeys.py`
limits its length and checks its picture.
"""

import contextlib
import dataclasses
import functools
import itertools
import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from obsidian_rag import config, tools
from obsidian_rag.engine import Daemon, Engine, run_index
from obsidian_rag.index import Mode

ROOT = Path(__file__).parent.parent
ARCHITECTURE = ROOT / "docs" / "architecture.md"
_PACKAGE = f"{ROOT / 'src' / 'obsidian_rag'}{os.sep}"
# A file of fewer functions is left out of the picture, and its callees are drawn at its caller.
_LEAST_FUNCTIONS = 6
_BEGIN = "<!-- {}, made by docs/journeys.py -->\n"
_END = "<!-- end of {} -->\n"
_MAX_SETTLING_S = 20.0
_FILE_CALLS = {"open", "open_code", "stat", "lstat", "access", "readlink", "scandir", "listdir"}


@dataclasses.dataclass(slots=True)
class Journey:
    """What one call did: the functions of ours by file, SQL statements, file accesses."""

    functions: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    # Which file called each file first, in the thread that was traced and in those it started.
    callers: dict[str, str] = dataclasses.field(default_factory=dict)
    thread_callers: dict[str, str] = dataclasses.field(default_factory=dict)
    statements: list[str] = dataclasses.field(default_factory=list)
    file_calls: list[str] = dataclasses.field(default_factory=list)

    @property
    def function_count(self) -> int:
        """How many different functions were called, lambdas and comprehensions not counted."""
        return sum(len(names) for names in self.functions.values())

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        """A profile function for `sys.setprofile`."""
        if event == "call":
            self._note_call(frame)
        elif event == "c_call" and _is_file_call(argument):
            self.file_calls.append(f"{argument.__name__} in {_nearest_of_ours(frame)}")  # type: ignore[attr-defined]

    def _note_call(self, frame: FrameType) -> None:
        if (file := _file_of(frame)) is None:
            return
        is_main = threading.current_thread() is threading.main_thread()
        callers = self.callers if is_main else self.thread_callers
        if file not in callers:
            callers[file] = _nearest_of_ours(frame.f_back, besides=file) or ""
        if not frame.f_code.co_name.startswith("<"):
            self.functions.setdefault(file, set()).add(frame.f_code.co_qualname)


def _file_of(frame: FrameType) -> str | None:
    name = frame.f_code.co_filename
    if not name.startswith(_PACKAGE):
        return None
    return name.removeprefix(_PACKAGE).replace(os.sep, "/")


def _nearest_of_ours(frame: FrameType | None, besides: str = "") -> str | None:
    while frame is not None and _file_of(frame) in (None, besides):
        frame = frame.f_back
    return None if frame is None else _file_of(frame)


def _is_file_call(function: object) -> bool:
    name, module = getattr(function, "__name__", ""), getattr(function, "__module__", "")
    return name in _FILE_CALLS and module in ("posix", "nt", "io", "_io")


@contextlib.contextmanager
def tracing() -> Iterator[Callable[[Callable[[], object]], Journey]]:
    """Give a function that traces what it calls, in this thread, with all its SQL."""
    connect, here = sqlite3.connect, threading.get_ident()
    statements: list[str] = []

    def note(statement: str) -> None:
        # Setting up a connection is no part of a journey.
        if threading.get_ident() == here and not statement.startswith("PRAGMA"):
            statements.append(statement)

    def connect_and_note(*given: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **named)
        connection.set_trace_callback(note)
        return connection

    def trace(go: Callable[[], object]) -> Journey:
        journey = Journey()
        statements.clear()
        threading.setprofile(journey.note)
        sys.setprofile(journey.note)
        try:
            go()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        journey.statements = list(statements)
        return journey

    sqlite3.connect = connect_and_note  # type: ignore[assignment]
    try:
        yield trace
    finally:
        sqlite3.connect = connect


def _make_settings(folder: Path) -> config.Config:
    """Settings for a copy of the sample vault."""
    vault, home = folder / "vault", folder / "home"
    shutil.copytree(ROOT / "samples" / "vault", vault)
    home.mkdir()
    (home / "config.json").write_text(json.dumps({"vault_path": str(vault)}), "utf-8")
    return config.load(environ={"OBSIDIAN_RAG_HOME": str(home)})


def trace_edit(folder: Path) -> Journey:
    """A saved edit: the worker's run over one path, in a process that has run before."""
    settings = _make_settings(folder)
    note = next((folder / "vault").rglob("*.md"))
    path = note.relative_to(folder / "vault").as_posix()
    with tracing() as trace, contextlib.closing(Engine(settings)) as engine:
        run_index(engine, Mode.FULL)
        for text in ("A line about sedges.\n", "A line about herons.\n"):
            note.write_text(note.read_text("utf-8") + f"\n{text}", "utf-8")
            journey = trace(lambda: run_index(engine, Mode.SYNC, paths=[path]))
    return journey


def _ask(engine: Engine, question: str) -> None:
    tools.call(engine, "obsidian_rag_search", {"query": question}, tools.OWNER)


def trace_question(folder: Path) -> Journey:
    """A question to a daemon that has answered before, while nothing changes."""
    settings = _make_settings(folder)
    with tracing() as trace:
        with contextlib.closing(Engine(settings)) as engine:
            run_index(engine, Mode.FULL)
        daemon = Daemon(settings)
        daemon.start()
        try:
            # The daemon has yet to probe its health, and settings that were just written are read
            # again before each answer, for seconds.
            end = time.monotonic() + _MAX_SETTLING_S
            for number in itertools.count(1):  # vectors of questions are kept
                question = f"who brought projector {number} to the meeting"
                journey = trace(functools.partial(_ask, daemon.engine, question))
                is_read = any(one.startswith("open") for one in journey.file_calls)
                is_settled = not is_read and "engine/health.py" in journey.functions
                is_settled &= "health/assess.py" not in journey.functions
                if is_settled or time.monotonic() > end:
                    break
        finally:
            daemon.stop()
    return journey


JOURNEYS = {"edit": trace_edit, "question": trace_question}


def draw(journey: Journey) -> str:
    """As Mermaid: files with several functions, each below the file that called it first."""
    shown = {f for f, names in journey.functions.items() if len(names) >= _LEAST_FUNCTIONS}
    rooms: dict[str, list[str]] = {}
    callees: dict[str, list[str]] = {}
    for file in sorted(shown):
        rooms.setdefault(file.partition("/")[0], []).append(f"{node_of(file)}[{Path(file).stem}]")
        if (caller := _shown_caller(journey, file, shown)) is not None:
            callees.setdefault(node_of(caller), []).append(node_of(file))
    lines = ["flowchart LR"]
    lines += [f"  subgraph {room}; {'; '.join(nodes)}; end" for room, nodes in rooms.items()]
    lines += [f"  {caller} --> {' & '.join(called)}" for caller, called in callees.items()]
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def _shown_caller(journey: Journey, file: str, shown: set[str]) -> str | None:
    callers = {**journey.thread_callers, **journey.callers}
    while (file := callers.get(file, "")) and file not in shown:
        pass
    return file or None


def node_of(file: str) -> str:
    return file.removesuffix(".py").replace("/", "_").replace("__init__", "init")


def drawn_nodes(name: str) -> set[str]:
    """The nodes of a journey's picture on the page."""
    page = ARCHITECTURE.read_text("utf-8")
    picture = page.partition(_BEGIN.format(name))[2].partition(_END.format(name))[0]
    return set(re.findall(r"(\w+)\[", picture))


def with_pictures(page: str) -> str:
    """The page with each journey drawn between its two comments."""
    for name, trace in JOURNEYS.items():
        begin, end = _BEGIN.format(name), _END.format(name)
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        with tempfile.TemporaryDirectory() as folder:
            page = before + begin + draw(trace(Path(folder))) + end + after
    return page


if __name__ == "__main__":
    ARCHITECTURE.write_text(with_pictures(ARCHITECTURE.read_text("utf-8")), "utf-8")
