"""The properties that identify and relate notes: `id`, `related:`, kind and summary."""

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from obsidian_rag.notes.links import line_links
from obsidian_rag.notes.properties import lookup

IdTrouble = Literal["", "not_lower_case", "not_v4", "not_hyphenated", "not_a_uuid", "not_text"]

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_V4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_BARE = re.compile(r"[0-9a-f]{32}")
_FIELDS: tuple[Literal["id", "uuid"], ...] = ("id", "uuid")


@dataclass(frozen=True, slots=True)
class NoteId:
    """The id in a note's frontmatter; `trouble` is the rule that it breaks, if any."""

    value: str
    field: Literal["id", "uuid"]
    trouble: IdTrouble = ""

    @property
    def key(self) -> str:
        """The form in which ids are compared."""
        return self.value.lower()


@dataclass(frozen=True, slots=True)
class Relation:
    """One entry of `related:`; `target` is a note's id, or its name if `is_link`."""

    target: str
    rel: str = ""
    auto: bool = False
    is_link: bool = False


def make_id() -> str:
    """A new id."""
    return str(uuid.uuid4())


def id_trouble(value: object) -> IdTrouble:
    """Which rule of ids this value breaks; empty if it is valid."""
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        return "not_text"
    text = str(value)
    if _UUID_V4.fullmatch(text):
        return ""
    lowered = text.lower()
    if _UUID_V4.fullmatch(lowered):
        return "not_lower_case"
    if _UUID.fullmatch(lowered):
        return "not_v4"
    bare = lowered.removeprefix("urn:uuid:").strip("{}").replace("-", "")
    return "not_hyphenated" if _BARE.fullmatch(bare) else "not_a_uuid"


def is_uuid(text: str) -> bool:
    """Whether this is a UUID of any version, in lower case."""
    return _UUID.fullmatch(text) is not None


def read_id(frontmatter: Mapping[str, object]) -> NoteId | None:
    """The note's id: from `id`, else from the older `uuid`; a valid one is preferred."""
    found = []
    for field in _FIELDS:
        value = lookup(frontmatter, field)
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        trouble = id_trouble(value)
        found.append(NoteId("" if trouble == "not_text" else str(value), field, trouble))
    return next((one for one in found if not one.trouble), found[0] if found else None)


def read_related(frontmatter: Mapping[str, object]) -> tuple[Relation, ...]:
    """The relations of a note, in the simple or the rich form, also mixed.

    An entry that is neither an id nor a link is left out.
    """
    value = lookup(frontmatter, "related")
    entries = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(one for entry in entries for one in _read_entry(entry)))


def read_kind(frontmatter: Mapping[str, object]) -> str:
    """The note's kind as its author wrote it (`kind`, else the older `type`)."""
    return _text(lookup(frontmatter, "kind", "type"))


def read_summary(frontmatter: Mapping[str, object]) -> str:
    """The note's summary as its author wrote it."""
    return _text(lookup(frontmatter, "summary"))


def _read_entry(entry: object) -> Iterator[Relation]:
    if isinstance(entry, dict):
        named = (lookup(entry, field) for field in _FIELDS)
        target = next((value for value in named if not _is_blank(value)), None)
        yield from _read_targets(target, _text(lookup(entry, "rel")), lookup(entry, "auto") is True)
    else:
        yield from _read_targets(entry, "", False)


def _read_targets(value: object, rel: str, auto: bool) -> Iterator[Relation]:
    """The relations of one value: usually one, but a text may contain several links."""
    text = _read_unquoted_link(value) if isinstance(value, list) else _text(value)
    if is_uuid(text.lower()):
        yield Relation(text.lower(), rel, auto)
        return
    for link in line_links(f"[[{text}]]" if isinstance(value, list) else text, 1):
        if link.target:
            yield Relation(link.target, rel, auto, is_link=True)


def _read_unquoted_link(value: list[object]) -> str:
    """The text of a `[[link]]` without quotes, which YAML reads as nested lists."""
    while len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    return ", ".join(map(_text, value))


def _text(value: object) -> str:
    is_word = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return str(value).strip() if is_word else ""


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
