"""Split a question into pieces, each with the code of its meaning in one language."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import NamedTuple

from obsidian_rag.search.when import days as calendar
from obsidian_rag.search.when.days import Days
from obsidian_rag.search.when.language import Language, date_words
from obsidian_rag.search.words import folded

# A longer question is pasted text: dates further on are not meant as filters.
_MAX_CHARS = 1000
_TOKEN = re.compile(
    r"(?P<cjk>(?:19|20)[0-9]{2}年(?:(?:1[0-2]|0?[1-9])月(?:[0-9]{1,2}日)?)?)"
    r"|(?P<number>[0-9]\w*(?:[-./:]\w+)*)"
    r"|(?P<word>[^\W\d_][^\W\d_\u0300-\u036f]*[\u0300-\u036f]*(?:[^\W\d_]|[\u0300-\u036f])*)"
)
_CJK = re.compile(r"([0-9]{4})年(?:([0-9]{1,2})月)?(?:([0-9]{1,2})日)?")
_JOINER = re.compile(r"[\s'’‘`\-‐‑]*")
_DASH = re.compile(r"\s*(?:[–—]|\.\.+)\s*|\s+-\s+")
_YEAR = r"((?:19|20)[0-9]{2})"
# As in March '24.
_SHORT_YEAR = re.compile(r"(?<!\w)['’‘][0-9]{2}$")
_FORMS = {
    name: re.compile(pattern)
    for name, pattern in {
        "year first": _YEAR + r"([-./])([0-9]{1,2})\2([0-9]{1,2})",
        "day first": r"([0-9]{1,2})([-./])([0-9]{1,2})\2" + _YEAR,
        "short": r"([0-9]{2})([./])([0-9]{2})\2([0-9]{2})",
        "month": _YEAR + r"-(0[1-9]|1[0-2])",
        "week": _YEAR + r"-?w([0-9]{2})",
        "quarter": _YEAR + r"-?q([1-4])",
        "years": _YEAR + r"[-/]" + _YEAR,
        "winter": _YEAR + r"[-/]([0-9]{2})",
        "week of": r"([0-9]{1,2})/" + _YEAR,
        "day": r"([0-9]{1,2})([./])([0-9]{1,2})",
        "days": r"([0-9]{1,2})-([0-9]{1,2})",
        "a year": _YEAR,
        "ordinal": r"([0-9]{1,2})(?:st|nd|rd|th|er|re|e|eme|o|a)",
        "number": r"([0-9]{1,3})",
    }.items()
}
_CODES = {
    "a year": "y",
    "ordinal": "o",
    "number": "n",
    "winter": "z",
    "week of": "k",
    "days": "E",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words of the question, from `start` to `end`, and their meaning."""

    start: int
    end: int
    code: str
    number: int = 0
    name: str = ""
    # False for an ambiguous word such as "may" that is not capitalised.
    is_sure: bool = True
    # A word that means something else in another language.
    is_shared: bool = False
    days: Days | None = None
    # The main day of a holiday: two days before Christmas is 23 December.
    core: date | None = None
    # A day named without its year; in a range it takes the year of the other end.
    is_yearless: bool = False


class Token(NamedTuple):
    """A word or number of the question, and its folded form."""

    match: "re.Match[str]"
    folded: str


def read_tokens(question: str) -> list[Token]:
    """The words and numbers of a question; none if no language could read a date in them."""
    tokens = [Token(found, folded(found[0])) for found in _TOKEN.finditer(question[:_MAX_CHARS])]
    words = date_words()
    if any(not token.match["word"] or token.folded in words for token in tokens):
        return tokens
    return []


def pieces(question: str, tokens: Sequence[Token], language: Language) -> list[Piece]:
    """The question's pieces in this language."""
    found: list[Piece] = []
    position = 0
    while position < len(tokens):
        match, plain = tokens[position]
        if found:
            found += _between(question, tokens[position - 1].match, match)
        if match["word"]:
            length, piece = _word(tokens, position, language, question)
            if plain in language.shared:
                piece = replace(piece, is_shared=True)
            position += length
        else:
            position += 1
            piece = _number(match, plain, question) if match["number"] else _cjk(match)
        found.append(piece)
    return found


