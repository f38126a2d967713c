"""The dates a note is about: in its file name, its folders, its properties, and its headings.

A date is a day `2024-03-15`, a month `2024-03`, a year `2024`, or a span of days
`2024-03-11/2024-03-17` for a week or a quarter.
"""

import calendar
import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache
from itertools import islice

from obsidian_rag.notes.note import Chunk, Note
from obsidian_rag.notes.properties import lookup
from obsidian_rag.notes.words import LETTERS, folded

_ROWS = {
    "english": """
        january|jan february|feb march|mar april|apr may june|jun july|jul august|aug
        september|sept|sep october|oct november|nov december|dec
    """,
    "german": """
        januar|janner|jaenner|jan februar|feb marz|maerz|mrz april|apr mai juni|jun juli|jul
        august|aug september|sept|sep oktober|okt november|nov dezember|dez
    """,
    "french": """
        janvier|janv fevrier|fevr|fev mars avril|avr mai juin juillet|juil aout
        septembre|sept octobre|oct novembre|nov decembre|dec
    """,
    "spanish": """
        enero|ene febrero|feb marzo|mar abril|abr mayo|may junio|jun julio|jul agosto|ago
        septiembre|setiembre|sept|sep octubre|oct noviembre|nov diciembre|dic
    """,
}
MONTH_NAMES = {language: tuple(rows.split()) for language, rows in _ROWS.items()}
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
_DAY_STEM = re.compile(r"(\d{1,2})(?:[-_ ,]+(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*)?", re.IGNORECASE)
_NUMBERED_MONTH = re.compile(r"(0[1-9]|1[0-2]|[1-9])(?:[-_ .]\D.*)?")
_MONTH_DAY_STEM = re.compile(r"(\d\d)[-_.](\d\d)(?!\d).*")
_HAS_YEAR = re.compile(r"\d{4}")
# A year without month: 1984 is a book title more often than the year of a note.
_LONE_YEAR = re.compile(r"(?<![\w.,/-])(?:199\d|20[0-3]\d)(?![\w/-]|[.,]\d)")
_YEAR_OF_OURS = re.compile(r"[12][09]\d\d(?![\w%])")
_CHARS_AROUND_YEAR = 24
_MAX_NAME = 300
_MAX_MENTIONED = 12
_CHANGED = re.compile(r"(?:date[_ ]?)?(?:updated|modified|last|edited|changed)", re.IGNORECASE)
_TIME = re.compile(r"[\W\dTZ_]*")
_MAX_DATE = 40
Reading = Callable[["re.Match[str]"], str | None]
# How many letters of an ISO day name each period, the longest first.
_CENTURY, _DECADE, _KEY_YEAR, _KEY_MONTH, _KEY_DAY = 2, 3, 4, 7, 10
MENTIONED = "~"
_INNER = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def parse_date(path: str, frontmatter: Mapping[str, object]) -> str | None:
    """The note's own day as YYYY-MM-DD; a month means its first day, a week its Monday."""
    found = next(iter(_path_dates(path)), None)
    if found is None and frontmatter:
        found = _creation_date(frontmatter)
    return first_day(found) if found else None


def note_dates(path: str, title: str, frontmatter: Mapping[str, object]) -> tuple[str, ...]:
    """All dates of a note, without those of its sections.

    From the name, else the folders, else the creation property; plus any other property that is a
    date, except the date of the last change.
    """
    own = _path_dates(path)
    if not own and frontmatter and (made := _creation_date(frontmatter)):
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
    """The dates in a name, a title or a heading; a lone year only if there is nothing else."""
    if not _HAS_YEAR.search(text):
        return ()
    found = dates_in(text[:_MAX_NAME])
    return found or tuple(dict.fromkeys(_LONE_YEAR.findall(text[:_MAX_NAME])))


def dates_in(text: str) -> tuple[str, ...]:
    """The dates written in a text, most exact forms first; no lone years."""
    if not _HAS_YEAR.search(text):
        return ()
    return tuple(dict.fromkeys(date for date in _find_candidates(folded(text)) if date))


