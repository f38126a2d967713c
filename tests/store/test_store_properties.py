"""Properties of notes in SQLite: equality and ranges over numbers, dates and words."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from obsidian_rag.store import Database, Properties

VALUES = {
    "a.md": (("rating", "5"), ("status", "done"), ("due", "2024-05-01")),
    "b.md": (("rating", "10"), ("status", "open"), ("due", "2025-02-10")),
    "c.md": (("rating", "-1.5"), ("author", "ursula k. le guin"), ("author", "someone else")),
    "d.md": (("rating", "good"), ("due", "2024-05-01t10:00:00")),
    "e.md": (("rating", "nan"), ("size", "1e3"), ("size", "inf")),
}


def paths_of(properties: Properties, *bounds: str | None, **ends: bool) -> set[str]:
    found = properties.notes_with(*bounds, **ends)  # type: ignore[arg-type]  # spread for brevity
    return {path for paths in found.values() for path in paths}


@pytest.fixture
def properties(tmp_path: Path) -> Iterator[Properties]:
    database = Database(tmp_path / "state.db")
    made = Properties(database)
    with database.transaction():
        database.run(
            "INSERT INTO vault_link (link_id, root_path, created_at, updated_at, is_primary, name)"
            " VALUES ('one', '/one', '', '', 1, 'one')"
        )
        made.put("one", VALUES.items())
    yield made
    database.close()


@pytest.mark.parametrize(
    ("key", "low", "high", "expected"),
    [
        ("rating", "5", "5", {"a.md"}),
        ("rating", "5.0", "5.0", {"a.md"}),
        ("RATING", "05", "05", {"a.md"}),
        ("rating", "5", None, {"a.md", "b.md"}),
        ("rating", None, "5", {"a.md", "c.md"}),
        ("rating", "-2", "0", {"c.md"}),
        ("rating", "6", "9", set()),
        ("rating", "good", "good", {"d.md"}),
        ("rating", "GOOD", "GOOD", {"d.md"}),
        ("status", "done", "done", {"a.md"}),
        ("status", "d", "e", {"a.md"}),
        ("due", "2024-05-01", "2024-05-01", {"a.md"}),
        ("due", "2024-01-01", "2024-12-31", {"a.md", "d.md"}),
        ("due", "2025-01-01", None, {"b.md"}),
        ("author", "Ursula K. Le Guin", "Ursula K. Le Guin", {"c.md"}),
        ("author", "someone else", "someone else", {"c.md"}),
        ("size", "1000", "1000", {"e.md"}),
        ("rating", "nan", "nan", {"e.md"}),
        ("size", "inf", "inf", {"e.md"}),
        ("absent", None, None, set()),
        ("due", None, None, {"a.md", "b.md", "d.md"}),
    ],
)
def test_a_property_is_found_by_value_or_range(
    properties: Properties, key: str, low: str | None, high: str | None, expected: set[str]
) -> None:
    assert paths_of(properties, key, low, high) == expected


@pytest.mark.parametrize(
    ("is_open_low", "is_open_high", "expected"),
    [
        (False, False, {"a.md", "b.md"}),
        (True, False, {"b.md"}),
        (False, True, {"a.md"}),
        (True, True, set()),
    ],
)
def test_open_ends_leave_out_their_bound(
    properties: Properties, is_open_low: bool, is_open_high: bool, expected: set[str]
) -> None:
    found = paths_of(
        properties, "rating", "5", "10", is_open_low=is_open_low, is_open_high=is_open_high
    )
    assert found == expected


def test_putting_a_note_again_replaces_its_properties(properties: Properties) -> None:
    properties.put("one", [("a.md", (("rating", "1"),))])
    assert paths_of(properties, "rating", "1", "1") == {"a.md"}
    assert paths_of(properties, "status", "done", "done") == set()
    properties.put("one", [("a.md", ())])
    assert paths_of(properties, "rating", "1", "1") == set()


def test_removed_notes_have_no_properties(properties: Properties) -> None:
    properties.remove("one", ["a.md", "absent.md"])
    assert paths_of(properties, "rating", "5", None) == {"b.md"}


def test_values_are_data_and_never_sql(properties: Properties) -> None:
    assert paths_of(properties, "x' OR '1'='1", "1", "1") == set()
    assert paths_of(properties, "status", "done' OR '1'='1", "done' OR '1'='1") == set()
