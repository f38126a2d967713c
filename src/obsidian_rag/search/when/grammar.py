"""How pieces make spans of days, in five passes; the codes are those of `language`.

Each pass is a list of rules, a pattern of codes and how to read what it matched. What a rule has
read becomes one piece, which the rules of later passes build on: "end of | august | last year".
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta

from obsidian_rag.search.when import days as calendar
from obsidian_rag.search.when.days import Days, Yearly, occurrence
from obsidian_rag.search.when.pieces import Piece

_UNTIL_NOW = {"year": "Z", "month": "C", "week": "W"}
_STANDING = "PZCW"
# Without one of these there is no date.
_TELLING = "DPmswhuyzkdqoK"
# A day of a month, and no year.
_YEARLESS = re.compile("[jt]*(?:[noc][ft]*m|mt?[no]|d)")


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
        """The year that is named, by its number or from today."""
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
Rule = tuple["re.Pattern[str]", Reading]


def yearly(match: Match) -> Yearly:
    """What returns every year among the pieces: a day, month, season, feast, week or quarter."""
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


def _of_year(match: Match) -> Days | None:
    assert match.year is not None
    return yearly(match)(match.year)


def _winter(match: Match) -> Days | None:
    """The winter 2023-2024."""
    years = match.one("P")
    if years.name != "years" or years.days is None:
        return None
    return calendar.season(years.days.first.year, match.one("s").name)


def _latest(match: Match) -> Days | None:
    return occurrence(yearly(match), match.today)


def _sure_latest(match: Match) -> Days | None:
    """The same, but a word that may be a verb has to be written as a name."""
    is_clear = match.has("jo") or all(piece.is_sure for piece in match.kept("m"))
    return _latest(match) if is_clear else None


def _chosen(match: Match) -> Days | None:
    back = match.one("lbL").number
    if back <= 0 and not all(piece.is_sure for piece in match.kept("m")):
        return None  # "this may be it"
    return occurrence(yearly(match), match.today, back)


def _nth_back(match: Match) -> Days | None:
    named = Match(match.kept("sh"), match.today)
    return occurrence(yearly(named), match.today, match.one("n").number)


def _past_times(match: Match) -> Days | None:
    """The last two summers, with what lies between them."""
    named = Match(match.kept("sh"), match.today)
    first = _nth_back(match)
    last = occurrence(yearly(named), match.today, 1)
    return Days(first.first, last.last) if first and last else None


def _chosen_unit(match: Match) -> Days | None:
    unit, back = match.one("u").name, match.one("lbL").number
    return None if unit == "day" else calendar.unit_from(match.today, unit, back)


def _units_ago(match: Match) -> Days | None:
    return calendar.unit_from(match.today, match.one("u").name, match.one("n").number)


def _near_day(match: Match) -> Days | None:
    return calendar.unit_from(match.today, "day", match.one("D").number)


def _past_units(match: Match) -> Days | None:
    if match.has("lL") and match.one("lL").number != 1:
        return None
    return calendar.past(match.today, match.one("u").name, match.one("n").number)


def _weekday(match: Match) -> Days | None:
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


def _week_of_month(match: Match) -> Days | None:
    """The first week of May, the last weekend in August 2023."""
    which, unit = match.found[0], match.one("u").name
    if unit not in ("week", "weekend") or (which.code in "lL" and which.number != 1):
        return None
    named = Match(match.kept("my"), match.today)
    month = _of_year(named) if named.year else _sure_latest(named)
    place = -1 if which.code in "lL" else which.number - 1
    return calendar.part_of_month(month, unit, place) if month else None


def _weekday_beside(match: Match) -> Days | None:
    """The Sunday before 25 October."""
    day = match.one("P").days
    if day is None or day.first != day.last:
        return None
    wanted, there = match.one("w").number, day.first.weekday()
    if match.has(">"):
        return calendar.one_day(day.first + timedelta(days=(wanted - there - 1) % 7 + 1))
    return calendar.one_day(day.first - timedelta(days=(there - wanted - 1) % 7 + 1))


def _day_of_month(match: Match) -> Days | None:
    month, day = match.one("C").days, match.one("no").number
    return calendar.day_of(month.first.year, month.first.month, day) if month else None


def _latest_day(match: Match) -> Days | None:
    """On the 13th: the latest one that has come."""
    day = match.one("o").number
    for back in range(12):
        month = calendar.unit_from(match.today, "month", back).first
        found = calendar.day_of(month.year, month.month, day)
        if found is not None and found.first <= match.today:
            return found
    return None


def _whole_year(match: Match) -> Days | None:
    if match.has("u") and match.one("u").name != "year":
        return None
    return calendar.months(match.one("y").number, 1, 12)


def _week_of_year(match: Match) -> Days | None:
    piece = match.one("k")
    return calendar.week(int(piece.name), piece.number)


def _named_month(match: Match) -> Days | None:
    return _latest(match) if match.one("u").name == "month" else None


def _recent_weekend(match: Match) -> Days | None:
    if match.one("u").name != "weekend":
        return None
    days = calendar.unit_from(match.today, "weekend", 0)
    return days if days.first <= match.today else calendar.unit_from(match.today, "weekend", 1)


def _days_of(piece: Piece, today: date, *, sure: bool = False) -> Days | None:
    """The days of a piece that needs a word such as "since" to stand for itself."""
    if piece.days is not None:
        return piece.days
    if piece.code == "y":
        return calendar.months(piece.number, 1, 12)
    if sure and not piece.is_sure:
        return None
    if piece.code == "w":
        return _weekday(Match([piece], today))
    return _latest(Match([piece], today))


def _part(match: Match) -> Days | None:
    if match.has("p"):
        days = _days_of(match.one("PZCWym"), match.today)
        return calendar.part(days, match.one("p").name) if days else None
    half = match.one("noc").number
    days = _days_of(match.one("PZCWym"), match.today)
    return calendar.part(days, ("first", "second")[half - 1]) if days and half <= 2 else None


def _week_of_day(match: Match) -> Days | None:
    """The week of 3 March."""
    days = match.one("P").days
    if match.one("u").name != "week" or days is None or days.first != days.last:
        return None
    return calendar.unit_from(days.first, "week", 0)


def _since(match: Match) -> Days | None:
    if match.has("u"):
        return _past_units(match)
    days = _days_of(match.one("PZCWymshw"), match.today)
    return Days(days.first, max(match.today, days.last)) if days else None


def _before(match: Match) -> Days | None:
    days = _days_of(match.one("PZCWymh"), match.today, sure=True)
    return Days(date.min, days.first - timedelta(days=1)) if days else None


def _after(match: Match) -> Days | None:
    days = _days_of(match.one("PZCWymh"), match.today, sure=True)
    if days is None:
        return None
    last = match.today if days.last < match.today else date.max
    return Days(days.last + timedelta(days=1), last)


def _until(match: Match) -> Days | None:
    days = _days_of(match.one("PZCWym"), match.today, sure=True)
    return Days(date.min, days.last) if days else None


def _offset(match: Match) -> Days | None:
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


def _range(match: Match) -> Days | None:
    """From one to the other; the first takes the year, or the month, of the second."""
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


def _in_year(day: date, year: int) -> Days | None:
    return calendar.day_of(year, day.month, day.day)


def _rules(*rules: tuple[str, Reading]) -> list[Rule]:
    """Patterns without their spaces; `_` is the small words that may stand between."""
    return [
        (re.compile(pattern.replace(" ", "").replace("_", "[fitj]*")), read)
        for pattern, read in rules
    ]


# In a pass, of two rules that match at the same place the first one wins.
_FROM_TODAY = _rules(
    ("D", _near_day),
    ("[lL] n u", _past_units),
    ("n L u", _past_units),
    ("n u L", _past_units),
    ("n u a", _units_ago),
    ("[gv] n u", _units_ago),
    ("[lLoc] u [fi]+ t? m (_ y)?", _week_of_month),
    ("[lL] u", _chosen_unit),
    ("u [bL]", _chosen_unit),
)
_NAMED = _rules(
    ("[no] _ m _ [yZ]", _of_year),
    ("c f t? m _ [yZ]", _of_year),
    ("m t? [no] _ [yZ]", _of_year),
    ("[no] _ C", _day_of_month),
    ("[msh] _ [yZ]", _of_year),
    ("s _ z", _of_year),
    ("s _ P", _winter),
    ("[yZ] _ [msh]", _of_year),
    ("[uK] [no] _ [yZ]", _of_year),
    ("[uK] k", _week_of_year),
    ("[oc] u _ [yZ]", _of_year),
    ("q n _ [yZ]", _of_year),
    ("w _ W", _weekday),
    ("W _ w", _weekday),
    ("[lL] n [sh]", _past_times),
    ("n [sh] a", _nth_back),
    ("[gv] n [sh]", _nth_back),
    ("[lL] [msh]", _chosen),
    ("[msh] [bL]", _chosen),
    ("[lL] w", _weekday),
    ("w L", _weekday),
)
_WITHOUT_A_YEAR = _rules(
    ("j t? [no] f? m", _sure_latest),
    ("j m n", _sure_latest),
    ("(m n|n m)$", _latest),
    ("[no] f? m(?![ny])", _sure_latest),
    ("c f t? m", _sure_latest),
    ("m t? o", _latest),
    ("m n(?!u|n|m)", _sure_latest),
    ("[jt] d", _latest),
    ("j t? o(?!f|u|m|c)", _latest_day),
    ("j w(?![<>v])", _weekday),
    ("K n", _latest),
    ("i t? u n(?!f)", _latest),
    ("i t? q n", _latest),
    ("i t? c u(?!f)", _latest),
    ("y T y(?=x|$)", lambda match: _range(match) if match.one("T").name == "dash" else None),
)
_PARTS = _rules(
    ("p _ [PZCWym]", _part),
    ("u f t? P", _week_of_day),
    ("[noc] H _ [PZCWym]", _part),
)
_RANGES = _rules(
    ("B _ [PZCWymsno] & _ [PZCWyms]", _range),
    ("[Ffrvi] _ [PZCWymsno] [Te] _ [PZCWyms]", _range),
    ("[PZCWyms] [Te] _ [PZCW]", _range),
    ("[nom] T _ P", _range),
    ("n? u [<>v] _ [PZCWh]", _offset),
    ("j? w [<>v] _ P", _weekday_beside),
    ("j w", _weekday),
    ("r g? _ n u", _since),
    ("r _ [PZCWymshw]", _since),
    ("[<v] _ [PZCWym]", _before),
    ("> _ [PZCWym]", _after),
    ("e _ [PZCWym]", _until),
    ("[iO] t? m", _latest),
    ("O t? [sh]", _latest),
    ("O t? u", _recent_weekend),
    ("u f? m", _named_month),
    ("[iFfO] y", _whole_year),
    ("u y", _whole_year),
)


def spans(found: list[Piece], today: date) -> Iterator[Piece]:
    """The spans of days that the pieces name, in their order."""
    if not any(piece.code in _TELLING for piece in found):
        return
    for rules in (_FROM_TODAY, _NAMED, _WITHOUT_A_YEAR, _PARTS, _RANGES):
        found = _pass(rules, found, today)
    for piece in found:
        if piece.code in _STANDING:
            yield piece


def _pass(rules: list[Rule], found: list[Piece], today: date) -> list[Piece]:
    codes = "".join(piece.code for piece in found)
    made: list[Piece] = []
    position = 0
    while position < len(found):
        length, piece = _made(rules, codes, position, found, today)
        made.append(piece)
        position += length
    return made


def _made(
    rules: list[Rule], codes: str, position: int, found: list[Piece], today: date
) -> tuple[int, Piece]:
    """What the first fitting rule makes of the pieces from here on, and how many they are."""
    if codes[position] != "x":
        for pattern, read in rules:
            matched = pattern.match(codes, position)
            if matched is None:
                continue
            taken = found[position : matched.end()]
            with suppress(ValueError, OverflowError, IndexError, StopIteration):
                if (days := read(Match(taken, today))) is not None:
                    return len(taken), _joined(taken, days)
    return 1, found[position]


def _joined(taken: list[Piece], days: Days) -> Piece:
    unit = next((piece.name for piece in taken if piece.code == "u"), "")
    is_unit = days == calendar.unit_from(days.first, unit, 0) if unit else False
    code = _UNTIL_NOW.get(unit, "P") if is_unit and len(taken) <= 3 else "P"
    feast = next((piece for piece in taken if piece.code == "h"), None)
    core = None
    if feast is not None and feast.name in ("christmas", "easter"):
        core = days.last - timedelta(days=1)
    return replace(
        taken[0],
        end=taken[-1].end,
        code=code,
        is_shared=any(piece.is_shared for piece in taken),
        days=days,
        core=core,
        is_yearless=_YEARLESS.fullmatch("".join(piece.code for piece in taken)) is not None,
    )
