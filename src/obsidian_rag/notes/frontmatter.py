"""The YAML block at the top of a note, as plain values.

Threat: a note from elsewhere may contain YAML made to exhaust memory or the stack (alias bombs;
deep nesting crashes the C parser), so size, depth and the number of values are bounded.
"""

import datetime
import re
from collections.abc import Mapping

import yaml

_ENTRY = re.compile(r"([A-Za-z_][\w-]*):(?: +(\S.*))?")
_ITEM = re.compile(r"( *)- +(\S.*)")
_NOT_PRINTABLE = "\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ud800-\udfff"
_WORDS = re.compile(
    rf"[^\W\d_][^:#{_NOT_PRINTABLE}]*+(?:(?::(?! |$)|(?<! )#)[^:#{_NOT_PRINTABLE}]*+)*+"
)
_QUOTED = re.compile(rf"\"([^\"\\{_NOT_PRINTABLE}]*)\"|'([^'{_NOT_PRINTABLE}]*)'")
_LIST = re.compile(r"\[ *([^\[\]{}\"'#:]+)\]")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_BOOLEANS = {"true": True, "True": True, "false": False, "False": False}
_NOT_TEXT = frozenset({"null", "NULL", "Null", "TRUE", "FALSE"})
MAX_CHARS = 1_000_000
MAX_DEPTH = 60
MAX_VALUES = 100_000
_OPENING = re.compile(r"\ufeff?---[ \t]*+(?:\r\n?|\n)")
_CLOSING = re.compile(r"(?:^|(?<=[\r\n]))(?:---|\.\.\.)[ \t]*+(?:\r\n?|\n|\Z)")
_NESTS = re.compile(r"[\[{?:-]")


class _NeedsParser(Exception):
    """This text needs a real YAML parser."""


class _TooMuch(Exception):
    """The YAML would exhaust memory or the stack."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # chosen at run time
    """YAML as Obsidian reads it: `no` and `12:30` are text, and a bad date is text too."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


def _construct_timestamp(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> object:
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
    _Loader.add_constructor("tag:yaml.org,2002:timestamp", _construct_timestamp)


_set_up_loader()


def split_frontmatter(text: str) -> tuple[str | None, int, int]:
    """The YAML text (None without frontmatter), and the offset and line where the body starts."""
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
    """The properties, and an error message if they cannot be read."""
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


def compose_frontmatter(yaml_text: str) -> yaml.Node | None:
    """The YAML as a node tree, with duplicate keys; None if it is not a mapping."""
    try:
        _refuse_bombs(yaml_text)
        tree = yaml.compose(yaml_text, Loader=_Loader)
    except (_TooMuch, RecursionError, yaml.YAMLError, ValueError, TypeError, OverflowError):
        return None
    return tree if isinstance(tree, yaml.MappingNode) else None


def read_plain(yaml_text: str) -> dict[str, object] | None:
    """Read simple YAML without a parser; None if this text needs a real one."""
    values: dict[str, object] = {}
    key, indent = "", -1
    try:
        for line in yaml_text.split("\n"):
            line = line.rstrip(" ")
            if not line or line[0] == "#":
                continue
            if entry := _ENTRY.fullmatch(line):
                key = _check_key(entry[1])
                values[key] = _parse_value(entry[2]) if entry[2] else None
                indent = -1
            else:
                indent = _add_item(values, key, line, indent)
    except _NeedsParser:
        return None
    return values


def _check_key(text: str) -> str:
    if text in _BOOLEANS or text in _NOT_TEXT:
        raise _NeedsParser
    return text


def _add_item(values: dict[str, object], key: str, line: str, indent: int) -> int:
    item = _ITEM.fullmatch(line)
    if item is None or not values or (indent >= 0 and len(item[1]) != indent):
        raise _NeedsParser
    items = values[key]
    if items is None and indent < 0:
        values[key] = items = []
    if not isinstance(items, list) or (indent < 0 and items):
        raise _NeedsParser
    items.append(_parse_scalar(item[2]))
    return len(item[1])


def _parse_value(text: str) -> object:
    if listed := _LIST.fullmatch(text):
        return [_parse_scalar(word.strip(" ")) for word in listed[1].split(",")]
    return _parse_scalar(text)


def _parse_scalar(text: str) -> object:
    if _WORDS.fullmatch(text):
        if text in _NOT_TEXT:
            raise _NeedsParser
        return _BOOLEANS.get(text, text)
    if quoted := _QUOTED.fullmatch(text):
        return quoted[1] if quoted[1] is not None else quoted[2]
    if _DAY.fullmatch(text):
        return text
    if _NUMBER.fullmatch(text):
        return int(text)
    raise _NeedsParser


def _refuse_bombs(yaml_text: str) -> None:
    if len(yaml_text) > MAX_CHARS:
        raise _TooMuch
    if len(_NESTS.findall(yaml_text)) <= MAX_DEPTH:
        return
    depth = 0
    # Parsing events is iterative; composing nodes recurses on the C stack and would crash.
    for event in yaml.parse(yaml_text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _TooMuch
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Plain:
    """Copies YAML values into plain ones, and counts them, so that alias bombs are refused."""

    def __init__(self) -> None:
        self._count = 0

    def mapping(self, tree: Mapping[object, object], depth: int) -> dict[str, object]:
        return {str(key): self._copy(value, depth + 1) for key, value in tree.items()}

    def _copy(self, value: object, depth: int) -> object:
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
            return [self._copy(entry, depth + 1) for entry in value]
        return str(value)
