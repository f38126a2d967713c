"""Who may see a note: its `rag` property, and the scope that a caller is limited to.

Threat: a note meant to be private is published because of a typo (`rag: privat`), a list
(`rag: [private]`), a second `rag:` line or broken YAML. So every value of the property counts and
the strictest wins; only known words make a note public; and if the YAML cannot be parsed, its lines
are searched.

A scope that matches nothing must not match everything: a vault that was unlinked, or a folder that
was renamed, shows less, never more.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import yaml

from obsidian_rag.notes.frontmatter import compose_frontmatter, split_frontmatter
from obsidian_rag.notes.note import RagPolicy
from obsidian_rag.notes.words import drop_invisible

_NEVER = frozenset({"false", "no", "never", "off", "0"})
_PRIVATE = frozenset({"private"})
_INDEX = frozenset({"true", "yes", "on", "1", "index", "public"})
_KNOWN = _NEVER | _PRIVATE | _INDEX
# A key may be escaped ("r\x61g"), so a backslash also leads to a full check.
_MENTIONS_RAG = re.compile(r"(?<![^\W_])rag(?![^\W_])|\\", re.IGNORECASE)
_UNCLOSED = re.compile(r"\ufeff?---[ \t]*+[\r\n]")
_UNCLOSED_CHARS = 4000
# Lines below the key belong to its value: list items, and all indented ones if it begins there.
_INDENTED = r"(?:#.*)?(?:\n[ \t]*+(?=\n)|\n[ \t]++.*|\n-[ \t].*)++"
_LINE = re.compile(
    r"^[ \t\[{,>*-]*+[\"']?rag[\"']?[ \t]*+[:=][ \t]*+(?:[|>][-+\d]*+[ \t]*+)?"
    rf"({_INDENTED}|.*(?:\n[ \t]*+-[ \t].*)*)",
    re.IGNORECASE | re.MULTILINE,
)
_LIST_MARK = re.compile(r"\n[ \t]*+-[ \t]")
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#.*", re.MULTILINE)
_BETWEEN_WORDS = re.compile(r"[\s,;|/]+")
_AROUND_WORDS = "\"'[](){}."
_MAX_VALUES = 1000
_MAX_QUOTED_CHARS = 40


@dataclass(frozen=True, slots=True)
class Scope:
    """Notes of these vaults, by link id or name, and below these folders; None is all of them."""

    vaults: tuple[str, ...] | None = None
    folders: tuple[str, ...] | None = None

    @property
    def is_limited(self) -> bool:
        """Whether the scope excludes anything."""
        return self.vaults is not None or self.folders is not None

    def admits_vault(self, link_id: str | None) -> bool:
        """Whether any note of a vault may be seen."""
        return self.vaults is None or link_id in self.vaults

    def admits(self, link_id: str | None, path: str) -> bool:
        """Whether this note may be seen, if it exists."""
        if not self.admits_vault(link_id):
            return False
        return self.folders is None or any(is_inside(path, folder) for folder in self.folders)

    def named(self, names: Mapping[str, str]) -> "Scope":
        """This scope with vault names replaced by link ids; `names` maps link ids to names."""
        if self.vaults is None:
            return self
        wanted = {vault.casefold() for vault in self.vaults}
        found = (one for one, name in names.items() if {one, name.casefold()} & wanted)
        return replace(self, vaults=tuple(sorted(found)))


EVERYTHING = Scope()


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is below a folder; the vault's own folder is empty."""
    return not folder or path.startswith(f"{folder}/")


class FoundPolicy(NamedTuple):
    """What a note allows, and a warning about an unknown value."""

    policy: RagPolicy
    warning: str | None = None


def read_policy(text: str) -> FoundPolicy:
    """Read the `rag` property in the frontmatter of a note's text."""
    if not text.startswith(("---", "\ufeff---")):
        return FoundPolicy(RagPolicy.INDEX)
    yaml_text, _, _ = split_frontmatter(text)
    if yaml_text is None:
        # A missing closing line must not publish a private note.
        is_open = _UNCLOSED.match(text) is not None
        return _judge(_find_line_values(text[:_UNCLOSED_CHARS])) if is_open else _judge([])
    if not _MENTIONS_RAG.search(_fold(yaml_text)):
        return _judge([])
    tree = compose_frontmatter(yaml_text)
    if tree is None:
        return _judge(_find_line_values(yaml_text))
    values = list(_property_values(tree))
    if not values:
        # A line indented by mistake counts if its value is known.
        values = [
            value for value in _find_line_values(yaml_text) if set(_split_words(value)) <= _KNOWN
        ]
    return _judge(values)


def _judge(values: list[str]) -> FoundPolicy:
    """The strictest of the values; without values everything is allowed."""
    words = [word for value in values for word in _split_words(value)]
    unknown = [word for word in words if word not in _KNOWN]
    warning = None
    if unknown:
        warning = (
            f"The property 'rag' contains an unknown value: '{unknown[0][:_MAX_QUOTED_CHARS]}'."
            " Write true, private or false."
        )
    if not _NEVER.isdisjoint(words):
        return FoundPolicy(RagPolicy.NEVER, warning)
    if unknown or not _PRIVATE.isdisjoint(words):
        return FoundPolicy(RagPolicy.PRIVATE, warning)
    return FoundPolicy(RagPolicy.INDEX)


def _split_words(value: str) -> list[str]:
    parts = (part for part in _BETWEEN_WORDS.split(_fold(value)) if part)
    return [part.strip(_AROUND_WORDS) or part for part in parts]


def _fold(text: str) -> str:
    """Text in lower case and ASCII where possible: a colon may be full-width, a space invisible."""
    if text.isascii():
        return text.casefold()
    return unicodedata.normalize("NFKC", drop_invisible(text)).casefold()


def _find_line_values(text: str) -> list[str]:
    """The values of lines that look like the property, with list items below them."""
    lines = _fold(text.replace("\r\n", "\n").replace("\r", "\n"))
    found = (_LIST_MARK.sub(" ", _COMMENT.sub("", m[1])) for m in _LINE.finditer(lines))
    return [word for value in found for word in _split_words(value) if word.strip(_AROUND_WORDS)]


def _property_values(tree: yaml.Node) -> Iterator[str]:
    """All values of `rag`, also if the key is there twice or merged in."""
    waiting, seen = [tree], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value  # several mappings that are merged in
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                name = _fold(str(key.value)).strip() if _is_text(key) else ""
                if name == "rag":
                    yield from _node_texts(value)
                elif name == "<<":
                    waiting.append(value)


def _node_texts(root: yaml.Node) -> Iterator[str]:
    """All text below a node, keys and tags included; too much of it counts as unknown."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if len(seen) > _MAX_VALUES:
            yield "…"
            return
        if node.tag.startswith("!"):
            yield node.tag
        if _is_text(node):
            yield str(node.value)
        elif isinstance(node, yaml.MappingNode):
            waiting += [one for pair in node.value for one in pair]
        else:
            waiting += node.value


def _is_text(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode)
