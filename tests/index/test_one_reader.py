"""Every note is read and parsed once, for all that is made of it; each is owed its own work."""

import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from obsidian_rag.errors import IndexCorrupted
from obsidian_rag.notes import parse_note
from obsidian_rag.relations import RelationsWriter, known_notes, related_notes
from obsidian_rag.relations.rows import Rows
from obsidian_rag.store import Queue
from obsidian_rag.vault.boundary import open_inside

if TYPE_CHECKING:
    from tests.index.conftest import World

NOTES: dict[str, str | bytes] = {
    f"{number:02}.md": f"# Note {number}\n## Log\nsedge, frogs{number}, [[{number + 1:02}]]\n"
    for number in range(30)
}


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each note was parsed, by whatever module."""
    count: Counter[str] = Counter()

    def counting(path: str, text: str) -> Any:
        count[path] += 1
        return parse_note(path, text)

    for name, module in list(sys.modules.items()):
        if name.startswith("obsidian_rag") and getattr(module, "parse_note", None) is parse_note:
            monkeypatch.setattr(module, "parse_note", counting)
    return count


def related(world: "World", note: str) -> set[str]:
    with closing(world.engine()) as engine:
        found = related_notes(engine.relations, note=note, hide_linked=False)
        return {one.found.card.path for one in found.notes}


def owed(world: "World") -> list[str]:
    with closing(world.engine()) as engine:
        (link_id,) = engine.database.row("SELECT link_id FROM vault_link") or ("",)
        changes = next(Queue(engine.database).pages(str(link_id), -1), [])
        return [change.rel_path for change in changes]


@pytest.mark.parametrize("mode", ["full", "sync", "reindex"])
def test_a_first_index_parses_every_note_once(
    world: "World", parsed: Counter[str], mode: str
) -> None:
    world.write(NOTES)
    assert world.run(mode).tally.added == len(NOTES)
    assert parsed == dict.fromkeys(NOTES, 1)


def test_a_rebuild_parses_every_note_once(world: "World", parsed: Counter[str]) -> None:
    world.write(NOTES)
    world.run("full")
    parsed.clear()
    world.run("reindex")
    assert parsed == dict.fromkeys(NOTES, 1)


def test_a_sync_parses_what_changed_once_and_nothing_else(
    world: "World", parsed: Counter[str]
) -> None:
    world.write(NOTES)
    world.run("full")
    for paths in (["03.md"], None):
        parsed.clear()
        world.write({"03.md": f"# Other\nheron {paths}\n"})
        world.run("sync", paths=paths)
        assert parsed == {"03.md": 1}
    parsed.clear()
    (world.vault / "04.md").rename(world.vault / "Renamed.md")
    (world.vault / "05.md").unlink()
    world.run("sync")
    assert parsed == {"Renamed.md": 1}


@pytest.mark.parametrize("mode", ["full", "sync"])
def test_a_run_that_finds_nothing_new_parses_nothing(
    world: "World", parsed: Counter[str], mode: str
) -> None:
    world.write(NOTES)
    world.run("full")
    parsed.clear()
    assert world.run(mode).tally.unchanged == len(NOTES)
    assert parsed == {}


def test_a_line_that_becomes_a_templates_costs_no_other_note_a_parse(
    world: "World", parsed: Counter[str]
) -> None:
    world.write({f"{at}.md": f"## Log\nsedge{at}\n" for at in range(14)})
    world.run("full")
    parsed.clear()
    world.write({"new.md": "## Log\nheron\n"})
    world.run("sync")
    assert parsed == {"new.md": 1}


def test_a_note_is_announced_when_its_relations_are_written_too(
    world: "World", monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write(NOTES)
    world.run("full")
    seen: list[str] = []
    write = RelationsWriter.write

    def looking(*given: Any) -> None:
        write(*given)
        with closing(world.engine()) as engine:
            seen.append(engine.index_version)

    with closing(world.engine()) as engine:
        before = engine.index_version
    monkeypatch.setattr(RelationsWriter, "write", looking)
    world.write({"03.md": "# Bread\nrye flour\n"})
    world.run("sync", paths=["03.md"])
    assert seen == [before]
    with closing(world.engine()) as engine:
        assert engine.index_version == str(int(before) + 1)


def test_what_the_related_notes_lack_after_a_crash_is_done_without_a_new_embedding(
    world: "World", parsed: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the chunks and the related notes."""
    world.write(NOTES)
    world.run("full")
    world.write({"03.md": "# Bread\nrye flour\n", "New.md": "# Rye\nrye flour\n"})

    def dies(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(RelationsWriter, "write", dies)
        world.run("sync")
    assert sorted(owed(world)) == ["03.md", "New.md"]
    parsed.clear()
    tally = world.run("sync").tally
    assert (tally.touched, tally.embedded_chunks, tally.reused_chunks) == (2, 0, 2)
    assert parsed == {"03.md": 1, "New.md": 1}
    assert owed(world) == []
    assert "03.md" in related(world, "New.md")


def test_relations_that_broke_before_a_crash_get_what_they_lack(
    world: "World", monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write(NOTES)
    world.run("full")
    world.write({"03.md": "# Bread\nrye flour\n"})

    def breaks(*_: object, **__: object) -> None:
        raise IndexCorrupted("broken", "Run `obsidian-rag sync`.")

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Rows, "put", breaks)
        patched.setattr(RelationsWriter, "start_over", dies)
        patched.setattr(RelationsWriter, "close", lambda _: None)
        world.run("sync")
    assert owed(world) == []
    world.run("sync", paths=["05.md"])
    with closing(world.engine()) as engine:
        titles = {card.path: card.title for card in known_notes(engine.relations)}
    assert titles["03.md"] == "Bread"


def test_lost_relations_are_made_again_without_a_change_to_the_chunks(
    world: "World", parsed: Counter[str]
) -> None:
    world.write(NOTES)
    world.run("full")
    before, expected = world.rows(), related(world, "03.md")
    for suffix in ("", "-wal", "-shm"):
        (world.home / f"relations.db{suffix}").unlink(missing_ok=True)
    parsed.clear()
    assert world.run("sync").tally.touched == 0
    assert parsed == dict.fromkeys(NOTES, 1)
    assert world.rows() == before
    assert related(world, "03.md") == expected


def test_a_note_that_is_missing_for_a_moment_is_not_taken_out_of_the_relations_alone(
    world: "World",
) -> None:
    world.write(NOTES)
    world.run("full")
    (world.home / "relations.db").unlink()
    (world.vault / "03.md").unlink()
    assert "04.md" in related(world, "05.md")  # which makes them again
    assert owed(world) == ["03.md"]
    world.run("sync")
    assert owed(world) == []


def test_a_file_that_cannot_be_read_is_owed_once_and_no_longer_than_that(
    world: "World", monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write(NOTES)

    def refused(root: Path, rel: str) -> IO[bytes]:
        if rel == "03.md":
            raise PermissionError(rel)
        return open_inside(root, rel)

    with monkeypatch.context() as patched:
        patched.setattr("obsidian_rag.vault.read.open_inside", refused)
        for _ in range(2):
            world.run("sync")
            assert queued(world) == ["03.md"]
    world.run("sync")
    assert queued(world) == []


def queued(world: "World") -> list[str]:
    """The paths in all rows of the queue."""
    with closing(world.engine()) as engine:
        return [str(path) for (path,) in engine.database.rows("SELECT rel_path FROM sync_queue")]
