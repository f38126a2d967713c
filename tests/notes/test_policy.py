"""Every spelling of the `rag` property: the strictest of what it contains counts."""

import pytest

from obsidian_rag.notes import RagPolicy, parse_note, read_policy

INDEX, PRIVATE, NEVER = RagPolicy.INDEX, RagPolicy.PRIVATE, RagPolicy.NEVER

# The YAML between the two lines, what it allows, and whether a warning names an unknown value.
SPELLINGS: list[tuple[str, RagPolicy, bool]] = [
    # What plainly says "index", or says nothing.
    ("title: x", INDEX, False),
    ("rag:", INDEX, False),
    ("rag: ''", INDEX, False),
    ("rag: []", INDEX, False),
    ("rag: true", INDEX, False),
    ("rag: 'Yes'", INDEX, False),
    ("rag: on", INDEX, False),
    ("rag: 1", INDEX, False),
    ("rag: Index", INDEX, False),
    ("rag: public", INDEX, False),
    ("rag: [true]", INDEX, False),
    ("rag: true\u200b", INDEX, False),
    ("title: 日記： 今日\nrag: true", INDEX, False),
    ("storage: private", INDEX, False),
    ("paragraph: false", INDEX, False),
    ("fragile: {rag-time: false}", INDEX, False),
    ("summary: |\n  rag: an old piece of cloth", INDEX, False),
    # Never.
    ("rag: false", NEVER, False),
    ("rag: FALSE", NEVER, False),
    ("rag: 'false'", NEVER, False),
    ("rag: no", NEVER, False),
    ("rag: off", NEVER, False),
    ("rag: 0", NEVER, False),
    ("rag: false # not this one", NEVER, False),
    ("rag: [false]", NEVER, False),
    ("rag:\n  - false", NEVER, False),
    ("rag:\n- never", NEVER, False),
    ("RAG: false", NEVER, False),
    ('"rag": false', NEVER, False),
    ('"r\\x61g": false', NEVER, False),
    ("? rag\n: false", NEVER, False),
    ("{title: x, rag: false}", NEVER, False),
    ("rag: {index: false}", NEVER, False),
    ("rag: |\n  false", NEVER, False),
    # Typed with an input method, or pasted.
    ("rag：false", NEVER, False),
    ("ｒａｇ： ｆａｌｓｅ", NEVER, False),
    ("\u200brag: false", NEVER, False),
    ("rag\xad: false", NEVER, False),
    # Private.
    ("rag: private", PRIVATE, False),
    ("rag: ' Private '", PRIVATE, False),
    ("rag: [private]", PRIVATE, False),
    ("rag:\n  - private", PRIVATE, False),
    ("rag: [[private]]", PRIVATE, False),
    ("rag: &x private", PRIVATE, False),
    ("mine: &x private\nrag: *x", PRIVATE, False),
    ("rag: {private: true}", PRIVATE, False),
    ("rag: !!str private", PRIVATE, False),
    # Several: the strictest counts, wherever it stands.
    ("rag: false\nrag: true", NEVER, False),
    ("rag: true\nrag: false", NEVER, False),
    ("rag: private\nRag: true", PRIVATE, False),
    ("{rag: false, rag: true}", NEVER, False),
    ("rag: [true, private]", PRIVATE, False),
    ("rag: [private, false]", NEVER, False),
    ("rag: true, private", PRIVATE, False),
    # Merged from another mapping.
    ("<<: {rag: false}", NEVER, False),
    ("base: &b {rag: private}\n<<: *b", PRIVATE, False),
    ("base: &b {rag: private}\nrag: true\n<<: *b", PRIVATE, False),
    ("a: &a {x: 1}\nb: &b {rag: false}\n<<: [*a, *b]", NEVER, False),
    ("a: &a {rag: false}\nb: &b {<<: *a}\n<<: *b", NEVER, False),
    # Unknown values are private, and a warning names them.
    ("rag: privat", PRIVATE, True),
    ("rag: hidden", PRIVATE, True),
    ("rag: none", PRIVATE, True),
    ("rag: null", PRIVATE, True),
    ("rag: ~", PRIVATE, True),
    ("rag: secret", PRIVATE, True),
    ("rag: don't index", PRIVATE, True),
    ("rag: not index", PRIVATE, True),
    ("rag: -1", PRIVATE, True),
    ("rag: 2026-01-01", PRIVATE, True),
    ("rag: [true, flase]", PRIVATE, True),
    ("rag: {enabled: true}", PRIVATE, True),
    ("rag: !secret", PRIVATE, True),
    ("rag: false please", NEVER, True),
    # Broken YAML: its lines are read.
    ("title: {{title}}\nrag: private", PRIVATE, False),
    ("title: {{title}}\nrag: [private]", PRIVATE, False),
    ("title: {{title}}\nrag:\n  - false", NEVER, False),
    ("title: {{title}}\nrag: false\nrag: true", NEVER, False),
    ("title: {{title}}\nrag: privat", PRIVATE, True),
    ("title: {{title}}\nrag: true", INDEX, False),
    ("title: {{title}}\nrag: []", INDEX, False),
    ("rag:private", PRIVATE, False),
    ("rag = private", PRIVATE, False),
    ("rag:\xa0private", PRIVATE, False),
    ("title: x\nrag：private", PRIVATE, False),
    ("title: {{title}}\nrag:\n  private", PRIVATE, False),
    ("title: {{title}}\nrag:\n\n  private", PRIVATE, False),
    ("title: {{title}}\nrag:\nother: private", INDEX, False),
    ("title: {{title}}\nrag: |\n  never", NEVER, False),
    ("title: {{title}}\nrag: >-\n  private", PRIVATE, False),
    ("title: {{title}}\n- rag: private", PRIVATE, False),
    ("title: {{title}}\n> rag: private", PRIVATE, False),
    ("- rag: private", PRIVATE, False),
    ("[rag: private]", PRIVATE, False),
    ("title: x\n  rag: false", NEVER, False),
    ("more:\n  rag: private", PRIVATE, False),
]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("written", "policy", "is_warned"), SPELLINGS)
def test_every_spelling_is_read(written: str, policy: RagPolicy, is_warned: bool, end: str) -> None:
    text = f"---\n{written}\n---\nbody\n".replace("\n", end)
    found = read_policy(text)
    assert (found.policy, found.warning is not None) == (policy, is_warned)
    assert parse_note("a.md", text).policy is policy
    assert read_policy(f"\ufeff{text}") == found


