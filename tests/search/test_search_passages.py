"""Ranked chunks made into hits: merged neighbours, a page for several notes, bounded text."""

import pytest

from obsidian_rag.search.passages import MAX_CHARS, Ranked, cut_around, passages
from obsidian_rag.store import FoundRow


def row(note: str, index: int, text: object = "", **fields: object) -> FoundRow:
    values: dict[str, object] = {
        "chunk_text": text or f"text of {note} {index}",
        "words_only": "",
        "names": note,
        "aliases": (),
        "title": note,
        "source_file": f"{note}.md",
        "link_id": "primary",
        "chunk_index": index,
        "section": None,
        "date": None,
        "tags": (),
        "heading_path": (),
        "start_line": index * 10 + 1,
        "end_line": index * 10 + 10,
        "is_private": False,
        **fields,
    }
    return FoundRow(**values)  # type: ignore[arg-type]  # a row of a table, by column


def in_order(*rows: FoundRow) -> list[Ranked]:
    """Ranked as they are given, best first."""
    scores = [1 - position / 100 for position in range(len(rows))]
    return [Ranked(one, score, {"words": score}) for one, score in zip(rows, scores, strict=True)]


def places(ranked: list[Ranked], limit: int, *, one_each: bool = False) -> list[tuple[str, int]]:
    hits = passages(ranked, (), limit, one_each=one_each)
    return [(hit.title, hit.chunk_index) for hit in hits]


def test_those_ahead_fill_the_page_first_even_if_of_one_note() -> None:
    rows = [row("a", at, section=f"S{at}", heading_path=(f"S{at}",)) for at in range(0, 8, 2)]
    ranked = in_order(*rows, row("b", 0), row("a", 9, section="Z"), row("c", 0))
    capped = [(hit.title, hit.chunk_index) for hit in passages(ranked, (), 5, one_each=False)]
    assert capped[2:4] != [("a", 4), ("a", 6)]
    hits = passages(ranked, (), 5, one_each=False, ahead=4)
    assert [(hit.title, hit.chunk_index) for hit in hits] == [
        ("a", 0), ("a", 2), ("a", 4), ("a", 6), ("b", 0),
    ]  # fmt: skip
    grouped = passages(ranked, (), 5, one_each=True, ahead=4)
    assert [hit.title for hit in grouped] == ["a", "b", "c"]


COPIED = in_order(
    row("a", 0, "# Rain\n\nsame words"),
    row("b", 0, "### 12 May\n\nsame  words\n"),
    row("c", 0, "# Rain\n\nother words"),
    row("c", 5, "same words"),
    row("d", 0, "# Rain"),
    row("e", 0, "# Snow"),
)


def test_what_several_notes_say_is_shown_once_where_there_is_more_to_show() -> None:
    assert places(COPIED, 2) == [("a", 0), ("c", 0)]
    assert places(COPIED, 4) == [("a", 0), ("c", 0), ("d", 0), ("e", 0)]
    assert places(COPIED, 6) == [("a", 0), ("b", 0), ("c", 0), ("c", 5), ("d", 0), ("e", 0)]


def test_every_note_is_listed_and_every_section_judged_whatever_others_say() -> None:
    assert places(COPIED, 3, one_each=True) == [("a", 0), ("b", 0), ("c", 0)]
    judged = passages(COPIED, (), 3, one_each=False, by_section=True)
    assert [hit.title for hit in judged] == ["a", "b", "c"]


def test_a_note_may_say_the_same_twice() -> None:
    ranked = in_order(row("a", 0, "same"), row("a", 5, "same"), row("b", 0, "other"))
    assert places(ranked, 4)[:2] == [("a", 0), ("a", 5)]


def test_neighbours_become_one_hit_led_by_the_best() -> None:
    in_c = {"section": "C", "heading_path": ("A", "C")}
    rows = (
        row("a", 3, "three", tags=("#x",), **in_c),
        row("b", 0, "other"),
        row("a", 2, "two", tags=("#x", "#y"), **in_c),
        row("a", 4, "four", section="D", heading_path=("A", "C", "D")),
    )
    first, second = passages(in_order(*rows), ("two",), 5, one_each=False)
    assert first.text == "two\n\nthree\n\nfour"
    assert (first.start_line, first.end_line) == (21, 50)
    assert (first.chunk_index, first.score, first.section) == (3, 1.0, "C")
    assert first.heading_path == ("A", "C")
    assert set(first.tags) == {"#x", "#y"}
    assert first.why.terms == ("two",)
    assert second.title == "b"


