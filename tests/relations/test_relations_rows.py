"""The indexes on disk: written note by note, followed by number, thrown away when damaged."""

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.relations.related_vault import RelatedVault, indexed, link_of

from obsidian_rag.errors import IndexCorrupted
from obsidian_rag.relations.rows import FILE, Rows, discard, find_rows, format_of, open_rows
from obsidian_rag.relations.words import Vocabulary

NOTES = {
    "Pond.md": "---\ntags: [water, garden]\nsummary: Still water\n---\n# Pond\nsedge sedge frog\n",
    "Bog.md": "---\ntags: [water]\n---\n# Bog\n\nsedge and moss\n",
    "Bread.md": "# Bread\nrye, salt\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> RelatedVault:
    return indexed(tmp_path, NOTES)


def number(rows: Rows, path: str) -> int:
    row = rows.database.row("SELECT number FROM note WHERE path = ?", (path,))
    assert row is not None
    return int(str(row[0]))


def terms_of(rows: Rows, text: str) -> list[int]:
    vocabulary = Vocabulary()
    found: list[int] = rows.numbers_of(vocabulary, vocabulary.name(text)).tolist()
    return found


def named_like(rows: Rows, text: str) -> dict[str, float]:
    """The notes whose title or summary is written like a text, with their likeness."""
    paths = {number(rows, path): path for path in NOTES}
    return {paths[one]: share for one, share in rows.alike(link_of(rows), text, 3, 10)}


def test_every_note_is_counted_and_dated(vault: RelatedVault) -> None:
    with vault.rows() as rows:
        assert rows.count == 3
        assert rows.updated_at is not None
        assert set(rows.contents(link_of(rows))) == set(NOTES)


def test_a_change_has_one_number_for_all_that_it_writes(vault: RelatedVault) -> None:
    with vault.rows() as rows:
        before = rows.change
        vault.write({"Pond.md": "# Pond\nheron\n", "Bog.md": "# Bog\nheron\n"})
    vault.update()
    with vault.rows() as rows:
        changed = rows.database.rows("SELECT path FROM note WHERE change = ?", (rows.change,))
        assert {path for (path,) in changed} == {"Pond.md", "Bog.md"}
        assert rows.change > before


def test_what_is_known_of_files_and_of_those_below_a_folder(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"a/b.md": "x", "a/c/d.md": "x", "a-b.md": "x", "a0.md": "x"})
    with vault.rows() as rows:
        assert set(rows.contents_below(link_of(rows), ["a"])) == {"a/b.md", "a/c/d.md"}
        assert set(rows.contents_below(link_of(rows), ["a-b.md", "a/c", "gone.md"])) == {
            "a-b.md",
            "a/c/d.md",
        }
        assert rows.contents_below(link_of(rows), []) == {}


def test_places_tell_the_terms_in_their_order_and_their_lines(vault: RelatedVault) -> None:
    with vault.rows() as rows:
        places = rows.places([number(rows, "Pond.md")])[number(rows, "Pond.md")]
        pond, sedge, frog = terms_of(rows, "pond sedge frog")
        assert places.terms.tolist() == [pond, sedge, sedge, frog]
        assert places.lines.tolist() == [5, 6, 6, 6]
        assert rows.places([]) == {}


def test_a_term_keeps_its_number_and_unknown_ones_have_none(vault: RelatedVault) -> None:
    with vault.rows() as rows:
        before = terms_of(rows, "sedge moss zebra")
        assert len(before) == 2
    vault.write({"Zoo.md": "a zebra on the moss"})
    vault.update()
    with vault.rows() as rows:
        after = terms_of(rows, "sedge moss zebra")
        assert (after[:2], len(after)) == (before, 3)
        known = rows.terms_of(after)
        assert [known[one][1] for one in after] == ["sedge", "moss", "zebra"]


def test_a_rewritten_note_leaves_nothing_of_what_it_was(tmp_path: Path) -> None:
    other = "---\ntags: [garden, stone]\nsummary: Other\n---\n# Cairn\nstones\n"
    vault = indexed(tmp_path / "edited", NOTES)
    vault.write({"Pond.md": other})
    vault.update()
    fresh = indexed(tmp_path / "fresh", NOTES | {"Pond.md": other})
    with vault.rows() as edited, fresh.rows() as made:
        for text in ("Pond", "Still water", "Cairn", "Other"):
            assert named_like(edited, text) == named_like(made, text)
        assert named_like(edited, "Still water") == {}


