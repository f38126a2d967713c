from collections.abc import Callable

import pytest
import yaml

from obsidian_rag.notes import (
    EditRefused,
    NoteId,
    Relation,
    parse_note,
    read_id,
    read_related,
    with_id,
    with_related,
)
from obsidian_rag.notes import edit_frontmatter as yaml_fields_module

ID = "550e8400-e29b-41d4-a716-446655440000"
A = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
B = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
LINE = f'id: "{ID}"'
TO_A = Relation(A, "references", True)
TO_B = Relation(B, "supports", False)
RICH_A = f'- id: "{A}"\n  rel: "references"\n  auto: true\n'


@pytest.fixture(autouse=True, params=["CSafeLoader", "SafeLoader"])
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    # Where the C parser is not installed, Python's own must set the same marks.
    monkeypatch.setattr(yaml_fields_module, "_Loader", getattr(yaml, request.param))


def indented(text: str, by: str) -> str:
    return "".join(f"{by}{line}" for line in text.splitlines(keepends=True))


# --- with_id ---------------------------------------------------------------------------------


def test_id_rule_the_id_is_the_first_field_of_the_frontmatter() -> None:
    text = '---\n# mine\ntitle: "T"   # why\ntags: [a,  b]\n---\nbody\n'
    result = with_id(text, ID)
    assert result == f'---\n{LINE}\n# mine\ntitle: "T"   # why\ntags: [a,  b]\n---\nbody\n'
    assert next(iter(parse_note("n.md", result).frontmatter)) == "id"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("", f"---\n{LINE}\n---\n"),
        ("body", f"---\n{LINE}\n---\nbody"),
        ("# T\r\n\r\nbody", f"---\r\n{LINE}\r\n---\r\n# T\r\n\r\nbody"),
        ("# T\rbody\r", f"---\r{LINE}\r---\r# T\rbody\r"),
        ("\ufeffbody\n", f"\ufeff---\n{LINE}\n---\nbody\n"),
        ("\ufeff", f"\ufeff---\n{LINE}\n---\n"),
        ("\n---\na: 1\n---\n", f"---\n{LINE}\n---\n\n---\na: 1\n---\n"),
        ("----\nbody", f"---\n{LINE}\n---\n----\nbody"),
    ],
)
def test_a_note_without_frontmatter_gets_one(text: str, result: str) -> None:
    assert with_id(text, ID) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("---\n---\n", f"---\n{LINE}\n---\n"),
        ("---\n# only this\n---\n", f"---\n{LINE}\n# only this\n---\n"),
        ("---\r\na: 1\r\n---", f"---\r\n{LINE}\r\na: 1\r\n---"),
        ("---\ra: 1\r---\rbody", f"---\r{LINE}\ra: 1\r---\rbody"),
        ("\ufeff---\na: 1\n---\n", f"\ufeff---\n{LINE}\na: 1\n---\n"),
        ("--- \t\na: 1\n...\nb", f"--- \t\n{LINE}\na: 1\n...\nb"),
        ("---\n  a: 1\n  b: 2\n---\n", f"---\n  {LINE}\n  a: 1\n  b: 2\n---\n"),
        ("---\n\n\na: 1\n---\n", f"---\n{LINE}\n\n\na: 1\n---\n"),
        ("---\n? [k]\n: 1\n---\n", None),
        ("---\n? a\n: 1\n---\n", f"---\n{LINE}\n? a\n: 1\n---\n"),
        ("---\na: {id: 1}\nb:\n  id: 2\n---\n", f"---\n{LINE}\na: {{id: 1}}\nb:\n  id: 2\n---\n"),
        ("---\nuuid:\n---\n", f"---\n{LINE}\nuuid:\n---\n"),
        ('---\na: "x\ty"\n---\n', f'---\n{LINE}\na: "x\ty"\n---\n'),
        ("---\na: |\n  id: x\n---\n", f"---\n{LINE}\na: |\n  id: x\n---\n"),
    ],
)
def test_the_rest_stays_byte_for_byte(text: str, result: str | None) -> None:
    if result is None:
        with pytest.raises(EditRefused):
            with_id(text, ID)
    else:
        assert with_id(text, ID) == result


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("id:", f'id: "{ID}"'),
        ("id:   # mine", f'id: "{ID}"   # mine'),
        ('id: ""', f'id: "{ID}"'),
        ("id: ''  # mine", f"id: '{ID}'  # mine"),
        ("ID:", f'ID: "{ID}"'),
    ],
)
def test_an_empty_id_is_filled_in_where_it_stands(before: str, after: str) -> None:
    result = with_id(f"---\na: 1\n{before}\nb: 2\n---\n", ID)
    assert result == f"---\na: 1\n{after}\nb: 2\n---\n"
    assert read_id(parse_note("n.md", result).frontmatter) == NoteId(ID, "id")


