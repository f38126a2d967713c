"""The switch that a note has (`rag:`) holds from the next answer on, before any sync."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from obsidian_rag import config
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.tools import AGENT, OWNER, SCREENED, Caller, Scope, call, listed_notes
from obsidian_rag.transports.http.web.note import read_note

SEARCH, RELATED = "obsidian_rag_search", "obsidian_rag_related"
SUGGEST = "obsidian_rag_suggest_relations"
STATUS, INDEX = "obsidian_rag_status", "obsidian_rag_index"
# Old enough for a timestamp to be trusted.
OLD_NS = 1_700_000_000_000_000_001


def write(root: Path, path: str, text: str) -> None:
    file = root / "vault" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def indexed(root: Path, notes: dict[str, str]) -> Engine:
    for path, text in notes.items():
        write(root, path, text)
        os.utime(root / "vault" / path, ns=(OLD_NS, OLD_NS))
    tree = {"vault_path": str(root / "vault"), "embedding": {"provider": "hash"}}
    config.save(tree, root / "home" / "config.json")
    engine = Engine(config.load({}, {"OBSIDIAN_RAG_HOME": str(root / "home")}))
    run_index(engine, Mode.FULL)
    return engine


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    words = "copper kettle with a bent handle"
    notes = {"Kettle.md": f"# Kettle\n\n{words}\n", "Pot.md": f"# Pot\n\n{words}\n"}
    with closing(indexed(tmp_path, notes)) as found:
        yield found


@contextmanager
def watching_opens(root: Path, opened: list[str]) -> Iterator[None]:
    """Collect the files below a folder that Python opens meanwhile."""
    is_on = True

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if is_on and event == "open":
            name = str(arguments[0])
            if name.endswith(".md") or name.startswith(str(root)):
                opened.append(name)

    sys.addaudithook(note)  # there is no way to remove one
    yield
    is_on = False


def found(engine: Engine, caller: Caller = AGENT, **more: object) -> set[str]:
    envelope: Any = call(engine, SEARCH, {"query": "copper kettle", **more}, caller)
    return {one["source_file"] for one in envelope["data"]["results"]}


def related(engine: Engine) -> set[str]:
    envelope: Any = call(engine, RELATED, {"note": "Pot.md"})
    return {one["source_file"] for one in envelope["data"]["results"]}


@pytest.mark.parametrize("rag", ["private", "false", "[private]", "hidden"])
def test_a_note_that_was_made_private_is_left_out_before_any_sync(
    engine: Engine, tmp_path: Path, rag: str
) -> None:
    assert (found(engine), related(engine)) == ({"Kettle.md", "Pot.md"}, {"Kettle.md"})
    write(tmp_path, "Kettle.md", f"---\nrag: {rag}\n---\n# Kettle\n\ncopper kettle\n")
    assert (found(engine), related(engine)) == ({"Pot.md"}, set())
    assert [path for path, _ in listed_notes(engine, "", 10)[0]] == ["Pot.md"]
    assert found(engine, OWNER) == {"Kettle.md", "Pot.md"}


def test_with_consent_a_note_that_was_made_private_is_shown_and_marked(
    engine: Engine, tmp_path: Path
) -> None:
    write(tmp_path, "Kettle.md", "---\nrag: private\n---\n# Kettle\n\ncopper kettle\n")
    arguments = {"query": "copper kettle", "confirm_sensitive": True}
    envelope: Any = call(engine, SEARCH, arguments)
    marks = {one["source_file"]: one["sensitive_categories"] for one in envelope["data"]["results"]}
    assert marks == {"Kettle.md": ["private"], "Pot.md": []}
    write(tmp_path, "Kettle.md", "---\nrag: false\n---\n# Kettle\n\ncopper kettle\n")
    assert found(engine, confirm_sensitive=True) == {"Pot.md"}


@pytest.mark.parametrize("rag", ["private", "false"])
def test_behind_the_privacy_screen_a_note_that_was_made_private_is_hidden(
    engine: Engine, tmp_path: Path, rag: str
) -> None:
    write(tmp_path, "Shelf.md", "# Shelf\n\nSee ![[Kettle]]\n")
    run_index(engine, Mode.SYNC)
    assert "bent" in json.dumps(read_note(engine, {"path": "Shelf.md"}, SCREENED))
    write(tmp_path, "Kettle.md", f"---\nrag: {rag}\n---\n# Kettle\n\ncopper, bent handle\n")
    assert "bent" not in json.dumps(read_note(engine, {"path": "Shelf.md"}, SCREENED))
    shown: Any = call(engine, SEARCH, {"query": "copper kettle"}, SCREENED)
    texts = {one["source_file"]: one["chunk_text"] for one in shown["data"]["results"]}
    assert (texts["Kettle.md"], "bent" in texts["Pot.md"]) == ("", True)
    for tool, asked in ((RELATED, {"note": "Pot.md"}), (SUGGEST, {"note": "Pot.md"})):
        told: Any = call(engine, tool, asked, SCREENED)["data"]
        (kettle,) = [one for one in told["results"] if one["source_file"] == "Kettle.md"]
        assert (kettle["withheld"], kettle["shared_terms"]) == (True, [])
        assert "bent" not in json.dumps(kettle)


def test_a_note_that_was_deleted_or_moved_is_left_out(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "vault" / "Kettle.md").rename(tmp_path / "vault" / "Moved.md")
    assert (found(engine), related(engine)) == ({"Pot.md"}, set())
    assert [path for path, _ in listed_notes(engine, "", 10)[0]] == ["Pot.md"]


def test_notes_in_a_folder_that_was_renamed_are_left_out(tmp_path: Path) -> None:
    notes = {f"Notes/n{number}.md": "copper kettle" for number in range(3)}
    with closing(indexed(tmp_path, notes)) as engine:
        (tmp_path / "vault" / "Notes").rename(tmp_path / "vault" / "Renamed")
        assert found(engine) == set()
        assert listed_notes(engine, "", 10)[0] == []


def test_a_note_that_was_made_private_is_left_out_though_many_others_are_gone(
    tmp_path: Path,
) -> None:
    names = [f"{folder}/n{number}.md" for folder in "AMZ" for number in range(5)]
    with closing(indexed(tmp_path, dict.fromkeys(names, "copper kettle"))) as engine:
        shutil.rmtree(tmp_path / "vault" / "A")
        shutil.rmtree(tmp_path / "vault" / "Z")
        write(tmp_path, "M/n2.md", "---\nrag: private\n---\ncopper kettle\n")
        assert found(engine, max_results=50) == {f"M/n{number}.md" for number in (0, 1, 3, 4)}


def test_an_edit_that_keeps_a_note_public_keeps_it_in_the_answer(
    engine: Engine, tmp_path: Path
) -> None:
    write(tmp_path, "Kettle.md", "# Kettle\n\ncopper kettle, mended\n")
    assert found(engine) == {"Kettle.md", "Pot.md"}


def test_while_the_vault_is_away_the_indexed_policy_holds(tmp_path: Path) -> None:
    notes = {"a.md": "copper kettle", "b.md": "---\nrag: private\n---\ncopper kettle"}
    with closing(indexed(tmp_path, notes)) as engine:
        shutil.move(tmp_path / "vault", tmp_path / "away")
        assert found(engine) == {"a.md"}
        (tmp_path / "vault").mkdir()  # a mount point without its disk
        assert found(engine) == {"a.md"}


def test_an_unchanged_note_is_not_opened_and_few_changed_ones_are(tmp_path: Path) -> None:
    notes = {f"n{number:03}.md": f"copper kettle {number}" for number in range(60)}
    with closing(indexed(tmp_path, notes)) as engine:
        unreadable = tmp_path / "vault" / "n000.md"
        status = unreadable.stat()
        unreadable.write_bytes(b"\0" * status.st_size)  # opening it would show that it changed
        os.utime(unreadable, ns=(OLD_NS, OLD_NS))
        assert len(listed_notes(engine, "", 100)[0]) == 60
        for path, text in notes.items():
            if path != "n000.md":
                write(tmp_path, path, f"{text} changed")
        # Those beyond the 50 that are read are left out.
        assert len(listed_notes(engine, "", 100)[0]) == 51


def test_a_symlink_out_of_the_scope_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    write(tmp_path, "Secret/Note.md", "copper kettle zorblatt")
    (tmp_path / "vault" / "Projects").mkdir()
    (tmp_path / "vault" / "Projects" / "link.md").symlink_to("../Secret/Note.md")
    notes = {"Projects/open.md": "copper pot", "Projects/other.md": "copper kettle pot"}
    limited = Caller(scope=Scope(folders=("Projects",)))
    with closing(indexed(tmp_path, notes)) as engine:
        assert "Projects/link.md" in found(engine)
        assert found(engine, limited) == set(notes)
        asked: Any = call(engine, RELATED, {"note": "Projects/open.md"}, limited)
        assert "link.md" not in json.dumps(asked)
        paths = [path for path, _ in listed_notes(engine, "", 10, limited)[0]]
        assert paths == sorted(notes)
        # Words that only the note outside has find nothing.
        spelt: Any = call(engine, SEARCH, {"query": "zorblatt"}, limited)
        assert "zorblatt" not in json.dumps(spelt)


def test_status_opens_no_note_and_names_no_file_whose_policy_is_unknown(tmp_path: Path) -> None:
    broken = "title: {{title}}"
    notes = {
        "Odd.md": f"---\n{broken}\n---\ncopper",
        "Own.md": f"---\n{broken}\nrag: private\n---\ncopper",
        "Binary.md": "---\nrag: private\n---\n\0\0\0",
    }
    with closing(indexed(tmp_path, notes)) as engine:
        opened: list[str] = []
        with watching_opens(tmp_path / "vault", opened):
            told: Any = call(engine, STATUS, {})["data"]
            job: Any = call(engine, INDEX, {"mode": "sync"})["data"]
            before_sync = [path for path in opened if "Binary" not in path]
        assert [one["file"] for one in told["notices"]] == ["Odd.md"]
        assert "Binary" not in json.dumps([told, job])
        assert before_sync == []
        owned: Any = call(engine, STATUS, {}, OWNER)["data"]
        assert {one["file"] for one in owned["notices"]} == set(notes)


def test_notices_quote_no_property_to_agents_or_behind_the_privacy_screen(tmp_path: Path) -> None:
    with closing(indexed(tmp_path, {"Odd.md": "---\nrag: zqword\n---\ncopper"})) as engine:
        said = {who: json.dumps(call(engine, STATUS, {}, who)) for who in (OWNER, SCREENED, AGENT)}
    assert {who for who in said if "zqword" in said[who]} == {OWNER}
    assert "unknown value" in said[SCREENED]
