"""A note divided by its heads, and tiny neighbours put together."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from obsidian_rag.notes.lines import Body
from obsidian_rag.notes.note import Heading
from obsidian_rag.notes.tags import tag_line

TINY_CHARS = 200


class Section(NamedTuple):
    """Lines `start` to `end` (exclusive) under one head; `tags` are those of a tag head.

    `heads` counts the heads that stand at its start, one under the other.
    """

    start: int
    end: int
    path: tuple[str, ...]
    name: str | None
    is_tag_head: bool = False
    tags: tuple[str, ...] = ()
    heads: int = 1


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
    is_bare: Callable[[Section], bool],
) -> list[Section]:
    """Sections under TINY_CHARS joined with the next of the same parent, if the result fits.

    A head without text of its own goes with its first child, whatever that weighs: alone it says
    nothing. Tag heads stay alone: each is a section of a journal.
    """
    merged: list[Section] = []
    for section in sections:
        last = merged[-1] if merged else None
        if last is None or last.is_tag_head or section.is_tag_head:
            merged.append(section)
        elif _is_below(section.path, last.path) and is_bare(last):
            merged[-1] = section._replace(start=last.start, heads=last.heads + 1)
        elif (
            size(last.start, last.end) < TINY_CHARS
            and _is_kin(last.path, section.path)
            and fits(last.start, section.end)
        ):
            path = _common(last.path, section.path)
            merged[-1] = last._replace(end=section.end, path=path)
        else:
            merged.append(section)
    return merged


def _is_kin(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    return second[:-1] == first[:-1] or _is_below(second, first)


def _is_below(path: tuple[str, ...], parent: tuple[str, ...]) -> bool:
    return len(path) > len(parent) and path[: len(parent)] == parent


def _common(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    if first == second:
        return first
    length = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        length += 1
    return first[:length]
