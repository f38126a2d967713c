"""Read the pieces that a grammar rule matched: one function per kind of phrase.

A function returns None if the phrase is not of its kind. `language` explains the codes.
"""

from collections.abc import Callable, Sequence
from datetime import date, timedelta

from obsidian_rag.search.when import days as calendar
from obsidian_rag.search.when.days import Days, Yearly, occurrence
from obsidian_rag.search.when.pieces import Piece


class Match:
    """The pieces that a rule matched, by code."""

    def __init__(self, found: Sequence[Piece], today: date) -> None:
        self.found = found
        self.today = today

    def one(self, codes: str) -> Piece:
        """The first piece with one of these codes."""
        return next(piece for piece in self.found if piece.code in codes)

    def has(self, codes: str) -> bool:
        """Whether there is a piece with one of these codes."""
        return any(piece.code in codes for piece in self.found)

    @property
    def year(self) -> int | None:
        """The year that the pieces name, as a number or relative to today."""
        for piece in self.found:
            if piece.code in "yz":
                return piece.number
            if piece.code == "Z" and piece.days:
                return piece.days.first.year
        return None

    def kept(self, codes: str) -> list[Piece]:
        """The pieces with one of these codes."""
        return [piece for piece in self.found if piece.code in codes]


Reading = Callable[[Match], Days | None]


def yearly(match: Match) -> Yearly:
    """The yearly event in the pieces: a day, month, season, holiday, week or quarter."""
    for piece in match.found:
        if piece.code == "s":
            return lambda year: calendar.season(year, piece.name)
        if piece.code == "h":
            return lambda year: calendar.feast(year, piece.name)
        if piece.code == "d":
            return lambda year: calendar.day_of(year, int(piece.name), piece.number)
    if match.has("m"):
        month = match.one("m").number
        if match.has("noc"):
            day = match.one("noc").number
            return lambda year: calendar.day_of(year, month, day)
        return lambda year: calendar.months(year, month)
    number, unit = match.one("noc").number, match.one("uqK").name
    if unit == "week":
        return lambda year: calendar.week(year, number)
    if unit == "quarter" and 1 <= number <= 4:
        return lambda year: calendar.months(year, number * 3 - 2, 3)
    if unit == "half" and 1 <= number <= 2:
        return lambda year: calendar.months(year, number * 6 - 5, 6)
    raise ValueError(unit)


def of_year(match: Match) -> Days | None:
    """3 March 2024, spring last year, the first quarter of 2024."""
    assert match.year is not None
    return yearly(match)(match.year)


def winter(match: Match) -> Days | None:
    """The winter 2023-2024."""
    years = match.one("P")
    if years.name != "years" or years.days is None:
        return None
    return calendar.season(years.days.first.year, match.one("s").name)


def latest(match: Match) -> Days | None:
    """In March: the latest one that has begun."""
    return occurrence(yearly(match), match.today)


def sure_latest(match: Match) -> Days | None:
    """The same, but an ambiguous month ("may") must be capitalised."""
    is_clear = match.has("jo") or all(piece.is_sure for piece in match.kept("m"))
    return latest(match) if is_clear else None


def chosen(match: Match) -> Days | None:
    """Last March, the winter before last."""
    back = match.one("lbL").number
    if back <= 0 and not all(piece.is_sure for piece in match.kept("m")):
        return None  # "this may be it"
    return occurrence(yearly(match), match.today, back)


def nth_back(match: Match) -> Days | None:
    """Two summers ago."""
    named = Match(match.kept("sh"), match.today)
    return occurrence(yearly(named), match.today, match.one("n").number)


def past_times(match: Match) -> Days | None:
    """The last two summers, and the time between them."""
    named = Match(match.kept("sh"), match.today)
    first = nth_back(match)
    last = occurrence(yearly(named), match.today, 1)
    return Days(first.first, last.last) if first and last else None


def chosen_unit(match: Match) -> Days | None:
    """Last week, this month, the year before last."""
    unit, back = match.one("u").name, match.one("lbL").number
    return None if unit == "day" else calendar.unit_from(match.today, unit, back)


def units_ago(match: Match) -> Days | None:
    """Two weeks ago."""
    return calendar.unit_from(match.today, match.one("u").name, match.one("n").number)