@pytest.mark.parametrize("written", ["rag: private", "rag: [private]", "rag:\n- private"])
def test_a_missing_closing_line_publishes_nothing(written: str) -> None:
    assert read_policy(f"---\n{written}\nbody\n").policy is PRIVATE


def test_a_note_without_properties_allows_everything() -> None:
    for text in ("", "rag: false\n", "text\n---\nrag: false\n---\n", "--- \nx"):
        assert read_policy(text) == (INDEX, None)


def test_a_warning_names_the_unknown_value_beside_what_else_is_wrong() -> None:
    note = parse_note("a.md", "---\nrag: privat\n---\n")
    assert note.parse_error == (
        "The property 'rag' contains an unknown value: 'privat'. Write true, private or false."
    )
    broken = parse_note("a.md", "---\ntitle: {{title}}\nrag: privat\n---\n")
    assert broken.parse_error is not None
    assert "not valid YAML" in broken.parse_error
    assert "'privat'" in broken.parse_error


def test_yaml_that_is_built_to_exhaust_memory_ends_as_private() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{new}: &{new} [*{old}, *{old}]\n"
        for old, new in zip("abcdefghijklmnopqrst", "bcdefghijklmnopqrstu", strict=True)
    )
    assert read_policy(f"---\n{bomb}rag: *u\n---\n").policy is PRIVATE
    many = ", ".join("true" for _ in range(2000))
    assert read_policy(f"---\nrag: [{many}]\n---\n").policy is PRIVATE
    deep = "[" * 5000
    assert read_policy(f"---\nrag: {deep}private\n---\n").policy is PRIVATE
