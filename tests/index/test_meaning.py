"""The background pass: what it adds, in which order, and what it does about every change."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from tests.engine.transformers import assert_complete, install, words

from obsidian_rag.engine import Engine, ask, examine, report_status, run_index
from obsidian_rag.engine.health import health_of
from obsidian_rag.engine.index_run import index_in_foreground
from obsidian_rag.index import MeaningPass, MeaningState, Mode, meaning_state
from obsidian_rag.index.meaning import add_meaning, reuse_meaning
from obsidian_rag.search import Request
from obsidian_rag.store import embedded_chunks, now

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
NOTES = {f"n{number:02}.md": f"# Note {number}\n\n{words(number)}\n" for number in range(30)}


def after(texts: int) -> Callable[[], bool]:
    """Stops when so many texts were embedded."""
    asked = iter(range(texts))
    return lambda: next(asked, None) is None


def paths_with_vectors(engine: Engine) -> set[str]:
    rows = engine.chunks.table.to_arrow().to_pylist()
    store = engine.meaning_store
    assert store is not None
    found = store.vectors([row["chunk_id"] for row in rows])
    return {row["source_file"] for row in rows if row["chunk_id"] in found}


def added(made: Engine, texts: int | None = None) -> list[MeaningState]:
    """Run a new pass, to its end or for so many texts; all it told."""
    told: list[MeaningState] = []
    made.chunks.close()
    # It may be stopped after each batch of its look at the table, too.
    looks = sum(1 for _ in embedded_chunks(made.chunks))
    stop = after(looks + texts) if texts is not None else lambda: False
    MeaningPass(made.parts, told.append).run(stop)
    return told


@pytest.fixture
def made(engine: MakeEngine, make_vault: MakeVault, home: Path) -> Engine:
    install(home)
    made = engine(make_vault(NOTES))
    for number, path in enumerate(NOTES):
        at = 1_700_000_000 + 60 * number
        os.utime(made.config.vault_root / path, (at, at))
    run_index(made, Mode.FULL)
    return made


def test_every_chunk_gets_the_vector_of_its_text(made: Engine) -> None:
    assert meaning_state(made.parts) == MeaningState("minilm", 0, 30)
    told = added(made)
    assert_complete(made)
    assert (told[0].done, told[0].is_over) == (0, False)
    assert told[-1] == MeaningState("minilm", 30, 30, is_over=True)
    assert meaning_state(made.parts) == MeaningState("minilm", 30, 30)
    assert report_status(made).meaning == {
        "model": "minilm",
        "done": 30,
        "total": 30,
        "is_paused": False,
        "per_second": None,
        "seconds_left": None,
        "trouble": None,
    }


def test_a_pass_that_was_stopped_goes_on_where_it_was(made: Engine) -> None:
    store = made.meaning_store
    assert store is not None
    told = added(made, 7)
    assert (told[-1].done, told[-1].is_over, store.count()) == (7, False, 7)
    before = store.file.read_bytes()
    added(made)
    assert store.file.read_bytes().startswith(before)
    assert_complete(made)


def test_the_newest_notes_come_first(made: Engine) -> None:
    added(made, 5)
    assert paths_with_vectors(made) == {f"n{number}.md" for number in range(25, 30)}


def test_a_changed_note_comes_before_all_others(made: Engine) -> None:
    added(made, 3)
    changed = made.config.vault_root / "n00.md"
    changed.write_text("# Note 0\n\nmoney money river\n")
    os.utime(changed, (1_600_000_000, 1_600_000_000))
    run_index(made, Mode.SYNC)
    added(made, 1)
    assert paths_with_vectors(made) == {"n27.md", "n28.md", "n29.md", "n00.md"}
    added(made)
    assert_complete(made)


def test_one_pass_follows_what_happens_between_its_runs(made: Engine) -> None:
    told: list[MeaningState] = []
    work = MeaningPass(made.parts, told.append)
    assert work.is_due()
    work.run(after(6))
    root = made.config.vault_root
    (root / "n02.md").write_text("# Note 2\n\npuppy puppy\n")
    (root / "n29.md").unlink()
    (root / "new.md").write_text("# New\n\nthe river\n")
    run_index(made, Mode.SYNC)
    work.run(after(4))
    assert {"n02.md", "new.md"} <= paths_with_vectors(made)
    assert told[-1].total == 30
    assert told[-1].done == len(paths_with_vectors(made))
    work.run(lambda: False)
    assert not work.is_due()
    assert_complete(made)
    # The same chunk under another title has another text.
    (root / "n05.md").write_text(NOTES["n05.md"].replace("# Note 5", "---\ntitle: River\n---\n# N"))
    run_index(made, Mode.SYNC)
    assert work.is_due()
    work.run(lambda: False)
    assert_complete(made)


def test_vectors_of_chunks_that_are_gone_are_forgotten(made: Engine) -> None:
    added(made)
    for number in range(10):
        (made.config.vault_root / f"n0{number}.md").unlink()
    started = now()
    run_index(made, Mode.SYNC, accepts_removals=True)
    reuse_meaning(made.parts, started)
    assert meaning_state(made.parts) == MeaningState("minilm", 20, 20)
    assert_complete(made)


def test_a_pause_adds_nothing_and_keeps_the_numbers_true(
    made: Engine, configure: Callable[[Path, Mapping[str, object]], None], engine: MakeEngine
) -> None:
    added(made, 4)
    paused = engine(made.config.vault_root, {"meaning.paused": True})
    (paused.config.vault_root / "n29.md").unlink()
    run_index(paused, Mode.SYNC)
    told = added(paused)
    assert told[-1] == MeaningState("minilm", 3, 29, is_paused=True, is_over=True)
    assert meaning_state(paused.parts) == MeaningState("minilm", 3, 29, is_paused=True)


def test_a_rebuild_and_a_rename_make_no_vector_again(made: Engine) -> None:
    added(made)
    root = made.config.vault_root
    (root / "n03.md").rename(root / "elsewhere.md")
    started = now()
    run_index(made, Mode.SYNC)
    reuse_meaning(made.parts, started)
    assert_complete(made)
    run_index(made, Mode.REINDEX)
    assert paths_with_vectors(made) == set()  # all chunks have other ids
    reuse_meaning(made.parts, started)
    assert_complete(made)


def test_another_model_replaces_the_vectors_when_its_own_are_complete(
    made: Engine, home: Path
) -> None:
    added(made)
    before = made.meaning_store
    assert before is not None
    install(home, seed=1)
    after_it = made.meaning_store
    assert after_it is not None
    assert after_it.file != before.file
    assert meaning_state(made.parts) == MeaningState("minilm", 0, 30)
    added(made, 10)
    assert before.file.exists()
    assert ask(made, Request("money river", limit=3)).answer.hits
    added(made)
    assert [file.name for file in (home / "meaning").glob("*.vectors")] == [after_it.file.name]
    assert_complete(made)


def test_the_question_is_embedded_by_the_same_transformer(made: Engine) -> None:
    added(made)
    vector = made.parts.transformer.query_vector("money river")
    store = made.meaning_store
    assert vector is not None
    assert store is not None
    assert vector is made.parts.transformer.query_vector("money river")
    assert all(np.isfinite(list(store.nearest(vector, 30).values())))
    assert len(store.nearest(vector, 30)) == 30


def test_without_a_transformer_there_is_nothing_to_tell(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    made = engine(make_vault({"a.md": "# A\n\ntext"}))
    run_index(made, Mode.FULL)
    assert meaning_state(made.parts) is None
    nothing = (
        made.parts.transformer.embedder,
        made.meaning_store,
        made.parts.transformer.query_vector("x"),
    )
    assert nothing == (None, None, None)
    assert add_meaning(made.parts, lambda _: None, lambda: False) is None
    assert report_status(made).meaning is None
    assert not (home / "meaning").exists()
    install(home)
    assert meaning_state(made.parts) == MeaningState("minilm", 0, 1)


@pytest.mark.parametrize("kind", ["garbage", "gone", "all gone", "no such width"])
def test_a_broken_transformer_is_told_and_search_goes_on(
    made: Engine, home: Path, kind: str
) -> None:
    added(made, 12)
    folder = home / "models" / "minilm"
    match kind:
        case "garbage":
            (folder / "model.onnx").write_bytes(b"no model")
        case "gone":
            (folder / "model.onnx").unlink()
        case "all gone":
            shutil.rmtree(folder)
        case _:
            (folder / "embedding.json").write_text('{"name": "minilm", "dimensions": 77}')
    state = add_meaning(made.parts, lambda _: None, lambda: False)
    assert made.parts.transformer.query_vector("money") is None
    assert ask(made, Request("money river", limit=3)).answer.hits
    finding = next(found for found in examine(made) if found.check == "meaning")
    assert finding.verdict == "warning"
    report = report_status(made)
    assert report.plugin_health == "healthy"
    if kind == "all gone":
        assert (state, report.meaning) == (None, None)
        assert "12 meaning vectors are not used" in finding.message
    else:
        assert state is not None
        assert state.trouble
        assert report.meaning is not None
        assert report.meaning["trouble"]
        assert "meaning vectors stop at" in finding.message
    install(home)
    added(made)
    assert_complete(made)
    assert meaning_state(made.parts) == MeaningState("minilm", 30, 30)


def test_damaged_vectors_are_made_again(made: Engine, home: Path) -> None:
    added(made)
    store = made.meaning_store
    assert store is not None
    content = bytearray(store.file.read_bytes())
    content[64 + 5 * (32 + 16) + 40] ^= 0x10
    store.file.write_bytes(content[:-7])
    deep = next(found for found in examine(made, deep=True) if found.check == "meaning")
    assert (deep.verdict, deep.message) == ("warning", "1 meaning vectors are damaged")
    added(made)
    assert_complete(made)


def damage_half(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def damage_head(file: Path) -> None:
    file.write_bytes(b"nothing that we wrote" + file.read_bytes()[21:])


@pytest.mark.parametrize("damage", [damage_half, damage_head, Path.unlink])
def test_lost_vectors_are_told_and_the_next_run_adds_them_without_a_daemon(
    made: Engine, damage: Callable[[Path], object]
) -> None:
    added(made)
    assert health_of(made).state == "healthy"
    store = made.meaning_store
    assert store is not None
    damage(store.file)
    made.parts.transformer.close()  # as a new process
    store = made.meaning_store
    assert store is not None
    left = store.count()
    trouble = health_of(made).error
    assert trouble is not None
    assert (left < 30, trouble.code) == (True, "INDEX_INCOMPLETE")
    assert f"{left} of 30 passages" in trouble.message
    index_in_foreground(made, Mode.SYNC, lambda *_: None, lambda: False)
    assert health_of(made).state == "healthy"
    assert_complete(made)


def test_what_was_lost_stays_known_while_it_is_not_added(made: Engine) -> None:
    added(made)
    store = made.meaning_store
    assert store is not None
    damage_half(store.file)
    added(made, 3)
    assert health_of(made).state == "degraded"
    (made.config.vault_root / "n07.md").unlink()
    index_in_foreground(made, Mode.SYNC, lambda *_: None, lambda: True)
    reuse_meaning(made.parts, now())
    assert health_of(made).state == "degraded"
    added(made)
    assert health_of(made).state == "healthy"


def test_vectors_that_were_never_added_are_counted_and_no_trouble(made: Engine) -> None:
    added(made, 10)
    assert health_of(made).state == "healthy"
    added(made)
    (made.config.vault_root / "n07.md").write_text(f"# Another\n\n{words(77)}\n")
    index_in_foreground(made, Mode.SYNC, lambda *_: None, lambda: False)
    assert health_of(made).state == "healthy"
    assert meaning_state(made.parts) == MeaningState("minilm", 29, 30)


def test_a_living_pass_notices_that_vectors_are_lost(made: Engine) -> None:
    living = MeaningPass(made.parts, lambda _: None)
    living.run(lambda: False)
    assert not living.is_due()
    store = made.meaning_store
    assert store is not None
    damage_half(store.file)
    assert living.is_due()
    living.run(lambda: False)
    assert not living.is_due()
    assert_complete(made)


def test_a_damaged_model_is_told_by_health(made: Engine, home: Path) -> None:
    added(made)
    model = home / "models/minilm/model.onnx"
    whole = model.read_bytes()
    for content in (whole[: len(whole) // 2], whole.replace(whole[-64:], bytes(64))):
        model.write_bytes(content)
        trouble = health_of(made).error
        assert trouble is not None
        assert trouble.message.startswith("0 of 30 passages can be found by meaning")
    model.write_bytes(whole)
    assert health_of(made).state == "healthy"
    assert_complete(made)


def test_who_comes_second_is_told_and_harms_nothing(made: Engine) -> None:
    store = made.meaning_store
    assert store is not None
    store.file.parent.mkdir()
    with FileLock(store.file.parent / "writer.lock"):
        told = added(made)
        assert told[-1].is_over
        assert told[-1].trouble == "Another obsidian-rag process is adding meaning vectors."
    added(made)
    assert_complete(made)
