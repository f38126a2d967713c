"""Notes that are missing are taken out of the index only when they were removed."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from obsidian_rag.errors import IndexIncomplete, ObsidianRagError, VaultAway
from obsidian_rag.health.brake import Root, is_away
from obsidian_rag.index import Phase, Progress
from obsidian_rag.store import LinkFacts

if TYPE_CHECKING:
    from tests.index.conftest import World

MODES = ("sync", "full", "reindex")


def notes(count: int, folder: str = "Notes") -> dict[str, str | bytes]:
    return {f"{folder}/{number:03}.md": f"text {folder} {number}" for number in range(count)}


def remove(world: "World", count: int) -> None:
    for file in sorted(world.vault.rglob("*.md"))[:count]:
        file.unlink()


def paths(world: "World") -> int:
    return len({path for path, _ in world.texts()})


@pytest.mark.parametrize(
    ("known", "missing", "root", "expected"),
    [
        (800, 788, Root.SAME, True),
        (200, 51, Root.SAME, True),
        (200, 50, Root.SAME, False),
        (255, 51, Root.SAME, False),
        (254, 51, Root.SAME, True),
        (100_000, 20_001, Root.SAME, True),
        (100_000, 20_000, Root.SAME, False),
        (3, 2, Root.SAME, False),
        (3, 3, Root.SAME, True),
        (1, 1, Root.SAME, True),
        (1000, 1, Root.CHANGED, True),
        (1000, 0, Root.CHANGED, False),
        (0, 0, Root.SAME, False),
    ],
)
def test_the_rule(known: int, missing: int, root: Root, expected: bool) -> None:
    assert is_away(known, missing, root) is expected


def test_a_mass_removal_waits_for_the_users_word(world: "World") -> None:
    world.write(notes(120))
    world.run()
    # Before the others go: a file that comes later may get the file id of one of them.
    world.write({"new.md": "new"})
    remove(world, 60)
    for mode in MODES:
        with pytest.raises(VaultAway, match="60 of 120 notes are there"):
            world.run(mode)
    assert paths(world) == 120
    result = world.run("sync", accepts_removals=True)
    assert (result.tally.removed, result.tally.added, paths(world)) == (60, 1, 61)
    assert world.run().tally.touched == 0


def test_the_word_is_for_one_run_only(world: "World") -> None:
    world.write(notes(240))
    world.run()
    remove(world, 60)
    world.run("sync", accepts_removals=True)
    remove(world, 60)
    with pytest.raises(VaultAway, match="120 of 180"):
        world.run()


def test_a_few_removals_need_no_word(world: "World") -> None:
    world.write(notes(60))
    world.run()
    remove(world, 50)
    assert (world.run().tally.removed, paths(world)) == (50, 10)


def test_what_comes_back_needs_no_word_either(world: "World", tmp_path: Path) -> None:
    world.write(notes(120))
    world.run()
    (world.vault / "Notes").rename(tmp_path / "aside")
    with pytest.raises(VaultAway):
        world.run()
    (tmp_path / "aside").rename(world.vault / "Notes")
    assert (world.run().tally.touched, paths(world)) == (0, 120)


def test_a_large_folder_that_is_renamed_is_not_missing(world: "World") -> None:
    world.write({**notes(100, "Old"), "a.md": "alpha"})
    world.run()
    (world.vault / "Old").rename(world.vault / "New")
    result = world.run("sync", paths=["Old"])
    assert (result.tally.renamed, result.tally.removed) == (100, 0)


def test_a_folder_that_the_settings_exclude_now_is_not_missing(world: "World") -> None:
    world.write({**notes(100, "Attic"), "a.md": "alpha"})
    world.run()
    world.settings["indexing"] = {"deny_dirs": ["Attic"]}
    assert (world.run().tally.removed, world.texts()) == (100, [("a.md", "alpha")])


def test_the_events_of_a_vanished_folder_are_braked_too(world: "World", tmp_path: Path) -> None:
    world.write({**notes(100, "Big"), "a.md": "alpha"})
    world.run()
    (world.vault / "Big").rename(tmp_path / "elsewhere")
    with pytest.raises(VaultAway, match="1 of 101"):
        world.run("sync", paths=["Big"])
    with pytest.raises(VaultAway, match="1 of 101"):
        world.run("sync", paths=["a.md"])
    assert paths(world) == 101


def test_a_mount_point_with_a_folder_in_it_is_no_vault_without_notes(
    world: "World", tmp_path: Path
) -> None:
    world.write({"a.md": "alpha", "b.md": "beta"})
    world.run()
    away = world.vault.rename(tmp_path / "away")
    (world.vault / "Attachments").mkdir(parents=True)
    for mode in MODES:
        with pytest.raises(VaultAway, match="0 of 2 notes are there"):
            world.run(mode)
    shutil.rmtree(world.vault)
    away.rename(world.vault)
    assert (world.run().tally.touched, paths(world)) == (0, 2)


def test_another_folder_at_the_same_path_loses_no_note_unasked(
    world: "World", tmp_path: Path
) -> None:
    """A backup is restored that is older than the last note."""
    world.write(notes(10))
    world.run()
    shutil.copytree(world.vault, tmp_path / "backup")
    for number in (4, 5, 6):
        (tmp_path / f"backup/Notes/00{number}.md").unlink()
    shutil.rmtree(world.vault)
    (tmp_path / "backup").rename(world.vault)
    with pytest.raises(VaultAway, match="7 of 10 notes are there"):
        world.run()
    world.write({"Notes/004.md": "text Notes 4"})
    # Four fifths are there: this folder is the vault from here on, and a few removals are meant.
    assert (world.run().tally.removed, paths(world)) == (2, 8)
    for number in (0, 1, 2):
        (world.vault / f"Notes/00{number}.md").unlink()
    assert (world.run().tally.removed, paths(world)) == (3, 5)


def test_a_vault_copied_elsewhere_keeps_its_index(world: "World", tmp_path: Path) -> None:
    world.write(notes(10))
    world.run()
    before = world.ids()
    world.vault = Path(shutil.copytree(world.vault, tmp_path / "copy"))
    world.run()
    assert world.ids() == before


def test_another_vault_is_not_indexed_over_the_first(world: "World", tmp_path: Path) -> None:
    world.write(notes(3, "First"))
    world.run()
    world.vault = tmp_path / "second"
    world.write(notes(4, "Second"))
    for mode in MODES:
        with pytest.raises(IndexIncomplete, match="another vault"):
            world.run(mode)
    assert paths(world) == 3
    result = world.run("full", accepts_removals=True)
    assert (result.tally.removed, result.tally.added, paths(world)) == (3, 4, 4)


@pytest.mark.parametrize("mode", ["full", "reindex"])
def test_a_vault_that_goes_away_while_it_is_read_loses_nothing(
    world: "World", tmp_path: Path, mode: str
) -> None:
    world.write(notes(40))
    world.run()

    def pull_out(progress: Progress) -> None:
        if progress.phase is Phase.SCANNING and progress.total and world.vault.exists():
            world.vault.rename(tmp_path / "away")

    with pytest.raises(VaultAway):
        world.run(mode, listener=pull_out)
    (tmp_path / "away").rename(world.vault)
    assert paths(world) == 40
    world.run()
    assert (paths(world), world.run().tally.touched) == (40, 0)


def test_a_vault_on_a_device_with_another_number_is_the_same(world: "World") -> None:
    """Network shares and some disks get another number at each start of the system."""
    world.write(notes(10))
    world.run()
    engine = world.engine()
    made = LinkFacts(engine.database, engine.vaults.primary.link_id).get("made_of")
    assert made is not None
    device = str(world.vault.stat().st_dev)
    LinkFacts(engine.database, engine.vaults.primary.link_id).put(
        "made_of", made.replace(f"[{device},", "[987654321,")
    )
    engine.close()
    (world.vault / "Notes/004.md").unlink()
    assert (world.run().tally.removed, paths(world)) == (1, 9)


def test_a_run_that_was_braked_tells_what_to_do(world: "World") -> None:
    world.write(notes(2))
    world.run()
    shutil.rmtree(world.vault / "Notes")
    with pytest.raises(ObsidianRagError) as stopped:
        world.run()
    assert "sync --accept-removals" in stopped.value.suggestion
