import pytest

from obsidian_rag.notes import (
    ChunkLimits,
    chunk_categories,
    chunk_note,
    parse_note,
    sensitive_categories,
)

PATTERNS = {
    "financial": ("owe", "owed", "debt", "paid", "$", "spent", "spend"),
    "health": ("#mentalhealth", "#physicalhealth", "medication", "therapy"),
    "commitments": ("shopping list", "costco"),
}
SECTIONS = ("#mentalhealth", "#physicalhealth", "#Relations")


@pytest.mark.parametrize(
    ("text", "categories"),
    [
        ("I PAID him", ("financial",)),
        ("unpaid and prepaid", ()),
        ("Debt's gone; therapy", ("financial", "health")),
        ("cost $40", ("financial",)),
        ("cost $ 40", ("financial",)),
        ("US$ and $x", ()),
        ("a Shopping\n  List", ("commitments",)),
        ("shopping lists", ()),
        ("slept badly #MentalHealth", ("health",)),
        ("#mentalhealth/sleep", ("health",)),
        ("#mentalhealthy", ()),
        ("## Relations\nJohn", ("relations",)),
        ("## Mental health\nfine", ("health",)),
        ("nothing", ()),
    ],
)
def test_words_and_tags_in_text(text: str, categories: tuple[str, ...]) -> None:
    assert sensitive_categories(text, None, (), PATTERNS, SECTIONS) == categories


@pytest.mark.parametrize(
    ("section", "tags", "categories"),
    [
        ("#mentalhealth", (), ("health",)),
        ("#PhysicalHealth/run", (), ("health",)),
        (None, ("#mentalhealth/sleep",), ("health",)),
        ("Relations", (), ("relations",)),
        ("#relations", (), ("relations",)),
        ("Public relations", (), ()),
        (None, ("#other",), ()),
    ],
)
def test_sections_and_tags(
    section: str | None, tags: tuple[str, ...], categories: tuple[str, ...]
) -> None:
    assert sensitive_categories("x", section, tags, PATTERNS, SECTIONS) == categories


def test_no_patterns_match_nothing() -> None:
    assert sensitive_categories("$5 #x", "#x", ("#x",), {"a": ("", "#", " ")}, ()) == ()


def test_a_chunk_is_judged_by_every_heading_above_it_and_by_its_code() -> None:
    note = parse_note("a.md", "# Relations\n## John\n" + "word " * 100 + "\n## B\n```\ndebt\n```\n")
    first, second = chunk_note(note, ChunkLimits())
    assert chunk_categories(first, PATTERNS, SECTIONS) == ("relations",)
    assert chunk_categories(second, PATTERNS, SECTIONS) == ("financial", "relations")
