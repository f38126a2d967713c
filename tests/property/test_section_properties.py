"""Chunks stand under the headings that they name, and show the whole note."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_rag.notes import Chunk, ChunkLimits, Note, chunk_note, parse_note, shown_text

ROOT = Path(__file__).resolve().parents[2]
unhurried = settings(deadline=None, max_examples=150)
WORDS = "lorem ipsum dolor sit amet "
LINES = (
    *("# One", "## Two", "### Three", "#### Four #tag", "Setext", "===", "---", "#tag", "#a #b"),
    *("", "", "a line", "- item", "> quote", "`code`", "<!--", "-->", "# [[far|near]]", "#"),
    *("```", "```bash", "  indented()", "> ```", "~~~", "````", "x" * 300, WORDS * 5, WORDS * 60),
)
notes = st.lists(st.sampled_from(LINES), max_size=40).map("\n".join)


def check_headings(note: Note, chunks: list[Chunk]) -> None:
    for chunk in chunks:
        heads = [head for head in note.headings if head.line <= chunk.start_line]
        last = chunk.heading_path[-1] if chunk.heading_path else None
        assert last == (heads[-1].text if heads else None), chunk
        assert chunk.section is None or (last or "").startswith(chunk.section)
        assert (chunk.section is None) == (not chunk.heading_path)


@unhurried
@given(notes.filter(lambda text: "<!--" not in text))
def test_a_chunk_begins_under_the_heading_that_it_names(text: str) -> None:
    note = parse_note("a.md", text)
    check_headings(note, chunk_note(note, ChunkLimits()))


@unhurried
@given(notes)
def test_tags_are_never_merged(text: str) -> None:
    note = parse_note("a.md", text)
    lines = {head.line for head in note.headings if head.level == 0}
    for chunk in chunk_note(note, ChunkLimits()):
        inside = [line for line in lines if chunk.start_line < line <= chunk.end_line]
        assert not inside or "<!--" in text


@unhurried
@given(notes)
def test_what_is_shown_is_what_the_lines_say(text: str) -> None:
    lines = text.split("\n")
    for chunk in chunk_note(parse_note("a.md", text), ChunkLimits()):
        shown = shown_text(chunk.text, chunk.words_only, chunk.layout)
        said = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        assert set(re.findall(r"\w+", shown)) <= set(re.findall(r"\w+", said)) | {"a"}
        codes = re.findall(r"\w+", chunk.words_only)
        assert set(codes) <= set(re.findall(r"\w+", shown))
        assert len(shown) <= 2000 + 20 * (len(chunk.layout) // 3)


@pytest.mark.parametrize("folder", ["samples/vault", "docs"])
def test_real_notes_are_cited_by_their_headings(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.md"))
    assert len(files) > 10
    for file in files:
        note = parse_note(file.name, file.read_text(encoding="utf-8"))
        check_headings(note, chunk_note(note, ChunkLimits()))
