"""Die at every point where something has just been written; the next run must end the same.

The points are reached by making one of our own methods raise, once: the only way to stop between
two particular writes. The exception is no Exception, so nothing of ours can catch and mend it.
"""

import json
import os
import shutil
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from obsidian_rag.config import load
from obsidian_rag.engine import Engine, ask, run_index
from obsidian_rag.index import Mode
from obsidian_rag.index.rebuild import Rebuild
from obsidian_rag.index.run import IndexRun
from obsidian_rag.index.target import LiveTarget, Target
from obsidian_rag.relations import RelationsWriter, find_rows, format_of
from obsidian_rag.search import Request, Signals
from obsidian_rag.store import ChunkStore, Queue, chunks
from obsidian_rag.store.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable


class Crash(BaseException):
    """The process dies here."""


Point = tuple[type | ModuleType, str, bool]
# Of the index, and of what is known of related notes.
Contents = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
POINTS: dict[str, Point] = {
    "before the changes are owed": (Queue, "add", False),
    "with the manifest written but the queue not": (Manifest, "forget", True),
    "before the attempt is counted": (LiveTarget, "begin", False),
    "before the table changes": (LiveTarget, "begin", True),
    "with old rows gone and new ones not there": (chunks, "_to_arrow", False),
    "after the table changed": (ChunkStore, "replace", True),
    "before the outcome is recorded": (LiveTarget, "commit", False),
    "inside the recording": (Queue, "finish", False),
    "after the first group": (LiveTarget, "commit", True),
    "before the related notes are written": (RelationsWriter, "write", False),
    "with the related notes written but owed": (RelationsWriter, "write", True),
    "before their lines are counted": (RelationsWriter, "update_templates", False),
    "before they have their vectors": (RelationsWriter, "finish", False),
    "before the index knows that they agree": (RelationsWriter, "finish", True),
}
SWEEP_POINTS: dict[str, Point] = {
    "before the sweep": (ChunkStore, "maintain", False),
    "after the sweep": (ChunkStore, "maintain", True),
}
CASES = [(point, is_first) for point in POINTS for is_first in (True, False)]
CASES += [(point, True) for point in SWEEP_POINTS]
REBUILD_POINTS: dict[str, Point] = {
    "with an empty successor": (ChunkStore, "create", True),
    "after rows of the successor": (ChunkStore, "replace", True),
    "after the first group": (Target, "commit", True),
    "before the switch": (Rebuild, "_adopt", False),
    "before the folders are swapped": (ChunkStore, "promote", False),
    "after the folders are swapped": (ChunkStore, "promote", True),
    "before the related notes are swapped": (RelationsWriter, "finish", False),
    "after the related notes are swapped": (RelationsWriter, "finish", True),
}


def engine(home: Path, vault: Path, dimensions: int = 32) -> Engine:
    home.mkdir(exist_ok=True)
    tree = {
        "vault_path": str(vault),
        "embedding": {"provider": "hash", "dimensions": dimensions},
    }
    (home / "config.json").write_text(json.dumps(tree))
    return Engine(load(environ={"OBSIDIAN_RAG_HOME": str(home)}))


def run(home: Path, vault: Path, mode: Mode = Mode.SYNC, dimensions: int = 32) -> None:
    opened = engine(home, vault, dimensions)
    try:
        run_index(opened, mode)
    finally:
        opened.close()


def contents(home: Path, vault: Path) -> Contents:
    """What is in the index, and what is known of related notes."""
    opened = engine(home, vault)
    rows = opened.chunks.table.to_arrow().to_pylist()
    chunks = sorted(
        (row["source_file"], row["chunk_index"], row["chunk_text"], row["title"], row["vector"])
        for row in rows
    )
    related = find_rows(home, format_of(opened.config.settings.relations), is_strict=True)
    assert related is not None
    notes = related.database.rows(
        "SELECT path, title, content_hash, words, vector, vector_hash FROM note"
        " WHERE is_gone = 0 ORDER BY path"
    )
    related.close()
    opened.close()
    return chunks, notes


