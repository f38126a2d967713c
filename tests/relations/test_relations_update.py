"""Indexes follow the vault: create, modify, delete, rename, leave out, stop and go on."""

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.relations.related_vault import RelatedVault, indexed, slots
from tests.waiting import PATIENCE_S

from obsidian_rag.config import RelationsSettings
from obsidian_rag.errors import VaultAway
from obsidian_rag.index import Phase, Progress
from obsidian_rag.notes import parse_note, read_id
from obsidian_rag.notes.identity import id_trouble
from obsidian_rag.relations.rows import Rows
from obsidian_rag.relations.templates import note_lines

ID = "550e8400-e29b-41d4-a716-446655440000"
NOTES = {
    "Pond.md": f"---\nid: {ID}\n---\n# Pond\nsedge and frogs\n",
    "Garden/Bog.md": "# Bog\nsedge and moss\n",
    "Bread.md": "# Bread\nrye and salt\n",
}
# Notes enough that what they share is looked at, and more than one transaction, but no process.
MANY = 290


@pytest.fixture
def vault(tmp_path: Path) -> RelatedVault:
    return indexed(tmp_path, NOTES)


def titles(vault: RelatedVault) -> dict[str, str]:
    with vault.rows() as rows:
        found = rows.database.rows("SELECT path, title FROM note WHERE is_gone = 0")
    return {str(path): str(title) for path, title in found}


def numbers(vault: RelatedVault) -> dict[str, int]:
    with vault.rows() as rows:
        found = rows.database.rows("SELECT path, number FROM note WHERE is_gone = 0")
    return {str(path): int(str(number)) for path, number in found}


def words(vault: RelatedVault, path: str) -> int:
    with vault.rows() as rows:
        row = rows.database.row("SELECT words FROM note WHERE path = ? AND is_gone = 0", (path,))
    assert row is not None
    return int(str(row[0]))


def everything(vault: RelatedVault) -> dict[str, list[tuple[object, ...]]]:
    """All that the indexes say, with paths in place of numbers and words in place of terms."""
    with vault.rows() as rows:
        return {
            "notes": rows.database.rows(
                "SELECT path, uid, kind, title, summary, tags, links, related, words FROM note"
                " WHERE is_gone = 0 ORDER BY path"
            ),
            "terms": sorted(terms_by_path(rows)),
        }


def terms_by_path(rows: Rows) -> list[tuple[object, ...]]:
    names: dict[object, object] = dict(rows.database.rows("SELECT number, term FROM term"))  # type: ignore[arg-type]
    found = rows.database.rows("SELECT number, path FROM note WHERE is_gone = 0")
    places = rows.places([int(str(number)) for number, _ in found])
    return [
        (path, tuple(names[term] for term in places[int(str(number))].terms.tolist()))
        for number, path in found
        if int(str(number)) in places
    ]


def test_a_created_note_is_taken_up(vault: RelatedVault) -> None:
    vault.write({"New.md": "# New\nsedge\n"})
    done = vault.update()
    assert (done.written, done.removed, done.unchanged, done.is_complete) == (1, 0, 3, True)
    assert titles(vault)["New.md"] == "New"


def test_a_modified_note_replaces_what_it_was(vault: RelatedVault) -> None:
    before = numbers(vault)
    vault.write({"Pond.md": "# Lake\npike\n"})
    assert vault.update().written == 1
    assert titles(vault)["Pond.md"] == "Lake"
    assert numbers(vault) == before


def test_a_deleted_note_is_forgotten(vault: RelatedVault) -> None:
    (vault.root / "Pond.md").unlink()
    done = vault.update()
    assert (done.written, done.removed) == (0, 1)
    assert set(titles(vault)) == {"Garden/Bog.md", "Bread.md"}


def test_a_renamed_note_keeps_its_number_and_its_id(vault: RelatedVault) -> None:
    before = numbers(vault)
    (vault.root / "Pond.md").rename(vault.root / "Lake.md")
    done = vault.update()
    assert (done.written, done.removed) == (1, 0)
    after = numbers(vault)
    assert after["Lake.md"] == before["Pond.md"]
    assert "Pond.md" not in after
    with vault.loaded() as loaded:
        assert loaded.cards[slots(loaded)["Lake.md"]].uid == ID


