import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.notes.test_sanitise import sanitise
from tests.waiting import PATIENCE_S

from obsidian_rag.notes import Chunk, ChunkLimits, chunk_note, parse_note, split_frontmatter
from obsidian_rag.notes.frontmatter import read_frontmatter, read_plain
from obsidian_rag.notes.lines import split_lines
from obsidian_rag.notes.split import QUARTERS, quarter_tokens

unhurried = settings(deadline=None, max_examples=150)
TAG = re.compile(r"<[A-Za-z/!?]")

PIECES = [
    *("word", "other words here", "Sentence one. Two!", "漢字です。かな", "é", "#tag", "# Head"),
    *("## Sub", "#", "- item", "* [ ] task", "> quote", "```", "~~~", "`", "``", "<b>", "</b>"),
    *("<", "<script>", "</script>", "<!--", "-->", "[[", "]]", "[a](b.md)", "](", "|", "---"),
    *("===", "\n", "\n", "\n\n", "\r\n", "\r", " ", "  ", "\t", "    ", "\x00", "\u200b", "\u200d"),
    *(
        "\x85",
        "\u2028",
        "^id",
        "$1",
        "%%",
        "\\",
        "x" * 50,
        "lorem ipsum " * 9,
        "<a href='",
        '">',
        "🎉",
    ),
]
markdown = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
texts = st.one_of(st.text(max_size=300), markdown, markdown.map(lambda text: f"---\n{text}"))
limits = st.builds(
    ChunkLimits,
    max_chars=st.integers(32, 300),
    max_tokens=st.integers(8, 80),
    overlap_tokens=st.integers(0, 4),
    strip_code=st.booleans(),
)


def lines_of(chunk: Chunk, text: str) -> str:
    return "\n".join(split_lines(text)[chunk.start_line - 1 : chunk.end_line])


@unhurried
@given(texts)
def test_parsing_never_raises_and_keeps_the_text(text: str) -> None:
    note = parse_note("a/b.md", text)
    assert note.text is text
    last = len(split_lines(text))
    assert all(1 <= head.line <= last for head in note.headings)
    assert parse_note("a/b.canvas", text).path == "a/b.canvas"


@unhurried
@given(texts, limits)
def test_every_chunk_keeps_the_limits(text: str, limits: ChunkLimits) -> None:
    chunks = chunk_note(parse_note("a.md", text), limits)
    assert chunks
    for chunk in chunks:
        assert 0 < len(chunk.text) <= limits.max_chars
        assert quarter_tokens(chunk.text) <= limits.max_tokens * QUARTERS
        assert not TAG.search(chunk.text)
        assert 1 <= chunk.start_line <= chunk.end_line
    assert all(len(chunk.text) + len(chunk.words_only) <= limits.max_chars for chunk in chunks[1:])


@unhurried
@given(st.lists(st.integers(0, 10**6), max_size=400, unique=True), st.data())
def test_numbered_words_all_arrive_in_the_lines_they_came_from(
    numbers: list[int], data: st.DataObject
) -> None:
    glue = st.sampled_from(
        [" ", " ", "\n", "\n\n", ". ", "\n- ", "\n# h\n", "\n#t\n", "\n```\n", "\r\n"]
    )
    text = "".join(f"n{number:07d}{data.draw(glue)} " for number in numbers)
    chunks = chunk_note(parse_note("a.md", text), data.draw(limits))
    found = set()
    for chunk in chunks:
        words = set(re.findall(r"n\d{7}", chunk.text + "\n" + chunk.words_only))
        assert words <= set(re.findall(r"n\d{7}", lines_of(chunk, text)))
        found |= words
    assert found == {f"n{number:07d}" for number in numbers}


def test_a_long_line_of_code_is_cut_between_words() -> None:
    words = [f"n{number:07d}" for number in range(8)]
    text = f"{words[0]}\n```\n {'  '.join(words[1:])}"
    limits = ChunkLimits(max_chars=32, max_tokens=8, overlap_tokens=0, strip_code=True)
    found = " ".join(
        f"{one.text} {one.words_only}" for one in chunk_note(parse_note("a.md", text), limits)
    )
    assert set(words) <= set(found.split())


@unhurried
@given(texts)
def test_sanitising_is_idempotent_and_leaves_no_tag(text: str) -> None:
    clean = sanitise(text)
    assert sanitise(clean) == clean
    assert not TAG.search(clean)
    assert "\n\n\n" not in clean and "  " not in clean and "\t" not in clean


@unhurried
@given(st.one_of(st.text(), st.text("-.: \n\ra[]{}&*!|>'\"#%@`,?0", max_size=60)))
def test_frontmatter_never_raises(text: str) -> None:
    values, error = read_frontmatter(text)
    assert not (values and error)
    yaml_text, offset, line = split_frontmatter(f"---\n{text}\n---\nbody")
    assert yaml_text is not None and offset > 0 and line >= 3


@given(
    st.lists(
        st.tuples(
            st.text("abkey_-", min_size=1, max_size=4),
            st.text("ab1 :#-,[]'\"\\&*é漢{}!?|>%@.0T", max_size=8),
        ),
        max_size=4,
    ),
    st.sampled_from(
        ["{}: {}", "{}:{}", "{}:\n- {}", "{}:\n  - {}", "{}: [{}]", '{}: "{}"', "{}: {} "]
    ),
)
@unhurried
def test_plain_yaml_means_what_the_real_parser_says(
    entries: list[tuple[str, str]], shape: str
) -> None:
    text = "\n".join(shape.format(key, value) for key, value in entries)
    quick = read_plain(text)
    if quick is not None:
        real = read_frontmatter(text + "\nz: {}")[0]
        assert repr({**quick, "z": {}}) == repr(real)


@pytest.mark.parametrize(
    "unit",
    [
        "Some words in a sentence. And [a link](x.md) with `code` and #tags.\n",
        "## Head\n\ntext <b>bold</b>\n\n",
        "one long line ",
        "[", "<", "`", "*", "#", "<a '", "](a (", "```\n", "> ```\n", "#t ", "漢",
    ],
)  # fmt: skip
@pytest.mark.timeout(PATIENCE_S)
def test_a_megabyte_of_anything_is_no_trap(unit: str) -> None:
    """Seconds when the work grows with the size, hours when it grows with its square."""
    chunk_all(unit, 1_000_000)


@pytest.mark.timeout(PATIENCE_S)
def test_a_note_of_five_megabytes_is_no_trap() -> None:
    chunk_all(
        "# Head\n\nSome words in a sentence. And [[a link]] with <b>HTML</b>.\n\n- item\n\n",
        5_000_000,
    )


def chunk_all(unit: str, size: int) -> None:
    assert chunk_note(parse_note("a.md", unit * (size // len(unit))), ChunkLimits())