def near_day(match: Match) -> Days | None:
    """Yesterday."""
    return calendar.unit_from(match.today, "day", match.one("D").number)


def half_ago(match: Match) -> Days | None:
    """Half a year ago."""
    if match.one("u").name != "year":
        return None
    return calendar.unit_from(match.today, "month", 6)


def past_units(match: Match) -> Days | None:
    """The last two weeks."""
    if match.has("lL") and match.one("lL").number != 1:
        return None
    return calendar.past(match.today, match.one("u").name, match.one("n").number)


def weekday(match: Match) -> Days | None:
    """On Friday, last Friday, the Friday of that week."""
    weekday, today = match.one("w").number, match.today
    if match.has("W"):
        week = match.one("W").days
        assert week is not None
        return calendar.one_day(week.first + timedelta(days=weekday))
    back = match.one("lL").number if match.has("lL") else 1
    passed = (today.weekday() - weekday - 1) % 7 + 1
    ahead = (weekday - today.weekday()) % 7
    if back == 0:
        return calendar.one_day(today + timedelta(days=weekday - today.weekday()))
    if back < 0:
        return calendar.one_day(today + timedelta(days=ahead or 7))
    return calendar.one_day(today - timedelta(days=passed + 7 * (back - 1)))


def week_of_month(match: Match) -> Days | None:
    """The first week of May, the last weekend in August 2023, the last week of last month."""
    which, unit = match.found[0], match.one("u").name
    if unit not in ("week", "weekend") or (which.code in "lL" and which.number != 1):
        return None
    if match.has("m"):
        named = Match(match.kept("my"), match.today)
        month = of_year(named) if named.year else sure_latest(named)
    else:
        month = chosen_unit(Match(match.found[-2:], match.today))
        if match.found[-1].name != "month":
            return None
    place = -1 if which.code in "lL" else which.number - 1
    return calendar.part_of_month(month, unit, place) if month else None


def weekday_beside(match: Match) -> Days | None:
    """The Sunday before 25 October."""
    day = match.one("P").days
    if day is None or day.first != day.last:
        return None
    wanted, there = match.one("w").number, day.first.weekday()
    if match.has(">"):
        return calendar.one_day(day.first + timedelta(days=(wanted - there - 1) % 7 + 1))
    return calendar.one_day(day.first - timedelta(days=(there - wanted - 1) % 7 + 1))


def day_of_month(match: Match) -> Days | None:
    """The 13th of this month."""
    month, day = match.one("C").days, match.one("no").number
    return calendar.day_of(month.first.year, month.first.month, day) if month else None


def days_of_month(match: Match) -> Days | None:
    """March 3-9."""
    month, days = match.one("m").number, match.one("E")

    def in_year(year: int) -> Days | None:
        first = calendar.day_of(year, month, days.number)
        last = calendar.day_of(year, month, int(days.name))
        return Days(first.first, last.last) if first and last and first < last else None

    return in_year(match.year) if match.year else occurrence(in_year, match.today)


def latest_day(match: Match) -> Days | None:
    """On the 13th: the latest one up to today."""
    day = match.one("o").number
    for back in range(12):
        month = calendar.unit_from(match.today, "month", back).first
        found = calendar.day_of(month.year, month.month, day)
        if found is not None and found.first <= match.today:
            return found
    return None


def whole_year(match: Match) -> Days | None:
    """In 2024."""
    if match.has("u") and match.one("u").name != "year":
        return None
    return calendar.months(match.one("y").number, 1, 12)


def week_of_year(match: Match) -> Days | None:
    """KW 30/2023."""
    piece = match.one("k")
    return calendar.week(int(piece.name), piece.number)


def month_of_year(match: Match) -> Days | None:
    """03/2024."""
    piece = match.one("k")
    return calendar.months(int(piece.name), piece.number) if 1 <= piece.number <= 12 else None


def named_month(match: Match) -> Days | None:
    """The month of March."""
    return latest(match) if match.one("u").name == "month" else None


def recent_weekend(match: Match) -> Days | None:
    """Over the weekend: this one if it has begun, else the last."""
    if match.one("u").name != "weekend":
        return None
    days = calendar.unit_from(match.today, "weekend", 0)
    return days if days.first <= match.today else calendar.unit_from(match.today, "weekend", 1)


