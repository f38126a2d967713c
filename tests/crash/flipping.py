"""Damage to the files of a data folder, and one child process that looks at what it does.

The child speaks JSON lines: a case's number in, what happened out. It is another process because a
damaged file may end it, and because its memory is measured.
"""

import contextlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from obsidian_rag.config import load
from obsidian_rag.engine import Engine, examine, run_index
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.index import Mode
from obsidian_rag.process import begin_process
from obsidian_rag.tools import OWNER, call

MARKER = "xyzzy"
KINDS = ("flip one", "flip many", "zeros", "cut off", "delete")
WORDS = ("harbour", "lantern", "copper", "quiet", "meadow", "signal", "orchard", "ledger", "winter")
NOTES = 24
QUESTIONS: tuple[dict[str, object], ...] = (
    {"query": "harbour lantern"},
    {"query": "note about copper", "max_results": 3},
    {"query": "tag:even copper"},
    {"query": "prop:rank>=5 lantern"},
    {"query": "after:2024-02-10 harbour"},
    {"query": '"quiet harbour"'},
    {"query": "copppr"},
)
RELATED = ("Folder/note 3.md", "note 8.md")


def write_vault(vault: Path) -> None:
    """A few notes with everything that an index knows, and a marker that no error may quote."""
    (vault / "Folder").mkdir(parents=True)
    for number in range(NOTES):
        chance = random.Random(number)
        first, second = (" ".join(chance.choices(WORDS, k=count)) for count in (40, 30))
        place_of(vault, number).write_text(
            f"---\ntags: [{'odd' if number % 2 else 'even'}]\nrank: {number % 9}\n"
            f"date: 2024-02-{number % 27 + 1:02d}\n---\n# Note {number}\n\nA quiet harbour {first}"
            f" {MARKER}{number}\n\n## Part\n\nabout copper {second} [[note {number * 7 % NOTES}]]"
            f" `code{number}`\n"
        )


def place_of(vault: Path, number: int) -> Path:
    """Where a note lies."""
    return vault / (f"note {number}.md" if number % 3 else f"Folder/note {number}.md")


def damage(home: Path, number: int) -> tuple[str, str]:
    """Damage one file, by chance that is the same every time; its path, and how."""
    chance = random.Random(number)
    files = sorted(path for path in home.rglob("*") if path.is_file() and path.stat().st_size)
    # As often by size, which is what a failing disk hits, as by name.
    sizes = [file.stat().st_size for file in files]
    file = chance.choice(files) if number % 2 else chance.choices(files, sizes)[0]
    kind = chance.choice(KINDS)
    data = bytearray(file.read_bytes())
    if kind == "delete":
        file.unlink()
        return file.relative_to(home).as_posix(), kind
    if kind == "cut off":
        del data[chance.randrange(len(data)) :]
    elif kind == "zeros":
        start = chance.randrange(len(data))
        length = min(512, len(data) - start)
        data[start : start + length] = bytes(length)
    else:
        for _ in range(1 if kind == "flip one" else 20):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)
    return file.relative_to(home).as_posix(), kind


def answers(engine: Engine) -> dict[str, Any]:
    """What every tool says that reads; what varies from run to run is left out."""
    said: dict[str, Any] = {}
    for arguments in QUESTIONS:
        envelope = call(engine, "obsidian_rag_search", arguments, OWNER)
        said[json.dumps(arguments)] = _plain(envelope)
    for note in RELATED:
        envelope = call(engine, "obsidian_rag_related", {"note": note}, OWNER)
        said[note] = _plain(envelope)
    return said


def _plain(envelope: Any) -> Any:
    if envelope["error"] is not None:
        return envelope["error"]
    hits = envelope["data"]["results"]
    return [[hit["source_file"], hit.get("chunk_text"), round(hit["score"], 4)] for hit in hits]


def look(home: Path) -> dict[str, Any]:
    """Ask everything of a damaged folder, then heal it, then ask again."""
    outcome: dict[str, Any] = {"texts": []}
    environ = {"OBSIDIAN_RAG_HOME": str(home)}
    try:
        config = load(environ=environ)
        assert config.vault_root
    except ObsidianRagError as error:
        return {"config": error.code, "texts": [error.message]}
    with contextlib.closing(Engine(config)) as engine:
        told = call(engine, "obsidian_rag_status", {}, OWNER)
        outcome["status"] = told["error"]["code"] if told["error"] else told["status"]
        outcome["answers"] = answers(engine)
        findings = list(examine(engine, deep=True))
        outcome["doctor"] = {one.check: one.verdict for one in findings if one.verdict != "ok"}
        outcome["sync"] = _run(engine, Mode.SYNC)
        outcome["texts"] += [f"{one.message} {one.suggestion}" for one in findings]
        failures = [said for said in outcome["answers"].values() if isinstance(said, dict)]
        outcome["texts"].append(json.dumps([told["error"], failures, outcome["sync"]]))
    with contextlib.closing(Engine(config)) as engine:
        outcome["reindex"] = _run(engine, Mode.REINDEX)
        outcome["healed"] = answers(engine)
        findings = list(examine(engine, deep=True))
        outcome["still"] = {one.check: one.message for one in findings if one.verdict != "ok"}
    outcome["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return outcome


def _run(engine: Engine, mode: Mode) -> str:
    try:
        run_index(engine, mode)
    except ObsidianRagError as error:
        return f"{error.code} {error.message}"
    return "ok"


class Child:
    """The other process; started again when a case ends it."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    def look(self, home: Path) -> dict[str, Any]:
        """What `look` says of a folder there; `died` with the code if it does not live to say."""
        process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{home}\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            self._process = None
            with process:
                return {"died": process.wait()}
        found: dict[str, Any] = json.loads(line)
        return found

    def _started(self) -> "subprocess.Popen[str]":
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.flipping"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=Path(__file__).parents[2],
                env={**os.environ, "OBSIDIAN_RAG_HOME": str(self._log.parent / "nowhere")},
            )
        return self._process

    def close(self) -> None:
        """Let it end."""
        if self._process is not None:
            with self._process:
                assert self._process.stdin is not None
                self._process.stdin.close()


def copies(template: Path, below: Path, numbers: Sequence[int]) -> Iterator[tuple[int, Path]]:
    """A fresh copy of a data folder for each case, gone afterwards."""
    for number in numbers:
        home = below / f"case {number}"
        # With times and places as a copy has them: nothing may depend on the old ones.
        shutil.copytree(template, home, copy_function=shutil.copyfile)
        yield number, home
        shutil.rmtree(home)


def _serve() -> None:
    begin_process()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            found = look(Path(line.rstrip("\n")))
        except BaseException as error:  # noqa: BLE001  (told to the test, which fails)
            found = {"crashed": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(found) + "\n")
        out.flush()


if __name__ == "__main__":
    _serve()
