from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_rag.notes import (
    ChunkLimits,
    chunk_note,
    date_keys,
    first_day,
    keys_within,
    last_day,
    parse_date,
    parse_note,
    with_dates,
)
from obsidian_rag.notes.dates import mentioned_dates, note_dates


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("2024-01-15.md", "2024-01-15"),
        ("Journal/2024-01-15 Meeting.md", "2024-01-15"),
        ("x/Meeting 20240115.md", "2024-01-15"),
        ("2024.01.15.md", "2024-01-15"),
        ("2024_01_15.md", "2024-01-15"),
        ("2024-01.md", "2024-01-01"),
        ("2024-W03.md", "2024-01-15"),
        ("2020-W53.md", "2020-12-28"),
        ("January 15, 2024.md", "2024-01-15"),
        ("15 January 2024.md", "2024-01-15"),
        ("Jan 15 2024.md", "2024-01-15"),
        ("1st of 3rd Sept 2024.md", "2024-09-03"),
        ("2024/01/15.md", "2024-01-15"),
        ("J/2024/01-January/15.md", "2024-01-15"),
        ("J/2024/January/15 Monday.md", "2024-01-15"),
        ("2024/2024-01/15.md", "2024-01-15"),
        ("2024/2024-01/notes.md", "2024-01-01"),
        ("2024/01-15.md", "2024-01-15"),
        ("2024-02-30.md", None),
        ("2024-13-45.md", None),
        ("2024-13.md", None),
        ("2024-W60.md", None),
        ("15-01-2024.md", None),
        ("99999999.md", None),
        ("202401151230.md", None),
        ("v1.2024.md", None),
        ("2024/notes.md", None),
        ("Maybe 2024.md", None),
        ("note.md", None),
    ],
)
def test_date_of_a_path(path: str, day: str | None) -> None:
    assert parse_date(path, {}) == day


def test_the_name_wins_over_folders_and_folders_over_frontmatter() -> None:
    front: dict[str, object] = {"date": "2022-03-04"}
    assert parse_date("2023/05/2024-01-15.md", front) == "2024-01-15"
    assert parse_date("2023/05/06.md", front) == "2023-05-06"
    assert parse_date("note.md", front) == "2022-03-04"


@pytest.mark.parametrize(
    "value", ["2022-03-04", "2022-03-04T10:00:00", 20220304, "March 4, 2022", "[[2022-03-04]]"]
)
def test_frontmatter_dates(value: object) -> None:
    assert parse_date("note.md", {"Created": value}) == "2022-03-04"
    assert parse_date("note.md", {"other": value}) is None
    assert parse_date("note.md", {"date": True}) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("Journal/2023-03-15 Walk.md", ["2023-03-15"]),
        ("2023-03.md", ["2023-03"]),
        ("Journal/2023/03/note.md", ["2023-03"]),
        ("Journal/2023/03-March/15.md", ["2023-03-15"]),
        ("Journal/2023/März/note.md", ["2023-03"]),
        ("newsletter/2022_w44.md", ["2022-10-31/2022-11-06"]),
        ("KW 30 2023.md", ["2023-07-24/2023-07-30"]),
        ("2023 Week 30.md", ["2023-07-24/2023-07-30"]),
        ("Review Q3 2023.md", ["2023-07-01/2023-09-30"]),
        ("2023-Q3.md", ["2023-07-01/2023-09-30"]),
        ("15. März 2024.md", ["2024-03-15"]),
        ("15 de marzo de 2024.md", ["2024-03-15"]),
        ("1er août 2024.md", ["2024-08-01"]),
        ("15.03.2024 Rechnung.md", ["2024-03-15"]),
        ("Août 2024.md", ["2024-08"]),
        ("2024-07-12 to 2024-07-21 Freiburg.md", ["2024-07-12", "2024-07-21"]),
        ("newsletter/2023.md", ["2023"]),
        ("Budget 2026.md", ["2026"]),
        ("Archive/2022/Ideas.md", ["2022"]),
        ("Archive/2022/Budget 2021.md", ["2021", "2022"]),
        ("Archive/2022/2023-03-15.md", ["2023-03-15"]),
        ("1984.md", []),
        ("Books/1984/Notes.md", []),
        ("Blade Runner 2049.md", []),
        ("v1.2024.md", []),
        ("room-2024a.md", []),
        ("Ideas.md", []),
    ],
)
def test_all_dates_of_a_path(path: str, expected: list[str]) -> None:
    title = path.rpartition("/")[2].removesuffix(".md")
    assert list(note_dates(path, title, {})) == expected


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"due": "2024-05-01"}, ["2024-05-01"]),
        ({"start": "2024-05-01T10:00:00Z", "end": "2024-06"}, ["2024-05-01", "2024-06"]),
        ({"met": ["[[2024-05-01]]", "2024-05-08"]}, ["2024-05-01", "2024-05-08"]),
        ({"held": "May 1, 2024"}, ["2024-05-01"]),
        ({"created": "2024-05-01", "due": "2024-06-01"}, ["2024-05-01", "2024-06-01"]),
        ({"year": 2020}, ["2020"]),
        ({"modified": "2024-05-01", "last_updated": "2024-05-02", "updated": "2024-05-03"}, []),
        ({"summary": "planned on 2024-05-01 with Ann"}, []),
        ({"rating": 2024, "done": True, "id": 20240501, "none": None}, []),
    ],
)
def test_any_property_that_is_a_date_counts(
    properties: dict[str, object], expected: list[str]
) -> None:
    assert list(note_dates("Ideas.md", "Ideas", properties)) == expected


