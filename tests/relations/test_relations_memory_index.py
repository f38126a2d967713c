"""Indexes in memory: a reader that follows another's writes knows what a fresh one would."""

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.relations.related_vault import DEFAULT, SEED, RelatedVault, indexed, link_of, load, slots

from obsidian_rag.config import RelationsSettings
from obsidian_rag.relations.explain import explain
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.relations.packed import VectorKind
from obsidian_rag.relations.rows import discard, format_of, open_rows
from obsidian_rag.relations.score import related, weights_of
from obsidian_rag.relations.signals import note_source

FEW = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
IDS = ("550e8400-e29b-41d4-a716-446655440000", "f47ac10b-58cc-4372-a567-0e02b2c3d479")
PATHS = ("Zuv.md", "Kof.md", "mip/Zuv.md", "mip/Kof Tiq.md", "2024-03-10.md", "tiq/Kof.md")
WORDS = ("zuv", "kof", "mip", "tiq", "kof tiq", "[[Zuv]]", "[[mip/Zuv|x]]", "[[Kof]]", "#t", "日本")


def everything(loaded: MemoryIndex, chosen: RelationsSettings) -> dict[str, Any]:
    """What is related to every note, with all reasons, under names that no slot is part of."""
    answers: dict[str, Any] = {}
    wide = chosen.model_copy(update={"min_score": 0.0, "hide_linked": False})
    for path, slot in sorted(slots(loaded).items()):
        source = note_source(loaded, slot)
        found = related(loaded, source, wide)
        answers[path] = [
            (
                one.card.path,
                pytest.approx(one.score),
                {signal: pytest.approx(value, abs=1e-9) for signal, value in one.parts.items()},
                one.card.uid,
                one.shared_tags,
                one.shared_terms,
                [card.path for card in one.path],
                (one.is_linked, one.source_line, one.line, one.reasons),
            )
            for one in explain(loaded, source, found, weights_of(wide))
        ]
    names = {slot: card.path for slot, card in enumerate(loaded.cards)}
    answers["dangling"] = [(names[slot], target) for slot, target in loaded.graph.dangling()]
    answers["cycles"] = [[names[slot] for slot in way] for way in loaded.graph.cycles()]
    answers["count"] = loaded.count
    return answers


@st.composite
def note_text(draw: st.DrawFn) -> str:
    uid = draw(st.sampled_from((None, *IDS)))
    target = draw(st.sampled_from((None, *IDS, "'[[Kof]]'")))
    fields = [
        f"id: {uid}" if uid else "",
        f"related: [{target}]" if target else "",
        draw(st.sampled_from(("", "tags: [x]", "tags: [x, y]"))),
        draw(st.sampled_from(("", "", "aliases: [kof tiq]", "rag: private", "rag: false"))),
    ]
    head = "".join(f"{field}\n" for field in fields if field)
    body = draw(st.lists(st.sampled_from(WORDS), max_size=8))
    return f"---\n{head}---\n" + "\n".join(body)


Edit = tuple[str, str, str]
edits = st.lists(
    st.tuples(st.just("write"), st.sampled_from(PATHS), note_text())
    | st.tuples(st.just("delete"), st.sampled_from(PATHS), st.just(""))
    | st.tuples(st.just("rename"), st.sampled_from(PATHS), st.sampled_from(PATHS)),
    max_size=3,
)


def apply(vault: RelatedVault, edits: list[Edit]) -> list[str]:
    touched = []
    for what, path, more in edits:
        file = vault.root / path
        if what == "write":
            vault.write({path: more})
        elif what == "delete":
            file.unlink(missing_ok=True)
        elif file.exists() and not (vault.root / more).exists():
            (vault.root / more).parent.mkdir(exist_ok=True)
            file.rename(vault.root / more)
            touched.append(more)
        touched.append(path)
    return touched


@FEW
@given(
    st.dictionaries(st.sampled_from(PATHS), note_text(), min_size=2),
    st.lists(st.tuples(edits, st.booleans(), st.booleans()), min_size=1, max_size=5),
    st.sampled_from([SEED, DEFAULT]),
)
def test_a_reader_that_follows_equals_one_that_loads_afresh(
    notes: dict[str, str],
    rounds: list[tuple[list[Edit], bool, bool]],
    chosen: RelationsSettings,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        vault = indexed(Path(folder), notes | {"Always.md": "zuv"}, chosen)
        with vault.rows() as reading:
            follower = load(reading, chosen)
            assert everything(follower, chosen)
            for number, (changes, is_whole, is_followed) in enumerate(rounds):
                touched = apply(vault, changes)
                vault.update(None if is_whole else touched)
                if is_followed or number == len(rounds) - 1:
                    follower.follow()
                    with vault.rows() as other:
                        fresh = everything(load(other, chosen), chosen)
                    assert everything(follower, chosen) == fresh


def test_a_reader_that_missed_a_deletion_hears_of_it_after_a_rename_took_the_path(
    tmp_path: Path,
) -> None:
    vault = indexed(tmp_path, {"a.md": "zuv", "b.md": "kof", "c.md": "zuv kof"})
    with vault.rows() as rows:
        follower = load(rows, DEFAULT)
        (vault.root / "b.md").unlink()
        vault.update()
        (vault.root / "a.md").rename(vault.root / "b.md")
        vault.update()
        follower.follow()
        assert sorted(card.path for card in cards(follower)) == ["b.md", "c.md"]
        assert follower.count == 2


def cards(loaded: MemoryIndex) -> list[Any]:
    return [loaded.cards[slot] for slot in loaded.slot_of.values()]


def test_a_note_keeps_its_slot_when_it_changes_and_when_it_comes_back(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"a.md": "zuv", "b.md": "kof"})
    with vault.rows() as rows:
        follower = load(rows, DEFAULT)
        slot = slots(follower)["a.md"]
        vault.write({"a.md": "zuv tiq", "c.md": "new"})
        vault.update()
        follower.follow()
        assert slots(follower)["a.md"] == slot
        (vault.root / "a.md").unlink()
        vault.update()
        follower.follow()
        assert (follower.count, follower.size) == (2, 3)
        assert not follower.is_alive[slot]
        vault.write({"a.md": "zuv"})
        vault.update()
        follower.follow()
        assert (slots(follower)["a.md"], follower.size) == (slot, 3)


