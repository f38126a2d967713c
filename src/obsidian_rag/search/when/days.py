"""Days, weeks, months, seasons and holidays as spans of days."""

import calendar
from collections.abc import Callable
from datetime import date, timedelta
from typing import NamedTuple

# From here on, two digits mean a year of the last century.
_LAST_CENTURY = 50
_SEASON_STARTS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}


class Days(NamedTuple):
    """A span of days, both ends included."""

    first: date
    last: date


# A yearly event: its days in one year, or None if the year has none (29 February).
Yearly = Callable[[int], Days | None]


def one_day(day: date) -> Days:
    """A single day."""
    return Days(day, day)


def months(year: int, month: int, count: int = 1) -> Days:
    """`count` whole months; the month may lie outside 1 to 12 and counts on into other years."""
    start, end = year * 12 + month - 1, year * 12 + month - 2 + count
    year, month = end // 12, end % 12 + 1
    last = date(year, month, calendar.monthrange(year, month)[1])
    return Days(date(start // 12, start % 12 + 1, 1), last)


def day_of(year: int, month: int, day: int) -> Days | None:
    """That day, if it exists."""
    try:
        return one_day(date(year, month, day))
    except ValueError:
        return None


def week(year: int, number: int) -> Days | None:
    """An ISO week of a year, Monday to Sunday."""
    try:
        monday = date.fromisocalendar(year, number, 1)
    except ValueError:
        return None
    return Days(monday, monday + timedelta(days=6))


def season(year: int, name: str) -> Days:
    """Three whole months; the winter of a year begins in its December."""
    return months(year, _SEASON_STARTS[name], 3)


def unit_from(today: date, unit: str, back: int) -> Days:
    """The day, week, weekend, month, quarter or year that lies `back` units before today's."""
    match unit:
        case "week" | "weekend":
            monday = today - timedelta(days=today.weekday() + 7 * back)
            first = monday + timedelta(days=5 if unit == "weekend" else 0)
            return Days(first, monday + timedelta(days=6))
        case "month":
            return months(today.year, today.month - back)
        case "quarter":
            return months(today.year, (today.month - 1) // 3 * 3 + 1 - 3 * back, 3)
        case "year":
            return months(today.year - back, 1, 12)
        case _:
            return one_day(today - timedelta(days=back))


def century(year: int) -> int:
    """The year that two digits mean: '69 is 1969, '24 is 2024."""
    return year + (1900 if year >= _LAST_CENTURY else 2000)


def part_of_month(month: Days, unit: str, place: int) -> Days | None:
    """One week or weekend of a month, from 0, or from the end if negative; None if out of range.

    Weeks are seven days each, counted from the first day or back from the last. A weekend belongs
    to the month of its Saturday.
    """
    count = (month.last - month.first).days + 1
    if unit == "week":
        starts = range(0, count - 6, 7) if place >= 0 else range(count % 7, count, 7)
    else:
        starts = range((5 - month.first.weekday()) % 7, count, 7)
    if not -len(starts) <= place < len(starts):
        return None
    first = month.first + timedelta(days=starts[place])
    return Days(first, first + timedelta(days=6 if unit == "week" else 1))


def past(today: date, unit: str, count: int) -> Days:
    """The days from `count` units ago until today."""
    days = {"day": 1, "month": 30, "quarter": 91, "year": 365}.get(unit, 7)
    return Days(today - timedelta(days=count * days), today)


def occurrence(yearly: Yearly, today: date, back: int | None = None) -> Days | None:
    """One occurrence of a yearly event.

    `back` is None for the latest that has begun, 0 for "this" one, 1 for the last one that is over,
    2 for the one before, -1 for the next.
    """
    around = range(today.year - (back or 0) - 9, today.year + 10)
    known = [days for year in around if (days := yearly(year)) is not None]
    if back is None:
        return next(days for days in reversed(known) if days.first <= today)
    if back < 0:
        return next(days for days in known if days.first > today)
    if back == 0:
        now = (days for days in known if days.first <= today <= days.last)
        return next(now, None) or yearly(today.year)
    return [days for days in known if days.last < today][-back]


def feast(year: int, name: str) -> Days | None:
    """A holiday, with the days around it that belong to it."""
    if name == "easter":
        sunday = _easter(year)
        return Days(sunday - timedelta(days=2), sunday + timedelta(days=1))
    if name == "thanksgiving":
        first = date(year, 11, 1)
        return one_day(first + timedelta(days=(3 - first.weekday()) % 7 + 21))
    month, first_day, last_day = {
        "christmas": (12, 24, 26),
        "christmas eve": (12, 24, 24),
        "new year's eve": (12, 31, 31),
        "new year": (1, 1, 1),
        "halloween": (10, 31, 31),
    }[name]
    return Days(date(year, month, first_day), date(year, month, last_day))


def part(days: Days, name: str) -> Days:
    """The early, middle or late third, or one half; in whole months where possible."""
    pieces, index = {
        "early": (3, 0), "mid": (3, 1), "late": (3, 2), "first": (2, 0), "second": (2, 1),
    }[name]  # fmt: skip
    first, last = days
    count = (last.year - first.year) * 12 + last.month - first.month + 1
    if count % pieces == 0 and days == months(first.year, first.month, count):
        share = count // pieces
        return months(first.year, first.month + index * share, share)
    share = max(1, ((last - first).days + 1) // pieces)
    start = min(last, first + timedelta(days=index * share))
    is_end = index == pieces - 1
    return Days(start, last if is_end else min(last, start + timedelta(days=share - 1)))


def _easter(year: int) -> date:
    """Easter Sunday by the Gregorian calendar (Oudin's form of the rule)."""
    golden, century = year % 19, year // 100
    moon = (century - century // 4 - (8 * century + 13) // 25 + 19 * golden + 15) % 30
    moon -= (moon // 28) * (1 - (moon // 28) * (29 // (moon + 1)) * ((21 - golden) // 11))
    weekday = (year + year // 4 + moon + 2 - century + century // 4) % 7
    offset = moon - weekday
    month = 3 + (offset + 40) // 44
    return date(year, month, offset + 28 - 31 * (month // 4))
