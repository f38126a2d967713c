"""One parsed note in, what the indexes need of it out."""

import json

import numpy as np
import pytest

from obsidian_rag.notes import Relation, parse_note
from obsidian_rag.relations.content import Content, read_content
from obsidian_rag.relations.templates import NoteLines, note_lines
from obsidian_rag.relations.words import Vocabulary

ID = "550e8400-e29b-41d4-a716-446655440000"
OTHER = "f47ac10b-58cc-4372-a567-0e02b2c3d479"


def content(
    text: str,
    path: str = "Note.md",
    *,
    max_chars: int | None = None,
) -> tuple[Content, list[str]]:
    """The content of a note, and its stream as terms."""
    vocabulary = Vocabulary()
    found = read_content(parse_note(path, text), vocabulary, max_chars)
    return found, [vocabulary.terms[number] for number in found.stream]


def said(terms: list[str]) -> list[str]:
    return [term for term in terms if term.strip()]


def test_the_frontmatter_gives_id_kind_summary_tags_and_relations() -> None:
    found, _ = content(
        f"---\nid: {ID}\nkind: knowledge\ntags: [topic-ai, Domain/Research]\n"
        f"related:\n  - {OTHER}\nsummary: What it is about.\naliases: [Second name]\n---\n# First\n"
    )
    assert (found.uid, found.kind, found.summary) == (ID, "knowledge", "What it is about.")
    assert found.tags == ("topic-ai", "domain/research")
    assert found.related == (Relation(OTHER),)
    assert found.title == "First"


@pytest.mark.parametrize(
    ("field", "uid"),
    [
        (f"id: {ID}", ID),
        (f"uuid: {ID}", ID),
        (f"uuid: {OTHER}\nid: {ID}", ID),
        (f"id: {ID.upper()}", None),
        ("id: 12", None),
        ("id:", None),
        ("title: none", None),
    ],
)
def test_only_a_good_id_counts_and_the_older_field_does_too(field: str, uid: str | None) -> None:
    assert content(f"---\n{field}\n---\n")[0].uid == uid


@pytest.mark.parametrize(("field", "kind"), [("kind: a", "a"), ("type: b", "b"), ("x: c", "")])
def test_the_kind_is_read_from_either_field(field: str, kind: str) -> None:
    assert content(f"---\n{field}\n---\n")[0].kind == kind


def test_relations_are_read_in_both_formats() -> None:
    found, _ = content(
        f"---\nrelated:\n  - {ID}\n  - id: {OTHER}\n    rel: supports\n    auto: true\n"
        f"  - uuid: {OTHER}\n  - '[[Pond]]'\n---\n"
    )
    assert found.related == (
        Relation(ID),
        Relation(OTHER, "supports", True),
        Relation(OTHER),
        Relation("Pond", is_link=True),
    )


def test_tags_of_the_text_count_in_lower_case_and_once() -> None:
    assert content("---\ntags: [Water]\n---\n#water and #Sedge")[0].tags == ("water", "sedge")


def test_links_are_named_once_and_without_their_anchors() -> None:
    found, _ = content("[[Pond#Depth|deep]] [[Pond]] [b](Bog.md) [x](https://x.example) ![[Map]]")
    assert found.links == ("Pond", "Bog.md", "Map")


@pytest.mark.parametrize(
    ("path", "is_daily"),
    [("Journal/2024-03-10.md", True), ("Pond.md", False), ("Plan 2024.md", False)],
)
def test_a_note_named_by_a_day_is_daily(path: str, is_daily: bool) -> None:
    assert content("text", path)[0].is_daily is is_daily


def test_a_private_note_says_so() -> None:
    assert content("---\nrag: private\n---\nx")[0].is_private
    assert not content("x")[0].is_private


def test_the_stream_begins_below_the_frontmatter() -> None:
    found, stream = content("---\ntags: [hidden]\n---\n\nPond\n\nsedge")
    assert found.lines.first == 4
    assert stream == ["\n", "pond", "\n", "\n", "sedg"]


def test_code_is_not_text() -> None:
    assert said(content("pond\n```js\nconstructor\n```\nsedge")[1]) == ["pond", "sedg"]


def test_lines_of_the_boilerplate_are_told_from_the_notes_own() -> None:
    found, stream = content("## Tasks\npond\n\n## Tasks\nsedge")
    assert said(stream) == ["task", "pond", "task", "sedg"]
    templates = np.sort(note_lines(1, ["## Tasks", "nothing"]).numbers)
    lines = np.array([1, 2, 4, 5], dtype=np.int32)
    for lines_of in (found.lines, NoteLines.unpacked(found.lines.packed())):
        assert lines_of.is_own(lines, templates).tolist() == [False, True, False, True]
        assert lines_of.numbers.tolist()[2] == 0


def test_only_so_many_characters_are_read_if_the_setting_says_so() -> None:
    text = "pond " * 300 + "sedge"
    assert set(said(content(text)[1])) == {"pond", "sedg"}
    assert set(said(content(text, max_chars=1000)[1])) == {"pond"}
    assert len(said(content(text, max_chars=1000)[1])) == 200


def test_names_are_the_title_the_file_and_the_aliases_each_once() -> None:
    vocabulary = Vocabulary()
    note = parse_note(
        "Notes/rain_garden-plan.md",
        "---\naliases: [Rain garden plan, The Bog, of the]\n---\n# Water\n",
    )
    phrases = read_content(note, vocabulary, None).phrases
    assert [[vocabulary.terms[term] for term in phrase] for phrase in phrases] == [
        ["water"],
        ["rain", "garden", "plan"],
        ["bog"],
    ]


def test_a_long_name_and_a_long_summary_are_cut() -> None:
    found, _ = content(f"---\nsummary: {'word ' * 200}\n---\n", "a1 " * 40 + ".md")
    assert len(found.summary) == 500
    assert max(map(len, found.phrases)) == 12


@pytest.mark.parametrize("text", ["", "\n", "---\n---\n", "---\ntags: []\n---"])
def test_an_empty_note_has_no_words(text: str) -> None:
    found, stream = content(text, "Empty.md")
    assert said(stream) == []
    assert found.title == "Empty"


def test_broken_yaml_leaves_the_text() -> None:
    found, stream = content("---\ntags: [a\nid: {\n---\nsedge")
    assert (found.uid, found.related) == (None, ())
    assert said(stream) == ["sedg"]


def test_the_text_of_a_canvas_counts() -> None:
    nodes = [
        {"id": "1", "type": "text", "text": "sedge [[Pond]]", "x": 0, "y": 0},
        {"id": "2", "type": "file", "file": "Bog.md", "x": 0, "y": 0},
    ]
    found, stream = content(json.dumps({"nodes": nodes, "edges": []}), "Plan.canvas")
    assert said(stream)[0] == "sedg"
    assert {"Pond", "Bog.md"} <= set(found.links)


def test_a_broken_canvas_is_a_note_without_text() -> None:
    assert said(content("{", "Plan.canvas")[1]) == []