def test_a_note_of_the_same_second_is_known_again_after_a_rename(vault: RelatedVault) -> None:
    """Its time is not trusted when it was read right after it was written; its file is."""
    os.utime(vault.root / "Pond.md")
    vault.update()
    before = numbers(vault)
    (vault.root / "Pond.md").rename(vault.root / "Lake.md")
    vault.update()
    assert numbers(vault)["Lake.md"] == before["Pond.md"]


def test_a_rename_that_changes_only_the_case(vault: RelatedVault) -> None:
    before = numbers(vault)["Pond.md"]
    (vault.root / "Pond.md").rename(vault.root / "POND.md")
    vault.update()
    assert numbers(vault)["POND.md"] == before
    assert "Pond.md" not in numbers(vault)


def test_a_note_renamed_to_one_that_was_deleted(vault: RelatedVault) -> None:
    (vault.root / "Bread.md").unlink()
    vault.update()
    (vault.root / "Pond.md").rename(vault.root / "Bread.md")
    vault.update()
    assert titles(vault) == {"Bread.md": "Pond", "Garden/Bog.md": "Bog"}


def test_two_notes_that_swap_their_names(vault: RelatedVault) -> None:
    (vault.root / "Pond.md").rename(vault.root / "x.md")
    (vault.root / "Bread.md").rename(vault.root / "Pond.md")
    (vault.root / "x.md").rename(vault.root / "Bread.md")
    vault.update()
    assert titles(vault) == {"Bread.md": "Pond", "Pond.md": "Bread", "Garden/Bog.md": "Bog"}


def test_a_moved_folder_takes_its_notes_along(vault: RelatedVault) -> None:
    before = numbers(vault)
    (vault.root / "Garden").rename(vault.root / "Outside")
    done = vault.update(["Garden/Bog.md", "Outside/Bog.md"])
    assert (done.written, done.removed) == (1, 0)
    assert numbers(vault)["Outside/Bog.md"] == before["Garden/Bog.md"]


def test_a_folder_that_is_gone_takes_its_notes_along(vault: RelatedVault) -> None:
    shutil.rmtree(vault.root / "Garden")
    assert vault.update(["Garden"]).removed == 1
    assert set(titles(vault)) == {"Pond.md", "Bread.md"}


def test_a_folder_among_the_paths_is_looked_into_but_not_early(vault: RelatedVault) -> None:
    vault.write({"New/A.md": "x", "New/B.md": "x"})
    assert vault.update_early(["New"]) == 0
    assert vault.update(["New"]).written == 2


def test_only_the_given_paths_are_looked_at(vault: RelatedVault) -> None:
    vault.write({"Pond.md": "# Lake\n", "Bread.md": "# Rolls\n"})
    assert vault.update(["Pond.md"]).written == 1
    assert titles(vault) == {"Pond.md": "Lake", "Bread.md": "Bread", "Garden/Bog.md": "Bog"}
    assert vault.update(["Nowhere.md", "No/where.md"]).is_complete


def test_nothing_is_read_when_nothing_changed(vault: RelatedVault) -> None:
    with vault.rows() as rows:
        before = rows.change
    for path in NOTES:
        os.utime(vault.root / path, (1_700_000_000.5, 1_700_000_000.5))
    for _ in range(2):
        done = vault.update()
        assert (done.written, done.unchanged, done.is_complete) == (0, 3, True)
    with vault.rows() as rows:
        found = rows.database.rows("SELECT * FROM note WHERE change > ?", (before,))
        assert found == []


def test_a_second_write_within_one_tick_of_the_clock_is_seen(vault: RelatedVault) -> None:
    file = vault.root / "Pond.md"
    file.write_text("# Pond\nfrogs\n")
    # However long it takes until it is read, the tick is not over.
    written = time.time_ns() + 3_600_000_000_000
    os.utime(file, ns=(written, written))
    vault.update()
    file.write_text("# Pond\ntoads\n")
    os.utime(file, ns=(written, written))
    assert vault.update().written == 1