def test_nothing_is_read_when_nothing_changed(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"a.md": "zuv"})
    with vault.rows() as rows:
        follower = load(rows, DEFAULT)
        cards, norms = follower.cards, follower.norms
        follower.follow()
        assert follower.cards is cards
        assert follower.norms is norms


def test_after_many_changes_everything_is_loaded_anew(tmp_path: Path) -> None:
    notes = {f"{number}.md": f"word{number}" for number in range(300)}
    vault = indexed(tmp_path, notes)
    with vault.rows() as rows:
        follower = load(rows, DEFAULT)
        vault.write({path: f"zuv {text}" for path, text in notes.items()})
        vault.update()
        before = follower.cards
        follower.follow()
        assert follower.cards is not before
        assert follower.count == 300
        assert len(everything(follower, DEFAULT)["1.md"]) == 20


def test_a_reader_sees_another_process_replace_the_file(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"a.md": "zuv"})
    with closing(open_rows(vault.home, format_of(DEFAULT))) as rows:
        follower = load(rows, DEFAULT)
        assert follower.is_current()
        discard(vault.home)
        assert not follower.is_current()
        vault.update()
        assert not follower.is_current()
        follower.follow()
        assert follower.count == 1


def vectors_of(loaded: MemoryIndex) -> dict[str, list[float] | None]:
    assert loaded.meanings is not None
    found = {path: loaded.meanings.of(slot) for path, slot in sorted(slots(loaded).items())}
    return {
        path: None if vector is None else vector.astype(float).round(2).tolist()
        for path, vector in found.items()
    }


def put(vault: RelatedVault, **vectors: list[float]) -> None:
    with vault.rows() as rows, rows.changing():
        rows.put_vectors(
            link_of(rows),
            [
                (f"{name}.md", "hash", np.array(vector, np.float16).tobytes())
                for name, vector in vectors.items()
            ],
        )


def test_vectors_are_followed_too(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"a.md": "zuv", "b.md": "kof", "c.md": "mip"})
    put(vault, a=[1, 0], b=[0, 1])
    with vault.rows() as rows:
        follower = load(rows, DEFAULT)
        assert vectors_of(follower) == {"a.md": [1, 0], "b.md": [0, 1], "c.md": None}
        put(vault, b=[0.6, 0.8])
        vault.write({"d.md": "tiq", "a.md": "bax"})
        vault.update()
        put(vault, d=[1, 0])
        (vault.root / "c.md").unlink()
        vault.update()
        follower.follow()
        # The vector of what a note said before is better than none.
        assert vectors_of(follower) == {"a.md": [1, 0], "b.md": [0.6, 0.8], "d.md": [1, 0]}
        with vault.loaded() as fresh:
            assert vectors_of(fresh) == vectors_of(follower)


def test_the_first_vectors_are_followed_and_none_are_not_looked_for_again(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"a.md": "zuv", "b.md": "kof"})
    with vault.rows() as rows:
        follower = load(rows, DEFAULT)
        assert follower.meanings is None
        vault.write({"a.md": "mip"})
        vault.update()
        follower.follow()
        assert vars(follower)["_vectors"] == {VectorKind.STATIC: None}
        put(vault, a=[1, 0])
        follower.follow()
        assert vectors_of(follower) == {"a.md": [1, 0], "b.md": None}


def test_a_new_model_brings_vectors_of_another_width(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"a.md": "zuv", "b.md": "kof"})
    put(vault, a=[1, 0], b=[0, 1])
    with vault.rows() as rows:
        follower = load(rows, DEFAULT)
        assert follower.meanings is not None
        put(vault, a=[1, 0, 0])
        follower.follow()
        assert vectors_of(follower) == {"a.md": [1, 0, 0], "b.md": None}


def test_an_empty_index_can_be_asked_and_followed(tmp_path: Path) -> None:
    vault = RelatedVault(tmp_path)
    vault.root.mkdir()
    with vault.rows() as rows:
        follower = load(rows, DEFAULT)
        assert (follower.count, follower.size, follower.average) == (0, 0, 1.0)
        assert follower.meanings is None
        vault.write({"a.md": "zuv", "b.md": "zuv"})
        vault.update()
        follower.follow()
        assert [one[0] for one in everything(follower, SEED)["a.md"]] == ["b.md"]
