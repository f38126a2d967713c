"""300 damaged data folders: only codes of ours, no wrong answer unseen, and all of it healed.

Every file of a small data folder is damaged in turn, the same way in every run. Whatever comes of
it, no text of a note is in an error, the memory is bounded, and `reindex` brings everything back.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.crash.flipping import MARKER, Child, answers, copies, damage, place_of, write_vault

from obsidian_rag import config
from obsidian_rag.engine import Engine, examine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.tools import OWNER, call

CASES = 300
PER_TEST = 50
AT_ONCE = 2
# What a damaged index may answer; INDEX_NOT_FOUND is for an index whose files are gone, and
# INDEX_INCOMPLETE for a flipped fingerprint, which names another version: the next run builds anew.
DAMAGE = {"INDEX_CORRUPTED", "INDEX_NOT_FOUND", "EMBEDDING_MISMATCH", "INDEX_INCOMPLETE"}
MOST_MEGABYTES = 1000


@dataclass(frozen=True)
class Template:
    """A data folder, what it answers, and what one that was just rebuilt answers."""

    home: Path
    before: dict[str, Any]
    rebuilt: dict[str, Any]


def opened(home: Path) -> "contextlib.closing[Engine]":
    return contextlib.closing(Engine(config.load(environ={"OBSIDIAN_RAG_HOME": str(home)})))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    os.umask(0o077)
    root = tmp_path_factory.mktemp("flips")
    vault, home = root / "vault", root / "home"
    write_vault(vault)
    home.mkdir()
    settings = {"vault_path": str(vault), "embedding": {"provider": "hash"}}
    config.save(settings, home / "config.json")
    with opened(home) as engine:
        run_index(engine, Mode.FULL)
        place_of(vault, 5).write_text("# Note 5\n\nAnother quiet harbour.\n")
        run_index(engine, Mode.SYNC)
        rebuilt: dict[str, Any] = {}
        for _, copy in copies(home, root, [0]):
            with opened(copy) as other:
                run_index(other, Mode.REINDEX)
                rebuilt = answers(other)
        fact = {"key": "boat", "value": f"blue {MARKER}", "source": "note 8.md"}
        call(engine, "obsidian_rag_memory_store", fact, OWNER)
        assert [one for one in examine(engine, deep=True) if one.verdict != "ok"] == []
        before = answers(engine)
        assert all(isinstance(said, list) and said for said in before.values())
    return Template(home, before, rebuilt)


@pytest.fixture(scope="module")
def children(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Child]]:
    logs = tmp_path_factory.mktemp("children")
    made = [Child(logs / f"{number}.txt") for number in range(AT_ONCE)]
    yield made
    for one in made:
        one.close()


def complaints(template: Template, found: dict[str, Any]) -> Iterator[str]:
    """What is wrong with how a damaged folder was handled."""
    if found.keys() & {"died", "crashed"}:
        yield f"no code of ours: {found}"
        return
    if any(MARKER in text for text in found["texts"]):
        yield "an error quotes a note"
    if "config" in found:
        if found["config"] != "CONFIG_INVALID":
            yield f"settings: {found['config']}"
        return
    yield from complaints_about_answers(template, found)
    if found["sync"] != "ok" and found["sync"].split()[0] not in DAMAGE:
        yield f"sync: {found['sync']}"
    if found["reindex"] != "ok" or found["still"]:
        yield f"reindex: {found['reindex']}, still: {found['still']}"
    if found["healed"] != template.rebuilt:
        differing = [q for q, said in found["healed"].items() if said != template.rebuilt[q]]
        yield f"not healed: {differing}"
    if found["megabytes"] > MOST_MEGABYTES:
        yield f"{found['megabytes']} MB"


def complaints_about_answers(template: Template, found: dict[str, Any]) -> Iterator[str]:
    failures = [said for said in found["answers"].values() if isinstance(said, dict)]
    if odd := [said for said in failures if said["code"] not in DAMAGE]:
        yield f"not told as damage: {odd}"
    wrong = [
        question
        for question, said in found["answers"].items()
        if isinstance(said, list) and said != template.before[question]
    ]
    if wrong and not found["doctor"]:
        yield f"wrong and unseen: {wrong}"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(0, CASES, PER_TEST))
def test_damage_is_told_without_a_word_of_a_note_and_healed_by_a_reindex(
    template: Template, children: list[Child], tmp_path: Path, first: int
) -> None:
    failed: dict[str, list[str]] = {}

    def work(turn: int) -> None:
        numbers = range(first + turn, first + PER_TEST, AT_ONCE)
        for number, home in copies(template.home, tmp_path, numbers):
            what = damage(home, number)
            found = children[turn].look(home)
            if wrong := list(complaints(template, found)):
                failed[f"{number} {' '.join(what)}"] = wrong

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(work, range(AT_ONCE)))
    assert failed == {}, json.dumps(failed, indent=1)