def test_an_excluded_folder_is_left_out_and_taken_in_again(vault: RelatedVault) -> None:
    outside = vault.settings
    vault.settings = outside.model_copy(update={"excluded_folders": ("/Garden/", "Gard")})
    assert vault.update().removed == 1
    assert set(titles(vault)) == {"Pond.md", "Bread.md"}
    assert vault.update(["Garden/Bog.md"]).written == 0
    vault.settings = outside
    assert vault.update().written == 1
    assert titles(vault)["Garden/Bog.md"] == "Bog"


def test_a_note_moved_into_an_excluded_folder_is_forgotten(vault: RelatedVault) -> None:
    vault.settings = vault.settings.model_copy(update={"excluded_folders": ("Archive",)})
    (vault.root / "Archive").mkdir()
    (vault.root / "Pond.md").rename(vault.root / "Archive/Pond.md")
    assert vault.update().removed == 1
    assert "Archive/Pond.md" not in titles(vault)


@pytest.mark.parametrize("word", ["false", "never"])
def test_a_note_that_says_rag_false_is_not_related(vault: RelatedVault, word: str) -> None:
    vault.write(
        {"Pond.md": f"---\nrag: {word}\n---\nsecret sedge", "New.md": "---\nrag: false\n---"}
    )
    done = vault.update()
    assert (done.written, done.removed) == (0, 1)
    assert set(titles(vault)) == {"Garden/Bog.md", "Bread.md"}
    vault.write({"Pond.md": NOTES["Pond.md"]})
    assert vault.update().written == 1


def test_a_private_note_is_related_and_known_as_private(vault: RelatedVault) -> None:
    vault.write({"Pond.md": "---\nrag: private\n---\n# Pond\nsedge"})
    vault.update()
    with vault.loaded() as loaded:
        assert loaded.cards[slots(loaded)["Pond.md"]].is_private


@pytest.mark.parametrize(
    ("content", "count"),
    [
        (b"", 0),
        (b"---\ntags: [a\n---\nsedge", 1),
        (b"\xef\xbb\xbfsedge frog", 2),
        (b"sedge\r\nfrog\r\n", 2),
        (b"sedge\rfrog", 2),
        ("日本語\n".encode(), 2),
        (b"constructor __proto__ toString", 3),
        ("🎉 👩‍💻".encode(), 0),
    ],
)
def test_odd_notes_are_indexed(vault: RelatedVault, content: bytes, count: int) -> None:
    vault.write({"Odd.md": content})
    assert vault.update().written == 1
    assert words(vault, "Odd.md") == count


def test_a_file_that_is_no_text_is_left_out(vault: RelatedVault) -> None:
    vault.write({"Bad.md": b"\xff\xfe\x00", "Picture.png": b"x"})
    assert vault.update().written == 0
    assert set(titles(vault)) == set(NOTES)


@pytest.mark.slow
def test_a_note_of_five_megabytes(vault: RelatedVault) -> None:
    long = "".join(f"A heron waits in the reeds for frog{number}.\n" for number in range(130_000))
    assert len(long) > 5_000_000
    vault.write({"Long.md": f"{long}sedge and frogs"})
    vault.update()
    assert words(vault, "Long.md") == 130_000 * 4 + 2
    every = vault.settings.model_copy(update={"min_score": 0.0})
    assert "Long.md" in vault.scores("Pond.md", every)
    assert "Pond.md" in vault.scores("Long.md", every)


def test_a_long_note_is_read_up_to_the_limit_if_there_is_one(tmp_path: Path) -> None:
    vault = RelatedVault(tmp_path)
    vault.settings = vault.settings.model_copy(update={"max_chars": 50_000})
    vault.write({"Long.md": "herons\nx\n" * 100_000})
    vault.update()
    assert words(vault, "Long.md") == 50_000 // len("herons\nx\n") + 1


