"""The day a note is about: from its file name, then its folders, then its frontmatter."""

import datetime
import re
from collections.abc import Iterator, Mapping

from obsidian_rag.notes.properties import lookup

DATE_PROPERTIES = (
    "date",
    "created",
    "day",
    "created_at",
    "date_created",
    "date created",
    "creation_date",
    "creation date",
    "datetime",
    "published",
)

_MONTH_NAMES = """
    january jan / february feb / march mar / april apr / may / june jun / july jul / august aug /
    september sep sept / october oct / november nov / december dec
"""
_MONTHS = {
    name: number
    for number, names in enumerate(_MONTH_NAMES.split("/"), start=1)
    for name in names.split()
}
_MONTH = "(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?<!\d)(\d{4})"
_YMD = re.compile(_YEAR + r"([-._ ])(\d{1,2})\2(\d{1,2})(?!\d)")
_COMPACT = re.compile(r"(?<!\d)(\d{4})(\d\d)(\d\d)(?!\d)")
_MONTH_DAY_YEAR = re.compile(
    rf"(?<![^\W_]){_MONTH}[ _-]{_DAY},?[ _-](\d{{4}})(?!\d)", re.IGNORECASE
)
_DAY_MONTH_YEAR = re.compile(rf"(?<!\d){_DAY}[ _-]{_MONTH},?[ _-](\d{{4}})(?!\d)", re.IGNORECASE)
_YEAR_MONTH_DAY = re.compile(rf"{_YEAR}[ _-]{_MONTH}[ _-]{_DAY}(?!\d)", re.IGNORECASE)
_WEEK = re.compile(_YEAR + r"[-_ ]?W(\d\d)(?:-?([1-7]))?(?!\d)", re.IGNORECASE)
_MONTH_YEAR = re.compile(rf"(?<![^\W_]){_MONTH},?[ _-](\d{{4}})(?!\d)", re.IGNORECASE)
_YM = re.compile(_YEAR + r"[-._](\d\d)(?![-._]?\d)")
_NUMBERED_MONTH = re.compile(r"(0[1-9]|1[0-2]|[1-9])(?:[-_ .]\D.*)?")
_DAY_STEM = re.compile(r"(\d{1,2})(?:[-_ ,]+(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*)?", re.IGNORECASE)
_MONTH_DAY_STEM = re.compile(r"(\d\d)[-_.](\d\d)(?!\d).*")
_HAS_YEAR = re.compile(r"\d{4}")
_MAX_NAME = 300


def parse_date(path: str, frontmatter: Mapping[str, object]) -> str | None:
    """The note's date as YYYY-MM-DD; a month means its first day, a week its Monday."""
    *folders, name = path.split("/")
    stem = (name.rpartition(".")[0] or name)[:_MAX_NAME]
    # Every form has a year: four digits in a row.
    day = None
    if _HAS_YEAR.search(path):
        day = date_in(stem) or _date_of_folders(folders, stem)
    if day is None and frontmatter:
        value = lookup(frontmatter, *DATE_PROPERTIES)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            day = date_in(str(value)[:_MAX_NAME])
    return day


def date_in(text: str) -> str | None:
    """The first valid date written in `text`, the most exact form first."""
    return next((day for day in _candidates(text) if day), None)


def _candidates(text: str) -> Iterator[str | None]:
    for match in _YMD.finditer(text):
        yield _iso(match[1], match[3], match[4])
    for match in _COMPACT.finditer(text):
        if 1900 <= int(match[1]) <= 2100:
            yield _iso(match[1], match[2], match[3])
    for match in _MONTH_DAY_YEAR.finditer(text):
        yield _iso(match[3], match[1], match[2])
    for match in _DAY_MONTH_YEAR.finditer(text):
        yield _iso(match[3], match[2], match[1])
    for match in _YEAR_MONTH_DAY.finditer(text):
        yield _iso(match[1], match[2], match[3])
    for match in _WEEK.finditer(text):
        yield _iso_week(int(match[1]), int(match[2]), int(match[3] or 1))
    for match in _YM.finditer(text):
        yield _iso(match[1], match[2], "1")
    for match in _MONTH_YEAR.finditer(text):
        yield _iso(match[2], match[1], "1")


def _date_of_folders(folders: list[str], stem: str) -> str | None:
    for i in range(len(folders) - 1, -1, -1):
        folder = folders[i][:_MAX_NAME]
        below = folders[i + 1] if i + 1 < len(folders) else None
        if re.fullmatch(r"\d{4}", folder):
            return _below_year(folder, below, stem)
        if found := date_in(folder):
            return _day_of_month(found, stem) if found.endswith("-01") and below is None else found
    return None


def _below_year(year: str, below: str | None, stem: str) -> str | None:
    if below is None:
        match = _MONTH_DAY_STEM.fullmatch(stem)
        return _iso(year, match[1], match[2]) if match else None
    month = _month_of(below)
    found = _iso(year, month, "1") if month else None
    return _day_of_month(found, stem) if found else None


def _month_of(folder: str) -> str | None:
    if folder.lower() in _MONTHS:
        return folder
    match = _NUMBERED_MONTH.fullmatch(folder)
    return match[1] if match else None


def _day_of_month(first: str, stem: str) -> str:
    match = _DAY_STEM.fullmatch(stem)
    return (match and _iso(first[:4], first[5:7], match[1])) or first


def _iso(year: str, month: str, day: str) -> str | None:
    number = _MONTHS.get(month.lower()) or (int(month) if month.isdigit() else 0)
    try:
        return datetime.date(int(year), number, int(day)).isoformat()
    except ValueError:
        return None


def _iso_week(year: int, week: int, weekday: int) -> str | None:
    try:
        return datetime.date.fromisocalendar(year, week, weekday).isoformat()
    except ValueError:
        return None
