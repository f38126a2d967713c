"""Markdown as Obsidian writes it: frontmatter, headings and text."""

import re
from collections.abc import Mapping

from obsidian_rag.notes.dates import parse_date
from obsidian_rag.notes.frontmatter import read_frontmatter, split_frontmatter
from obsidian_rag.notes.headings import plain_text
from obsidian_rag.notes.lines import Body, markdown_body
from obsidian_rag.notes.links import line_links
from obsidian_rag.notes.note import Heading, Link, Note, RagPolicy
from obsidian_rag.notes.properties import lookup, read_aliases, read_policy
from obsidian_rag.notes.resolve import file_title
from obsidian_rag.notes.scan import scan
from obsidian_rag.notes.tags import property_tags, unique_tags

_UNCLOSED = re.compile(r"\ufeff?---[ \t]*+[\r\n]")
_UNCLOSED_CHARS = 4000


def parse_markdown(path: str, text: str) -> Note:
    """The note that this text of a file is."""
    yaml_text, _, body_line = split_frontmatter(text)
    frontmatter: dict[str, object] = {}
    error = None
    if yaml_text is not None:
        frontmatter, error = read_frontmatter(yaml_text)
    body = markdown_body(text, body_line)
    found = scan(body)
    if yaml_text and "[[" in yaml_text:
        found.links[:0] = _property_links(body)
    own_tags = unique_tags(property_tags(lookup(frontmatter, "tags", "tag")))
    headings = tuple(head for _, head in found.heads)
    return Note(
        path=path,
        title=_title(path, frontmatter, headings),
        text=text,
        body_line=body_line,
        frontmatter=frontmatter,
        aliases=read_aliases(frontmatter) if frontmatter else (),
        tags=unique_tags((*own_tags, *found.tags)) if found.tags else own_tags,
        frontmatter_tags=own_tags,
        headings=headings,
        links=tuple(found.links),
        date=parse_date(path, frontmatter),
        policy=_policy(text, yaml_text, frontmatter),
        parse_error=error,
    )


def markdown_outline(note: Note) -> tuple[Body, list[tuple[int, Heading]]]:
    """The lines below the frontmatter, and each heading with its index among them."""
    heads = [(head.line - 1, head) for head in note.headings]
    return markdown_body(note.text, note.body_line), heads


def _title(path: str, frontmatter: Mapping[str, object], headings: tuple[Heading, ...]) -> str:
    value = lookup(frontmatter, "title") if frontmatter else None
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        title = plain_text(str(value))
        if title:
            return title
    first = next((head.text for head in headings if head.level == 1), "")
    return first or file_title(path)


def _policy(text: str, yaml_text: str | None, frontmatter: Mapping[str, object]) -> RagPolicy:
    if yaml_text is not None:
        return read_policy(frontmatter, yaml_text)
    # A forgotten closing line must not publish a note that says it is private.
    return read_policy({}, text[:_UNCLOSED_CHARS]) if _UNCLOSED.match(text) else RagPolicy.INDEX


def _property_links(body: Body) -> list[Link]:
    return [
        link
        for i in range(body.first)
        if "[[" in body.lines[i]
        for link in line_links(body.lines[i], i + 1)
    ]
