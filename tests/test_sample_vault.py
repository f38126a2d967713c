"""The demo vault in `samples/vault` keeps the promises its notes and questions make."""

import json
import re
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
VAULT = SAMPLES / "vault"
BOARD = VAULT / "Boards" / "Home office.canvas"
TEMPLATE = "Templates/Daily note.md"

# `Places/Kyoto 2025.md` links to a trip that has not been written up: the one dangling link.
DANGLING = "Hokkaido 2027"

FRONTMATTER = re.compile(r"\A---\r?\n(.*?)^---\r?$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
WIKILINK = re.compile(r"\[\[([^\[\]|\\]+)(?:\\?\|[^\[\]]*)?\]\]")


def notes() -> dict[str, str]:
    found = sorted(VAULT.rglob("*.md"))
    return {p.relative_to(VAULT).as_posix(): p.read_bytes().decode() for p in found}


def properties(text: str) -> dict[str, Any]:
    match = FRONTMATTER.match(text)
    loaded = yaml.safe_load(match[1]) if match else None
    return loaded if isinstance(loaded, dict) else {}


def readable() -> dict[str, dict[str, Any]]:
    """The properties of every note but the template, whose YAML is broken on purpose."""
    return {path: properties(text) for path, text in notes().items() if path != TEMPLATE}


def note_ids() -> dict[str, str]:
    found = {path: props.get("id", props.get("uuid")) for path, props in readable().items()}
    return {path: str(note_id) for path, note_id in found.items() if note_id is not None}


def links() -> list[tuple[str, str]]:
    return [
        (path, target.strip())
        for path, text in notes().items()
        for target in WIKILINK.findall(CODE.sub("", text))
    ]


def targets() -> dict[str, str]:
    """Every name a link may use, and the path of the note it leads to."""
    found = {BOARD.name: ""}
    for path, props in readable().items():
        found |= dict.fromkeys(props.get("aliases", []), path)
    found |= {Path(path).stem: path for path in notes()}
    return found


def questions() -> list[dict[str, Any]]:
    loaded = json.loads((SAMPLES / "questions.json").read_text(encoding="utf-8"))
    assert isinstance(loaded, list)
    return loaded


def test_the_vault_has_the_size_of_a_demo() -> None:
    assert 55 <= len(notes()) <= 75


def test_it_opens_as_a_vault_in_obsidian() -> None:
    assert json.loads((VAULT / ".obsidian" / "app.json").read_text(encoding="utf-8")) == {}


def test_no_two_notes_share_a_file_name() -> None:
    names = Counter(Path(path).name.casefold() for path in notes())
    assert [name for name, count in names.items() if count > 1] == []


def test_every_question_has_a_category_and_notes_that_exist() -> None:
    asked = questions()
    assert len(asked) >= 15
    assert len({question["query"] for question in asked}) == len(asked)
    for question in asked:
        assert question["category"]
        assert question["relevant"]
        for path in question["relevant"]:
            assert (VAULT / path).is_file(), path


def test_no_question_needs_the_note_that_is_never_indexed() -> None:
    hidden = {path for path, props in readable().items() if props.get("rag") is False}
    assert not hidden & {path for question in questions() for path in question["relevant"]}


def test_no_note_repeats_a_question_word_for_word() -> None:
    everything = "\n".join(notes().values()).casefold()
    assert [q["query"] for q in questions() if q["query"].casefold() in everything] == []


def test_ids_are_unique_lower_case_version_four_uuids() -> None:
    found = list(note_ids().values())
    assert len(found) >= 15
    assert len(set(found)) == len(found)
    for note_id in found:
        assert str(UUID(note_id)) == note_id
        assert UUID(note_id).version == 4


def test_an_id_is_the_first_property_of_its_note() -> None:
    for path in note_ids():
        assert next(iter(properties(notes()[path]))) in {"id", "uuid"}, path


def test_one_note_still_has_the_legacy_uuid() -> None:
    assert sum("uuid" in props for props in readable().values()) == 1


def test_related_ids_exist_in_both_forms() -> None:
    known = set(note_ids().values())
    forms = Counter[str]()
    for path, props in readable().items():
        for entry in props.get("related", []):
            rich = isinstance(entry, dict)
            forms["rich" if rich else "simple"] += 1
            assert not rich or set(entry) == {"id", "rel", "auto"}, path
            other = entry["id"] if rich else entry
            assert other in known, path
            assert other != note_ids()[path], path
    assert forms["simple"] >= 3
    assert forms["rich"] >= 3


def test_every_wikilink_but_the_documented_one_leads_to_a_note() -> None:
    known = targets()
    missing = [
        (path, link) for path, link in links() if link.split("#")[0].split("/")[-1] not in known
    ]
    assert missing == [("Places/Kyoto 2025.md", DANGLING)]


def test_every_heading_and_block_link_leads_to_a_place() -> None:
    known, texts = targets(), notes()
    placed = [link.split("#", 1) for _, link in links() if "#" in link]
    assert len(placed) >= 3
    for name, place in placed:
        lines = texts[known[name]].splitlines()
        if place.startswith("^"):
            assert any(line.endswith(f" {place}") for line in lines), place
        else:
            assert any(line.lstrip("#").strip() == place for line in lines), place


def test_exactly_one_note_is_private_and_one_is_never_indexed() -> None:
    marked = {path: props["rag"] for path, props in readable().items() if "rag" in props}
    assert marked == {"Health/Therapy notes.md": "private", "Home/Passwords hint.md": False}


def test_only_one_passage_says_what_is_owed_to_sreenivas() -> None:
    saying = [path for path, text in notes().items() if "$1,150" in text or "$3,200" in text]
    assert saying == ["Finance/Debts.md"]
    assert "## Sreenivas\n\nI owe " in notes()["Finance/Debts.md"]


def test_the_payments_to_sreenivas_add_up() -> None:
    row = re.compile(r"^\| \d{4}-\d\d-\d\d \| \$(\d+) \| \$([\d,]+) \|$", re.MULTILINE)
    left = 3200
    for paid, remaining in row.findall(notes()["Finance/Debts.md"]):
        left -= int(paid)
        assert left == int(remaining.replace(",", ""))
    assert left == 1150


def test_the_canvas_is_valid_and_one_node_stands_on_each_line() -> None:
    text = BOARD.read_text(encoding="utf-8")
    board = json.loads(text)
    assert {node["type"] for node in board["nodes"]} == {"text", "file", "group"}
    ids = [node["id"] for node in board["nodes"]]
    assert len(set(ids)) == len(ids)
    for node in board["nodes"]:
        assert text.count(f'\n\t\t{{"id":"{node["id"]}"') == 1
        if node["type"] == "file":
            assert (VAULT / node["file"]).is_file()
    assert board["edges"]
    for edge in board["edges"]:
        assert {edge["fromNode"], edge["toNode"]} <= set(ids)


def test_the_journal_is_dated_and_spread_over_the_years() -> None:
    journal = [path for path in notes() if path.startswith("Journal/")]
    years = Counter(date.fromisoformat(Path(path).stem).year for path in journal)
    assert set(years) == {2023, 2024, 2025, 2026}
    assert "Journal/2023/2023-10-14.md" in journal
    moods = [p for p in journal if "/2024-" in p and "\n#mentalhealth\n" in notes()[p]]
    assert len(moods) >= 3


def test_books_have_a_numeric_rating() -> None:
    books = [props for path, props in readable().items() if path.startswith("Reading/")]
    assert books
    for book in books:
        assert isinstance(book["rating"], int)
        assert isinstance(book["year"], int)
        assert book["author"]


def test_people_have_aliases_and_birthdays() -> None:
    people = [props for path, props in readable().items() if path.startswith("People/")]
    assert 6 <= len(people) <= 8
    for person in people:
        assert person["aliases"]
        assert isinstance(person["birthday"], date)


def test_the_awkward_notes_stay_awkward() -> None:
    texts = notes()
    assert [path for path, text in texts.items() if "\r\n" in text] == ["Shopping/Costco.md"]
    assert texts["Projects/Sauna in the shed.md"] == "# Sauna in the shed\n"
    assert len(texts["Home/House manual.md"]) > 7500
    with pytest.raises(yaml.YAMLError):
        properties(texts[TEMPLATE])
