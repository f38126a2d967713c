import uuid
from collections.abc import Mapping

import pytest

from obsidian_rag.notes import (
    NoteId,
    Relation,
    make_id,
    parse_note,
    read_id,
    read_kind,
    read_related,
    read_summary,
)
from obsidian_rag.notes.identity import id_trouble

V4 = "550e8400-e29b-41d4-a716-446655440000"
OTHER = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
V1 = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


def fields(yaml_text: str) -> Mapping[str, object]:
    note = parse_note("n.md", f"---\n{yaml_text}\n---\n")
    assert note.parse_error is None
    return note.frontmatter


def test_id_rule_a_valid_uuid_v4_in_lower_case_with_hyphens_and_36_characters_is_good() -> None:
    assert len(V4) == 36
    assert read_id(fields(f'id: "{V4}"')) == NoteId(V4, "id")
    assert read_id(fields(f"id: {V4}")) == NoteId(V4, "id")


@pytest.mark.parametrize("variant", "89ab")
def test_id_rule_the_variant_of_a_uuid_v4_is_8_9_a_or_b(variant: str) -> None:
    assert id_trouble(f"550e8400-e29b-41d4-{variant}716-446655440000") == ""


@pytest.mark.parametrize(
    ("value", "trouble"),
    [
        (V4.upper(), "not_lower_case"),
        (V4[:-1] + "A", "not_lower_case"),
        (V1, "not_v4"),
        (V1.upper(), "not_v4"),
        ("550e8400-e29b-41d4-c716-446655440000", "not_v4"),
        ("00000000-0000-0000-0000-000000000000", "not_v4"),
        (V4.replace("-", ""), "not_hyphenated"),
        ("{" + V4 + "}", "not_hyphenated"),
        (f"urn:uuid:{V4}", "not_hyphenated"),
        ("550e-8400e29b-41d4-a716-446655440000", "not_hyphenated"),
        (V4[:-1], "not_a_uuid"),
        (V4 + "0", "not_a_uuid"),
        (V4 + "\n", "not_a_uuid"),
        (f" {V4}", "not_a_uuid"),
        (V4.replace("5", "٥"), "not_a_uuid"),
        (V4.replace("e", "g"), "not_a_uuid"),
        ("202401051200", "not_a_uuid"),
        (202401051200, "not_a_uuid"),
        (1.5, "not_a_uuid"),
        (True, "not_text"),
        ([V4], "not_text"),
        ({"id": V4}, "not_text"),
    ],
)
def test_id_rule_anything_else_is_told_by_what_is_wrong_with_it(
    value: object, trouble: str
) -> None:
    assert id_trouble(value) == trouble
    found = read_id({"id": value})
    assert found is not None
    assert (found.field, found.trouble) == ("id", trouble)
    assert found.value == ("" if trouble == "not_text" else str(value))


def test_ids_are_compared_in_lower_case() -> None:
    found = read_id({"id": V4.upper()})
    assert found is not None and found.key == V4


def test_the_legacy_uuid_field_is_read_if_id_is_absent() -> None:
    assert read_id(fields(f"uuid: {V4}")) == NoteId(V4, "uuid")
    assert read_id(fields(f"uuid: {OTHER}\nid: {V4}")) == NoteId(V4, "id")


@pytest.mark.parametrize("empty", ["id:", "id: ''", "id: '  '", "id: ~", "title: x"])
def test_an_empty_id_is_none(empty: str) -> None:
    assert read_id(fields(empty)) is None
    assert read_id(fields(f"{empty}\nuuid: {V4}")) == NoteId(V4, "uuid")


def test_a_good_uuid_counts_before_an_id_that_means_something_else() -> None:
    assert read_id(fields(f"id: 202401051200\nuuid: {V4}")) == NoteId(V4, "uuid")
    assert read_id(fields("id: 7\nuuid: 8")) == NoteId("7", "id", "not_a_uuid")


def test_field_names_are_read_in_any_case() -> None:
    assert read_id(fields(f"ID: {V4}")) == NoteId(V4, "id")
    assert read_id(fields(f"UUID: {V4}")) == NoteId(V4, "uuid")
    assert read_related(fields(f"Related: [{V4}]")) == (Relation(V4),)


def test_a_made_id_is_a_good_one_and_never_the_same() -> None:
    made = {make_id() for _ in range(100)}
    assert len(made) == 100
    assert {id_trouble(one) for one in made} == {""}
    assert {uuid.UUID(one).version for one in made} == {4}


def test_related_in_the_simple_format_an_array_of_ids() -> None:
    found = read_related(fields(f'related:\n- "{V1}"\n- "{OTHER}"'))
    assert found == (Relation(V1), Relation(OTHER))