def test_the_vault_is_not_written_to(vault: RelatedVault) -> None:
    before = {file: file.stat().st_mtime_ns for file in vault.root.rglob("*")}
    vault.write({"New.md": "no id"})
    vault.update()
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert (vault.root / "New.md").read_text() == "no id"


def test_ids_are_added_to_all_notes_once_the_setting_says_so(vault: RelatedVault) -> None:
    vault.settings = vault.settings.model_copy(update={"auto_add_ids": True})
    done = vault.update()
    assert sorted(done.ids_added) == ["Bread.md", "Garden/Bog.md"]
    with vault.loaded() as loaded:
        uids = {card.path: card.uid for card in loaded.cards}
    for path in NOTES:
        found = read_id(parse_note(path, (vault.root / path).read_text()).frontmatter)
        assert found is not None
        assert id_trouble(found.value) == ""
        assert uids[path] == found.value
    assert uids["Pond.md"] == ID
    assert vault.update().ids_added == []


def test_a_note_that_cannot_get_an_id_is_related_all_the_same(vault: RelatedVault) -> None:
    vault.settings = vault.settings.model_copy(update={"auto_add_ids": True})
    broken = "---\ntags: [a\n---\nsedge"
    vault.write({"Broken.md": broken})
    done = vault.update()
    assert "Broken.md" not in done.ids_added
    assert (vault.root / "Broken.md").read_text() == broken
    assert words(vault, "Broken.md") == 1


def test_a_missing_vault_is_not_an_empty_one(vault: RelatedVault) -> None:
    shutil.rmtree(vault.root)
    with pytest.raises(VaultAway):
        vault.update()
    vault.root.mkdir()
    with pytest.raises(VaultAway):
        vault.update()
    assert set(titles(vault)) == set(NOTES)


def test_an_emptied_vault_is_believed_when_the_caller_knows(vault: RelatedVault) -> None:
    shutil.rmtree(vault.root)
    vault.root.mkdir()
    done = vault.update(accepts_removals=True)
    assert (done.removed, done.is_complete) == (3, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_cannot_be_read_keeps_its_notes(vault: RelatedVault) -> None:
    (vault.root / "Garden").chmod(0o000)
    try:
        assert vault.update().removed == 0
    finally:
        (vault.root / "Garden").chmod(0o700)


def many(number: int) -> str:
    return f"# Note {number}\n## Tasks\nsedge word{number} word{number % 7}\n## Log\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RelatedVault:
    """Many notes, indexed without a stop."""
    notes = {f"{number}.md": many(number) for number in range(MANY)}
    return indexed(tmp_path_factory.mktemp("whole"), notes)


def stop_after(count: int) -> Callable[[], bool]:
    """Whether to stop, asked again and again: the first `count` times not."""
    left = [count]

    def stop() -> bool:
        left[0] -= 1
        return left[0] < 0

    return stop


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_stop_keeps_what_was_done_and_the_next_run_completes_it(
    tmp_path: Path, whole: RelatedVault, count: int
) -> None:
    vault = RelatedVault(tmp_path)
    vault.write({f"{number}.md": many(number) for number in range(MANY)})
    done = vault.update(stop=stop_after(count))
    assert not done.is_complete
    assert len(titles(vault)) == done.written < MANY + 1
    rest = vault.update()
    assert rest.is_complete
    assert rest.written == MANY - done.written
    assert everything(vault) == everything(whole)


def test_a_run_that_is_killed_loses_no_more_than_its_last_transaction(tmp_path: Path) -> None:
    vault = RelatedVault(tmp_path)
    vault.write({f"{number}.md": many(number) for number in range(MANY)})
    program = (
        "import os, sys; from pathlib import Path;"
        "from tests.relations.related_vault import RelatedVault;"
        "from obsidian_rag.index import Phase;"
        "vault = RelatedVault(Path(sys.argv[1]));\n"
        "vault.update(listener=lambda told: told.phase is Phase.STORING and os._exit(9))"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path)], timeout=PATIENCE_S)
    assert killed.returncode == 9
    assert 0 < len(titles(vault)) < MANY
    assert vault.update().is_complete
    assert len(titles(vault)) == MANY


