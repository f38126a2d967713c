"""The dates a note is about: in its file name, its folders, its properties, and its headings.

A date is a day `2024-03-15`, a month `2024-03`, a year `2024`, or a span of days
`2024-03-11/2024-03-17` for a week or a quarter.
"""

import calendar
import datetime
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from obsidian_rag.notes.month_names import MONTH_NAMES
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

_MONTHS = {
    name: number
    for months in MONTH_NAMES.values()
    for number, names in enumerate(months, start=1)
    for name in names.split("|")
}
_MONTH = "(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th|er|\.)?"
_YEAR = r"(?<!\d)(\d{4})"
_END = r"(?!\d)"
_GAP = r"[ _-](?:of |de )?"
_WEEK_WORD = r"(?:calendar week|week|kw|cw|kalenderwoche|woche|semaine|semana)[ _.-]?"


def _pattern(text: str) -> "re.Pattern[str]":
    return re.compile(text, re.IGNORECASE)


_DAY_STEM = _pattern(r"(\d{1,2})(?:[-_ ,]+(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*)?")
_NUMBERED_MONTH = re.compile(r"(0[1-9]|1[0-2]|[1-9])(?:[-_ .]\D.*)?")
_MONTH_DAY_STEM = re.compile(r"(\d\d)[-_.](\d\d)(?!\d).*")
_HAS_YEAR = re.compile(r"\d{4}")
# A year by itself: 1984 is a book more often than the year of a note.
_LONE_YEAR = re.compile(r"(?<![\w.,/-])(?:199\d|20[0-3]\d)(?![\w/-]|[.,]\d)")
_YEAR_OF_OURS = re.compile(r"[12][09]\d\d(?![\w%])")
_AROUND = 24
_MAX_NAME = 300
_MOST_SAID = 12


def parse_date(path: str, frontmatter: Mapping[str, object]) -> str | None:
    """The note's own day as YYYY-MM-DD; a month means its first day, a week its Monday."""
    found = next(iter(_path_dates(path)), None)
    if found is None and frontmatter:
        found = _own_property(frontmatter)
    return first_day(found) if found else None


def note_dates(path: str, title: str, frontmatter: Mapping[str, object]) -> tuple[str, ...]:
    """All dates of a note, without those of its sections.

    The name, or else the folders, or else the property that says when it was made; and any other
    property that is a date, except for when the note was last changed.
    """
    own = _path_dates(path)
    if not own and frontmatter and (made := _own_property(frontmatter)):
        own = [made]
    stem = _stem(path)
    found = [*own, *named_dates(stem), *(named_dates(title) if title != stem else ())]
    if not any(map(is_exact, found)):
        found += _year_folders(path)
    for key, value in frontmatter.items():
        if key.lower() not in DATE_PROPERTIES and not _CHANGED.match(key):
            found += _property_dates(key, value)
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=4096)
def named_dates(text: str) -> tuple[str, ...]:
    """The dates in a name, a title or a heading; a lone year too if there is nothing better."""
    if not _HAS_YEAR.search(text):
        return ()
    found = dates_in(text[:_MAX_NAME])
    return found or tuple(dict.fromkeys(_LONE_YEAR.findall(text[:_MAX_NAME])))


def dates_in(text: str) -> tuple[str, ...]:
    """The dates written in a text, most exact forms first; no lone years."""
    if not _HAS_YEAR.search(text):
        return ()
    return tuple(dict.fromkeys(date for date in _candidates(folded(text)) if date))


def said_dates(text: str) -> tuple[str, ...]:
    """Days and months that a passage speaks of, written so that nothing else can be meant."""
    if "20" not in text and "19" not in text:
        return ()
    found: dict[str, None] = {}
    end = 0
    # Only what stands around a year is read: most of a text is far from any.
    for year in _YEAR_OF_OURS.finditer(text):
        if year.start() < end:
            continue
        end = year.end() + _AROUND
        around = folded(text[max(0, year.start() - _AROUND) : end])
        found |= {date: None for date in _candidates(around, _IN_TEXT) if date}
    ours = (date for date in found if date.startswith(("19", "20")))
    return tuple(islice(ours, _MOST_SAID))


