"""Merging: the results of the real library, and nothing that either side wrote is lost."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.livesync.vectors import VECTORS
from tests.waiting import PATIENCE_S

from obsidian_rag.livesync.merge import apply_hunks, find_hunks, merge_json, merge_text

Case = dict[str, Any]
TEXTS = [case for case in VECTORS["merge"] if not case.get("json")]
OBJECTS = [case for case in VECTORS["merge"] if case.get("json")]


def text_name(case: Case) -> str:
    return f"{case['label']}, {'left' if case['leftMtime'] == 1 else 'right'} older"


def as_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def merged_json(base: object, left: object, right: object) -> Any:
    merged = merge_json(as_json(base), as_json(left), as_json(right))
    return None if merged is None else json.loads(merged)


@pytest.mark.parametrize("case", TEXTS, ids=text_name)
def test_text_is_merged_as_in_the_real_library(case: Case) -> None:
    merged = merge_text(
        case["base"], case["left"], case["right"], case["leftMtime"], case["rightMtime"]
    )
    assert merged == (case["merged"] or None)


@pytest.mark.parametrize("case", OBJECTS, ids=lambda case: str(case["label"]))
def test_json_is_merged_as_in_the_real_library(case: Case) -> None:
    merged = merge_json(as_json(case["base"]), as_json(case["left"]), as_json(case["right"]))
    assert merged == (case["merged"] or None)


@pytest.mark.parametrize("gone", range(3))
def test_a_deleted_branch_is_never_merged(gone: int) -> None:
    base, left, right = (None if gone == i else '{"a":1}' for i in range(3))
    assert merge_text(base, left, right, 1, 2) is None
    assert merge_json(base, left, right) is None


@pytest.mark.parametrize(
    ("base", "left", "right", "merged"),
    [
        ("a\nb\nc\nd\n", "a\nd\n", "a\nb\n", "a\n"),
        ("a\nb\nc\nd\ne\n", "a\nd\ne\n", "a\nb\ne\n", "a\ne\n"),
        ("a\nb\nc\n", "a\nc\n", "a\nb\nX\nc\n", "a\nX\nc\n"),
        ("a\nb\nc\n", "c\n", "a\nX\nb\nc\n", None),
        ("a\nb\nc\n", "a\nX\nc\n", "A\nb\nC\n", "A\nX\nC\n"),
        ("a\nb\nc\n", "X\nc\n", "a\nB\nc\n", None),
        ("a\n", "a\n\nL\n", "a\n\nR\n", "a\n\nL\n\nR\n"),
        ("a\n", "a\n## H\nL\n", "a\n## H\nR\n", "a\n## H\nL\nR\n"),
        ("a\n", "a\nX\n", "a\nX\nR\n", "a\nX\nR\n"),
        ("a\n", "a\nX\n\n", "a\nX\n\nR\n", "a\nX\n\nR\n"),
        ("a", "", "a\nb", "a\nb"),
        ("a\n", "a\nL1\nL2\n", "a\nR1\nR2\n", "a\nL1\nL2\nR1\nR2\n"),
        ("a\n", "a\nL", "a\nR", "a\nL\nR"),
        ("a", "a\nL\n", "a\nR", "a\nL\nR\n"),
        ("a", "A", "a\nR", "A\nR"),
        ("", "L", "R", "L\nR"),
        ("a\nb\n", "a\nb", "A\nb\n", "A\nb"),
        ("a\nb\nc\n", "a\nb\n", "A\nb\nc\n", "A\nb\n"),
        ("a\nb\nc\n", "a\nb\n", "a\nb\nc\nd\n", "a\nb\nc\nd\n"),
        ("a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nC\r\n"),
        ("a\u2028b\x0cc\n", "a\u2028b\x0cc\nL\n", "X\na\u2028b\x0cc\n", "X\na\u2028b\x0cc\nL\n"),
    ],
)
def test_changes_that_do_not_meet_are_joined(
    base: str, left: str, right: str, merged: str | None
) -> None:
    assert merge_text(base, left, right, 1, 2) == merged


def test_of_two_additions_of_the_same_time_the_left_comes_first() -> None:
    assert merge_text("a\n", "a\nL\n", "a\nR\n", 5, 5) == "a\nL\nR\n"


def paragraphs(count: int, **changed: str) -> str:
    return "".join(f"{changed.get(f'p{number}', number)}\n\n" for number in range(count))


def test_a_long_note_with_many_blank_lines_is_merged() -> None:
    left = paragraphs(3000, p0="first", p1500="left", p2999="last")
    right = paragraphs(3000, p1="second", p1501="right")
    merged = paragraphs(3000, p0="first", p1="second", p1500="left", p1501="right", p2999="last")
    assert merge_text(paragraphs(3000), left, right, 1, 2) == merged


def test_what_would_take_too_long_to_compare_is_left_to_a_person(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The limit is only worth testing when small.
    monkeypatch.setattr("obsidian_rag.livesync.merge._MAX_PAIRS", 3)
    for count, merged in ((5, "A\n1\nB\n3\nC\n"), (6, None)):
        base = closed([str(number) for number in range(count)])
        left = closed(["A", *map(str, range(1, count - 1)), "C"])
        assert merge_text(base, left, base.replace("2", "B"), 1, 2) == merged


UNIQUE = [f"line {number}" for number in range(12)]
some_lines = st.lists(st.sampled_from(UNIQUE), unique=True, max_size=8)
any_lines = st.lists(st.sampled_from(["", "a", "b", "c", "- x"]), max_size=12)


def closed(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@given(base=some_lines, left=some_lines, right=some_lines)
def test_no_line_that_a_side_wrote_or_both_kept_is_lost(
    base: list[str], left: list[str], right: list[str]
) -> None:
    merged = merge_text(closed(base), closed(left), closed(right), 1, 2)
    if merged is None:
        return
    found = set(merged.splitlines())
    assert (set(left) | set(right)) - set(base) <= found
    assert set(left) & set(right) <= found
    assert found <= set(base) | set(left) | set(right)


@given(base=any_lines, left=any_lines, right=any_lines, ends=st.tuples(*[st.booleans()] * 3))
def test_no_word_that_a_side_added_is_lost_even_if_lines_repeat(
    base: list[str], left: list[str], right: list[str], ends: tuple[bool, bool, bool]
) -> None:
    texts = [
        closed(lines) if end else "\n".join(lines)
        for lines, end in zip((base, left, right), ends, strict=True)
    ]
    merged = merge_text(texts[0], texts[1], texts[2], 1, 2)
    if merged is None:
        return
    for letter in "abcx":
        before = texts[0].count(letter)
        most = max(texts[1].count(letter), texts[2].count(letter))
        assert merged.count(letter) >= most - before


@given(base=any_lines, left=any_lines, right=any_lines)
def test_it_does_not_matter_which_side_is_called_left(
    base: list[str], left: list[str], right: list[str]
) -> None:
    one = merge_text(closed(base), closed(left), closed(right), 1, 2)
    assert one == merge_text(closed(base), closed(right), closed(left), 2, 1)


@given(base=st.text("ab\n"), changed=st.text("ab\n"))
def test_a_change_on_one_side_alone_is_taken_as_it_is(base: str, changed: str) -> None:
    assert merge_text(base, changed, base, 1, 2) == changed
    assert merge_text(base, base, changed, 1, 2) == changed
    assert merge_text(base, changed, changed, 1, 2) == changed


@given(first=st.integers(0, 39), second=st.integers(0, 39), is_blank=st.booleans())
def test_edits_of_different_lines_always_merge(first: int, second: int, is_blank: bool) -> None:
    base = ["" if is_blank and number % 2 else f"line {number}" for number in range(40)]
    left, right, both = list(base), list(base), list(base)
    left[first] = both[first] = "left"
    right[second] = both[second] = "right"
    merged = merge_text(closed(base), closed(left), closed(right), 1, 2)
    assert merged == (None if first == second else closed(both))


@given(old=any_lines | some_lines, new=any_lines | some_lines)
def test_changes_found_in_a_text_make_the_other_one(old: list[str], new: list[str]) -> None:
    hunks = list(find_hunks(old, tuple(new)))
    assert list(apply_hunks(old, hunks)) == new
    assert all(one.end < following.start for one, following in zip(hunks, hunks[1:], strict=False))
    assert all(hunk.start < hunk.end or hunk.lines for hunk in hunks)


@pytest.mark.timeout(PATIENCE_S)
@pytest.mark.parametrize("distinct", [1, 2, 10_000, 20_000, 40_000, 80_000])
def test_texts_made_to_be_slow_are_merged_or_refused_soon(distinct: int) -> None:
    def shuffled(seed: int) -> str:
        lines = [f"{number % distinct}" for number in range(80_000)]
        random.Random(seed).shuffle(lines)
        return closed(lines)

    base, left, right = shuffled(1), shuffled(2), shuffled(3)
    merged = merge_text(base, left, right, 1, 2)
    assert merged is None or distinct == 1


@pytest.mark.parametrize(
    ("base", "left", "right", "merged"),
    [
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": 9, "y": 2}}, {"a": {"x": 1, "y": 8}}, "both"),
        ({"a": 1}, {"a": 1, "b": {"x": 1}}, {"a": 1, "b": {"y": 1}}, None),
        ({"a": 1, "b": 1}, {"b": 1}, {"a": 2, "b": 1}, None),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, {"a": [0, 1, 2]}, None),
        ({"a": 1, "b": 1}, {"a": True, "b": 1}, {"a": 1, "b": 2}, {"a": True, "b": 2}),
        ({"a": 1, "b": 1}, {"a": 1.0, "b": 1}, {"a": 1, "b": 2}, {"a": 1.0, "b": 2}),
        ([1], [2], [3], None),
        (
            {"a": [{"y": 1, "x": 1}]},
            {"a": [{"x": 1, "y": 1}], "b": 1},
            {"a": [2]},
            {"a": [2], "b": 1},
        ),
    ],
)
def test_json_is_merged_key_by_key(base: object, left: object, right: object, merged: Any) -> None:
    if merged == "both":
        merged = {"a": {"x": 9, "y": 8}}
    assert merged_json(base, left, right) == merged


def nodes(*pairs: tuple[str, int]) -> dict[str, object]:
    return {"nodes": [{"id": name, "x": x} for name, x in pairs], "edges": []}


@pytest.mark.parametrize(
    ("base", "left", "right", "merged"),
    [
        ([("a", 1), ("b", 1)], [("a", 2), ("b", 1)], [("a", 1), ("b", 3)], [("a", 2), ("b", 3)]),
        ([("a", 1)], [("a", 1), ("l", 1)], [("a", 1), ("r", 1)], [("a", 1), ("l", 1), ("r", 1)]),
        ([("a", 1), ("b", 1)], [("b", 1)], [("a", 1), ("b", 2)], [("b", 2)]),
        ([("a", 1), ("b", 1)], [("b", 1), ("a", 1)], [("a", 2), ("b", 1)], [("b", 1), ("a", 2)]),
        ([("a", 1), ("b", 1)], [("a", 2), ("b", 1)], [("b", 1), ("a", 1)], [("b", 1), ("a", 2)]),
        ([("a", 1), ("b", 1)], [("b", 1)], [("a", 2), ("b", 1)], None),
        ([("a", 1)], [("a", 2)], [("a", 3)], None),
        ([("a", 1)], [("a", 1), ("n", 1)], [("a", 1), ("n", 2)], None),
        ([("a", 1), ("a", 2)], [("a", 1)], [("a", 2)], None),
        (
            [("a", 1), ("b", 1), ("c", 1)],
            [("b", 1), ("a", 1), ("c", 1)],
            [("a", 1), ("c", 1), ("b", 1)],
            None,
        ),
    ],
)
def test_the_cards_of_a_canvas_are_merged_one_by_one(
    base: list[tuple[str, int]],
    left: list[tuple[str, int]],
    right: list[tuple[str, int]],
    merged: list[tuple[str, int]] | None,
) -> None:
    expected = None if merged is None else nodes(*merged)
    assert merged_json(nodes(*base), nodes(*left), nodes(*right)) == expected


@pytest.mark.parametrize(
    "left",
    ["{SOUND", '{SOUND,"a":2}', "{SOUND,NaN}", '{SOUND,"c":NaN}', '{SOUND,"c":1e999}']
    + ["[" * 100_000, '{SOUND,"c":"\\ud800"}', "", "\ufeff{SOUND}", '{SOUND,"c":[{"a":1,"a":2}]}'],
    ids=["cut", "twice", "no_key", "nan", "infinite", "deep", "half", "empty", "bom", "inside"],
)
def test_what_is_not_sound_json_is_left_to_a_person(left: str) -> None:
    base, right = '{"a":1,"b":1}', '{"a":1,"b":2}'
    assert merge_json(base, '{"a":1,"b":1,"c":3}', right) == '{"a":1,"b":2,"c":3}'
    assert merge_json(base, left.replace("SOUND", '"a":1,"b":1'), right) is None


def test_letters_of_all_scripts_stay_letters() -> None:
    assert merge_json('{"ä":1,"b":1}', '{"ä":"日","b":1}', '{"ä":1,"b":2}') == '{"ä":"日","b":2}'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=8,
)


@given(base=json_values, left=json_values, right=json_values)
def test_merged_json_does_not_depend_on_which_side_is_called_left(
    base: object, left: object, right: object
) -> None:
    assert merged_json(base, left, right) == merged_json(base, right, left)


@given(base=json_values, changed=json_values)
def test_json_changed_on_one_side_alone_is_taken_as_it_is(base: object, changed: object) -> None:
    assert merge_json(as_json(base), as_json(changed), as_json(base)) == as_json(changed)
    assert merge_json(as_json(base), as_json(base), as_json(changed)) == as_json(changed)
