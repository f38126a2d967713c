"""Parts of long passages: nothing left out, cut where a line, a sentence or a word ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_rag.notes import text_parts

HEAD = "Title\nOne > Two\n"


def test_a_short_passage_has_no_parts() -> None:
    assert text_parts(HEAD + "word " * 100, len(HEAD)) == []


def test_a_long_passage_is_cut_between_sentences_behind_its_head() -> None:
    sentence = "The river rose for three days and then it fell again. "
    parts = text_parts(HEAD + sentence * 36, len(HEAD))
    assert len(parts) == 4
    assert all(part.startswith(HEAD + "The river") and part.endswith("again. ") for part in parts)


def test_lines_are_better_places_than_sentences() -> None:
    line = "- milk. bread. butter. and some more of it\n"
    parts = text_parts(HEAD + line * 40, len(HEAD))
    assert all(part.removeprefix(HEAD).startswith("- milk") for part in parts)


@pytest.mark.parametrize("letter", ["x", "語", "ก"])
def test_what_has_no_places_to_cut_is_cut_evenly(letter: str) -> None:
    parts = text_parts(HEAD + letter * 1600, len(HEAD))
    assert [len(part) - len(HEAD) for part in parts] == [533, 533, 534]


@given(st.text("ab .\n語", max_size=2000))
def test_nothing_is_left_out(body: str) -> None:
    parts = text_parts(HEAD + body, len(HEAD))
    assert all(part.startswith(HEAD) for part in parts)
    if parts:
        joined = "".join(part.removeprefix(HEAD) for part in parts)
        assert joined.split() == body.split()