def is_exact(date: str) -> bool:
    """Whether a date says more than the year."""
    return len(date) > 4


def first_day(date: str) -> str:
    """The first day of a date."""
    first = date.partition("/")[0]
    return {4: f"{first}-01-01", 7: f"{first}-01"}.get(len(first), first)


def last_day(date: str) -> str:
    """The last day of a date."""
    last = date.rpartition("/")[2]
    if len(last) == 7:
        return f"{last}-{calendar.monthrange(int(last[:4]), int(last[5:]))[1]}"
    return last if len(last) == 10 else f"{last}-12-31"


def folded(text: str) -> str:
    """Without accents, for the names of months."""
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", text)
    return "".join(c for c in plain if not unicodedata.combining(c))


_CHANGED = re.compile(r"(?:date[_ ]?)?(?:updated|modified|last|edited|changed)", re.IGNORECASE)
_TIME = re.compile(r"[\W\dTZ_]*")
_MAX_DATE = 40


def _own_property(frontmatter: Mapping[str, object]) -> str | None:
    value = lookup(frontmatter, *DATE_PROPERTIES)
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        return None
    return next(iter(dates_in(str(value)[:_MAX_NAME])), None)


def _property_dates(key: str, value: object) -> list[str]:
    """The dates of a property that holds dates and nothing else."""
    found: list[str] = []
    for entry in value if isinstance(value, list) else [value]:
        if key.lower() == "year" and re.fullmatch(r"[12]\d{3}", str(entry)):
            found.append(str(entry))
        if not isinstance(entry, str) or len(entry) > _MAX_DATE:
            continue
        dates = dates_in(entry)
        if dates and (_TIME.fullmatch(entry) or _is_whole(entry)):
            found += dates[:1]
    return found


def _is_whole(text: str) -> bool:
    """Whether a date with the name of a month is all there is."""
    words = re.findall(r"[^\W\d_]+", folded(text).lower())
    return all(word in _MONTHS or word in ("of", "de", "st", "nd", "rd", "th") for word in words)


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    return (name.rpartition(".")[0] or name)[:_MAX_NAME]


def _path_dates(path: str) -> list[str]:
    """The date of the name, else of the folders, if it is more than a year."""
    # Every form has a year: four digits in a row.
    if not _HAS_YEAR.search(path):
        return []
    if own := dates_in(_stem(path)):
        return list(own)
    found = _date_of_folders(path.split("/")[:-1], _stem(path))
    return [found] if found else []


def _year_folders(path: str) -> list[str]:
    folders = path.split("/")[:-1]
    return [name for name in folders if _LONE_YEAR.fullmatch(name)][-1:]