def test_a_removed_note_is_in_none_of_the_indexes_but_its_number_is_kept(
    vault: RelatedVault,
) -> None:
    with vault.rows() as rows:
        pond = number(rows, "Pond.md")
    (vault.root / "Pond.md").unlink()
    vault.update()
    with vault.rows() as rows:
        assert rows.count == 2
        assert rows.places([pond]) == {}
        assert rows.alike(link_of(rows), "Pond", 3, 10) == []
        (left,) = rows.database.rows("SELECT * FROM note WHERE number = ?", (pond,))
        assert not any(value in left for value in ("Pond", "Still water", "garden"))
    vault.write({"Pond.md": "# Pond\nback again"})
    vault.update()
    with vault.rows() as rows:
        assert number(rows, "Pond.md") == pond
        assert rows.count == 3


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_titles_and_summaries_are_matched_fuzzily_with_any_group_size(
    tmp_path: Path, size: int
) -> None:
    vault = RelatedVault(tmp_path)
    vault.settings = vault.settings.model_copy(update={"ngram_size": size})
    vault.write({"Rain garden.md": "x", "Brain.md": "x", "京都の旅行の記録.md": "x", "B.md": "x"})
    vault.update()
    with vault.rows() as rows:
        titles = {number(rows, path): path for path in rows.contents(link_of(rows))}
        found = [
            (titles[one], share) for one, share in rows.alike(link_of(rows), "rain gardn", size, 10)
        ]
        assert found[0][0] == "Rain garden.md"
        assert 0.3 < found[0][1] < 1
        assert [titles[one] for one, _ in rows.alike(link_of(rows), "京都の旅行", size, 1)] == [
            "京都の旅行の記録.md"
        ]
        assert rows.alike(link_of(rows), "Rain Garden", size, 1)[0][1] == 1
        assert rows.alike(link_of(rows), "", size, 10) == []


def test_without_places_terms_and_counts_remain(tmp_path: Path) -> None:
    vault = RelatedVault(tmp_path)
    vault.settings = vault.settings.model_copy(update={"store_positions": False})
    vault.write(NOTES)
    vault.update()
    with vault.rows() as rows:
        assert rows.places([number(rows, "Pond.md")]) == {}
        assert rows.database.rows("SELECT words FROM note WHERE path = 'Pond.md'") == [(4,)]


def test_a_term_that_occurs_too_often_to_count_is_counted_as_often_as_can_be(
    tmp_path: Path,
) -> None:
    vault = indexed(tmp_path, {"a.md": "sedge " * 70_000})
    with vault.rows() as rows:
        (found,) = rows.database.rows("SELECT words, counts FROM note")
        assert found == (70_000, b"\xff\xff")


def damage_by_truncation(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2 + 100)


def damage_at_the_start(file: Path) -> None:
    file.write_bytes(random.Random(1).randbytes(file.stat().st_size))


def damage_inside(file: Path) -> None:
    noise = random.Random(1).randbytes(file.stat().st_size - 8192)
    file.write_bytes(file.read_bytes()[:8192] + noise)


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("damage", [damage_by_truncation, damage_at_the_start, empty])
def test_a_damaged_file_is_found_out_when_it_is_read(vault: RelatedVault, damage: object) -> None:
    assert callable(damage)
    damage(vault.home / FILE)
    try:
        with vault.rows() as rows:
            rows.contents("any")
            assert rows.count == 0
    except IndexCorrupted:
        discard(vault.home)
    assert vault.update().written == 3


def test_noise_between_the_pages_is_damage_too(vault: RelatedVault) -> None:
    damage_inside(vault.home / FILE)
    with pytest.raises(IndexCorrupted), vault.rows() as rows:
        rows.database.rows("SELECT * FROM note")
        rows.database.rows("SELECT * FROM term")


def test_indexes_made_otherwise_begin_afresh(vault: RelatedVault) -> None:
    other = vault.settings.model_copy(update={"max_chars": 1000})
    assert find_rows(vault.home, format_of(other)) is None
    with closing(open_rows(vault.home, format_of(other))) as rows:
        assert rows.count == 0
    assert find_rows(vault.home, format_of(vault.settings)) is None


@pytest.mark.parametrize(
    "setting",
    [
        {"max_chars": 1000},
        {"store_positions": False},
        {"discount_boilerplate": False},
        {"auto_add_ids": True},
    ],
)
def test_settings_by_which_notes_are_read_make_other_indexes(
    vault: RelatedVault, setting: dict[str, object]
) -> None:
    other = vault.settings.model_copy(update=setting)
    assert format_of(other) != format_of(vault.settings)


@pytest.mark.parametrize(
    "setting",
    [
        {"profile": "seed"},
        {"bm25_weight": 1.0},
        {"min_score": 0.5},
        {"max_results": 5},
        {"ngram_size": 2},
    ],
)
def test_settings_by_which_notes_are_scored_do_not(
    vault: RelatedVault, setting: dict[str, object]
) -> None:
    other = vault.settings.model_copy(update=setting)
    assert format_of(other) == format_of(vault.settings)


def test_nothing_is_found_where_nothing_was_made(tmp_path: Path) -> None:
    assert find_rows(tmp_path, "any") is None
    assert list(tmp_path.iterdir()) == []


def test_discarding_leaves_no_file_and_may_be_repeated(vault: RelatedVault) -> None:
    discard(vault.home)
    discard(vault.home)
    assert list(vault.home.glob(f"{FILE}*")) == []


def test_the_file_can_be_read_with_plain_sqlite(vault: RelatedVault) -> None:
    """The seed's indexes are files for other programs to read, too."""
    with closing(sqlite3.connect(vault.home / FILE)) as raw:
        found = raw.execute("SELECT title FROM note WHERE is_gone = 0 ORDER BY title").fetchall()
    assert found == [("Bog",), ("Bread",), ("Pond",)]


def test_a_transaction_that_fails_leaves_the_terms_as_they_were(vault: RelatedVault) -> None:
    with vault.rows() as rows:
        before = rows.database.rows("SELECT * FROM term ORDER BY number")
        with pytest.raises(ZeroDivisionError), rows.changing():
            rows.database.run("DELETE FROM term")
            _ = 1 / 0
        assert rows.database.rows("SELECT * FROM term ORDER BY number") == before