def _between(question: str, before: "re.Match[str]", after: "re.Match[str]") -> Iterator[Piece]:
    """A piece for the text between two words, if it separates them or is a dash."""
    start, end = before.end(), after.start()
    gap = question[start:end]
    if _JOINER.fullmatch(gap) and not _DASH.fullmatch(gap):
        return
    if _DASH.fullmatch(gap):
        yield Piece(start, end, "T", name="dash")
        return
    is_short = before["number"] or len(before[0]) <= 4
    is_year = _FORMS["a year"].fullmatch(after[0])
    if not (gap.strip() == "." and is_short) and not (gap.strip(" .") == "," and is_year):
        yield Piece(start, end, "x")


def _word(
    tokens: Sequence[Token], position: int, language: Language, question: str
) -> tuple[int, Piece]:
    """The longest phrase of the language at this position, and its number of words."""
    first, plain = tokens[position]
    for words, meaning in language.phrases.get(plain, ()):
        length = len(words)
        taken = tokens[position : position + length]
        last = taken[-1].match
        gaps = question[first.end() : last.start()] if length > 1 else ""
        if tuple(one.folded for one in taken) == words and not set(gaps) & set(".,;:!?"):
            is_sure = not meaning.is_doubtful or first[0][:1].isupper()
            start, end = first.start(), last.end()
            return length, Piece(start, end, meaning.code, meaning.number, meaning.name, is_sure)
    return 1, Piece(first.start(), first.end(), "x")


def _number(token: "re.Match[str]", plain: str, question: str) -> Piece:
    is_glued = question[: token.start()][-1:].isalnum()
    for name, form in _FORMS.items():
        if is_glued and name not in ("number", "week of"):  # KW30/2023, Q3
            continue
        if found := form.fullmatch(plain):
            return _to_number_piece(name, found, token, question)
    return Piece(token.start(), token.end(), "x")


def _to_number_piece(
    name: str, found: "re.Match[str]", token: "re.Match[str]", question: str
) -> Piece:
    numbers = [int(group) for group in found.groups() if group.isdigit()]
    made = Piece(token.start(), token.end(), "x")
    if name == "number" and _SHORT_YEAR.search(question[: token.end()]):
        return replace(made, code="y", number=calendar.century(numbers[0]))
    code = _CODES.get(name)
    if code is not None:
        return replace(made, code=code, number=numbers[0], name=str(numbers[-1]))
    if name == "years":
        days: Days | None = None
        if numbers[0] < numbers[1]:
            days = Days(date(numbers[0], 1, 1), date(numbers[1], 12, 31))
    elif name == "day":
        # "12/03" and the German "12.03." also need a word such as "on" before them.
        has_dot = question[token.end() : token.end() + 1] == "."
        is_whole = has_dot if "." in token[0] else len(token[0]) == 5
        code, end = "d" if is_whole else "x", token.end() + has_dot
        return replace(made, code=code, end=end, number=numbers[0], name=str(numbers[1]))
    else:
        days = _DAYS[name](numbers)
    return replace(made, code="P", days=days, name=name) if days else made


def _day_first_if_possible(numbers: list[int]) -> Days | None:
    """Day first, as in most of the world; month first if the other way is not a date."""
    first, second, year = numbers
    year += 2000 if year < 100 else 0
    return calendar.day_of(year, second, first) or calendar.day_of(year, first, second)


_DAYS: dict[str, Callable[[list[int]], Days | None]] = {
    "year first": lambda numbers: calendar.day_of(*numbers),
    "day first": _day_first_if_possible,
    "short": _day_first_if_possible,
    "month": lambda numbers: calendar.months(*numbers),
    "week": lambda numbers: calendar.week(*numbers),
    "quarter": lambda numbers: calendar.months(numbers[0], numbers[1] * 3 - 2, 3),
}


def _cjk(token: "re.Match[str]") -> Piece:
    found = _CJK.fullmatch(token[0])
    made = Piece(token.start(), token.end(), "x")
    if found is None:
        return made
    year, month, day = (int(group) if group else 0 for group in found.groups())
    if day:
        days = calendar.day_of(year, month, day)
    else:
        days = calendar.months(year, month or 1, 1 if month else 12)
    return replace(made, code="P", days=days) if days else made