@pytest.mark.parametrize(
    ("best", "other"),
    [
        ((("A", "B"), "B"), (("A", "C"), "C")),
        ((("A", "B"), "B"), (("A",), "A")),
        (((), None), (("A",), "A")),
        ((("#x",), "#x"), (("#y",), "#y")),
        ((("A",), "A"), (("A", "#y"), "#y")),
        ((("#x",), "#x"), ((), None)),
    ],
)
def test_a_hit_holds_nothing_that_stands_under_another_heading(
    best: tuple[object, object], other: tuple[object, object]
) -> None:
    rows = [
        row("a", index, heading_path=path, section=section)
        for index, (path, section) in ((1, best), (0, other), (2, other))
    ]
    hits = passages(in_order(*rows), (), 9, one_each=False)
    assert [(hit.chunk_index, hit.section) for hit in hits] == [
        (1, best[1]),
        (0, other[1]),
        (2, other[1]),
    ]


def test_a_section_and_those_below_it_stay_apart_when_each_is_judged() -> None:
    rows = (
        row("a", 0, heading_path=("A",), section="A"),
        row("a", 1, heading_path=("A", "B"), section="B"),
    )
    assert len(passages(in_order(*rows), (), 9, one_each=False)) == 1
    assert len(passages(in_order(*rows), (), 9, one_each=False, by_section=True)) == 2


def test_what_two_windows_share_is_shown_once() -> None:
    shared = "a sentence that both of the windows hold, because they overlap."
    rows = (row("a", 0, f"before {shared}"), row("a", 1, f"{shared} after"))
    (hit,) = passages(in_order(*rows), (), 9, one_each=False)
    assert hit.text == f"before {shared} after"


CODE = "python\nprint('found')"
WITH_CODE = {
    "layout": (6, len(CODE), 1, 6, 2, 0),
    "text": "before\n\nafter",
}


def test_code_is_shown_in_its_place_and_properties_are_not() -> None:
    with_code = row("a", 0, words_only=f"{CODE}\nls\nsome property", **WITH_CODE)
    first, second = passages(in_order(with_code, row("b", 0)), (), 5, one_each=False)
    assert first.text == "before\n```python\nprint('found')\n```\n```\nls\n```\n\nafter"
    assert second.text == "text of b 0"


def test_a_cut_closes_the_fences_that_it_leaves_open() -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(300))
    text = f"# A\n```python\n{code}\n```\nend"
    shown = cut_around(text, ("line_150",))
    lines = shown.split("\n")
    assert len(shown) <= MAX_CHARS and "line_150 = 150" in lines
    assert lines[:2] == ["…", "```python"] and lines[-1] == "```" and lines[-2].endswith("…")
    assert all(line in text.split("\n") for line in lines[2:-2])
    start = cut_around(text, ("line_1",)).split("\n")
    assert start[:2] == ["# A", "```python"] and start[-1] == "```"
    assert cut_around(text, ("end",)).endswith("```\nend")


def test_the_densest_place_has_most_of_the_words_and_whole_ones() -> None:
    filler = "nothing here " * 300
    text = f"{filler}gardens gardens gardens {filler}a rain garden {filler}"
    assert "a rain garden" in cut_around(text, ("rain", "garden"))
    assert "a rain garden" in cut_around(text, ("garden",)), "the whole word"
    assert "gardens" in cut_around(text, ("gardener",)), "something like it"
    shown = cut_around(text, ("rain",)).strip("…")
    assert set(shown.split()) <= set(text.split()), "no word is cut"


def test_chunks_that_do_not_touch_stay_apart() -> None:
    assert places(in_order(row("a", 0), row("a", 2)), 5) == [("a", 0), ("a", 2)]


def test_a_hit_reaches_over_a_lesser_chunk_that_was_found_too() -> None:
    top = {"section": "A", "heading_path": ("A",)}
    below = {"section": "B", "heading_path": ("A", "B")}
    rows = row("a", 0, "head", **top), row("a", 2, "two", **below), row("a", 1, "one", **below)
    (hit,) = passages(in_order(*rows), (), 5, one_each=False)
    assert hit.text == "head\n\none\n\ntwo"
    assert (hit.start_line, hit.end_line) == (1, 30)


def test_a_hit_does_not_reach_over_what_is_too_long_elsewhere_or_in_another_hit() -> None:
    top = {"section": "A", "heading_path": ("A",)}
    below = {"section": "B", "heading_path": ("A", "B")}
    long = row("a", 0, **top), row("a", 2, **below), row("a", 1, "x" * MAX_CHARS, **below)
    assert places(in_order(*long), 5) == [("a", 0), ("a", 2)]
    elsewhere = row("a", 0, **top), row("a", 2, **below), row("a", 1)
    assert ("a", 2) in places(in_order(*elsewhere), 5)
    led = row("a", 1, **below), row("a", 0, **top), row("a", 2, **top)
    assert len(places(in_order(*led), 9)) == 3


