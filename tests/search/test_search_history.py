"""Answers depend on the notes as they are, not on how they became so."""

import random
from pathlib import Path

import pytest
from tests.search.indexed import hits, indexed, write_notes

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode

SUBJECTS = ("boiler", "garden", "invoice", "passport", "bicycle", "kettle", "contract", "piano")
VERBS = ("repaired", "ordered", "returned", "painted", "cancelled", "cleaned")
QUESTIONS = (
    "who repaired the boiler",
    "invoice for the piano",
    "cancelled contract",
    "cleaned kettle in the garden",
    "bicycle",
    "when was the passport returned",
)


def _note(chance: random.Random) -> str:
    lines = []
    for _ in range(chance.randint(1, 6)):
        things = " ".join(chance.choices(SUBJECTS, k=chance.randint(1, 9)))
        lines.append(f"We {chance.choice(VERBS)} the {things}.")
    return f"# {chance.choice(SUBJECTS).title()}\n\n" + "\n\n".join(lines) + "\n"


def _answers(engine: Engine) -> list[list[tuple[str, float]]]:
    found = (hits(engine, question, limit=20) for question in QUESTIONS)
    return [[(hit.source_file, round(hit.score, 9)) for hit in one] for one in found]


@pytest.mark.parametrize("seed", range(3))
def test_edits_and_deletions_leave_no_trace_in_the_answers(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    names = [f"Note {number}.md" for number in range(40)]
    vault = write_notes(tmp_path / "vault", {name: _note(chance) for name in names})
    engine = indexed(tmp_path / "edited", vault)
    for _ in range(4):
        for name in chance.sample(names, 12):
            if chance.random() < 0.3:
                (vault / name).unlink(missing_ok=True)
            else:
                write_notes(vault, {name: _note(chance)})
        run_index(engine, Mode.SYNC)
    clean = indexed(tmp_path / "clean", vault)
    assert _answers(engine) == _answers(clean)
