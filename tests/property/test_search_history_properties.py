"""After any history of a vault, search answers as a new index does: the same hits and scores."""

import random
import shutil
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_related_properties import FEW, Lived
from tests.search.indexed import asked, indexed

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode, Progress

QUESTIONS = (
    "fox sedge",
    "when were the boilers repaired",
    "boiler repairs",
    "slept badly at noon",
    "weekly review of frogs and newts",
    "Kraniche Teich",
    "京都の旅行",
    "marsh maragold",
    "Pond 3",
    "open questions of the day",
    "log walking mood",
    "dragons and castles",
)


class KilledError(Exception):
    """The run ends here, with whatever is half done."""


def answers(engine: Engine) -> dict[str, object]:
    found: dict[str, object] = {}
    for question in QUESTIONS:
        answer = asked(engine, question, limit=30).answer
        found[question] = (
            [(hit.source_file, hit.start_line, round(hit.score, 9)) for hit in answer.hits],
            answer.is_weak,
            answer.corrected,
        )
    return found


def kill(engine: Engine, mode: Mode, after: int) -> None:
    """Run until so many steps were told of, and no further."""
    steps = iter(range(after))

    def listen(_: Progress) -> None:
        if next(steps, None) is None:
            raise KilledError

    with suppress(KilledError):
        run_index(engine, mode, listen)
    engine.close()


def take_up(engine: Engine, chance: random.Random, changed: list[str]) -> None:
    match chance.choice(("paths", "all", "full", "reindex", "killed", "killed reindex")):
        case "paths":
            run_index(engine, Mode.SYNC, paths=changed)
        case "killed":
            kill(engine, Mode.SYNC, chance.randrange(12))
        case "killed reindex":
            kill(engine, Mode.REINDEX, chance.randrange(16))
        case "all":
            run_index(engine, Mode.SYNC)
        case other:
            run_index(engine, Mode(other))


def live_and_compare(seed: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "vault"
        root.mkdir()
        lived = Lived(root, chance)
        with closing(indexed(Path(folder) / "home", root)) as engine:
            for _ in range(chance.randrange(2, 7)):
                changed: set[str] = set()
                for _ in range(chance.randrange(1, 4)):
                    changed |= chance.choice(lived.changes)()
                take_up(engine, chance, sorted(changed))
            run_index(engine, Mode.SYNC)
            with closing(indexed(Path(folder) / "clean", root)) as clean:
                assert answers(engine) == answers(clean)


@settings(FEW, max_examples=6)
@given(st.integers(0, 2**32))
def test_answers_do_not_depend_on_history(seed: int) -> None:
    live_and_compare(seed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(FEW, max_examples=40)
@given(st.integers(0, 2**32))
def test_answers_do_not_depend_on_long_histories(seed: int) -> None:
    live_and_compare(seed)


@pytest.mark.parametrize("steps", [1, 4, 8])
def test_a_reindex_that_was_killed_leaves_no_trace(tmp_path: Path, steps: int) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    lived = Lived(root, random.Random(steps))
    with closing(indexed(tmp_path / "home", root)) as engine:
        before = answers(engine)
        kill(engine, Mode.REINDEX, steps)
        assert answers(engine) == before
        lived.edit()
        lived.delete()
        run_index(engine, Mode.SYNC)
        with closing(indexed(tmp_path / "clean", root)) as clean:
            assert answers(engine) == answers(clean)
        shutil.rmtree(tmp_path / "clean")
        run_index(engine, Mode.REINDEX)
        with closing(indexed(tmp_path / "clean", root)) as clean:
            assert answers(engine) == answers(clean)
