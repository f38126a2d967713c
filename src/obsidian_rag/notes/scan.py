"""One pass over the lines of a note: heads, links and tags."""

from dataclasses import dataclass, field

from obsidian_rag.notes.headings import atx, setext
from obsidian_rag.notes.lines import Body
from obsidian_rag.notes.links import definition_link, line_links
from obsidian_rag.notes.note import Heading, Link
from obsidian_rag.notes.tags import inline_tags, tag_line

_UNDERLINES = frozenset({"==", "--"})


@dataclass(slots=True)
class Findings:
    """What a scan found; `heads` are (index into the lines, heading)."""

    heads: list[tuple[int, Heading]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)


def scan(body: Body) -> Findings:
    """Everything the prose of `body` declares; fenced code is passed over."""
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
