"""Which kinds of files are notes."""

import pytest

from obsidian_rag.config import IndexingSettings
from obsidian_rag.notes import is_markdown, kind_of
from obsidian_rag.notes.kinds import KINDS


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.md", "Markdown note"),
        ("A/B.MARKDOWN", "Markdown note"),
        ("Board.Canvas", "Canvas"),
        ("notes.txt", "Markdown note"),
        ("canvas", "Markdown note"),
    ],
)
def test_a_file_is_what_its_name_ends_in_or_else_markdown(path: str, name: str) -> None:
    assert kind_of(path).name == name


def test_only_what_says_so_is_markdown() -> None:
    assert is_markdown("a.MD")
    assert not is_markdown("a.txt")


def test_every_kind_is_indexed_unless_the_settings_say_otherwise() -> None:
    patterns = IndexingSettings().file_patterns
    assert [f"*{kind.suffixes[0]}" for kind in KINDS] == [*patterns]
