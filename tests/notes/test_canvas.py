import json

from obsidian_rag.notes import ChunkLimits, LinkKind, chunk_note, parse_note

NODES = [
    {"id": "n1", "type": "text", "text": "# Plan\nbuy #milk and [[Bread]]"},
    {"id": "n2", "type": "file", "file": "notes/A b.md", "subpath": "#Head"},
    {"id": "n3", "type": "file", "file": "c.png", "subpath": "#^blk"},
    {"id": "n4", "type": "link", "url": "https://example.org"},
    {"id": "n5", "type": "group", "label": "Kitchen"},
    {"id": "n6", "type": "text", "text": "```\nopen fence"},
    {"id": "n7", "type": "text", "text": "after \ud800 " + "long words " * 400},
]
LINES = ["{", '"nodes":[', *(json.dumps(node) + "," for node in NODES)]
LINES[-1] = LINES[-1].rstrip(",")
LINES += ['],"edges":[', '{"id":"e1","fromNode":"n1","toNode":"n2","label":"leads to"}', "]}"]
TEXT = "\n".join(LINES)


def test_cards_become_headings_tags_and_links_on_their_json_lines() -> None:
    note = parse_note("boards/My board.canvas", TEXT)
    assert note.title == "My board" and note.parse_error is None and note.tags == ("#milk",)
    assert [(head.text, head.line) for head in note.headings] == [("Plan", 3)]
    found = [(link.kind, link.target, link.heading, link.block, link.line) for link in note.links]
    assert found == [
        (LinkKind.WIKILINK, "Bread", None, None, 3),
        (LinkKind.EMBED, "notes/A b.md", "Head", None, 4),
        (LinkKind.EMBED, "c.png", None, "blk", 5),
    ]


def test_every_word_of_a_canvas_is_in_a_chunk_of_its_line() -> None:
    chunks = chunk_note(parse_note("x.canvas", TEXT), ChunkLimits())
    everything = "\n".join(f"{chunk.text}\n{chunk.words_only}" for chunk in chunks)
    for word in (
        "buy",
        "A b.md",
        "https://example.org",
        "Kitchen",
        "open fence",
        "after",
        "leads to",
    ):
        assert word in everything
    assert all(3 <= chunk.start_line <= chunk.end_line <= 11 for chunk in chunks)
    assert [c.start_line for c in chunks if "long words" in c.text] == [9, 9, 9]
    assert everything.encode()


def test_one_line_canvas_is_line_one() -> None:
    chunks = chunk_note(parse_note("x.canvas", json.dumps({"nodes": NODES})), ChunkLimits())
    assert {(chunk.start_line, chunk.end_line) for chunk in chunks} == {(1, 1)}


def test_broken_and_strange_canvases_do_not_raise() -> None:
    for text in (
        "{",
        "[]",
        "[" * 100_000,
        '{"nodes": 1}',
        '{"nodes":[1,{"text":3}]}',
        "",
        "\ufeff{}",
    ):
        note = parse_note("x.canvas", text)
        assert [chunk.text for chunk in chunk_note(note, ChunkLimits())] == ["x"]
    broken = parse_note("x.canvas", "{")
    assert broken.parse_error and broken.text == ""
    assert parse_note("x.canvas", "").parse_error is None