@pytest.mark.parametrize("field", [f"id: {B}", f'"id": "{B}"', f"uuid: {B}", f"UUID: '{B}'"])
def test_id_rule_an_id_or_legacy_uuid_once_assigned_never_changes(field: str) -> None:
    with pytest.raises(EditRefused, match="never change"):
        with_id(f"---\na: 1\n{field}\n---\n", ID)


@pytest.mark.parametrize(
    "field", ["id: 202401051200", f"id: {B.upper()}", f"uuid: {A}", "id: [x]", "Id: x", "uuid: x"]
)
def test_an_id_that_breaks_a_rule_is_left_to_the_user(field: str) -> None:
    with pytest.raises(EditRefused, match="correct or remove"):
        with_id(f"---\n{field}\n---\n", ID)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("---\na: 1\n", "closing"),
        ("---", "closing"),
        ("---\na: b: c\n---\n", "not valid YAML"),
        ("---\ntitle: {{title}}\n---\n", "not valid YAML"),
        ("---\n- a\n---\n", "not a list of properties"),
        ("---\n{a: b}\n---\n", "braces"),
        ("---\n{}\n---\n", "braces"),
        ("---\n{a: 1,\n b: 2}\n---\n", "braces"),
        ("---\na: 1\n--- b\n---\n", "not valid YAML"),
        ("---\na:\n\tb: 1\n---\n", "not valid YAML|tab"),
        ("---\na: [\n\tb]\n---\n", "tab"),
        ("---\n\ta: 1\n---\n", "not valid YAML|tab"),
        ("---\n&x\na: 1\n---\n", "safely"),
        ("---\nnull\n---\n", "safely"),
        ("---\n# to some parsers\u2028a new line\n---\n", "rare line break"),
        ("---\n# to some parsers\x85a: [\nb: 1\n---\n", "rare line break"),
        ("---\nid: ~\n---\n", "filled in"),
        ("---\nid: &x\n---\n", "filled in"),
        ("---\n? id\n---\n", "safely"),
        ("---\nid:\nid:\n---\n", "more than once"),
        ("---\nid:\nID:\n---\n", "more than once"),
    ],
)
def test_what_cannot_be_edited_safely_is_refused_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(EditRefused, match=why):
        with_id(text, ID)


@pytest.mark.parametrize("value", [ID.upper(), A, "", 'x"\nrag: false'])
def test_only_a_good_id_is_written(value: str) -> None:
    with pytest.raises(EditRefused, match="UUID v4"):
        with_id("body", value)


