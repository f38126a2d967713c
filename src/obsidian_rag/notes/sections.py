"""A note divided by its heads, and tiny parts put together with what they are a part of."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from obsidian_rag.notes.lines import Body
from obsidian_rag.notes.note import Heading
from obsidian_rag.notes.tags import tag_line

TINY_CHARS = 200


class Section(NamedTuple):
    """Lines `start` to `end` (exclusive) under one head; `tags` are those of its head.

    `bare_path` is there while the section is nothing but heads, each under the one before it: the
    path of the last.
    """

    start: int
    end: int
    path: tuple[str, ...]
    name: str | None
    is_tag_head: bool = False
    tags: tuple[str, ...] = ()
    bare_path: tuple[str, ...] | None = None


def find_sections(body: Body, heads: Sequence[tuple[int, Heading]]) -> list[Section]:
    """Every line from the first on belongs to exactly one section; heads belong to theirs."""
    marks: dict[int, Heading | None] = {body.first: None}
    marks.update(dict.fromkeys(sorted(body.breaks)))
    marks.update(heads)
    starts = sorted(marks)
    ends = [*starts[1:], len(body.lines)]
    levels: list[int] = []
    above: list[str] = []
    sections = []
    for start, end in zip(starts, ends, strict=True):
        head = marks[start]
        if start in body.breaks:
            levels, above = [], []
        if head is None:
            sections.append(Section(start, end, tuple(above), None))
        elif head.level:
            while levels and levels[-1] >= head.level:
                levels.pop()
                above.pop()
            levels.append(head.level)
            above.append(head.text)
            sections.append(Section(start, end, tuple(above), head.text))
        else:
            tags = tuple(tag_line(body.lines[start])) or (head.text,)
            sections.append(Section(start, end, (*above, head.text), tags[0], True, tags))
    return [section for section in sections if section.end > section.start]


def merge_tiny(
    sections: Sequence[Section],
    size: Callable[[int, int], int],
    fits: Callable[[int, int], bool],
    bare_tags: Callable[[Section], tuple[str, ...] | None],
) -> list[Section]:
    """Sections under TINY_CHARS go with the section above that they are a part of, if that fits.

    So every section begins under the head that it is named by. A head without text of its own
    stands in the path of a larger child: alone it says nothing. `bare_tags` are the tags of such a
    head; None for a section with text. Tag heads stay alone: each is a section of a journal.
    """
    merged: list[Section] = []
    for section in sections:
        last = merged[-1] if merged else None
        if not section.is_tag_head and (tags := bare_tags(section)) is not None:
            section = section._replace(tags=tags, bare_path=section.path)
        if last is None or last.is_tag_head or section.is_tag_head:
            merged.append(section)
        elif _takes_up(last, section, size, fits):
            merged[-1] = _joined(last, section)
        elif last.bare_path is not None and _is_below(section.path, last.bare_path):
            merged[-1] = section._replace(tags=(*last.tags, *section.tags))
        else:
            merged.append(section)
    return merged


def _takes_up(
    last: Section,
    section: Section,
    size: Callable[[int, int], int],
    fits: Callable[[int, int], bool],
) -> bool:
    if last.name is None:
        # Only cards of a Canvas follow each other without heads.
        is_tiny = size(last.start, last.end) < TINY_CHARS and section.name is None
    else:
        is_tiny = size(section.start, section.end) < TINY_CHARS
        is_tiny = is_tiny and _is_below(section.path, last.path)
    return is_tiny and fits(last.start, section.end)


def _joined(last: Section, section: Section) -> Section:
    is_bare = (
        last.bare_path is not None
        and section.bare_path is not None
        and _is_below(section.path, last.bare_path)
    )
    return last._replace(
        end=section.end,
        tags=(*last.tags, *section.tags),
        bare_path=section.path if is_bare else None,
    )


def _is_below(path: tuple[str, ...], parent: tuple[str, ...]) -> bool:
    return len(path) > len(parent) and path[: len(parent)] == parent
