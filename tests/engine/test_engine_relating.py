"""Related notes as an engine offers them: kept with the vault, loaded once, made again if lost."""

import itertools
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from tests.transports.command_line import in_another_process

from obsidian_rag import config
from obsidian_rag.engine import Bus, Engine, run_index
from obsidian_rag.engine.health import Health
from obsidian_rag.engine.jobs import Jobs
from obsidian_rag.engine.live import Live
from obsidian_rag.errors import IndexNotFound, InvalidArgument, NotFound
from obsidian_rag.index import Mode, relate_now
from obsidian_rag.relations import (
    RelatedAnswer,
    format_of,
    links_found,
    related_notes,
    relations_state,
    similar_titles,
)
from obsidian_rag.relations.query import memory_index, relation_troubles
from obsidian_rag.relations.rows import open_rows

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
FILE = "relations.db"
ID = "550e8400-e29b-41d4-a716-446655440000"
OTHER = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
NOTES = {
    "Pond.md": f"---\nid: {ID}\ntags: [water]\n---\n# Pond\n\nfox sedge and marsh marigold\n",
    "Bog.md": "---\ntags: [water]\n---\n# Bog\n\nmoss, then fox sedge and a marsh marigold\n",
    "Garden/Rain.md": "# Rain garden\n\nsee [[Pond]], with fox sedge\n",
    "Bread.md": "# Bread\n\nrye flour and salt\n",
}


@pytest.fixture
def made(engine: MakeEngine, make_vault: MakeVault) -> Engine:
    one = engine(make_vault(NOTES))
    run_index(one, Mode.FULL)
    return one


def paths(answer: RelatedAnswer) -> list[str]:
    return [one.found.card.path for one in answer.notes]


def asked(engine: Engine, note: str = "Pond.md") -> list[str]:
    return paths(related_notes(engine.relations, note=note))


def vault(engine: Engine) -> Path:
    return engine.config.vault_root


def write(engine: Engine, path: str, text: str) -> None:
    (vault(engine) / path).parent.mkdir(exist_ok=True)
    (vault(engine) / path).write_text(text)


def known(engine: Engine) -> set[str]:
    return {path for _, path in memory_index(engine.relations).by_path}


def test_an_index_run_relates_the_notes_too(made: Engine, home: Path) -> None:
    assert (home / FILE).exists()
    assert asked(made)[0] == "Bog.md"
    state = relations_state(made.relations)
    assert state is not None
    assert state["notes"] == 4
    assert state["updated_at"] is not None


def test_a_sync_that_changes_nothing_does_not_touch_the_indexes(made: Engine, home: Path) -> None:
    before = relations_state(made.relations)
    assert run_index(made, Mode.SYNC).tally.unchanged == 4
    assert relations_state(made.relations) == before


def test_indexes_are_loaded_once_and_follow_what_is_written(made: Engine) -> None:
    loaded = memory_index(made.relations)
    write(made, "Marsh.md", "# Marsh\n\nfox sedge and marsh marigold\n")
    run_index(made, Mode.SYNC)
    assert memory_index(made.relations) is loaded
    assert "Marsh.md" in asked(made)


def test_what_another_process_wrote_is_followed(made: Engine) -> None:
    assert "Marsh.md" not in asked(made)
    write(made, "Marsh.md", "# Marsh\n\nfox sedge and marsh marigold\n")
    (vault(made) / "Bog.md").unlink()
    assert in_another_process("sync").code == 0
    found = asked(made)
    assert ("Marsh.md" in found, "Bog.md" in found) == (True, False)


def test_a_sync_of_some_paths_relates_those(made: Engine) -> None:
    write(made, "Marsh.md", "# Marsh\n\nfox sedge and marsh marigold\n")
    write(made, "Unseen.md", "# Unseen\n\nfox sedge\n")
    run_index(made, Mode.SYNC, paths=["Marsh.md"])
    assert known(made) == {*NOTES, "Marsh.md"}