def test_related_in_the_rich_format_with_relation_type_and_auto_flag() -> None:
    found = read_related(
        fields(
            f'related:\n  - id: "{V1}"\n    rel: "references"\n    auto: true\n'
            f'  - id: "{OTHER}"\n    rel: "supports"\n    auto: false'
        )
    )
    assert found == (Relation(V1, "references", True), Relation(OTHER, "supports"))


def test_the_rich_format_accepts_the_legacy_uuid_and_prefers_id() -> None:
    found = read_related(
        fields(
            f"related:\n- uuid: {V4}\n  rel: r\n- {{id: {V1}, uuid: {OTHER}}}\n"
            f"- id:\n  uuid: {OTHER}"
        )
    )
    assert found == (Relation(V4, "r"), Relation(V1), Relation(OTHER))


def test_both_formats_and_links_may_be_mixed() -> None:
    found = read_related(
        fields(f'related: [{V4}, {{id: {OTHER}, auto: true}}, "[[Folder/Note#Part|words]]"]')
    )
    assert found == (
        Relation(V4),
        Relation(OTHER, "", True),
        Relation("Folder/Note", is_link=True),
    )


def test_a_single_text_is_a_list_of_one() -> None:
    assert read_related(fields(f"related: {V4.upper()}")) == (Relation(V4),)
    assert read_related(fields(f"related: [[{V4}]]")) == (Relation(V4),)
    assert read_related(fields('related: "[[A]], [B](c/d.md)"')) == (
        Relation("A", is_link=True),
        Relation("c/d.md", is_link=True),
    )
    assert read_related(fields(f"related: {{id: {V4}, rel: of}}")) == (Relation(V4, "of"),)


@pytest.mark.parametrize(
    ("yaml_text", "name"),
    [
        ("related: [[Note]]", "Note"),
        ("related:\n  - [[A note, with a comma]]", "A note, with a comma"),
        ("related:\n  - [[Note|words]]", "Note"),
        ('related:\n  - {id: "[[Note]]"}', "Note"),
        ("related: [[2024]]", "2024"),
    ],
)
def test_a_link_without_quotes_is_a_link_all_the_same(yaml_text: str, name: str) -> None:
    assert read_related(fields(yaml_text)) == (Relation(name, is_link=True),)


@pytest.mark.parametrize(
    "empty", ["related:", "related: []", "related: ''", "related: ['', ~]", "a: 1"]
)
def test_nothing_related_is_no_trouble(empty: str) -> None:
    assert read_related(fields(empty)) == ()


@pytest.mark.parametrize(
    "odd",
    [
        "Some note",
        "7",
        "true",
        "{rel: x}",
        "{id: 7}",
        '"[[#Head]]"',
        "https://e.org/",
        "[]",
        "{}",
        "[{}]",
    ],
)
def test_an_odd_entry_is_left_out_and_the_others_are_kept(odd: str) -> None:
    found = read_related(fields(f"related:\n  - {V4}\n  - {odd}\n  - {OTHER}"))
    assert found == (Relation(V4), Relation(OTHER))


def test_the_word_for_a_relation_may_be_a_number_and_auto_is_true_or_not() -> None:
    found = read_related({"related": [{"id": V4, "rel": 7, "auto": "x"}, {"id": OTHER, "rel": []}]})
    assert found == (Relation(V4, "7"), Relation(OTHER))


def test_the_same_entry_twice_is_one_relation() -> None:
    assert read_related({"related": [V4, V4.upper(), V4]}) == (Relation(V4),)


def test_kind_is_free_text_and_type_is_its_older_name() -> None:
    assert read_kind(fields("kind: knowledge\ntype: npc")) == "knowledge"
    assert read_kind(fields("type: npc")) == "npc"
    assert read_kind(fields("kind: 7")) == "7"
    assert read_kind(fields("kind: [a]")) == ""
    assert read_kind({}) == ""


def test_summary_is_the_authors_sentence() -> None:
    assert read_summary(fields('summary: " One sentence. "')) == "One sentence."
    assert read_summary({"summary": None}) == ""


def test_the_seeds_own_note_is_read_whole() -> None:
    values = fields(
        f'id: "{V4}"\nkind: knowledge\nstatus: raw\ncreated: "2026-04-07"\nmodified: "2026-04-07"\n'
        "tags: [topic-ai, domain-research]\nrelated: []\n"
        'summary: "One-sentence description of this note."'
    )
    assert read_id(values) == NoteId(V4, "id")
    assert read_kind(values) == "knowledge"
    assert read_related(values) == ()
    assert read_summary(values) == "One-sentence description of this note."
