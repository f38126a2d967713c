"""The YAML most notes have, read without a YAML parser.

A full parser costs more than all else in a short note. Only `key: value` lines and simple lists
whose meaning is beyond doubt are read here; anything else is left to the real parser.
"""

import re

_ENTRY = re.compile(r"([A-Za-z_][\w-]*):(?: +(\S.*))?")
_ITEM = re.compile(r"( *)- +(\S.*)")
_NEVER = "\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ud800-\udfff"
_WORDS = re.compile(rf"[^\W\d_][^:#{_NEVER}]*+(?:(?::(?! |$)|(?<! )#)[^:#{_NEVER}]*+)*+")
_QUOTED = re.compile(rf"\"([^\"\\{_NEVER}]*)\"|'([^'{_NEVER}]*)'")
_LIST = re.compile(r"\[ *([^\[\]{}\"'#:]+)\]")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FLAGS = {"true": True, "True": True, "false": False, "False": False}
_NOT_TEXT = frozenset({"null", "NULL", "Null", "TRUE", "FALSE"})


class _Hard(Exception):
    """This text needs a real parser."""


def read_plain(yaml_text: str) -> dict[str, object] | None:
    """The mapping, or None if this text needs a real parser."""
    values: dict[str, object] = {}
    key, indent = "", -1
    try:
        for line in yaml_text.split("\n"):
            line = line.rstrip(" ")
            if not line or line[0] == "#":
                continue
            if entry := _ENTRY.fullmatch(line):
                key = _key(entry[1])
                values[key] = _value(entry[2]) if entry[2] else None
                indent = -1
            else:
                indent = _add_item(values, key, line, indent)
    except _Hard:
        return None
    return values


def _key(text: str) -> str:
    if text in _FLAGS or text in _NOT_TEXT:
        raise _Hard
    return text


def _add_item(values: dict[str, object], key: str, line: str, indent: int) -> int:
    item = _ITEM.fullmatch(line)
    if item is None or not values or (indent >= 0 and len(item[1]) != indent):
        raise _Hard
    items = values[key]
    if items is None and indent < 0:
        values[key] = items = []
    if not isinstance(items, list) or (indent < 0 and items):
        raise _Hard
    items.append(_scalar(item[2]))
    return len(item[1])


def _value(text: str) -> object:
    if listed := _LIST.fullmatch(text):
        return [_scalar(word.strip(" ")) for word in listed[1].split(",")]
    return _scalar(text)


def _scalar(text: str) -> object:
    if _WORDS.fullmatch(text):
        if text in _NOT_TEXT:
            raise _Hard
        return _FLAGS.get(text, text)
    if quoted := _QUOTED.fullmatch(text):
        return quoted[1] if quoted[1] is not None else quoted[2]
    if _DAY.fullmatch(text):
        return text
    if _NUMBER.fullmatch(text):
        return int(text)
    raise _Hard