def write(vault: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = vault / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, ns=(1_700_000_000_000_000_001, 1_700_000_000_000_000_001))


def edit(vault: Path) -> None:
    """Every kind of change at once."""
    write(vault, {"new/created.md": "# Created\n\nfresh", "n001.md": "# Changed\n\nother words"})
    (vault / "n002.md").unlink()
    (vault / "n003.md").rename(vault / "renamed.md")
    (vault / "folder").rename(vault / "moved")


def crash_once(monkeypatch: pytest.MonkeyPatch, point: Point) -> None:
    owner, name, is_after = point
    original: Callable[..., Any] = getattr(owner, name)

    def dying(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        if is_after:
            original(*args, **kwargs)
        raise Crash

    monkeypatch.setattr(owner, name, dying)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return new_vault(tmp_path / "vault")


def new_vault(root: Path) -> Path:
    notes = {f"n{number:03}.md": f"# Note {number}\n\nwords {number}" for number in range(30)}
    folder = {f"folder/{name}.md": f"text of {name}" for name in "abc"}
    write(root, notes | folder)
    return root


@pytest.fixture(scope="module")
def unedited(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """What one run that does not die makes of the vault; the same wherever the vault is."""
    root = tmp_path_factory.mktemp("unedited")
    run(root / "home", new_vault(root / "vault"))
    return contents(root / "home", root / "vault")


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """What it makes of the edited vault."""
    root = tmp_path_factory.mktemp("edited")
    edit(new_vault(root / "vault"))
    run(root / "home", root / "vault")
    return contents(root / "home", root / "vault")


@pytest.mark.parametrize(("point", "is_first"), CASES)
def test_an_index_run_that_dies_anywhere_is_finished_by_the_next(
    home: Path,
    vault: Path,
    edited: Contents,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    is_first: bool,
) -> None:
    if not is_first:
        run(home, vault)
        edit(vault)
    crash_once(monkeypatch, (POINTS | SWEEP_POINTS)[point])
    with pytest.raises(Crash):
        run(home, vault)
    if is_first:
        edit(vault)
    run(home, vault)
    assert contents(home, vault) == edited
    run(home, vault, Mode.FULL)
    assert contents(home, vault) == edited


def test_a_first_run_that_dies_before_its_word_index_is_made_gets_one(
    home: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_once(monkeypatch, (IndexRun, "_compact_if_due", False))
    with pytest.raises(Crash):
        run(home, vault)
    opened = engine(home, vault)
    assert ask(opened, Request("words 7")).answer.hits
    opened.close()
    run(home, vault)
    opened = engine(home, vault)
    assert ask(opened, Request("words 7", signals=Signals.WORDS)).answer.hits
    opened.close()


@pytest.mark.parametrize("point", POINTS)
def test_edits_taken_back_after_a_crash_are_seen_as_taken_back(
    home: Path,
    tmp_path: Path,
    vault: Path,
    unedited: Contents,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
) -> None:
    before = tmp_path / "before"
    shutil.copytree(vault, before)
    run(home, vault)
    edit(vault)
    crash_once(monkeypatch, POINTS[point])
    with pytest.raises(Crash):
        run(home, vault)
    shutil.rmtree(vault)
    shutil.copytree(before, vault)
    run(home, vault)
    assert contents(home, vault) == unedited


@pytest.mark.parametrize("next_mode", [Mode.SYNC, Mode.REINDEX])
@pytest.mark.parametrize("point", REBUILD_POINTS)
def test_a_rebuild_that_dies_anywhere_is_finished_by_the_next_run(
    home: Path,
    vault: Path,
    edited: Contents,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    next_mode: Mode,
) -> None:
    run(home, vault, dimensions=16)
    crash_once(monkeypatch, REBUILD_POINTS[point])
    with pytest.raises(Crash):
        run(home, vault, Mode.REINDEX)
    edit(vault)
    run(home, vault, next_mode)
    assert contents(home, vault) == edited
