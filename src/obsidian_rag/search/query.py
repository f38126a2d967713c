"""Parse a question: words, phrases, exclusions, and filters written as words.

owe Sreenivas                       words: any of them may be missing
"rain garden" -roof                 an exact phrase, and an excluded word
garden NOT roof                     excludes too, also where `-roof` might be a flag
tag:health path:Journal vault:Work  the filters of the search tool
after:2024 before:2024-06-15        from that day on; up to the day before
prop:rating>=4 prop:author="Le Guin"  properties: =, >, >=, <, <=, and a..b

A pasted command or error message is searched literally: if the question has any other sign of one,
`-word` is a flag and quotes do not make a phrase.
"""

import re
from dataclasses import dataclass
from datetime import date, timedelta

_TOKEN = re.compile(
    r'(?P<minus>(?<!\S)-)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+(?:"[^"]*")?))', re.UNICODE
)
_FILTER = re.compile(r"(tag|path|before|after|prop|vault):(.+)", re.IGNORECASE)
_PROPERTY = re.compile(r"([^=<>!]+?)\s*(>=|<=|=|>|<)\s*([^=\s].*)")
_DAY = re.compile(r"([12]\d{3})(?:-(\d{1,2}))?(?:-(\d{1,2}))?")
_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})


# Signs of a command, path, code or program message that ordinary questions do not have.
_COMMAND = re.compile(
    r"""
      (?<!\S)(?:--[A-Za-z]|-[A-Za-z](?!\S))             # --delete, -i
    | (?<!\S)-[A-Za-z][\w-]*=                          # -Dkey=value
    | \s(?:\|\|?|&&)(?=\s) | \s>>?\s*[/\w-]*[./]\w   # a | b, a && b, a > b.txt
    | ;\s*$ | ;\s(?:do|done|then|fi)\b
    | [`{}] | \$[\w({] | [\w)]~\d | (?<!\S)~/
    | (?<!\S)\.{0,2}/[\w.] | \w/[\w.-]+/ | \w/(?!\S) | [A-Za-z]:\\ | \w\(\)
    | (?<!\S)[A-Za-z_][\w.-]*=\S                       # key=value
    | \b[A-Z]\w*(?:Error|Exception|Warning)\b\s*: | \bE[A-Z]{4,}\b:
    | ^\s*(?:[\w.-]+:\s*)?(?i:fatal|panic|error|warning|traceback)\b[^:]*:
    """,
    re.VERBOSE,
)
# Program names that are not ordinary words: after these every `-word` is a flag.
_PROGRAM = re.compile(
    r"\s*(?:[$#>]\s+)?(?:ansible|apt|apt-get|awk|aws|az|brew|bun|cargo|chmod|chown|cmake|conda|cp"
    r"|crontab|curl|deno|df|dnf|docker|docker-compose|dpkg|du|ffmpeg|gcc|gcloud|gdb|git|gpg|grep|gunzip"
    r"|gzip|helm|ip|iptables|java|javac|journalctl|jq|kubectl|ln|ls|lsblk|lsof|mkdir|mv|mypy|mysql"
    r"|netstat|nginx|nmap|node|npm|npx|nvim|openssl|pacman|php|pip|pip3|pnpm|podman|ps|psql|pytest"
    r"|python|python3|rg|rm|rsync|ruby|rustc|scp|sed|sftp|sqlite3|ssh|ssh-keygen|strace|sudo"
    r"|systemctl|tar|tcpdump|terraform|tmux|ufw|unzip|uv|uvx|vim|wget|xargs|yarn|yum|zsh)\s+\S"
)
_ADDRESS = re.compile(r"\b[a-z][a-z+.-]*://\S+", re.IGNORECASE)
_FILTER_IN_TEXT = re.compile(
    r'(?<!\S)(?:tag|path|before|after|prop|vault):(?:[^\s"]*"[^"]*"|\S+)', re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class PropertyFilter:
    """A condition on a property; `low` and `high` are texts, numbers or ISO dates."""

    key: str
    low: str | None = None
    high: str | None = None
    is_open_low: bool = False
    is_open_high: bool = False


@dataclass(frozen=True, slots=True)
class DateRange:
    """First and last day, both included; None is open."""

    first: str | None = None
    last: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed question. `text` is what remains for word and vector search.

    `is_command`: it is or contains a command, code or a program's message.
    """

    text: str
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    vaults: tuple[str, ...] = ()
    dates: DateRange | None = None
    properties: tuple[PropertyFilter, ...] = ()
    is_command: bool = False


def parse_query(question: str) -> Query:
    """Parse a question; anything not recognised stays text."""
    question = question.translate(_QUOTES)
    is_command = _is_command(question)
    words: list[str] = []
    phrases: list[str] = []
    excluded: list[str] = []
    filters: list[tuple[str, str]] = []
    tokens = list(_TOKEN.finditer(question))
    for at, token in enumerate(tokens):
        phrase, word = token["phrase"], token["word"]
        if at and tokens[at - 1][0] == "NOT" and _excludes_next(tokens, at - 1):
            words.pop()  # the NOT itself
            excluded.append((phrase or word or "").strip("-"))
        elif token["minus"] and _excludes(token, is_command=is_command):
            excluded.append((phrase or word or "").strip("-"))
        elif token["minus"]:
            words.append(token[0].replace('"', ""))
        elif phrase is not None:
            if phrase.strip():
                words.append(phrase.strip())
                phrases += [] if is_command else [phrase.strip()]
        elif (named := _FILTER.fullmatch(word.replace('"', ""))) and _is_valid_filter(
            named[1].lower(), named[2]
        ):
            filters.append((named[1].lower(), named[2]))
        else:
            words.append(word)
    values = {
        name: tuple(value for key, value in filters if key == name)
        for name in ("tag", "path", "prop", "after", "before", "vault")
    }
    return Query(
        text=" ".join(words).strip(),
        phrases=tuple(phrases),
        excluded=tuple(word for word in excluded if word),
        tags=values["tag"],
        paths=values["path"],
        vaults=values["vault"],
        dates=_dates(values["after"], values["before"]) if filters else None,
        properties=tuple(parse_property(value) for value in values["prop"]),
        is_command=is_command,
    )


def _is_command(question: str) -> bool:
    # Filters and addresses do not make a command.
    asked = _ADDRESS.sub(" ", _FILTER_IN_TEXT.sub(" ", question))
    return _COMMAND.search(asked) is not None or (
        " -" in asked and _PROGRAM.match(asked) is not None
    )


def _excludes(token: re.Match[str], *, is_command: bool) -> bool:
    """Whether the minus before a word or phrase excludes it."""
    if token["phrase"] is not None:
        return True
    return not is_command and not token["word"][0].isdigit()


def _excludes_next(tokens: list[re.Match[str]], at: int) -> bool:
    """Whether this NOT excludes what follows, rather than being part of `IS NOT NULL`."""
    around = [tokens[at + 1][0]] + ([tokens[at - 1][0]] if at else [])
    return not all(word.isupper() for word in around)


def parse_property(text: str) -> PropertyFilter:
    """Parse `key=value`, `key>=3` or `key=3..5`.

    Raises:
        ValueError: it has none of these forms.
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


def _is_valid_filter(name: str, value: str) -> bool:
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