def test_a_new_folder_among_the_paths_is_looked_into(made: Engine) -> None:
    """A watcher tells of a moved folder by its own name only."""
    write(made, "New/Marsh.md", "# Marsh\n\nfox sedge and marsh marigold\n")
    run_index(made, Mode.SYNC, paths=["New"])
    assert "New/Marsh.md" in asked(made)


def test_a_moved_folder_is_followed(made: Engine) -> None:
    (vault(made) / "Garden").rename(vault(made) / "Outside")
    run_index(made, Mode.SYNC, paths=["Garden", "Outside"])
    assert "Outside/Rain.md" in known(made)
    assert "Garden/Rain.md" not in known(made)


def test_folders_excluded_since_are_left_out_by_the_next_sync(
    made: Engine, engine: MakeEngine
) -> None:
    again = engine(vault(made), {"relations.excluded_folders": ["Garden"]})
    assert run_index(again, Mode.SYNC).tally.unchanged == 4
    assert known(again) == {"Pond.md", "Bog.md", "Bread.md"}
    with pytest.raises(NotFound):
        related_notes(again.relations, note="Garden/Rain.md")


def test_indexes_made_otherwise_are_made_again_when_they_are_asked(
    made: Engine, engine: MakeEngine
) -> None:
    again = engine(vault(made), {"relations.max_chars": 4000})
    assert asked(again)[0] == "Bog.md"


def test_a_stopped_run_leaves_its_work_to_the_next(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({f"{number}.md": f"word{number}" for number in range(300)}))
    times = itertools.count()
    run_index(made, Mode.FULL, stop=lambda: next(times) > 40)
    run_index(made, Mode.SYNC)
    assert memory_index(made.relations).count == 300


def test_a_vault_that_was_really_emptied_has_no_related_notes(made: Engine) -> None:
    root = vault(made)
    shutil.rmtree(root)
    root.mkdir()
    run_index(made, Mode.REINDEX, accepts_removals=True)
    assert memory_index(made.relations).count == 0


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2 + 100)


def noise(file: Path) -> None:
    file.write_bytes(random.Random(1).randbytes(50_000))


def noise_inside(file: Path) -> None:
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:8192] + random.Random(1).randbytes(size - 8192))


def scramble_tags(file: Path) -> None:
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("UPDATE note SET tags = '[oops', change = change + 1")
        raw.commit()


def scramble_places(file: Path) -> None:
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("UPDATE note SET places = x'00ff00ff'")
        raw.commit()


def lose_counts(file: Path) -> None:
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("UPDATE note SET counts = x'0100' WHERE path = 'Pond.md'")
        raw.commit()


def empty(file: Path) -> None:
    file.write_bytes(b"")


def remove(file: Path) -> None:
    file.unlink()


DAMAGES = [truncate, noise, noise_inside, empty, remove]
# Damage that SQLite does not see.
SCRAMBLED = [scramble_tags, scramble_places, lose_counts]


