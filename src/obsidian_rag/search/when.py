"""Dates in a question: "last March", "in 2024", "yesterday" name a span of days.

Only phrases that speak of time are taken: a bare number such as 1984 may be a title, so a year
needs a word before it ("in 1984") or a month beside it.
"""

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

_MONTHS = {name.casefold(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name.casefold(): number for number, name in enumerate(calendar.month_abbr) if name}
_MONTHS["sept"] = 9
_DAYS = {name.casefold(): number for number, name in enumerate(calendar.day_name)}
_NUMBERS = dict(  # noqa: C408  (shorter than a literal)
    zero=0, one=1, two=2, three=3, four=4, five=5, six=6, seven=7, eight=8, nine=9, ten=10,
    eleven=11, twelve=12, a=1, an=1, few=3,
) | {"couple of": 2}  # fmt: skip
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_SEASON = "|".join(_SEASONS)
# Letters that a pattern without regard to case takes for i and s, but a name does not.
_LOOKALIKES = str.maketrans("\u0131\u0130\u017f", "iis")
_MONTH = "(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_COUNT = r"(?P<count>\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_UNIT = "(?P<unit>day|week|month|year)s?"


@dataclass(frozen=True, slots=True)
class Span:
    """Days that a question speaks of, both ends included, and the words that say so."""

    first: date
    last: date
    phrase: str


Reading = Callable[["re.Match[str]", date], "tuple[date, date] | None"]


def find_span(question: str, today: date) -> Span | None:
    """The first span of time that the question names, if any."""
    question = question.translate(_LOOKALIKES)
    best: tuple[int, Span] | None = None
    for pattern, read in _PATTERNS:
        for found in pattern.finditer(question):
            days = read(found, today)
            if days is not None and (best is None or found.start() < best[0]):
                best = found.start(), Span(*days, found[0].strip())
                break
    return best[1] if best else None


def _whole_year(year: int) -> tuple[date, date]:
    return date(year, 1, 1), date(year, 12, 31)


def _whole_month(year: int, month: int) -> tuple[date, date]:
    return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])


def _day(found: "re.Match[str]", _: date) -> tuple[date, date] | None:
    month = _MONTHS.get(found["month"].casefold().rstrip("."), 0) or int(found["month"])
    try:
        day = date(int(found["year"]), month, int(found["day"]))
    except ValueError:
        return None
    return day, day


def _month(found: "re.Match[str]", _: date) -> tuple[date, date] | None:
    name = found["month"].casefold().rstrip(".")
    number = _MONTHS.get(name) or int(name)
    return _whole_month(int(found["year"]), number) if 1 <= number <= 12 else None


def _relative_month(found: "re.Match[str]", today: date) -> tuple[date, date]:
    month = _MONTHS[found["month"].casefold().rstrip(".")]
    is_past = month < today.month or (month == today.month and found["which"].casefold() != "last")
    return _whole_month(today.year if is_past else today.year - 1, month)