# The most exact form first: what one has read, later ones do not see.
Reading = Callable[["re.Match[str]"], str | None]
_FORMS: list[tuple["re.Pattern[str]", Reading]] = [
    (_pattern(_YEAR + r"([-._ /])(\d{1,2})\2(\d{1,2})(?!\d)"), lambda m: _iso(m[1], m[3], m[4])),
    (
        _pattern(r"(?<!\d)((?:19|20)\d\d)(\d\d)(\d\d)(?!\d)"),
        lambda m: _iso(m[1], m[2], m[3]),
    ),
    (
        _pattern(rf"(?<![^\W_]){_MONTH}[ _-]{_DAY},?[ _-](\d{{4}}){_END}"),
        lambda m: _iso(m[3], m[1], m[2]),
    ),
    (
        _pattern(rf"(?<!\d){_DAY}{_GAP}{_MONTH},?{_GAP}(\d{{4}}){_END}"),
        lambda m: _iso(m[3], m[2], m[1]),
    ),
    (_pattern(rf"{_YEAR}[ _-]{_MONTH}[ _-]{_DAY}{_END}"), lambda m: _iso(m[1], m[2], m[3])),
    (
        _pattern(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.((?:19|20)\d\d)(?!\d)"),
        lambda m: _iso(m[3], m[2], m[1]),
    ),
    (_pattern(_YEAR + r"[-_ ]?W(\d\d)(?:-?([1-7]))?(?!\d)"), lambda m: _week(m[1], m[2], m[3])),
    (_pattern(rf"{_YEAR}[-_ ,]*{_WEEK_WORD}(\d{{1,2}}){_END}"), lambda m: _week(m[1], m[2])),
    (
        _pattern(rf"\b{_WEEK_WORD}(\d{{1,2}})[ _,/-]+(?:of |de |von )?((?:19|20)\d\d){_END}"),
        lambda m: _week(m[2], m[1]),
    ),
    (_pattern(_YEAR + r"[-_ ]?Q([1-4])(?!\w)"), lambda m: _quarter(m[1], m[2])),
    (_pattern(r"(?<!\w)Q([1-4])[ _/-]((?:19|20)\d\d)(?!\d)"), lambda m: _quarter(m[2], m[1])),
    (_pattern(_YEAR + r"[-._](\d\d)(?![-._]?\d)"), lambda m: _iso(m[1], m[2])),
    (
        _pattern(rf"(?<![^\W_]){_MONTH},?{_GAP}(\d{{4}}){_END}"),
        lambda m: _iso(m[2], m[1]),
    ),
    (_pattern(rf"{_YEAR}[ _-]{_MONTH}(?![^\W_])"), lambda m: _iso(m[1], m[2])),
]


# A number such as 1999.10 in a text is hardly a month, nor 20240315 a day.
_IN_TEXT = [_FORMS[0], *_FORMS[2:6], *_FORMS[-2:-1]]


def _candidates(
    text: str, forms: Sequence[tuple["re.Pattern[str]", Reading]] = _FORMS
) -> Iterator[str | None]:
    for pattern, read in forms:
        taken = []
        for match in pattern.finditer(text):
            if (date := read(match)) is not None:
                yield date
                taken.append(match.span())
        for start, end in taken:
            text = f"{text[:start]}{'~' * (end - start)}{text[end:]}"


def _date_of_folders(folders: list[str], stem: str) -> str | None:
    for i in range(len(folders) - 1, -1, -1):
        folder = folders[i][:_MAX_NAME]
        below = folders[i + 1] if i + 1 < len(folders) else None
        if re.fullmatch(r"\d{4}", folder):
            return _below_year(folder, below, stem)
        if found := next(iter(dates_in(folder)), None):
            return _day_of_month(found, stem) if len(found) == 7 and below is None else found
    return None


def _below_year(year: str, below: str | None, stem: str) -> str | None:
    if below is None:
        match = _MONTH_DAY_STEM.fullmatch(stem)
        return _iso(year, match[1], match[2]) if match else None
    month = _month_of(below)
    found = _iso(year, month) if month else None
    return _day_of_month(found, stem) if found else None


def _month_of(folder: str) -> str | None:
    if folded(folder).lower() in _MONTHS:
        return folded(folder)
    match = _NUMBERED_MONTH.fullmatch(folder)
    return match[1] if match else None


def _day_of_month(month: str, stem: str) -> str:
    match = _DAY_STEM.fullmatch(stem)
    return (match and _iso(month[:4], month[5:7], match[1])) or month


def _iso(year: str, month: str, day: str | None = None) -> str | None:
    number = _MONTHS.get(month.lower().rstrip(".")) or (int(month) if month.isdigit() else 0)
    try:
        found = datetime.date(int(year), number, int(day or 1)).isoformat()
    except ValueError:
        return None
    return found if day else found[:7]


def _week(year: str, week: str, weekday: str | None = None) -> str | None:
    try:
        day = datetime.date.fromisocalendar(int(year), int(week), int(weekday or 1))
    except ValueError:
        return None
    if weekday:
        return day.isoformat()
    return f"{day.isoformat()}/{(day + datetime.timedelta(days=6)).isoformat()}"


def _quarter(year: str, number: str) -> str | None:
    first = _iso(year, str(int(number) * 3 - 2), "1")
    last = _iso(year, str(int(number) * 3))
    return f"{first}/{last_day(last)}" if first and last else None
