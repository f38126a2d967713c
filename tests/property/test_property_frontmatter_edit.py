"""Editing a frontmatter puts one piece of text in and changes nothing else, or is refused."""

import contextlib
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_rag.notes import (
    EditRefused,
    NoteId,
    Relation,
    parse_note,
    read_id,
    read_related,
    split_frontmatter,
    with_id,
    with_related,
)

unhurried = settings(deadline=None, max_examples=400)

ID = "550e8400-e29b-41d4-a716-446655440000"
A = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
B = "f47ac10b-58cc-4372-a567-0e02b2c3d479"

# Fields that may stand in any order, as the top level of one frontmatter.
CALM = [
    "title: A title",
    'quoted: "it\'s: # \\" quoted"   # why',
    "single: 'it''s'",
    "tags: [a,  b , 'c d']",
    "list:\n- a\n-   b # why\n\n- c",
    "deep:\n    related:\n      - x\n    id: 7",
    "flow: {related: [1, {id: 2}], id: {uuid: 3}}",
    "literal: |\n  related:\n  - x\n   id: 1",
    "kept: |+\n  x\n\n\n",
    "stripped: >-\n  folded\n  text\n",
    "plain: several\n  lines of\n  text",
    "empty:",
    "empty_quoted: ''",
    "none: ~",
    "number: 1.50",
    "flag: true",
    "date: 2024-01-05",
    "emoji: 🎉 naïve 漢字\u00a0x",
    "🎉: key",
    '"related ": x',
    "related_to: [x]",
    "uuid:",
    "? explicit\n: value",
    "? |\n  several\n  lines\n: value",
    "'quoted key': value",
    "anchored: &one [1, 2]",
    "anchored_map: &two\n  a: 1",
    "nothing: !!str",
    "trailing:   spaces   ",
    "# a comment",
    "  # an indented comment",
    "",
    "   ",
]
RELATED = [
    "related:",
    "related:   # why",
    "related:\n  # why",
    "related: []",
    "related: [ ]   # why",
    f"related: [{B}]",
    f"related: [ '{B}' , ]",
    f"related: [\n  {B}, # why\n  '[[N]]'   # why\n  ]",
    f"related: [{{id: {B}, rel: of}}]",
    f"related:\n- {B}",
    f"related:\n- {B}   # why\n# after",
    f"related:\n     - '[[N]]'\n\n     -   id: {B}\n         auto: true",
    "related:\n  -",
    "related:\n  - |\n    text\n\n",
    "related:\n  - >+\n    text\n\n\n",
    f"related: {B}",
    'related: "[[N]]"   # why',
    f'"related": [{B}]',
    f"Related:\n- {B}",
    f"related: &three\n  - {B}",
    f"related: &four [{B}]",
]
WILD = [
    "related: [[N]]",
    "related: {id: x}",
    "related:\n  id: x",
    "related: a\n  b",
    "related: |\n  x",
    "related: ~",
    "related: *one",
    "alias: *one",
    "alias: *three",
    "alias: *four",
    "merged:\n  <<: *two",
    "<<: *two",
    "? related\n: - x",
    "? related\n: - x\n  - y",
    "? related",
    "related: [a: b]",
    "related: !!seq [a]",
    "related: [&five x]",
    "related:\n- &six x\n- *six",
    "related:\n- - x",
    "related:\n-\tx",
    "id:",
    "id: ''",
    "id: ~",
    "id: 7",
    f"id: {ID}",
    f"uuid: {B}",
    "ID:",
    "? id",
    "? id\n:",
    "{a: b}",
    "- x",
    "text",
    "--- x",
    "%YAML 1.1",
    "a: b: c",
    "a: 'open",
    "a: [open",
    "a:\tb",
    "\ta: b",
    "&root",
    "!!map",
    "a: \u2028b",
    "# \x85 c: d",
    "a: \ufeff",
    "related: \u2028",
    "@: x",
    "a: {{x}}",
]
bodies = st.one_of(
    st.sampled_from(["", "body", "# T\n\nbody\n", "---\n", "\n---\nid: 1\n---\n", "related: []\n"]),
    st.text(max_size=40),
)
line_ends = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def notes(draw: st.DrawFn, fields: st.SearchStrategy[list[str]]) -> str:
    lines = "".join(f"{field}\n" for field in draw(fields))
    indent = draw(st.sampled_from(["", "", "", "  "]))
    if indent:
        lines = "".join(f"{indent}{line}" for line in lines.splitlines(keepends=True))
    closing = draw(st.sampled_from(["---\n", "---  \n", "...\n"]))
    opening = draw(st.sampled_from(["---\n", "--- \n", "\ufeff---\n"]))
    text = (opening + lines + closing).replace("\n", draw(line_ends)) + draw(bodies)
    return draw(st.sampled_from([text, text, text, text.rstrip("\r\n")]))


