"""What a question asks for: words, phrases, exclusions, and filters written as words.

owe Sreenivas                       words: any of them may be missing
"rain garden" -roof                 an exact phrase, and a word that must not occur
tag:health path:Journal             the filters of the search tool, as words
after:2024 before:2024-06-15        from that day on; up to the day before
prop:rating>=4 prop:author="Le Guin"  properties: =, >, >=, <, <=, and a..b
"""

import re
from dataclasses import dataclass
from datetime import date, timedelta

_TOKEN = re.compile(
    r'(?P<minus>(?<!\S)-)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+(?:"[^"]*")?))', re.UNICODE
)
_FILTER = re.compile(r"(tag|path|before|after|prop):(.+)", re.IGNORECASE)
_PROPERTY = re.compile(r"([^=<>!]+?)\s*(>=|<=|=|>|<)\s*(.+)")
_DAY = re.compile(r"([12]\d{3})(?:-(\d{1,2}))?(?:-(\d{1,2}))?")
_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})


@dataclass(frozen=True, slots=True)
class PropertyFilter:
    """A condition on a property; `low` and `high` are texts, numbers or ISO dates."""

    key: str
    low: str | None = None
    high: str | None = None
    is_open_low: bool = False
    is_open_high: bool = False

    @property
    def is_equality(self) -> bool:
        """Whether one value is asked for."""
        return self.low == self.high and not (self.is_open_low or self.is_open_high)


@dataclass(frozen=True, slots=True)
class DateRange:
    """Days from and to, both included; None is open."""

    first: str | None = None
    last: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A question taken apart. `text` is what remains for meaning and words."""

    text: str
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    dates: DateRange | None = None
    properties: tuple[PropertyFilter, ...] = ()


def parse_query(question: str) -> Query:
    """Take a question apart; what is not understood stays text."""
    words: list[str] = []
    phrases: list[str] = []
    excluded: list[str] = []
    filters: list[tuple[str, str]] = []
    for token in _TOKEN.finditer(question.translate(_QUOTES)):
        phrase, word = token["phrase"], token["word"]
        if token["minus"]:
            excluded.append((phrase or word or "").strip("-"))
        elif phrase is not None:
            if phrase.strip():
                phrases.append(phrase.strip())
                words.append(phrase.strip())
        elif (named := _FILTER.fullmatch(word.replace('"', ""))) and _is_sound(
            named[1].lower(), named[2]
        ):
            filters.append((named[1].lower(), named[2]))
        else:
            words.append(word)
    values = {
        name: tuple(value for key, value in filters if key == name)
        for name in ("tag", "path", "prop", "after", "before")
    }
    return Query(
        text=" ".join(words).strip(),
        phrases=tuple(phrases),
        excluded=tuple(word for word in excluded if word),
        tags=values["tag"],
        paths=values["path"],
        dates=_dates(values["after"], values["before"]),
        properties=tuple(parse_property(value) for value in values["prop"]),
    )


def _filter(word: str) -> tuple[str, str] | None:
    """The filter a word stands for, if it is a sound one."""
    found = _FILTER.fullmatch(word.replace('"', ""))
    if found is None or not _is_sound(found[1].lower(), found[2]):
        return None
    return found[1].lower(), found[2]


def parse_property(text: str) -> PropertyFilter:
    """`key=value`, `key>=3`, `key=3..5`.

    Raises:
        ValueError: it is none of these.
    """
    found = _PROPERTY.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"'{text}' is not of the form key=value")
    key, sign, value = found[1].strip(), found[2], found[3].strip()
    if sign == "=" and ".." in value:
        low, _, high = value.partition("..")
        return PropertyFilter(key, low.strip() or None, high.strip() or None)
    if sign == "=":
        return PropertyFilter(key, value, value)
    if sign.startswith(">"):
        return PropertyFilter(key, low=value, is_open_low=sign == ">")
    return PropertyFilter(key, high=value, is_open_high=sign == "<")


def first_day(text: str) -> date | None:
    """The first day of `2024`, `2024-03` or `2024-03-15`."""
    found = _DAY.fullmatch(text.strip())
    if found is None:
        return None
    try:
        return date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    except ValueError:
        return None


def _is_sound(name: str, value: str) -> bool:
    if name in ("before", "after"):
        return first_day(value) is not None
    return name != "prop" or _PROPERTY.fullmatch(value.strip()) is not None


def _dates(after: tuple[str, ...], before: tuple[str, ...]) -> DateRange | None:
    if not after and not before:
        return None
    firsts = [day for text in after if (day := first_day(text))]
    lasts = [day - timedelta(days=1) for text in before if (day := first_day(text))]
    return DateRange(
        first=max(firsts).isoformat() if firsts else None,
        last=min(lasts).isoformat() if lasts else None,
    )
