import pytest

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.notes import Chunk, ChunkLimits, chunk_note, parse_note
from obsidian_rag.notes.shown import BEGINS
from obsidian_rag.notes.split import QUARTERS, quarter_tokens

LIMITS = ChunkLimits()


def chunks_of(text: str, limits: ChunkLimits = LIMITS, path: str = "note.md") -> list[Chunk]:
    return chunk_note(parse_note(path, text), limits)


def prose(words: int) -> str:
    return " ".join(f"w{i}" + ("." if i % 9 == 8 else "") for i in range(words))


def test_a_journal_gives_one_chunk_per_tag_section() -> None:
    text = (
        "---\ntags: journal\n---\nintro\n\n#mentalhealth\nslept #well\n\n#finance #debt\nowed 5\n"
    )
    assert chunks_of(text) == [
        Chunk("intro", "", None, (), 4, 4, ("#journal",)),
        Chunk(
            "#mentalhealth\nslept #well",
            "",
            "#mentalhealth",
            ("#mentalhealth",),
            6,
            7,
            ("#journal", "#mentalhealth", "#well"),
        ),
        Chunk(
            "#finance #debt\nowed 5",
            "",
            "#finance",
            ("#finance #debt",),
            9,
            10,
            ("#journal", "#finance", "#debt"),
        ),
    ]


def test_a_tag_section_lies_under_its_heading_until_the_next_one() -> None:
    text = "# Day\nx\n#a\none\n#b\ntwo\n# Next\nthree\n"
    found = [(chunk.section, chunk.heading_path, chunk.start_line) for chunk in chunks_of(text)]
    assert found == [
        ("Day", ("Day",), 1),
        ("#a", ("Day", "#a"), 3),
        ("#b", ("Day", "#b"), 5),
        ("Next", ("Next",), 7),
    ]


def test_large_sections_stay_apart_with_their_paths() -> None:
    body = prose(80)
    text = f"# A\n{body}\n## B\n{body}\n### C\n{body}\n## D\n{body}\n"
    found = [(chunk.heading_path, chunk.start_line, chunk.end_line) for chunk in chunks_of(text)]
    assert found == [
        (("A",), 1, 2),
        (("A", "B"), 3, 4),
        (("A", "B", "C"), 5, 6),
        (("A", "D"), 7, 8),
    ]


def test_tiny_sections_go_with_the_section_they_are_a_part_of() -> None:
    big = prose(60)
    chunks = chunks_of(f"# A\nwhat\n## B\nb\n### C\nc\n## D\n{big}\n## E\ne\n# F\nf\n")
    assert [(c.heading_path, c.section, c.start_line, c.end_line) for c in chunks] == [
        (("A",), "A", 1, 6),
        (("A", "D"), "D", 7, 8),
        (("A", "E"), "E", 9, 10),
        (("F",), "F", 11, 12),
    ]
    assert chunks[0].text == "# A\nwhat\n## B\nb\n### C\nc"


def test_text_above_the_first_heading_stays_alone() -> None:
    found = [(c.section, c.heading_path, c.text) for c in chunks_of("up\n\n# A\nb\n")]
    assert found == [(None, (), "up"), ("A", ("A",), "# A\nb")]


@pytest.mark.parametrize("head", ["# A", "A\n==", "# A ##"])
def test_a_bare_heading_stands_in_the_path_of_its_first_child(head: str) -> None:
    chunks = chunks_of(f"{head}\n\n## B\n\n### C\n{prose(900)}\n")
    assert {chunk.heading_path for chunk in chunks} == {("A", "B", "C")}
    assert chunks[0].text.startswith("### C\nw0")
    assert chunks[0].start_line == head.count("\n") + 5


def test_a_bare_heading_is_kept_where_its_path_does_not_tell_all_of_it() -> None:
    chunks = chunks_of(f"# [[Far|Near]]\n## B\n{prose(60)}\n")
    assert [(c.text[:14], c.heading_path) for c in chunks] == [
        ("# [[Far|Near]]", ("Near",)),
        ("## B\nw0 w1 w2 ", ("Near", "B")),
    ]


def test_headings_that_nothing_follows_are_one_chunk() -> None:
    text = f"# A\n## B\n## C\n### D\n{prose(60)}\n"
    assert [(c.heading_path, c.text[:14]) for c in chunks_of(text)] == [
        (("A",), "# A\n## B\n## C"),
        (("A", "C", "D"), "### D\nw0 w1 w2"),
    ]


def test_the_tags_of_a_bare_heading_are_those_of_its_child() -> None:
    first, second = chunks_of(f"# A #t\n## B\n{prose(60)}\n## C #u\n{prose(60)}\n")
    assert (first.tags, second.tags) == (("#t",), ("#u",))
    assert first.start_line == 2


def test_a_long_section_is_cut_at_paragraphs() -> None:
    paragraphs = [prose(90) for _ in range(8)]
    chunks = chunks_of("# A\n\n" + "\n\n".join(paragraphs) + "\n")
    assert "\n\n".join(chunk.text for chunk in chunks) == "# A\n\n" + "\n\n".join(paragraphs)
    assert all(chunk.heading_path == ("A",) for chunk in chunks)


def test_a_long_line_is_cut_at_sentences_and_both_parts_name_the_line() -> None:
    chunks = chunks_of(f"# A\n{prose(700)}\n")
    assert len(chunks) > 1 and all(chunk.end_line == 2 for chunk in chunks)
    assert [chunk.start_line for chunk in chunks[1:]] == [2] * (len(chunks) - 1)
    assert all(chunk.text.endswith(".") for chunk in chunks[:-1])