def shuffled(*pieces: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    together = st.tuples(*pieces).map(lambda lists: [field for some in lists for field in some])
    return together.flatmap(st.permutations).map(list)


calm_fields = st.lists(st.sampled_from(CALM), max_size=6, unique=True)
calm = notes(calm_fields)
calm_related = notes(
    shuffled(calm_fields, st.lists(st.sampled_from(RELATED), min_size=1, max_size=1))
)
wild = notes(
    shuffled(
        calm_fields,
        st.lists(st.sampled_from(RELATED), max_size=1),
        st.lists(st.sampled_from(WILD), max_size=3),
    )
)
ALPHABET = ["a", "id", "related", "uuid", ":", ": ", "-", "- ", "[", "]", "{", "}", ",", "#", " # "]
ALPHABET += [
    "\n",
    "\n",
    "\n  ",
    "\r\n",
    "\r",
    "'",
    '"',
    "|",
    ">",
    "&x ",
    "*x",
    "? ",
    "!t ",
    " ",
    "\t",
]
ALPHABET += [
    "---",
    "\n---\n",
    "...",
    A,
    "🎉",
    "\u2028",
    "\x85",
    "\ufeff",
    "\x00",
    "~",
    "null",
    "%",
    "\\",
]
noise = st.lists(st.sampled_from(ALPHABET), max_size=25).map(lambda parts: "---\n" + "".join(parts))
anything = st.one_of(
    wild, noise, noise.map(lambda text: f"{text}\n---\nbody"), st.text(max_size=60)
)

relations = st.lists(
    st.builds(
        Relation,
        st.sampled_from([A, B, ID]),
        st.one_of(
            st.sampled_from(["", "references", 'say "so"', "a: #b", "\\", "{[,]}", "🎉"]),
            st.text(max_size=12).filter(str.isprintable),
        ),
        st.booleans(),
    ),
    min_size=1,
    max_size=3,
)


def assert_one_insertion(before: str, after: str) -> None:
    """Taking one piece out of `after` gives `before`, byte for byte."""
    old, new = before.encode("utf-8", "surrogatepass"), after.encode("utf-8", "surrogatepass")
    assert len(new) > len(old)
    same = next((i for i, byte in enumerate(old) if new[i] != byte), len(old))
    assert old[same:] == new[len(new) - len(old) + same :]


def oracle(text: str) -> dict[object, object]:
    """The fields by another road: every scalar as written, no reading of meanings."""
    yaml_text, _, _ = split_frontmatter(text)
    tree = yaml.load(yaml_text or "", Loader=yaml.CBaseLoader)
    return tree if isinstance(tree, dict) else {}


def body_of(text: str) -> str:
    _, offset, _ = split_frontmatter(text)
    return text[offset:]


def without(tree: dict[object, object], name: str) -> list[tuple[object, object]]:
    return [(key, value) for key, value in tree.items() if str(key).lower() != name]


def assert_only_this_changed(before: str, after: str, name: str) -> None:
    assert_one_insertion(before, after)
    assert body_of(after) == body_of(before).removeprefix("\ufeff" if after[0] == "\ufeff" else "")
    assert without(oracle(after), name) == without(oracle(before), name)
    old, new = parse_note("n.md", before), parse_note("n.md", after)
    assert new.parse_error is None
    assert new.policy == old.policy
    others = [{**note.frontmatter} for note in (old, new)]
    for values in others:
        for key in [key for key in values if key.lower() == name]:
            del values[key]
    assert repr(others[0]) == repr(others[1])


def assert_id_added(before: str, after: str) -> None:
    assert_only_this_changed(before, after, "id")
    assert read_id(parse_note("n.md", after).frontmatter) == NoteId(ID, "id")
    assert ID in [str(value) for key, value in oracle(after).items() if str(key).lower() == "id"]


def assert_related_added(before: str, after: str, entries: list[Relation], rich: bool) -> None:
    old = read_related(parse_note("n.md", before).frontmatter)
    new = read_related(parse_note("n.md", after).frontmatter)
    known = {relation.target for relation in old if not relation.is_link}
    fresh: dict[str, Relation] = {}
    for entry in entries:
        if entry.target not in known:
            written = Relation(entry.target, entry.rel.strip(), entry.auto)
            fresh.setdefault(entry.target, written if rich else Relation(entry.target))
    if not fresh:
        assert after == before
        return
    assert_only_this_changed(before, after, "related")
    assert sorted(new, key=repr) == sorted((*old, *fresh.values()), key=repr)


def refused(edit: Callable[[], str]) -> bool:
    with contextlib.suppress(EditRefused):
        edit()
        return False
    return True


@unhurried
@given(calm)
def test_an_id_goes_into_any_ordinary_frontmatter(text: str) -> None:
    assert_id_added(text, with_id(text, ID))


@unhurried
@given(st.one_of(calm, calm_related), relations, st.booleans())
def test_relations_go_into_any_ordinary_frontmatter(
    text: str, entries: list[Relation], rich: bool
) -> None:
    assert_related_added(text, with_related(text, entries, rich=rich), entries, rich)


def assert_id_added_or_refused(text: str) -> None:
    with contextlib.suppress(EditRefused):
        assert_id_added(text, with_id(text, ID))


def assert_related_added_or_refused(text: str, entries: list[Relation], rich: bool) -> None:
    with contextlib.suppress(EditRefused):
        assert_related_added(text, with_related(text, entries, rich=rich), entries, rich)


@unhurried
@given(anything)
def test_an_id_is_added_and_nothing_else_or_the_edit_is_refused(text: str) -> None:
    assert_id_added_or_refused(text)


@unhurried
@given(anything, relations, st.booleans())
def test_relations_are_added_and_nothing_else_or_the_edit_is_refused(
    text: str, entries: list[Relation], rich: bool
) -> None:
    assert_related_added_or_refused(text, entries, rich)


@pytest.mark.slow
@settings(deadline=None, max_examples=5000)
@given(anything, relations, st.booleans())
def test_thousands_of_texts_are_edited_or_refused(
    text: str, entries: list[Relation], rich: bool
) -> None:
    assert_id_added_or_refused(text)
    assert_related_added_or_refused(text, entries, rich)


@unhurried
@given(anything, relations, st.booleans())
def test_an_edit_made_twice_is_made_once(text: str, entries: list[Relation], rich: bool) -> None:
    with contextlib.suppress(EditRefused):
        once = with_related(text, entries, rich=rich)
        assert with_related(once, entries, rich=not rich) == once
    with contextlib.suppress(EditRefused):
        once = with_id(text, ID)
        assert refused(lambda: with_id(once, ID))


@unhurried
@given(st.text(max_size=80).filter(lambda text: not text.removeprefix("\ufeff").startswith("---")))
def test_a_note_without_frontmatter_keeps_every_byte(text: str) -> None:
    assert_id_added(text, with_id(text, ID))


@pytest.mark.parametrize("field", [*CALM, *RELATED])
def test_each_ordinary_field_alone_can_be_edited(field: str) -> None:
    text = f"---\n{field}\n---\nbody"
    assert_id_added(text, with_id(text, ID))
    assert_related_added(text, with_related(text, [Relation(A)], rich=True), [Relation(A)], True)