def _days_of(piece: Piece, today: date, *, sure: bool = False) -> Days | None:
    """The days of a piece after a word such as "since"."""
    if piece.days is not None:
        return piece.days
    if piece.code == "y":
        return calendar.months(piece.number, 1, 12)
    if sure and not piece.is_sure:
        return None
    if piece.code == "w":
        return weekday(Match([piece], today))
    return latest(Match([piece], today))


def part(match: Match) -> Days | None:
    """End of August, the first half of 2024."""
    if match.has("p"):
        days = _days_of(match.one("PZCWym"), match.today)
        return calendar.part(days, match.one("p").name) if days else None
    half = match.one("noc").number
    days = _days_of(match.one("PZCWym"), match.today)
    return calendar.part(days, ("first", "second")[half - 1]) if days and half <= 2 else None


def week_of_day(match: Match) -> Days | None:
    """The week of 3 March, or its weekend."""
    days, unit = match.one("P").days, match.one("u").name
    if unit not in ("week", "weekend") or days is None or days.first != days.last:
        return None
    return calendar.unit_from(days.first, unit, 0)


def since(match: Match) -> Days | None:
    """Since March, since two weeks."""
    if match.has("u"):
        return past_units(match)
    days = _days_of(match.one("PZCWymshw"), match.today)
    return Days(days.first, max(match.today, days.last)) if days else None


def before(match: Match) -> Days | None:
    """Before 2022."""
    days = _days_of(match.one("PZCWymh"), match.today, sure=True)
    return Days(date.min, days.first - timedelta(days=1)) if days else None


def after(match: Match) -> Days | None:
    """After March."""
    days = _days_of(match.one("PZCWymh"), match.today, sure=True)
    if days is None:
        return None
    last = match.today if days.last < match.today else date.max
    return Days(days.last + timedelta(days=1), last)


def until(match: Match) -> Days | None:
    """Until March."""
    days = _days_of(match.one("PZCWym"), match.today, sure=True)
    return Days(date.min, days.last) if days else None


def offset(match: Match) -> Days | None:
    """Two days before Christmas, the week after 3 May."""
    unit = match.one("u").name
    count = match.one("n").number if match.has("n") else 1
    piece = match.one("PZCWh")
    days = _days_of(piece, match.today)
    if days is None or unit not in ("day", "week"):
        return None
    first, last = (days.first, days.last) if piece.core is None else (piece.core, piece.core)
    sign = 1 if match.has(">") else -1
    start = last if sign > 0 else first
    if unit == "week" and not match.has("n"):
        ends = start + timedelta(days=sign), start + timedelta(days=7 * sign)
        return Days(min(ends), max(ends))
    return calendar.one_day(start + sign * timedelta(days=count * (7 if unit == "week" else 1)))


def from_to(match: Match) -> Days | None:
    """From one to the other; the first takes the year or the month from the second."""
    first, second = match.kept("PZCWymsno")[:2]
    end = _days_of(second, match.today)
    if end is None or (first.code == "m" and second.code == "s"):
        return None
    if first.code in "no":
        start = calendar.day_of(end.first.year, end.first.month, first.number)
        if end.first != end.last:
            return None
    elif first.code in "ms":
        days = yearly(Match([first], match.today))
        start = days(end.first.year)
        if start is not None and start.first > end.last:
            start = days(end.first.year - 1)
    else:
        start = _days_of(first, match.today)
    if start is not None and first.is_yearless:
        start = _in_year(start.first, end.last.year)
        if start is not None and start.first > end.last:
            start = _in_year(start.first, end.last.year - 1)
    return Days(start.first, end.last) if start and start.first <= end.last else None


def years_with_dash(match: Match) -> Days | None:
    """2019 – 2021."""
    return from_to(match) if match.one("T").name == "dash" else None


def from_to_in_month(match: Match) -> Days | None:
    """Between August 11 and 15."""
    start = match.one("P")
    is_spoken = match.has("BF") or match.one("T").name == "dash"
    if not start.is_yearless or start.days is None or not is_spoken:
        return None
    first = _in_year(start.days.first, match.year or start.days.first.year)
    if first is None:
        return None
    day = match.one("no").number
    last = calendar.day_of(first.first.year, first.first.month, day)
    return Days(first.first, last.last) if last and first < last else None


def _in_year(day: date, year: int) -> Days | None:
    return calendar.day_of(year, day.month, day.day)