def test_a_date_in_the_name_wins_over_when_the_note_was_made() -> None:
    front: dict[str, object] = {"created": "2025-01-01", "due": "2024-06-01"}
    assert note_dates("2024-05-01.md", "2024-05-01", front) == ("2024-05-01", "2024-06-01")


LOG = """---
created: 2020-01-01
---
# Log

Begun in a quiet hour, with a long enough text that nothing is put together with it. {filler}

## 2023-03-15

Painted the fence. {filler}

### Evening

Slept badly. {filler}

## March 2024 in Lisbon

Coffee on 3 May 2021, and 📅 2026-06-13. {filler}

## Goals 2025

Run more. {filler}

#2019

Tags are no dates. {filler}
"""


def test_a_passage_belongs_to_the_date_above_it() -> None:
    text = LOG.format(filler="pebble lantern heron otter " * 40)
    note = parse_note("Log.md", text)
    chunks = with_dates(note, chunk_note(note, ChunkLimits()))
    found = {chunk.heading_path: chunk.dates for chunk in chunks}
    assert found[("Log",)] == ("2020-01-01",)
    assert found[("Log", "2023-03-15")] == ("2023-03-15",)
    assert found[("Log", "2023-03-15", "Evening")] == ("2023-03-15",)
    assert found[("Log", "March 2024 in Lisbon")] == ("2024-03",)
    assert found[("Log", "Goals 2025")] == ("2020-01-01", "2025")
    assert not any("2019" in date for dates in found.values() for date in dates)
    (said,) = (chunk.mentioned_dates for chunk in chunks if "Lisbon" in str(chunk.heading_path))
    assert set(said) == {"2021-05-03", "2026-06-13"}


def test_small_sections_put_together_keep_all_their_dates() -> None:
    note = parse_note("Log.md", "## 2023-03-15\n\nOne.\n\n## 2023-03-16\n\nTwo.\n")
    chunks = with_dates(note, chunk_note(note, ChunkLimits()))
    assert {date for chunk in chunks for date in chunk.dates} == {"2023-03-15", "2023-03-16"}
    for chunk in chunks:
        assert ("Two" not in chunk.text) or "2023-03-16" in chunk.dates


DATES = st.dates(date(1900, 1, 1), date(2100, 12, 31))


def _written(day: date, size: int, more: int) -> str:
    if size == 0:
        return f"{day}/{day + timedelta(days=more)}"
    return day.isoformat()[:size]


@given(DATES, st.sampled_from([0, 4, 7, 10]), st.integers(0, 100), DATES, st.integers(0, 4000))
def test_keys_meet_exactly_when_the_days_do(
    day: date, size: int, more: int, first: date, length: int
) -> None:
    one = _written(day, size, more)
    # Near enough that both answers come up.
    first = day + (first - day) % timedelta(days=900) - timedelta(days=450)
    last = first + timedelta(days=length)
    is_in = first_day(one) <= last.isoformat() and last_day(one) >= first.isoformat()
    assert bool({*date_keys([one])} & {*keys_within(str(first), str(last))}) is is_in
    is_before = first_day(one) <= last.isoformat()
    assert bool({*date_keys([one])} & {*keys_within(None, str(last))}) is is_before
    is_after = last_day(one) >= first.isoformat()
    assert bool({*date_keys([one])} & {*keys_within(str(first), None)}) is is_after


def test_a_span_is_a_bounded_number_of_keys() -> None:
    assert keys_within("2024-01-01", "2024-12-31") == ["2024"]
    assert keys_within("2024-03-01", "2024-03-31") == ["2024-03", "2024*"]
    assert len(keys_within("1001-02-02", "2998-11-29")) < 200
    assert len(keys_within(None, "2998-11-29")) < 200
    assert keys_within("2025-01-01", "2024-01-01") == []


@given(st.text())
def test_no_text_makes_it_fail(text: str) -> None:
    date_keys(note_dates(f"{text}/2024 {text}.md", text, {"due": text}))
    date_keys([], mentioned_dates(f"2024-{text} {text} 2024"))
