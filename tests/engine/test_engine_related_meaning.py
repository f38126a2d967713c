"""Related notes by meaning vectors: from the pass that adds them to the answer and its status."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.engine.transformers import install, words

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import MeaningPass, Mode
from obsidian_rag.index.meaning import add_meaning
from obsidian_rag.relations import links_found, related_notes, relations_state
from obsidian_rag.relations.packed import VectorKind
from obsidian_rag.store import embedded_chunks

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
NOTES = {f"n{number:02}.md": f"# Note {number}\n\n{words(number)}\n" for number in range(20)}


@pytest.fixture
def made(engine: MakeEngine, make_vault: MakeVault, home: Path) -> Engine:
    install(home)
    made = engine(make_vault(NOTES))
    run_index(made, Mode.FULL)
    return made


def add_all(engine: Engine) -> None:
    add_meaning(engine.parts, lambda _: None, lambda: False)


def state(engine: Engine) -> tuple[object, object]:
    found = relations_state(engine.relations) or {}
    return found.get("vectors"), found.get("with_meaning")


def kinds(engine: Engine) -> tuple[VectorKind, VectorKind]:
    """By what a note and a text are compared."""
    note = related_notes(engine.relations, note="n00.md").kind
    return note, related_notes(engine.relations, text=words(1)).kind


def scores(engine: Engine) -> list[tuple[str, float]]:
    answer = related_notes(engine.relations, note="n00.md")
    return [(one.found.card.path, one.found.score) for one in answer.notes]


def test_the_pass_changes_related_notes_over_and_status_tells(made: Engine) -> None:
    assert state(made) == ("static", 0)
    assert kinds(made) == (VectorKind.STATIC, VectorKind.STATIC)
    looks = sum(1 for _ in embedded_chunks(made.chunks))
    stops = iter([False] * (looks + 8))
    MeaningPass(made.parts, lambda _: None).run(lambda: next(stops, True))
    vectors, with_meaning = state(made)
    assert vectors == "static"
    assert isinstance(with_meaning, int)
    assert 0 < with_meaning < 20
    assert related_notes(made.relations, note="n00.md").in_use.meant == with_meaning
    assert kinds(made) == (VectorKind.STATIC, VectorKind.STATIC)
    add_all(made)
    assert state(made) == ("meaning", 20)
    assert kinds(made) == (VectorKind.MEANING, VectorKind.MEANING)
    assert links_found(made.relations, 10, lambda *_: None).links == 0


def test_a_changed_and_a_new_note_follow_with_the_next_pass(made: Engine) -> None:
    add_all(made)
    (made.config.vault_root / "n00.md").write_text(f"# Note\n\n{words(77)}\n")
    (made.config.vault_root / "new.md").write_text(f"# New\n\n{words(78)}\n")
    run_index(made, Mode.SYNC)
    assert state(made) == ("meaning", 20)
    assert related_notes(made.relations, note="new.md").kind is VectorKind.STATIC
    add_all(made)
    assert state(made) == ("meaning", 21)
    assert related_notes(made.relations, note="new.md").kind is VectorKind.MEANING


def test_without_its_transformer_notes_are_compared_by_static_vectors(
    made: Engine, engine: MakeEngine
) -> None:
    add_all(made)
    off = engine(made.config.vault_root, {"meaning.enabled": False})
    assert kinds(off) == (VectorKind.STATIC, VectorKind.STATIC)
    assert state(off) == (None, None)


@pytest.mark.parametrize("is_damaged", [True, False])
@pytest.mark.parametrize("rebuilt_by", ["question", "sync"])
def test_indexes_that_are_made_again_have_their_meaning_vectors_at_once(
    made: Engine, home: Path, *, is_damaged: bool, rebuilt_by: str
) -> None:
    add_all(made)
    before = scores(made)
    made.relations.kept.close()
    for suffix in ("", "-wal", "-shm"):
        (home / f"relations.db{suffix}").unlink(missing_ok=True)
    if is_damaged:
        (home / "relations.db").write_bytes(b"no database at all" * 1000)
    if rebuilt_by == "sync":
        run_index(made, Mode.SYNC)
        assert state(made) == ("meaning", 20)
    assert scores(made) == before
    assert kinds(made) == (VectorKind.MEANING, VectorKind.MEANING)
    assert state(made) == ("meaning", 20)
