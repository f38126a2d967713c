"""Ids of a whole vault: what a check sees, what it leaves out, and whom ids are written into."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fixture_types import MakeEngine, MakeVault

from obsidian_rag.config import Config, Settings
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.errors import IndexNotFound, InvalidArgument, NotFound, SecurityViolation
from obsidian_rag.index import Mode
from obsidian_rag.relations import (
    add_note_ids,
    check_note_ids,
    has_id,
    note_for_id,
    notes_without_id,
    related_notes,
)
from obsidian_rag.relations.ids import DanglingRelation
from obsidian_rag.relations.note_edit import AddOutcome

V4 = "550e8400-e29b-41d4-a716-44665544000"


def with_id(number: int, more: str = "") -> str:
    return f"---\nid: {V4}{number}\n{more}---\ntext\n"


def test_ids_are_read_from_the_files_before_anything_is_indexed(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": with_id(1), "b.md": "x", "c.markdown": "x", "d.txt": "x"}))
    heard: list[tuple[int, int]] = []
    found = check_note_ids(
        made.relations, made.vaults.primary, lambda done, total: heard.append((done, total))
    )
    assert (found.report.notes, found.report.missing) == (2, ("b.md",))
    assert heard == [(1, 2), (2, 2)]
    assert (found.cycles, found.is_clean) == (None, False)


def test_indexes_that_were_begun_and_not_made_are_no_failure(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": with_id(1)}))
    with pytest.raises((NotFound, IndexNotFound)):
        related_notes(made.relations, note="a.md")
    assert check_note_ids(made.relations, made.vaults.primary).cycles is None


def test_an_id_that_a_note_got_meanwhile_is_no_longer_dangling(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": with_id(1, f"related: [{V4}2]\n"), "b.md": with_id(3)}))
    run_index(made, Mode.FULL)
    assert check_note_ids(made.relations, made.vaults.primary).dangling == (
        DanglingRelation("a.md", f"{V4}2"),
    )
    make_vault({"b.md": with_id(2)})
    assert check_note_ids(made.relations, made.vaults.primary).is_clean
    make_vault({"a.md": with_id(1, f"related: [{V4}9]\n")})
    assert check_note_ids(made.relations, made.vaults.primary).dangling == (
        DanglingRelation("a.md", f"{V4}9"),
    )


def test_a_name_that_was_taken_out_meanwhile_is_no_longer_dangling(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": with_id(1, "related: ['[[Nowhere]]']\n")}))
    run_index(made, Mode.FULL)
    assert check_note_ids(made.relations, made.vaults.primary).dangling == (
        DanglingRelation("a.md", "Nowhere"),
    )
    make_vault({"a.md": with_id(1)})
    assert check_note_ids(made.relations, made.vaults.primary).is_clean


def test_an_id_with_a_flaw_is_told_once_and_its_relations_are_not_dangling(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    upper = f"{V4}a".upper()
    notes = {"a.md": f"---\nid: {upper}\n---\n", "b.md": with_id(1, f"related: ['{upper}']\n")}
    made = engine(make_vault(notes))
    found = check_note_ids(made.relations, made.vaults.primary)
    assert [one.path for one in found.report.not_lower_case] == ["a.md"]
    assert found.dangling == ()


def test_notes_that_are_not_related_need_no_id(engine: MakeEngine, make_vault: MakeVault) -> None:
    notes = {"a.md": "x", "no.md": "---\nrag: false\n---\n", "T/a.md": "x", "Tea.md": "x"}
    made = engine(make_vault(notes), {"relations.excluded_folders": ["T"]})
    assert notes_without_id(made.relations, made.vaults.primary) == ["Tea.md", "a.md"]


def test_bytes_that_are_no_text_are_told(engine: MakeEngine, make_vault: MakeVault) -> None:
    made = engine(make_vault({"a.md": b"\xff", "b.md": with_id(1)}))
    found = check_note_ids(made.relations, made.vaults.primary)
    assert [(one.rel_path, one.reason) for one in found.unread] == [("a.md", "not_utf8")]
    assert (found.report.notes, found.is_clean) == (1, False)


def test_a_note_is_found_by_path_or_by_a_unique_end_of_it(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    vault = make_vault({"A/Note.md": "x", "B/Note.md": "x", "B/Other.md": "x", ".h/x.md": "x"})
    made = engine(vault)
    for name in ("A/Note.md", "A/Note", "a/note", str(vault / "A" / "Note.md")):
        assert note_for_id(made.vaults.primary, name) == "A/Note.md"
    assert note_for_id(made.vaults.primary, "other") == "B/Other.md"
    with pytest.raises(InvalidArgument, match="'A/Note.md', 'B/Note.md'"):
        note_for_id(made.vaults.primary, "Note")
    for name in ("ther", "Nowhere", ".h/x.md"):
        with pytest.raises((NotFound, SecurityViolation)):
            note_for_id(made.vaults.primary, name)
    with pytest.raises(SecurityViolation):
        note_for_id(made.vaults.primary, "../vault/A/Note.md")


def test_whether_a_note_has_an_id_is_told_of_this_moment(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    vault = make_vault({"a.md": "x", "bad.md": "---\nid: 7\n---\n"})
    made = engine(vault)
    assert [has_id(made.vaults.primary, path) for path in ("a.md", "bad.md", "gone.md")] == [
        False,
        True,
        False,
    ]
    (one,) = add_note_ids(made.vaults.primary, ["a.md"])
    assert (one.outcome, has_id(made.vaults.primary, "a.md")) == (AddOutcome.ADDED, True)


def test_related_notes_know_a_new_id_after_the_next_sync(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    vault = make_vault({"a.md": "x", "b.md": "y"})
    made = engine(vault)
    run_index(made, Mode.FULL)
    ids = {one.path: one.id for one in add_note_ids(made.vaults.primary, ["a.md", "b.md"])}
    make_vault({"c.md": with_id(1, f"related: [{ids['a.md']}]\n")})
    run_index(made, Mode.SYNC)
    assert check_note_ids(made.relations, made.vaults.primary).is_clean


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=60).filter(lambda text: "\0" not in text), min_size=1, max_size=4))
def test_after_adding_ids_no_note_lacks_one_unless_it_failed(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "vault"
        vault.mkdir()
        for number, text in enumerate(texts):
            (vault / f"{number}.md").write_text(text, encoding="utf-8", newline="")
        config = Config(
            Path(folder) / "home", Path(folder) / "c.json", Settings(vault_path=str(vault))
        )
        made = Engine(config)
        done = list(
            add_note_ids(made.vaults.primary, notes_without_id(made.relations, made.vaults.primary))
        )
        failed = [one.path for one in done if one.outcome is AddOutcome.FAILED]
        assert notes_without_id(made.relations, made.vaults.primary) == sorted(failed)
        assert len({one.id for one in done if one.id}) == len(texts) - len(failed)