def settled(home: Path) -> Path:
    """The file with everything in it, and nothing in the log beside it."""
    with closing(sqlite3.connect(home / FILE)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return home / FILE


@pytest.mark.parametrize("damage", [*DAMAGES, *SCRAMBLED])
def test_damaged_indexes_are_made_again_when_they_are_asked(
    made: Engine, home: Path, damage: Callable[[Path], None]
) -> None:
    expected = asked(made)
    made.close()
    damage(settled(home))
    assert asked(made) == expected


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_indexes_are_made_again_by_the_next_sync_that_has_something_to_do(
    made: Engine, home: Path, damage: Callable[[Path], None]
) -> None:
    made.close()
    damage(settled(home))
    write(made, "Marsh.md", "# Marsh\n\nfox sedge and marsh marigold\n")
    assert run_index(made, Mode.SYNC).exit_code == 0
    assert known(made) == {*NOTES, "Marsh.md"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_indexes_damaged_while_they_are_open_are_made_again(
    made: Engine, home: Path, damage: Callable[[Path], None]
) -> None:
    expected = asked(made)
    damage(settled(home))
    assert asked(made) == expected
    assert asked(made) == expected


def test_a_first_run_that_ended_before_it_began_is_repeated(made: Engine, home: Path) -> None:
    expected = asked(made)
    made.close()
    (home / FILE).unlink()
    open_rows(home, format_of(made.config.settings.relations)).close()
    assert asked(made) == expected


def test_nothing_is_related_before_the_first_index(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault(NOTES))
    with pytest.raises(IndexNotFound):
        related_notes(made.relations, note="Pond.md")
    assert relations_state(made.relations) in (None, {"notes": 0, "updated_at": None})


def test_a_living_process_asks_its_worker_to_make_them(made: Engine, home: Path) -> None:
    made.close()
    (home / FILE).unlink()
    bus = Bus()
    jobs = Jobs(made.config, bus)
    made.live = Live(bus, jobs, Health(bus))
    with pytest.raises(IndexNotFound):
        related_notes(made.relations, note="Pond.md")
    assert jobs.active is not None
    assert jobs.active.order.mode is Mode.SYNC


def test_a_note_is_asked_with_reasons_and_both_passages(made: Engine) -> None:
    answer = related_notes(made.relations, note="Pond.md")
    assert (answer.source, answer.compared, answer.is_private) == ("Pond.md", 4, False)
    first = answer.notes[0]
    assert first.found.shared_tags == ("water",)
    assert {"sedge", "marigold"} & set(first.found.shared_terms)
    assert first.source_passage is not None
    assert first.passage is not None
    assert first.source_passage.source_file == "Pond.md"
    assert "fox sedge" in first.source_passage.chunk_text
    assert first.passage.source_file == "Bog.md"
    assert "moss" in first.passage.chunk_text


def test_passages_are_read_only_when_wanted(made: Engine) -> None:
    answer = related_notes(made.relations, note="Pond.md", with_passages=False)
    assert {(one.passage, one.source_passage) for one in answer.notes} == {(None, None)}


def test_a_text_is_asked_like_a_note(made: Engine) -> None:
    answer = related_notes(made.relations, text="marsh marigold and sedge")
    assert set(paths(answer)[:2]) == {"Pond.md", "Bog.md"}
    assert answer.source is None
    assert answer.notes[0].source_passage is None
    assert answer.notes[0].passage is not None


def test_tags_alone_are_enough_and_unknown_words_are_not(made: Engine) -> None:
    assert set(paths(related_notes(made.relations, text="qqqq", tags=["#water"]))) >= {
        "Pond.md",
        "Bog.md",
    }
    with pytest.raises(InvalidArgument):
        related_notes(made.relations, text="the of and")


def test_a_note_that_is_not_there_is_not_found(made: Engine) -> None:
    with pytest.raises(NotFound):
        related_notes(made.relations, note="Nowhere.md")


def test_linked_notes_are_hidden_and_counted(made: Engine) -> None:
    hidden = related_notes(made.relations, note="Garden/Rain.md")
    assert ("Pond.md" in paths(hidden), hidden.hidden) == (False, 1)
    shown = related_notes(made.relations, note="Garden/Rain.md", hide_linked=False)
    assert ("Pond.md" in paths(shown), shown.hidden) == (True, 0)


def test_the_seeds_profile_has_no_links_to_hide_but_relations(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    notes = {**NOTES, "Bog.md": f"---\nid: {OTHER}\nrelated: [{ID}]\n---\nfox sedge\n"}
    made = engine(make_vault(notes), {"relations.profile": "seed"})
    run_index(made, Mode.FULL)
    answer = related_notes(made.relations, note="Bog.md")
    assert ("Pond.md" in paths(answer), answer.hidden) == (True, 0)
    hidden = related_notes(made.relations, note="Bog.md", hide_linked=True)
    assert ("Pond.md" in paths(hidden), hidden.hidden) == (False, 1)
    assert related_notes(made.relations, note="Garden/Rain.md", hide_linked=True).hidden == 0


def test_the_most_notes_that_are_wanted(made: Engine) -> None:
    assert len(related_notes(made.relations, note="Pond.md", limit=1).notes) == 1


def test_a_text_is_related_by_words_when_the_embedder_is_down(
    made: Engine, engine: MakeEngine
) -> None:
    down = {"embedding.provider": "ollama", "embedding.base_url": "http://127.0.0.1:9"}
    answer = related_notes(engine(vault(made), down).relations, text="marsh marigold")
    assert set(paths(answer)[:2]) == {"Pond.md", "Bog.md"}


def test_a_few_changed_notes_are_taken_up_at_once(made: Engine) -> None:
    write(made, "Marsh.md", "# Marsh\n\nfox sedge and marsh marigold\n")
    assert relate_now(made.parts, made.vaults.primary, ["Marsh.md"]) == (1, 0)
    assert "Marsh.md" in asked(made)


def test_nothing_is_taken_up_before_notes_are_related(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    made = engine(make_vault(NOTES))
    assert relate_now(made.parts, made.vaults.primary, ["Pond.md"]) is None
    assert not (home / FILE).exists()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_no_reason_for_an_edit_to_fail(
    made: Engine, home: Path, damage: Callable[[Path], None]
) -> None:
    made.close()
    damage(settled(home))
    write(made, "Pond.md", "# Pond\n\nfox sedge\n")
    assert relate_now(made.parts, made.vaults.primary, ["Pond.md"]) is None
    assert "Bog.md" in asked(made)


def test_titles_are_matched_by_their_letters(made: Engine) -> None:
    (first, *_) = similar_titles(made.relations, "rain gardn", 5)
    assert first[:2] == ("Garden/Rain.md", "Rain garden")
    assert 0.5 < first[2] < 1


def test_relations_that_lead_nowhere_and_circles_are_told(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(
        make_vault(
            {
                "a.md": f"---\nid: {ID}\nrelated: [{OTHER}]\n---\n",
                "b.md": f"---\nid: {OTHER}\nrelated: [{ID}, '[[Gone]]']\n---\n",
            }
        )
    )
    run_index(made, Mode.FULL)
    lost, circles = relation_troubles(made.relations, made.vaults.primary.link_id)
    assert lost == {("b.md", "Gone")}
    assert circles == [["a.md", "b.md"]]


def test_the_authors_links_are_asked_for(made: Engine) -> None:
    told: list[int] = []
    found = links_found(made.relations, 10, lambda done, _total: told.append(done))
    assert (found.notes, found.links, told) == (1, 1, [1])
    assert found.hits[10] == 1.0


def test_ids_are_added_by_an_index_run_if_the_setting_says_so(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault(NOTES), {"relations.auto_add_ids": True})
    run_index(made, Mode.FULL)
    assert all(card.uid for card in memory_index(made.relations).cards)
    run_index(made, Mode.SYNC)
    assert all((vault(made) / path).read_text().startswith("---\nid: ") for path in NOTES)


def test_ids_are_added_to_notes_that_were_indexed_before(made: Engine, engine: MakeEngine) -> None:
    again = engine(vault(made), {"relations.auto_add_ids": True})
    run_index(again, Mode.SYNC)
    assert all((vault(made) / path).read_text().startswith("---\nid: ") for path in NOTES)


def test_meanings_are_taken_from_the_index(made: Engine) -> None:
    loaded = memory_index(made.relations)
    assert loaded.meanings is not None
    assert all(loaded.meanings.of(slot) is not None for slot in loaded.slot_of.values())
    assert made.relations.kept.index is loaded
    made.relations.kept.close()
    assert made.relations.kept.index is None


def test_the_settings_of_relations_are_the_engines(engine: MakeEngine, made: Engine) -> None:
    strict = engine(vault(made), {"relations.min_score": 1.0})
    assert asked(strict) == []
    assert config.load().settings.relations.min_score == 1.0
