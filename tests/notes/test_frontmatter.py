import pytest

from obsidian_rag.notes import parse_note, split_frontmatter
from obsidian_rag.notes.frontmatter import read_frontmatter


def test_split_gives_yaml_offset_and_line() -> None:
    assert split_frontmatter("---\na: 1\n---\nbody") == ("a: 1\n", 13, 4)
    assert split_frontmatter("--- \r\na: 1\r\n...\r\nbody") == ("a: 1\n", 17, 4)
    assert split_frontmatter("---\n---\nbody") == ("", 8, 3)
    assert split_frontmatter("---\na: 1\n---") == ("a: 1\n", 12, 4)


@pytest.mark.parametrize(
    "text", ["", "body", " ---\na: 1\n---\n", "---\na: 1\n", "----\n---\n", "\n---\n---\n"]
)
def test_no_frontmatter(text: str) -> None:
    assert split_frontmatter(text) == (None, 0, 1)


def test_values_are_plain_and_dates_are_iso_text() -> None:
    values, error = read_frontmatter(
        "date: 2024-01-05\nbad: 2024-13-45\nat: 2024-01-05 10:00:00\nyes: yes\nb: true\n"
        'n: 12:30\nf: 1.5\nd: {k: [1, x]}\nnone:\nq: "a: b"\nu: https://e.org/#x\n'
    )
    assert error is None
    assert values == {
        "date": "2024-01-05",
        "bad": "2024-13-45",
        "at": "2024-01-05T10:00:00",
        "yes": "yes",
        "b": True,
        "n": "12:30",
        "f": 1.5,
        "d": {"k": [1, "x"]},
        "none": None,
        "q": "a: b",
        "u": "https://e.org/#x",
    }


@pytest.mark.parametrize(
    "yaml_text",
    [
        "title: {{title}}",
        "- a\n- b",
        "just text",
        "a: b: c",
        "a: " + "[" * 100_000,
        "a: " + "{b: " * 5_000,
        "\n".join(" " * depth + "a:" for depth in range(300)),
        "a: &a [*a]",
        "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)),
        "a: \x00",
        "a: !!python/object:os.system x",
        "? [a]\n: b",
        "k: " + "x" * 2_000_000 + ": y",
    ],
)
def test_bad_yaml_is_an_error_and_never_a_crash(yaml_text: str) -> None:
    values, error = read_frontmatter(yaml_text)
    assert values == {} and error and len(error) < 300
    note = parse_note("a.md", f"---\n{yaml_text}\n---\n# body\n")
    assert note.parse_error == error
    assert note.headings[0].text == "body"
