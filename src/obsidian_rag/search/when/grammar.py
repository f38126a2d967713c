"""Combine pieces into spans of days, in five passes; `language` explains the codes.

Each pass is a list of rules: a pattern of codes, and a function that reads the match. A match
becomes one piece, which rules of later passes build on: "end of | august | last year".
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta

from obsidian_rag.search.when import days as calendar
from obsidian_rag.search.when import readings
from obsidian_rag.search.when.days import Days
from obsidian_rag.search.when.language import DATE_CODES
from obsidian_rag.search.when.pieces import Piece
from obsidian_rag.search.when.readings import Match, Reading

Rule = tuple["re.Pattern[str]", Reading]

_CURRENT_CODES = {"year": "Z", "month": "C", "week": "W"}
_SPAN_CODES = "PZCW"
# A day of a month without a year.
_YEARLESS = re.compile("[jt]*(?:[noc][ft]*m|mt?[no]|d)")


def _rules(*rules: tuple[str, Reading]) -> list[Rule]:
    """Compile patterns, without their spaces; `_` allows small words in between."""
    return [
        (re.compile(pattern.replace(" ", "").replace("_", "[fitj]*")), read)
        for pattern, read in rules
    ]


# If two rules of a pass match at the same place, the first one wins.
_FROM_TODAY = _rules(
    ("D", readings.near_day),
    ("[lL] n u", readings.past_units),
    ("n L u", readings.past_units),
    ("n u L", readings.past_units),
    ("H n? u a", readings.half_ago),
    ("[gv] n? H u", readings.half_ago),
    ("n u a", readings.units_ago),
    ("[gv] n u", readings.units_ago),
    ("[lLoc] u [fi]+ t? m (_ y)?", readings.week_of_month),
    ("[lLoc] u [fi]+ t? [lL] u", readings.week_of_month),
    ("[lL] u", readings.chosen_unit),
    ("u [bL]", readings.chosen_unit),
)
_NAMED = _rules(
    ("[no] _ m _ [yZ]", readings.of_year),
    ("c f t? m _ [yZ]", readings.of_year),
    ("m t? [no] _ [yZ]", readings.of_year),
    ("E f? t? m _ [yZ]", readings.days_of_month),
    ("m t? E _ [yZ]", readings.days_of_month),
    ("[no] _ C", readings.day_of_month),
    ("[msh] _ [yZ]", readings.of_year),
    ("s _ z", readings.of_year),
    ("s _ P", readings.winter),
    ("[yZ] _ [msh]", readings.of_year),
    ("[uK] [no] _ [yZ]", readings.of_year),
    ("[uK] k", readings.week_of_year),
    ("[oc] u _ [yZ]", readings.of_year),
    ("q n _ [yZ]", readings.of_year),
    ("w _ W", readings.weekday),
    ("W _ w", readings.weekday),
    ("[lL] n [sh]", readings.past_times),
    ("n [sh] a", readings.nth_back),
    ("[gv] n [sh]", readings.nth_back),
    ("[lL] [msh]", readings.chosen),
    ("[msh] [bL]", readings.chosen),
    ("[lL] w", readings.weekday),
    ("w L", readings.weekday),
)
_WITHOUT_A_YEAR = _rules(
    ("j t? [no] f? m", readings.sure_latest),
    ("j m n", readings.sure_latest),
    ("E f? m", readings.days_of_month),
    ("m t? E", readings.days_of_month),
    ("[iFfO] t? k", readings.month_of_year),
    ("^k$", readings.month_of_year),
    ("(m n|n m)$", readings.latest),
    ("[no] f? m(?![ny])", readings.sure_latest),
    ("c f t? m", readings.sure_latest),
    ("m t? o", readings.latest),
    ("m n(?!u|n|m)", readings.sure_latest),
    ("[jt] d", readings.latest),
    ("j t? o(?!f|u|m|c)", readings.latest_day),
    ("j w(?![<>v])", readings.weekday),
    ("K n", readings.latest),
    ("i t? u n(?!f)", readings.latest),
    ("i t? q n", readings.latest),
    ("i t? c u(?!f)", readings.latest),
    ("y T y(?=x|$)", readings.years_with_dash),
)
_PARTS = _rules(
    ("p _ [PZCWym]", readings.part),
    ("u f t? P", readings.week_of_day),
    ("[noc] H _ [PZCWym]", readings.part),
)
_RANGES = _rules(
    ("B _ [PZCWymsno] & _ [PZCWyms]", readings.from_to),
    ("[Ffrvi] _ [PZCWymsno] [Te] _ [PZCWyms]", readings.from_to),
    ("[PZCWyms] [Te] _ [PZCW]", readings.from_to),
    ("[BF]? _ P [&Te] _ [no] (_ y)? (?!u|H|s|h)", readings.from_to_in_month),
    ("f [no] i P", readings.from_to),
    ("[nom] T _ P", readings.from_to),
    ("n? u [<>v] _ [PZCWh]", readings.offset),
    ("j? w [<>v] _ P", readings.weekday_beside),
    ("j w", readings.weekday),
    ("r g? _ n u", readings.since),
    ("r _ [PZCWymshw]", readings.since),
    ("[<v] _ [PZCWym]", readings.before),
    ("> _ [PZCWym]", readings.after),
    ("e _ [PZCWym]", readings.until),
    ("[iO] t? m", readings.latest),
    ("O t? [sh]", readings.latest),
    ("O t? u", readings.recent_weekend),
    ("u f? m", readings.named_month),
    ("[iFfO] y", readings.whole_year),
    ("u y", readings.whole_year),
)


def spans(found: list[Piece], today: date) -> Iterator[Piece]:
    """The spans of days that the pieces name, in order."""
    if not any(piece.code in DATE_CODES for piece in found):
        return
    for rules in (_FROM_TODAY, _NAMED, _WITHOUT_A_YEAR, _PARTS, _RANGES):
        found = _apply_rules(rules, found, today)
    for piece in found:
        if piece.code in _SPAN_CODES:
            yield piece


def _apply_rules(rules: list[Rule], found: list[Piece], today: date) -> list[Piece]:
    codes = "".join(piece.code for piece in found)
    made: list[Piece] = []
    position = 0
    while position < len(found):
        length, piece = _apply_first_rule(rules, codes, position, found, today)
        made.append(piece)
        position += length
    return made


def _apply_first_rule(
    rules: list[Rule], codes: str, position: int, found: list[Piece], today: date
) -> tuple[int, Piece]:
    """Apply the first matching rule here: the number of pieces it takes, and the result."""
    if codes[position] != "x":
        for pattern, read in rules:
            matched = pattern.match(codes, position)
            if matched is None:
                continue
            taken = found[position : matched.end()]
            with suppress(ValueError, OverflowError, IndexError, StopIteration):
                if (days := read(Match(taken, today))) is not None:
                    return len(taken), _merge(taken, days)
    return 1, found[position]


def _merge(taken: list[Piece], days: Days) -> Piece:
    unit = next((piece.name for piece in taken if piece.code == "u"), "")
    is_unit = days == calendar.unit_from(days.first, unit, 0) if unit else False
    code = _CURRENT_CODES.get(unit, "P") if is_unit and len(taken) <= 3 else "P"
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