def test_lines_that_come_from_a_template_do_not_count_as_words(tmp_path: Path) -> None:
    notes = {f"{number}.md": many(number) for number in range(100)}
    vault = indexed(tmp_path / "discounted", notes)
    with vault.rows() as rows:
        assert rows.templates.lines() == note_lines(1, ["## Tasks", "## Log"]).different()
    assert words(vault, "30.md") == 5
    counted = RelatedVault(tmp_path / "counted")
    counted.settings = counted.settings.model_copy(update={"discount_boilerplate": False})
    counted.write(notes)
    counted.update()
    assert words(counted, "30.md") == 7


def test_a_line_that_becomes_a_templates_stops_counting_in_notes_that_did_not_change(
    tmp_path: Path,
) -> None:
    vault = indexed(tmp_path, {f"{at}.md": f"## Log\nsedge{at}\n" for at in range(14)})
    assert words(vault, "3.md") == 2
    vault.write({"new.md": "## Log\nheron\n"})
    vault.update(["new.md"])
    assert words(vault, "3.md") == words(vault, "new.md") == 1
    (vault.root / "new.md").unlink()
    vault.update(["new.md"])
    assert words(vault, "3.md") == 2


def test_an_early_update_leaves_other_notes_to_the_next_one(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {f"{at}.md": f"## Log\nsedge{at}\n" for at in range(14)})
    vault.write({"new.md": "## Log\nheron\n"})
    assert vault.update_early(["new.md"]) == 1
    assert words(vault, "3.md") == words(vault, "new.md") == 2
    vault.update([])
    assert words(vault, "3.md") == words(vault, "new.md") == 1


def test_lines_are_counted_as_they_would_be_in_a_new_index(tmp_path: Path) -> None:
    """Counts are kept of lines that stand in many notes; the others are counted now and then."""
    chance = random.Random(7)
    vault = indexed(tmp_path / "lived", {f"{at}.md": f"own {at}\n" for at in range(20)})
    for step in range(60):
        at = chance.randrange(24)
        lines = [f"## {name}" for name in "ABCD" if chance.random() < 0.85]
        vault.write({f"{at}.md": "\n".join([f"own {at} {step}", *lines])})
        if chance.random() < 0.2:
            gone = vault.root / f"{chance.randrange(24)}.md"
            gone.unlink(missing_ok=True)
        vault.update(None if step % 2 else [f"{one}.md" for one in range(24)])
    texts = {file.name: file.read_bytes() for file in vault.root.iterdir()}
    clean = indexed(tmp_path / "clean", texts)
    with vault.rows() as rows, clean.rows() as anew:
        assert rows.templates.lines() == anew.templates.lines()
        assert len(anew.templates.lines()) > 1
    assert {path: words(vault, path) for path in texts} == {
        path: words(clean, path) for path in texts
    }


def test_progress_is_told_up_to_the_last_note(tmp_path: Path) -> None:
    vault = RelatedVault(tmp_path)
    vault.write({f"{number}.md": many(number) for number in range(MANY)})
    told: list[Progress] = []
    vault.update(listener=told.append)
    assert told[-1] == Progress(Phase.RELATING, MANY, MANY)
    stored = [(one.current, one.total) for one in told if one.phase is Phase.STORING]
    assert stored[-1] == (MANY, MANY)
    assert len(stored) > 1


def test_notes_read_beside_are_what_they_are_when_read_here(tmp_path: Path) -> None:
    """Many at once are read by other processes, each with terms of its own numbering."""
    notes = {
        f"{at:03}.md": f"---\ntags: [t{at % 7}]\n---\n# {at}\nword{at % 50} naïve [[{at % 9}]]\n"
        for at in range(2 * MANY)
    }
    settings = RelationsSettings(discount_boilerplate=False)
    beside = indexed(tmp_path / "beside", notes, settings)
    here = RelatedVault(tmp_path / "here", settings)
    for start in range(0, len(notes), 100):
        some = dict(list(notes.items())[start : start + 100])
        here.write(some)
        here.update(list(some))
    assert everything(beside) == everything(here)