def mentioned_dates(text: str) -> tuple[str, ...]:
    """Days and months that a passage mentions, in unambiguous forms only."""
    if "20" not in text and "19" not in text:
        return ()
    found: dict[str, None] = {}
    end = 0
    # Only the text around a year is parsed: most of a text is far from one.
    for year in _YEAR_OF_OURS.finditer(text):
        if year.start() < end:
            continue
        end = year.end() + _CHARS_AROUND_YEAR
        around = folded(text[max(0, year.start() - _CHARS_AROUND_YEAR) : end])
        found |= {date: None for date in _find_candidates(around, _IN_TEXT) if date}
    ours = (date for date in found if date.startswith(("19", "20")))
    return tuple(islice(ours, _MAX_MENTIONED))


def is_exact(date: str) -> bool:
    """Whether a date is more exact than a year."""
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


def _creation_date(frontmatter: Mapping[str, object]) -> str | None:
    value = lookup(frontmatter, *DATE_PROPERTIES)
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        return None
    return next(iter(dates_in(str(value)[:_MAX_NAME])), None)


def _property_dates(key: str, value: object) -> list[str]:
    """The dates of a property whose values are only dates."""
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
    """Whether the text is only a date with the name of a month."""
    words = LETTERS.findall(folded(text))
    return all(word in _MONTHS or word in ("of", "de", "st", "nd", "rd", "th") for word in words)


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    return (name.rpartition(".")[0] or name)[:_MAX_NAME]


def _path_dates(path: str) -> list[str]:
    """The dates of the name, else of the folders, if more exact than a year."""
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


# Of folded text, the most exact form first: text that one form has matched is hidden from later
# ones.
_FORMS: list[tuple["re.Pattern[str]", Reading]] = [
    (re.compile(_YEAR + r"([-._ /])(\d{1,2})\2(\d{1,2})(?!\d)"), lambda m: _iso(m[1], m[3], m[4])),
    (
        re.compile(r"(?<!\d)((?:19|20)\d\d)(\d\d)(\d\d)(?!\d)"),
        lambda m: _iso(m[1], m[2], m[3]),
    ),
    (
        re.compile(rf"(?<![^\W_]){_MONTH}[ _-]{_DAY},?[ _-](\d{{4}}){_END}"),
        lambda m: _iso(m[3], m[1], m[2]),
    ),
    (
        re.compile(rf"(?<!\d){_DAY}{_GAP}{_MONTH},?{_GAP}(\d{{4}}){_END}"),
        lambda m: _iso(m[3], m[2], m[1]),
    ),
    (re.compile(rf"{_YEAR}[ _-]{_MONTH}[ _-]{_DAY}{_END}"), lambda m: _iso(m[1], m[2], m[3])),
    (
        re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.((?:19|20)\d\d)(?!\d)"),
        lambda m: _iso(m[3], m[2], m[1]),
    ),
    (re.compile(_YEAR + r"[-_ ]?w(\d\d)(?:-?([1-7]))?(?!\d)"), lambda m: _week(m[1], m[2], m[3])),
    (re.compile(rf"{_YEAR}[-_ ,]*{_WEEK_WORD}(\d{{1,2}}){_END}"), lambda m: _week(m[1], m[2])),
    (
        re.compile(rf"\b{_WEEK_WORD}(\d{{1,2}})[ _,/-]+(?:of |de |von )?((?:19|20)\d\d){_END}"),
        lambda m: _week(m[2], m[1]),
    ),
    (re.compile(_YEAR + r"[-_ ]?q([1-4])(?!\w)"), lambda m: _quarter(m[1], m[2])),
    (re.compile(r"(?<!\w)q([1-4])[ _/-]((?:19|20)\d\d)(?!\d)"), lambda m: _quarter(m[2], m[1])),
    (re.compile(_YEAR + r"[-._](\d\d)(?![-._]?\d)"), lambda m: _iso(m[1], m[2])),
    (
        re.compile(rf"(?<![^\W_]){_MONTH},?{_GAP}(\d{{4}}){_END}"),
        lambda m: _iso(m[2], m[1]),
    ),
    (re.compile(rf"{_YEAR}[ _-]{_MONTH}(?![^\W_])"), lambda m: _iso(m[1], m[2])),
]


# In a text, 1999.10 is rarely a month, and 20240315 rarely a day.
_IN_TEXT = [_FORMS[0], *_FORMS[2:6], *_FORMS[-2:-1]]


