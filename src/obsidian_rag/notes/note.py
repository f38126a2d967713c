"""The values that all other packages work with: a parsed note and its chunks."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class LinkKind(StrEnum):
    """How a note points at something else."""

    WIKILINK = "wikilink"
    EMBED = "embed"
    MARKDOWN = "markdown"


class RagPolicy(StrEnum):
    """What a note's `rag:` property allows."""

    INDEX = "index"
    PRIVATE = "private"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Heading:
    """A section head: a Markdown heading, or a line that is only `#tag` (level 0)."""

    level: int
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Link:
    """A link out of the note; `target` is empty for a link into the note itself."""

    kind: LinkKind
    target: str
    heading: str | None
    block: str | None
    display: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Note:
    """One parsed file. Lines are 1-based and are those of the file."""

    path: str
    title: str
    text: str
    body_line: int
    frontmatter: Mapping[str, object]
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    frontmatter_tags: tuple[str, ...]
    headings: tuple[Heading, ...]
    links: tuple[Link, ...]
    date: str | None
    policy: RagPolicy
    parse_error: str | None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a note: what is embedded, searched and cited.

    `words_only` holds its code, and `layout` the places of it in the text (see `shown`). `dates`
    are those that it belongs to, `mentioned_dates` those in its text; see `notes/dates.py`.
    """

    text: str
    words_only: str
    section: str | None
    heading_path: tuple[str, ...]
    start_line: int
    end_line: int
    tags: tuple[str, ...]
    dates: tuple[str, ...] = ()
    mentioned_dates: tuple[str, ...] = ()
    layout: tuple[int, ...] = ()
    # It begins or ends inside a `%%comment%%`.
    has_cut_comment: bool = False