def test_the_better_neighbour_is_shown_where_there_is_room_for_one() -> None:
    rows = row("a", 1, "x" * 900), row("a", 2, "z" * 900), row("a", 0, "y" * 900)
    (hit,) = passages(in_order(*rows), (), 5, one_each=False)
    assert hit.text == "x" * 900 + "\n\n" + "z" * 900


def test_the_same_place_in_another_note_or_vault_is_no_neighbour() -> None:
    rows = row("a", 0), row("b", 1), row("a", 1, link_id="other")
    assert len(passages(in_order(*rows), (), 5, one_each=False)) == 3


def test_neighbours_that_would_make_a_hit_too_long_are_left_out() -> None:
    rows = row("a", 1, "x" * 1500), row("a", 0, "y" * 1500), row("a", 2, "z" * 100)
    (hit,) = passages(in_order(*rows), (), 5, one_each=False)
    assert len(hit.text) <= MAX_CHARS
    assert hit.text.startswith("x")
    assert hit.start_line == 11, "the lines are those of the text that is shown"


def test_a_neighbour_too_long_to_join_does_not_keep_out_a_shorter_one() -> None:
    rows = row("a", 1, "x" * 1500), row("a", 0, "y" * 1500), row("a", 2, "z" * 100)
    (hit,) = passages(in_order(*rows), (), 5, one_each=False)
    assert hit.text == "x" * 1500 + "\n\n" + "z" * 100
    assert (hit.start_line, hit.end_line) == (11, 30)


def test_one_long_note_does_not_fill_the_page() -> None:
    long = [row("long", index * 2) for index in range(10)]
    others = [row(name, 0) for name in "abc"]
    found = places(in_order(*long, *others), 5)
    assert [name for name, _ in found].count("long") == 2
    assert {"a", "b", "c"} <= {name for name, _ in found}


def test_one_long_note_fills_the_page_when_there_is_nothing_else() -> None:
    long = [row("long", index * 2) for index in range(10)]
    found = places(in_order(*long, row("a", 0)), 5)
    assert len(found) == 5
    assert ("a", 0) in found


def test_hits_stay_in_order_when_spare_ones_fill_the_page() -> None:
    rows = [*(row("long", index * 2) for index in range(6)), row("a", 0)]
    hits = passages(in_order(*rows), (), 5, one_each=False)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_grouping_gives_each_note_once() -> None:
    rows = row("a", 0), row("a", 5), row("b", 0), row("a", 9), row("c", 3)
    assert places(in_order(*rows), 5, one_each=True) == [("a", 0), ("b", 0), ("c", 3)]


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
def test_there_are_never_more_hits_than_asked_for(limit: int) -> None:
    rows = [row(name, index * 2) for name in "abcd" for index in range(4)]
    assert len(places(in_order(*rows), limit)) == min(limit, 16)


def test_shares_and_scores_are_rounded() -> None:
    ranked = [Ranked(row("a", 0), 0.123456, {"words": 0.100049, "vector": 0.023407})]
    (hit,) = passages(ranked, (), 5, one_each=False)
    assert hit.score == 0.1235
    assert hit.why.signals == {"words": 0.1, "vector": 0.0234}


def test_terms_come_from_names_and_code_too() -> None:
    garden = row("Garden", 0, "about plants", words_only="print(soil)")
    words = ("garden", "soil", "plant", "moon")
    first, second = passages(
        in_order(garden, row("Meadow", 0, "about grass")), words, 5, one_each=False
    )
    assert first.why.terms == ("garden", "soil", "plant")
    assert second.why.terms == ()


@pytest.mark.parametrize("before", [0, 10, 3000, 9000])
@pytest.mark.parametrize("after", [0, 10, 3000])
def test_a_cut_keeps_the_match_and_the_bound(before: int, after: int) -> None:
    text = "a " * (before // 2) + "needle" + " b" * (after // 2)
    cut = cut_around(text, ("needle",), 200)
    assert "needle" in cut
    assert len(cut) <= 200
    assert cut.strip("…") in text
    assert cut.startswith("…") is not text.startswith(cut[:20])


def test_a_cut_goes_where_most_of_the_words_are() -> None:
    text = "alpha " + "x " * 500 + "alpha beta gamma" + " y" * 500
    assert "alpha beta gamma" in cut_around(text, ("alpha", "beta", "gamma"), 200)


def test_a_cut_without_a_match_is_the_beginning() -> None:
    text = "start " + "x " * 500
    assert cut_around(text, ("absent",), 100).startswith("start")
    assert cut_around(text, (), 100).startswith("start")
    assert cut_around("short", ("absent",), 100) == "short"


@pytest.mark.parametrize("letter", ["ß", "ﬃ", "…", "é", "e\u0301"])
def test_letters_that_fold_to_more_or_fewer_do_not_shift_the_cut(letter: str) -> None:
    text = letter * 3000 + " needle " + "x" * 3000
    assert "needle" in cut_around(text, ("needle",), 200)