def test_cjk_is_cut_at_its_own_sentence_ends() -> None:
    chunks = chunks_of("# 題\n" + "これは文です。" * 300)
    assert all(quarter_tokens(chunk.text) <= 500 * QUARTERS for chunk in chunks)
    assert all(chunk.text.endswith("。") for chunk in chunks)
    assert sum(chunk.text.count("文") for chunk in chunks) == 300


def test_text_without_any_boundary_is_cut_hard_and_kept() -> None:
    chunks = chunks_of("# A\n" + "x" * 5000)
    assert "".join(chunk.text for chunk in chunks).count("x") == 5000
    assert all(len(chunk.text) <= 2000 for chunk in chunks)


def test_an_unstructured_note_gives_overlapping_windows() -> None:
    chunks = chunks_of(prose(1500))
    assert len(chunks) > 3 and all(c.section is None and c.heading_path == () for c in chunks)
    for one, other in zip(chunks, chunks[1:], strict=False):
        shared = set(one.text.split()) & set(other.text.split())
        assert shared and sum(len(word) + 1 for word in shared) <= 400
    assert {w for c in chunks for w in c.text.split()} == set(prose(1500).split())


def test_no_overlap_means_none() -> None:
    limits = ChunkLimits(overlap_tokens=0)
    chunks = chunks_of(prose(1500), limits)
    assert " ".join(chunk.text for chunk in chunks) == prose(1500)


def test_code_leaves_the_text_but_its_words_stay() -> None:
    text = "# A\nbefore\n\n```python\nprint(1)\n\nx = 2\n```\n\nafter\n"
    code = "python\nprint(1)\n\nx = 2"
    assert chunks_of(text) == [
        Chunk("# A\nbefore\n\nafter", code, "A", ("A",), 1, 10, (), layout=(10, len(code), BEGINS))
    ]


def test_code_stays_in_the_text_when_asked_without_its_brackets() -> None:
    (chunk,) = chunks_of("a\n```html\n<b>x</b>\n```\n", ChunkLimits(strip_code=False))
    assert chunk.text == "a\n```html\nb x /b\n```" and chunk.words_only == ""


def test_long_code_is_spread_with_exact_lines_and_named_by_its_heading() -> None:
    code = [f"line_{i} = {i}" for i in range(400)]
    chunks = chunks_of("# Code\n\n```\n" + "\n".join(code) + "\n```\n")
    assert [chunk.text for chunk in chunks[1:]] == ["Code"] * (len(chunks) - 1)
    assert "\n".join(chunk.words_only for chunk in chunks) == "\n".join(code)
    for chunk in chunks:
        assert len(chunk.text) + len(chunk.words_only) <= 2000
        is_last = chunk is chunks[-1]
        assert chunk.words_only.split("\n")[-1] == code[chunk.end_line - 4 - is_last]
    assert chunks[-1].end_line == len(code) + 4


def test_a_note_of_code_only_is_named_by_its_title() -> None:
    assert [chunk.text for chunk in chunks_of("```\nx\n```\n")] == ["note"]


@pytest.mark.parametrize(
    ("text", "last"), [("", 1), ("\n\n\n", 3), ("---\na: b\n---\n", 3), ("<!-- x\n-->", 2)]
)
def test_an_empty_note_is_one_chunk_with_its_title(text: str, last: int) -> None:
    (chunk,) = chunks_of(text)
    assert (chunk.text, chunk.start_line, chunk.end_line) == ("note", 1, last)


def test_properties_are_words_of_the_first_chunk() -> None:
    text = (
        "---\nauthor: Jane\nsummary: about cats\ntags: t\ndate: 2024-01-01\nuid: abc\nn: 5\n"
        "by:\n  - Bob\n---\n# A\n" + prose(80) + "\n# B\n" + prose(80)
    )
    first, second = chunks_of(text)
    assert first.words_only == "Jane\nabout cats\nBob" and second.words_only == ""
    (long,) = chunks_of(f"---\nsummary: {'word ' * 2000}\n---\nx\n")
    assert len(long.words_only) <= 2000


def test_html_over_several_lines_is_removed_and_lines_stay_exact() -> None:
    text = (
        "# A\n<div\n class='x'>\n<!-- a\n\n# no\n-->\n<script>\nbad()\n\n</script>\nkept\n</div>\n"
    )
    (chunk,) = chunks_of(text)
    assert chunk.text == "# A\n\nkept" and (chunk.start_line, chunk.end_line) == (1, 12)


def test_no_chunk_can_open_a_tag() -> None:
    text = "# <b>A</b>\n" + "<scr<script>ipt>x `<i>` <" * 400 + "\n```\n<script>\n```\n"
    for limits in (LIMITS, ChunkLimits(strip_code=False)):
        for chunk in chunks_of(text, limits):
            assert not any(f"<{c}" in chunk.text for c in "bsi/!?")
            assert "<" not in "".join(chunk.heading_path)


def test_tags_in_code_shown_as_text_are_not_tags_of_the_chunk() -> None:
    (chunk,) = chunks_of("#real x\n```\n#include y\n```\n", ChunkLimits(strip_code=False))
    assert chunk.tags == ("#real",)


def test_limits_that_cannot_work_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        ChunkLimits(max_chars=1)
    with pytest.raises(InvalidArgument):
        ChunkLimits(max_tokens=100, overlap_tokens=80)