def _relative_unit(found: "re.Match[str]", today: date) -> tuple[date, date]:
    back = 0 if found["which"].casefold() == "this" else 1
    match found["unit"].casefold():
        case "week":
            monday = today - timedelta(days=today.weekday() + 7 * back)
            return monday, monday + timedelta(days=6)
        case "month":
            month = today.year * 12 + today.month - 1 - back
            return _whole_month(month // 12, month % 12 + 1)
        case "year":
            return _whole_year(today.year - back)
        case _:
            day = today - timedelta(days=back)
            return day, day


def _past_span(found: "re.Match[str]", today: date) -> tuple[date, date]:
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[found["unit"].casefold()]
    return today - timedelta(days=_count(found) * days), today


def _ago(found: "re.Match[str]", today: date) -> tuple[date, date]:
    count = _count(found)
    match found["unit"].casefold():
        case "day":
            day = today - timedelta(days=count)
            return day, day
        case "week":
            monday = today - timedelta(days=today.weekday() + 7 * count)
            return monday, monday + timedelta(days=6)
        case "month":
            month = today.year * 12 + today.month - 1 - count
            return _whole_month(month // 12, month % 12 + 1)
        case _:
            return _whole_year(today.year - count)


def _count(found: "re.Match[str]") -> int:
    text = found["count"].casefold()
    return _NUMBERS[text] if text in _NUMBERS else int(text)


def _named_day(found: "re.Match[str]", today: date) -> tuple[date, date]:
    back = (today.weekday() - _DAYS[found["weekday"].casefold()] - 1) % 7 + 1
    day = today - timedelta(days=back)
    return day, day


def _season(found: "re.Match[str]", today: date) -> tuple[date, date]:
    month = _SEASONS[found["season"].casefold()]
    if found["year"]:
        return _three_months(int(found["year"]), month)
    first, last = _three_months(today.year, month)
    is_over = found["which"].casefold() != "this"
    while first > today or (is_over and last >= today):
        first, last = _three_months(first.year - 1, month)
    return first, last


def _three_months(year: int, month: int) -> tuple[date, date]:
    end = month + 2
    return date(year, month, 1), _whole_month(year + (end > 12), (end - 1) % 12 + 1)[1]


def _quarter(found: "re.Match[str]", _: date) -> tuple[date, date]:
    month = int(found["quarter"]) * 3 - 2
    year = int(found["year"])
    return date(year, month, 1), _whole_month(year, month + 2)[1]


def _pattern(text: str) -> "re.Pattern[str]":
    return re.compile(text, re.IGNORECASE)


# More exact phrases first: of two readings that begin at the same place, the first one wins.
_PATTERNS: list[tuple["re.Pattern[str]", Reading]] = [
    (_pattern(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b"), _day),
    (_pattern(rf"\b{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? {_YEAR}\b"), _day),
    (_pattern(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH},? {_YEAR}\b"), _day),
    (_pattern(r"(?P<year>(?:19|20)\d\d)年(?P<month>\d{1,2})月(?P<day>\d{1,2})日"), _day),
    (_pattern(r"(?P<year>(?:19|20)\d\d)年(?P<month>\d{1,2})月"), _month),
    (_pattern(rf"\b{_MONTH},? (?:of )?{_YEAR}\b"), _month),
    (_pattern(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9]|1[0-2])\b(?!-)"), _month),
    (_pattern(rf"\bQ(?P<quarter>[1-4]) {_YEAR}\b"), _quarter),
    (_pattern(rf"\b(?P<which>)(?P<season>{_SEASON})(?: of)? {_YEAR}\b"), _season),
    (
        _pattern(rf"\b(?P<which>last|this|past) (?P<season>{'|'.join(_SEASONS)})(?P<year>)\b"),
        _season,
    ),
    (_pattern(rf"\b(?P<which>last|this) {_MONTH}(?!\w)"), _relative_month),
    (_pattern(rf"\b{_COUNT} {_UNIT} ago\b"), _ago),
    (_pattern(rf"\b(?:last|past|previous) {_COUNT} {_UNIT}\b"), _past_span),
    (_pattern(r"\b(?P<which>last|this|previous) (?P<unit>week|month|year)\b"), _relative_unit),
    (_pattern(rf"\b(?:last|on) (?P<weekday>{'|'.join(_DAYS)})\b"), _named_day),
    (_pattern(r"\byesterday\b"), lambda _, today: (today - timedelta(days=1),) * 2),
    (_pattern(r"\btoday\b"), lambda _, today: (today, today)),
    (
        _pattern(rf"\b(?:in|during|of|from|throughout|for|year) {_YEAR}\b(?![-/年])"),
        lambda found, _: _whole_year(int(found["year"])),
    ),
    (_pattern(r"(?P<year>(?:19|20)\d\d)年"), lambda found, _: _whole_year(int(found["year"]))),
]
