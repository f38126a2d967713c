"""The YAML block at the top of a note, as plain values.

Threat: a note from elsewhere may hold YAML made to exhaust memory or the stack (alias bombs, deep
nesting crash the C parser), so size, depth and the number of values are bounded.
"""

import datetime
import re
from collections.abc import Mapping

import yaml

from obsidian_rag.notes.plain_yaml import read_plain

MAX_CHARS = 1_000_000
MAX_DEPTH = 60
MAX_VALUES = 100_000

_OPENING = re.compile(r"\ufeff?---[ \t]*+(?:\r\n?|\n)")
_CLOSING = re.compile(r"(?:^|(?<=[\r\n]))(?:---|\.\.\.)[ \t]*+(?:\r\n?|\n|\Z)")
_NESTS = re.compile(r"[\[{?:-]")


class _TooMuch(Exception):
    """The YAML is built to exhaust memory or the stack."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # chosen at run time
    """YAML as Obsidian reads it: `no` and `12:30` are text, and a bad date is text too."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


def _timestamp(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> object:
    try:
        return yaml.constructor.SafeConstructor.construct_yaml_timestamp(loader, node)
    except ValueError:
        return node.value


def _set_up_loader() -> None:
    kinds = {
        "bool": (r"(?:true|True|TRUE|false|False|FALSE)\Z", "tTfF"),
        "int": (r"[-+]?[0-9]{1,18}\Z", "-+0123456789"),
        "float": (r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z", "-+.0123456789"),
        "null": (r"(?:~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    }
    for kind, (pattern, first) in kinds.items():
        _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(pattern), list(first))
    dates = yaml.SafeLoader.yaml_implicit_resolvers["0"]
    pattern = next(regex for tag, regex in dates if tag.endswith(":timestamp"))
    _Loader.add_implicit_resolver("tag:yaml.org,2002:timestamp", pattern, list("0123456789"))
    _Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value))
    _Loader.add_constructor("tag:yaml.org,2002:timestamp", _timestamp)


_set_up_loader()


def split_frontmatter(text: str) -> tuple[str | None, int, int]:
    """The YAML text (None if there is none), and the offset and line at which the body starts."""
    opening = _OPENING.match(text)
    if opening is None:
        return None, 0, 1
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        return None, 0, 1
    yaml_text = text[opening.end() : closing.start()]
    if "\r" in yaml_text:
        yaml_text = yaml_text.replace("\r\n", "\n").replace("\r", "\n")
    return yaml_text, closing.end(), yaml_text.count("\n") + 3


def read_frontmatter(yaml_text: str) -> tuple[dict[str, object], str | None]:
    """The properties, and what is wrong with them if they cannot be read."""
    plain = read_plain(yaml_text) if len(yaml_text) <= MAX_CHARS else None
    if plain is not None:
        return plain, None
    try:
        _refuse_bombs(yaml_text)
        tree = yaml.load(yaml_text, Loader=_Loader)
        if tree is None:
            return {}, None
        if not isinstance(tree, dict):
            return {}, "The frontmatter is not a list of properties."
        return _Plain().mapping(tree, 0), None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" in line {mark.line + 2}" if mark else ""
        return {}, f"The frontmatter is not valid YAML{where}: {error.problem or error.context}."
    except (_TooMuch, RecursionError):
        return {}, "The frontmatter is too large or nested too deeply."
    except (yaml.YAMLError, ValueError, TypeError, OverflowError):
        return {}, "The frontmatter is not valid YAML."


def _refuse_bombs(yaml_text: str) -> None:
    if len(yaml_text) > MAX_CHARS:
        raise _TooMuch
    if len(_NESTS.findall(yaml_text)) <= MAX_DEPTH:
        return
    depth = 0
    # Events come from a flat loop; composing nodes recurses on the C stack and would crash.
    for event in yaml.parse(yaml_text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _TooMuch
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Plain:
    """Copies YAML values into plain ones; counts them, so that aliases cannot multiply."""

    def __init__(self) -> None:
        self._count = 0

    def mapping(self, tree: Mapping[object, object], depth: int) -> dict[str, object]:
        return {str(key): self._value(value, depth + 1) for key, value in tree.items()}

    def _value(self, value: object, depth: int) -> object:
        self._count += 1
        if self._count > MAX_VALUES or depth > MAX_DEPTH:
            raise _TooMuch
        if value is None or isinstance(value, (str, bool, int, float)):
            return value
        if isinstance(value, datetime.date):
            return value.isoformat()
        if isinstance(value, dict):
            return self.mapping(value, depth)
        if isinstance(value, (list, tuple, set)):
            return [self._value(entry, depth + 1) for entry in value]
        return str(value)