def _find_candidates(
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
    if (name := folded(folder)) in _MONTHS:
        return name
    match = _NUMBERED_MONTH.fullmatch(folder)
    return match[1] if match else None


def _day_of_month(month: str, stem: str) -> str:
    match = _DAY_STEM.fullmatch(stem)
    return (match and _iso(month[:4], month[5:7], match[1])) or month


def _iso(year: str, month: str, day: str | None = None) -> str | None:
    number = _MONTHS.get(month.rstrip(".")) or (int(month) if month.isdigit() else 0)
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


def date_keys(dates: Iterable[str], mentioned: Iterable[str] = ()) -> list[str]:
    """The keys of a passage: of its own dates, and of those that its text mentions."""
    found = {key: None for one in dates for key in _compute_keys(one)}
    found |= {f"{MENTIONED}{key}": None for one in mentioned for key in _compute_keys(one)}
    return list(found)


def keys_within(first: str | None, last: str | None) -> list[str]:
    """Keys of which every date between two days has at least one; None is open-ended."""
    start = date.fromisoformat(first) if first else date.min
    end = date.fromisoformat(last) if last else date.max
    found: dict[str, None] = {}
    for piece in _split_span(start, end, (_CENTURY, _DECADE, _KEY_YEAR, _KEY_MONTH, _KEY_DAY)):
        found[piece] = None
        found |= {f"{piece[:size]}*": None for size in (_KEY_YEAR, _KEY_MONTH) if size < len(piece)}
    return list(found)


@lru_cache(maxsize=10_000)
def _compute_keys(one: str) -> tuple[str, ...]:
    start, end = date.fromisoformat(first_day(one)), date.fromisoformat(last_day(one))
    found: dict[str, None] = {}
    for piece in _split_span(start, end, (_KEY_YEAR, _KEY_MONTH, _KEY_DAY)):
        sizes = (_CENTURY, _DECADE, _KEY_YEAR, _KEY_MONTH, _KEY_DAY)
        found |= {piece[:size]: None for size in sizes if size <= len(piece)}
        if len(piece) < _KEY_DAY:
            found[f"{piece}*"] = None
    return tuple(found)


def _split_span(first: date, last: date, sizes: tuple[int, ...]) -> Iterator[str]:
    """The longest whole periods that make up a span."""
    day = first
    while day <= last:
        for size in sizes:
            name = day.isoformat()[:size]
            end = _last_of(name)
            if end <= last and _first_of(name) == day:
                yield name
                break
        if end == date.max:
            return
        day = end + timedelta(days=1)


def _first_of(name: str) -> date:
    if len(name) < _KEY_YEAR:
        return date(max(1, int(name.ljust(4, "0"))), 1, 1)
    return date.fromisoformat(first_day(name))


def _last_of(name: str) -> date:
    if len(name) < _KEY_YEAR:
        return date(int(name.ljust(4, "9")), 12, 31)
    return date.fromisoformat(last_day(name))


def with_dates(note: Note, chunks: Sequence[Chunk]) -> list[Chunk]:
    """The chunks of a note with their own dates, and those that they mention."""
    own = note_dates(note.path, note.title, note.frontmatter)
    return [_add_dates(chunk, own) for chunk in chunks]


def _add_dates(chunk: Chunk, own: tuple[str, ...]) -> Chunk:
    headings = [text for text in chunk.heading_path if not text.startswith("#")]
    dates = _innermost_dates(headings) or (
        *own,
        *(date for text in headings for date in named_dates(text)),
    )
    inside = _INNER.findall(chunk.text) if "#" in chunk.text else ()
    inner = tuple(date for text in inside for date in named_dates(text))
    text = f"{chunk.text}\n{chunk.words_only}" if chunk.words_only else chunk.text
    mentioned = mentioned_dates(text)
    if not dates and not inner and not mentioned:
        return chunk
    found = tuple(dict.fromkeys((*dates, *inner)))
    others = tuple(date for date in mentioned if date not in found)
    return replace(chunk, dates=found, mentioned_dates=others)


def _innermost_dates(headings: Iterable[str]) -> tuple[str, ...]:
    """The dates of the innermost heading with one more exact than a year."""
    for text in reversed(list(headings)):
        if exact := tuple(filter(is_exact, named_dates(text))):
            return exact
    return ()
