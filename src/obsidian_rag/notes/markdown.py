"""Markdown as Obsidian writes it: frontmatter, headings and text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from obsidian_rag.notes.dates import parse_date
from obsidian_rag.notes.frontmatter import read_frontmatter, split_frontmatter
from obsidian_rag.notes.html import keep_words
from obsidian_rag.notes.lines import Body, markdown_body
from obsidian_rag.notes.links import definition_link, file_title, line_links
from obsidian_rag.notes.note import Heading, Link, Note
from obsidian_rag.notes.policy import read_policy
from obsidian_rag.notes.properties import lookup, read_aliases
from obsidian_rag.notes.tags import inline_tags, property_tags, tag_line, unique_tags
from obsidian_rag.notes.words import drop_invisible

MAX_HEADING_CHARS = 500

_LIST_OR_QUOTE = re.compile(r"[-*+>|]|\d{1,9}[.)]\s|#|```|~~~")
_WIKILINK = re.compile(r"!?\[\[(?:[^\[\]|]*+\|)?([^\[\]|]*+)\]\]")
_LINK = re.compile(r"!?\[([^\[\]]*+)\]\([^()]*+\)")
_PLAIN = re.compile(
    rf"[\w.,:;/()'\"?!+&-](?:[\w .,:;/()'\"?!+&-]{{0,{MAX_HEADING_CHARS - 2}}}[^ ])?"
)
_EMPHASIS = re.compile(r"\*\*|~~|`")
_UNDERLINES = frozenset({"==", "--"})


def atx(line: str) -> tuple[int, str] | None:
    """Level and text of `# heading`; None if the line is something else or has no text."""
    start = line.lstrip(" ") if line[:1] == " " else line
    if len(line) - len(start) > 3 or start[:1] != "#":
        return None
    head = start[:7]
    level = len(head) - len(head.lstrip("#"))
    if level > 6 or head[level : level + 1] not in (" ", "\t"):
        return None
    text = start[level:].strip()
    bare = text.rstrip("#")
    if len(bare) < len(text) and (not bare or bare[-1] in " \t"):
        text = bare.rstrip()
    text = plain_text(text)
    return (level, text) if text else None


def setext(previous: str, before: str, underline: str) -> tuple[int, str] | None:
    """Level and text of a one-line paragraph `previous` underlined with === or ---."""
    mark = underline[0]
    if underline.rstrip().strip(mark) or before.strip() or not previous.strip():
        return None
    if len(previous) > MAX_HEADING_CHARS or previous[:4] == "    " or previous[0] == "\t":
        return None
    text = previous.strip()
    if _LIST_OR_QUOTE.match(text) or not (text := plain_text(text)):
        return None
    return (1 if mark == "=" else 2), text


def plain_text(text: str) -> str:
    """A heading or title as a reader sees it: one line, no links, emphasis or angle brackets."""
    if _PLAIN.fullmatch(text) and "  " not in text:
        return text
    text = text[: 4 * MAX_HEADING_CHARS]
    if "[" in text:
        text = _LINK.sub(r"\1", _WIKILINK.sub(r"\1", text))
    if "*" in text or "`" in text or "~" in text:
        text = _EMPHASIS.sub("", text).strip("*")
    if "<" in text:
        text = keep_words(text)
    return " ".join(drop_invisible(text).split())[:MAX_HEADING_CHARS].rstrip()


@dataclass(slots=True)
class Findings:
    """What a scan found; `heads` are (index into the lines, heading)."""

    heads: list[tuple[int, Heading]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)


def scan(body: Body) -> Findings:
    """The headings, tags and links in `body`, without fenced code."""
    found = Findings()
    lines = body.lines
    for start, end in body.prose():
        for i in range(start, end):
            line = lines[i]
            if "#" in line:
                _scan_hash(body, i, line, found)
            if "[" in line:
                _scan_bracket(line, body.numbers[i], found)
            if line[:2] in _UNDERLINES and i > start:
                _scan_underline(body, i, start, found)
    return found


def _scan_hash(body: Body, i: int, line: str, found: Findings) -> None:
    number = body.numbers[i]
    if head := atx(line):
        found.heads.append((i, Heading(head[0], head[1], number)))
        if line.count("#") == head[0]:
            return
    if tags := tag_line(line):
        found.heads.append((i, Heading(0, line.strip(), number)))
        found.tags.extend(tags)
    else:
        found.tags.extend(inline_tags(line))


def _scan_bracket(line: str, number: int, found: Findings) -> None:
    if "](" in line or "[[" in line:
        found.links.extend(line_links(line, number))
    elif "]:" in line and (link := definition_link(line, number)):
        found.links.append(link)


def _scan_underline(body: Body, i: int, start: int, found: Findings) -> None:
    lines = body.lines
    before = lines[i - 2] if i - 2 >= start else ""
    is_after_head = bool(found.heads) and found.heads[-1][0] == i - 1
    if is_after_head or i in body.breaks:
        return
    if found.heads and found.heads[-1][0] == i - 2:
        before = ""
    if head := setext(lines[i - 1], before, lines[i]):
        found.heads.append((i - 1, Heading(head[0], head[1], body.numbers[i - 1])))


def parse_markdown(path: str, text: str) -> Note:
    """Parse a Markdown file."""
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
    policy, warning = read_policy(text)
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
        policy=policy,
        parse_error=" ".join(filter(None, (error, warning))) or None,
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


def _property_links(body: Body) -> list[Link]:
    return [
        link
        for i in range(body.first)
        if "[[" in body.lines[i]
        for link in line_links(body.lines[i], i + 1)
    ]
