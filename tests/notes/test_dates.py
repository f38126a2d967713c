import pytest

from obsidian_rag.notes import parse_date


@pytest.mark.parametrize(
    ("path", "date"),
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
def test_date_of_a_path(path: str, date: str | None) -> None:
    assert parse_date(path, {}) == date


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