# --- with_related ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "rich", "simple"),
    [
        ("", "related:\n" + indented(RICH_A, "  "), f'related:\n  - "{A}"\n'),
        ("# c\n", "# c\nrelated:\n" + indented(RICH_A, "  "), f'# c\nrelated:\n  - "{A}"\n'),
        (
            "a: |+\n  x\n\n",
            "a: |+\n  x\n\nrelated:\n" + indented(RICH_A, "  "),
            f'a: |+\n  x\n\nrelated:\n  - "{A}"\n',
        ),
        (
            "  a: 1\n",
            "  a: 1\n  related:\n" + indented(RICH_A, "    "),
            f'  a: 1\n  related:\n    - "{A}"\n',
        ),
        (
            "related:\nb: 1\n",
            "related:\n" + indented(RICH_A, "  ") + "b: 1\n",
            f'related:\n  - "{A}"\nb: 1\n',
        ),
        (
            "related:  # mine\n  # more\n",
            "related:  # mine\n" + indented(RICH_A, "  ") + "  # more\n",
            f'related:  # mine\n  - "{A}"\n  # more\n',
        ),
        (
            "related: []\n",
            f'related: [{{id: "{A}", rel: "references", auto: true}}]\n',
            f'related: ["{A}"]\n',
        ),
        (
            f"related: [{B}, '[[N]]' , ]  # mine\n",
            f'related: [{B}, \'[[N]]\', {{id: "{A}", rel: "references", auto: true}} , ]  # mine\n',
            f"related: [{B}, '[[N]]', \"{A}\" , ]  # mine\n",
        ),
        (
            f"related: [\n  {{id: {B}, tags: [x]}} # mine\n]\n",
            f"related: [\n  {{id: {B}, tags: [x]}}, "
            f'{{id: "{A}", rel: "references", auto: true}} # mine\n]\n',
            f'related: [\n  {{id: {B}, tags: [x]}}, "{A}" # mine\n]\n',
        ),
        (
            f"related:\n- {B}  # mine\n\n# more\nb: 1\n",
            f"related:\n- {B}  # mine\n{RICH_A}\n# more\nb: 1\n",
            f'related:\n- {B}  # mine\n- "{A}"\n\n# more\nb: 1\n',
        ),
        (
            f"related:\n    -   id: {B}\n        rel: of\n",
            f"related:\n    -   id: {B}\n        rel: of\n" + indented(RICH_A, "    "),
            f'related:\n    -   id: {B}\n        rel: of\n    - "{A}"\n',
        ),
        (
            f"related:\n- id: {B}\n\n# more\nb: 1\n",
            f"related:\n- id: {B}\n{RICH_A}\n# more\nb: 1\n",
            f'related:\n- id: {B}\n- "{A}"\n\n# more\nb: 1\n',
        ),
        (
            "related:\n  - |\n    x\n\nb: 1\n",
            "related:\n  - |\n    x\n\n" + indented(RICH_A, "  ") + "b: 1\n",
            f'related:\n  - |\n    x\n\n  - "{A}"\nb: 1\n',
        ),
        (
            "related:\n  - # none\nb: 1\n",
            "related:\n  - # none\n" + indented(RICH_A, "  ") + "b: 1\n",
            f'related:\n  - # none\n  - "{A}"\nb: 1\n',
        ),
        (
            'related: "[[N]]"  # mine\n',
            "related:\n" + indented(RICH_A, "  ") + '  - "[[N]]"  # mine\n',
            f'related:\n  - "{A}"\n  - "[[N]]"  # mine\n',
        ),
        (
            f"Related: {B}\n",
            "Related:\n" + indented(RICH_A, "  ") + f"  - {B}\n",
            f'Related:\n  - "{A}"\n  - {B}\n',
        ),
        (
            f"a: &x {B}\nrelated: &y\n - *x\n",
            f"a: &x {B}\nrelated: &y\n - *x\n" + indented(RICH_A, " "),
            f'a: &x {B}\nrelated: &y\n - *x\n - "{A}"\n',
        ),
        (
            f"a: &x {B}\nrelated: [*x]\n",
            f'a: &x {B}\nrelated: [*x, {{id: "{A}", rel: "references", auto: true}}]\n',
            f'a: &x {B}\nrelated: [*x, "{A}"]\n',
        ),
        (
            "a: {related: [1]}\nb:\n  related: 2\nc: |\n  related:\n",
            "a: {related: [1]}\nb:\n  related: 2\nc: |\n  related:\nrelated:\n"
            + indented(RICH_A, "  "),
            "a: {related: [1]}\nb:\n  related: 2\nc: |\n  related:\nrelated:\n" + f'  - "{A}"\n',
        ),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_an_entry_is_added_in_the_configured_form_to_every_shape_of_related(
    before: str, rich: str, simple: str, line_end: str
) -> None:
    def note(fields: str) -> str:
        return f"---\n{fields}---\n# T\n\nbody".replace("\n", line_end)

    assert with_related(note(before), [TO_A], rich=True) == note(rich)
    assert with_related(note(before), [TO_A], rich=False) == note(simple)


def test_a_note_without_frontmatter_gets_one_with_related() -> None:
    assert with_related("body", [TO_B], rich=False) == f'---\nrelated:\n  - "{B}"\n---\nbody'


def test_what_is_written_is_what_is_read() -> None:
    text = f'---\nrelated: ["[[N]]", {A}]\n---\n'
    result = with_related(text, [TO_B], rich=True)
    assert read_related(parse_note("n.md", result).frontmatter) == (
        Relation("N", is_link=True),
        Relation(A),
        TO_B,
    )


def test_an_id_that_is_there_is_never_written_twice() -> None:
    for there in (f"[{A}]", f"[{A.upper()}]", f"{{id: {A}, rel: x}}", f"\n- uuid: {A}", A):
        text = f"---\nrelated: {there}\n---\n"
        assert with_related(text, [TO_A], rich=True) == text
    result = with_related(f"---\nrelated: [{A}]\n---\n", [TO_A, TO_B, TO_B], rich=False)
    assert result == f'---\nrelated: [{A}, "{B}"]\n---\n'


def test_several_entries_go_in_together() -> None:
    text = "---\nrelated:\n- x\n---\n"
    result = with_related(text, [TO_A, TO_B], rich=True)
    added = RICH_A + f'- id: "{B}"\n  rel: "supports"\n  auto: false\n'
    assert result == f"---\nrelated:\n- x\n{added}---\n"
    flow = with_related("---\nrelated: []\n---\n", [TO_A, TO_B], rich=False)
    assert flow == f'---\nrelated: ["{A}", "{B}"]\n---\n'


def test_a_relation_without_a_word_has_no_rel() -> None:
    result = with_related("", [Relation(A)], rich=True)
    assert result == f'---\nrelated:\n  - id: "{A}"\n    auto: false\n---\n'


@pytest.mark.parametrize(
    "word", ['say "so"', "back\\slash", "ja: #nein", "見る 🎉", "'", "a/b", "{"]
)
@pytest.mark.parametrize("shape", ["related:", "related: []", "related: [x]"])
def test_any_printable_word_may_name_a_relation(word: str, shape: str) -> None:
    result = with_related(f"---\n{shape}\n---\n", [Relation(A, word)], rich=True)
    assert read_related(parse_note("n.md", result).frontmatter)[-1] == Relation(A, word)


@pytest.mark.parametrize(
    "entry",
    [
        Relation(A, "two\nlines"),
        Relation(A, "tab\t"),
        Relation(A, "\u2028"),
        Relation(A, "x" * 101),
        Relation("[[N]]"),
        Relation("N", is_link=True),
        Relation(A, is_link=True),
        Relation(A.upper()),
        Relation(f'{A}"'),
    ],
)
def test_what_is_no_id_or_no_word_is_not_written(entry: Relation) -> None:
    for rich in (True, False):
        with pytest.raises(EditRefused):
            with_related("body", [entry], rich=rich)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ("related: {id: x}\n", "not a list"),
        ("related:\n  id: x\n", "not a list"),
        ("a: &x [1]\nrelated: *x\n", "not a list"),
        ("related: [[N]]\n", "quotes"),
        ("related: [a, [b]]\n", "quotes"),
        ("related: null\n", "empty value"),
        ("related: ~\n", "empty value"),
        ("related: ''\n", "empty value"),
        ("related: &x\n", "empty value"),
        ("related: [ # mine\n]\n", "comment"),
        ("? related\n: - a\n", "line of its own"),
        ("? related\n: a\n", "follow its name"),
        ("related:\n  a\n", "follow its name"),
        ("related: a\n  b\n", "safely"),
        ("related: |\n  a\n", "safely"),
        ("related: &x [a]\nb: *x\n", "safely"),
        ("related: [a]\nrelated: [b]\n", "more than once"),
        ("related: [a]\nRelated: [b]\n", "more than once"),
        ("{related: [a]}\n", "braces"),
        ("related: [a\n", "not valid YAML"),
        ("related: [[A]], [[B]]\n", "not valid YAML"),
        ("related: [\n\ta]\n", "tab"),
    ],
)
def test_related_in_a_shape_that_cannot_be_edited_safely_is_refused(fields: str, why: str) -> None:
    for rich in (True, False):
        with pytest.raises(EditRefused, match=why):
            with_related(f"---\n{fields}---\n", [TO_A], rich=rich)


def test_nothing_to_add_is_no_edit_even_where_none_is_possible() -> None:
    assert with_related("---\n{a: 1}\n---\n", [], rich=True) == "---\n{a: 1}\n---\n"


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: with_id(text, ID),
        lambda text: with_related(text, [TO_A], rich=True),
    ],
)
def test_hostile_frontmatter_is_refused_and_never_a_crash(edit: Callable[[str], str]) -> None:
    for fields in (
        "a: " + "[" * 100_000,
        "\n".join(" " * depth + "a:" for depth in range(300)),
        "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)),
        "related: &a [*a]",
        "k: " + "x" * 2_000_000 + ": y",
    ):
        with pytest.raises(EditRefused):
            edit(f"---\n{fields}\n---\n")


def test_a_policy_is_the_same_after_an_edit() -> None:
    text = "---\nrag: private\n---\nbody"
    for result in (with_id(text, ID), with_related(text, [TO_A], rich=True)):
        assert parse_note("n.md", result).policy == "private"
