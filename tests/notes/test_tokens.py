import pytest

from obsidian_rag.notes import embedding_text
from obsidian_rag.notes.split import QUARTERS, quarter_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("漢字", 2),
        ("かなカナ", 4),
        ("한글", 2),
        ("éé", 1),
        ("ab漢", 2),
        ("🎉", 1),
    ],
)
def test_estimate(text: str, tokens: int) -> None:
    assert -(-quarter_tokens(text) // QUARTERS) == tokens


def test_embedding_text_names_the_title_once() -> None:
    assert embedding_text("T", (), "x") == "T\nx"
    assert embedding_text("T", ("T", "A"), "x") == "T\nA\nx"
    assert embedding_text("T", ("A", "B"), "x") == "T\nA > B\nx"
