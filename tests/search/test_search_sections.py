"""A hit stands where it says, and shows what stands there."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.search.indexed import asked, hits, indexed, write_notes

from obsidian_rag.engine import Engine
from obsidian_rag.notes import parse_note
from obsidian_rag.notes.lines import split_lines
from obsidian_rag.search import Hit

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "vault"
QUESTIONS = (
    "boiler heat exchanger Sreenivas loan",
    "panic worried cold",
    "what did the doctor say about sleep",
    "rain garden plants and soil",
    "how much do we owe, and to whom",
    "recipe with paprika",
    "meeting decisions and who does what",
    "train to Kyoto",
    "shopping list",
    "the book that changed my mind",
    "father's stories",
    "podcast about habits",
)
CODE = "git rebase --interactive HEAD~{n}"
LONG = "\n".join(f"step{number:03d} --all" for number in range(400))
NOTES = {
    "Git.md": f"---\nauthor: Quillon\n---\n# Git\n\nUse `git stash` first.\n\n## Rebase\n\n"
    f"Start an interactive rebase on HEAD:\n\n```bash\n{CODE}\n\n  <editor>  # opens\n```\n\n"
    "Then save.\n",
    "Long.md": f"# Long\n\nThe script:\n\n```python\n{LONG}\n```\n\nThat was all.\n",
    "Journal/2024-11-30.md": "#finance\nThe boiler died.\n\n#Relations\nPapa told of boilers.\n\n"
    "#mentalhealth\nNo panic about the boiler.\n",
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = indexed(tmp_path_factory.mktemp("home"), SAMPLE)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    vault = write_notes(tmp_path_factory.mktemp("vault"), NOTES)
    engine = indexed(tmp_path_factory.mktemp("home"), vault)
    yield engine
    engine.close()


def heading_above(hit: Hit, text: str) -> str | None:
    heads = parse_note(hit.source_file, text).headings
    return next((head.text for head in reversed(heads) if head.line <= hit.start_line), None)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("group_by_note", [False, True])
def test_every_hit_begins_under_the_heading_that_it_names(
    sample: Engine, question: str, group_by_note: bool
) -> None:
    found = asked(sample, question, limit=20, group_by_note=group_by_note).answer.hits
    assert found
    for hit in found:
        if hit.source_file.endswith(".md"):
            text = (SAMPLE / hit.source_file).read_text(encoding="utf-8")
            above = heading_above(hit, text)
            assert above == (hit.heading_path[-1] if hit.heading_path else None), hit
            assert (above or "").startswith(hit.section or ""), hit


def test_sections_of_tags_are_hits_of_their_own(engine: Engine) -> None:
    found = [hit for hit in hits(engine, "boiler") if hit.source_file.startswith("Journal/")]
    assert sorted((hit.section or "", hit.start_line, hit.end_line) for hit in found) == [
        ("#Relations", 4, 5),
        ("#finance", 1, 2),
        ("#mentalhealth", 7, 8),
    ]


def test_code_is_shown_where_it_stands(engine: Engine) -> None:
    hit = hits(engine, "interactive rebase")[0]
    assert hit.text == (
        "# Git\n\nUse `git stash` first.\n\n## Rebase\n\n"
        f"Start an interactive rebase on HEAD:\n```bash\n{CODE}\n\n"
        "  <editor>  # opens\n```\n\nThen save."
    )
    assert (hit.start_line, hit.end_line) == (4, 18)


def test_properties_are_found_and_not_shown(engine: Engine) -> None:
    hit = hits(engine, "Quillon")[0]
    assert hit.source_file == "Git.md" and "quillon" in hit.why.terms
    assert "Quillon" not in hit.text and "`git stash`" in hit.text


@pytest.mark.parametrize("number", [3, 150, 399])
def test_a_hit_by_a_word_in_code_shows_the_code(engine: Engine, number: int) -> None:
    hit = hits(engine, f"step{number:03d}")[0]
    assert hit.source_file == "Long.md" and f"step{number:03d} --all" in hit.text.split("\n")
    lines = split_lines(NOTES["Long.md"])[hit.start_line - 1 : hit.end_line]
    assert set(hit.text.split("\n")) <= {*lines, "```"}
    assert hit.text.count("```") == 2 and len(hit.text) <= 2000
