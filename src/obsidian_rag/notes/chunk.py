"""Cuts a note into chunks: one per section, or overlapping windows if it has no sections.

Every chunk is within the limits, every word of the note is in some chunk, and every chunk has the
exact lines it comes from.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import add
from typing import NamedTuple

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.notes.html import keep_words, strip_html
from obsidian_rag.notes.kinds import kind_of
from obsidian_rag.notes.lines import Body
from obsidian_rag.notes.note import Chunk, Heading, Note
from obsidian_rag.notes.properties import property_words
from obsidian_rag.notes.shown import shown_chars
from obsidian_rag.notes.split import QUARTERS, Code, Piece, Room, code_layout, quarter_tokens, split
from obsidian_rag.notes.tags import inline_tags, tag_line, unique_tags
from obsidian_rag.notes.words import drop_invisible, drop_invisible_lines, has_controls

_MARK = "%%"
_COMMENT = re.compile(r"%%.*?%%", re.DOTALL)
# Shorter passages are one part: their own vector is exact enough.
_MIN_SPLIT_CHARS = 800
_PART_CHARS = 550
# How far from an even cut a better place is searched, the best kind first.
_SEARCH_CHARS = 120
_CUT_PLACES = (re.compile(r"\n+"), re.compile(r"(?<=[.!?。！？])\s*"), re.compile(r"\s+"))
TINY_CHARS = 200
_LABEL_CHARS = 200
_FENCE_INDENT = re.compile(r"[\s>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?+")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+) *")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """How large a chunk may be and what it leaves out."""

    max_chars: int = 2000
    max_tokens: int = 500
    overlap_tokens: int = 100
    strip_code: bool = True
    # Of one note; checked by the caller of `chunk_note`.
    max_chunks: int = 20_000

    def __post_init__(self) -> None:
        if self.max_chars < 32 or self.max_tokens < 8:
            raise InvalidArgument("A chunk needs room for at least 32 characters and 8 tokens.")
        if not 0 <= self.overlap_tokens * 2 <= self.max_tokens:
            raise InvalidArgument("The overlap may be at most half of a chunk.")

    @property
    def room(self) -> Room:
        """These limits in the form that the splitter uses."""
        return Room(self.max_chars, self.max_tokens * QUARTERS)


class Section(NamedTuple):
    """Lines `start` to `end` (exclusive) under one head; `tags` are those of its head.

    `bare_path` is set while the section consists of heads only, each below the one before: it is
    the path of the last.
    """

    start: int
    end: int
    path: tuple[str, ...]
    name: str | None
    is_tag_head: bool = False
    tags: tuple[str, ...] = ()
    bare_path: tuple[str, ...] | None = None


def chunk_note(note: Note, limits: ChunkLimits) -> list[Chunk]:
    """The chunks of a note in line order; for a note without text, one with its title."""
    body, heads = kind_of(note.path).outline(note)
    cutter = _Cutter(note, body, limits)
    heads = [(at, head) for at, head in heads if cutter.is_there(at)]
    sections = find_sections(body, heads)
    if heads or body.breaks:
        sections = merge_tiny(sections, cutter.size, cutter.fits, cutter.bare_tags)
        room = limits.room
    else:
        room = limits.room._replace(overlap=limits.overlap_tokens * QUARTERS)
    chunks = [chunk for section in sections for chunk in cutter.chunks(section, room)]
    if not chunks:
        chunks = [cutter.title_chunk()]
    if note.frontmatter and (words := property_words(note.frontmatter)):
        first = chunks[0]
        chunks[0] = replace(first, words_only=f"{first.words_only}\n{words}".lstrip("\n"))
    return mark_cut_comments(chunks, body)


def embedding_text(title: str, heading_path: Sequence[str], text: str) -> str:
    """The text to embed: title, heading path and text."""
    return embedding_head(title, heading_path) + text


def embedding_head(title: str, heading_path: Sequence[str]) -> str:
    """The title and heading path that precede the text to embed."""
    if heading_path and heading_path[0] == title:
        heading_path = heading_path[1:]
    return f"{title}\n{' > '.join(heading_path)}\n" if heading_path else f"{title}\n"


def text_parts(text: str, head_chars: int) -> list[str]:
    """The parts of an embedded text, each with the head (title and headings); none if it is short.

    `head_chars` is the length of the head. No text is left out.
    """
    head, body = text[:head_chars], text[head_chars:]
    if len(body) < _MIN_SPLIT_CHARS:
        return []
    count = max(2, round(len(body) / _PART_CHARS))
    ends = [_find_cut(body, len(body) * number // count) for number in range(1, count)]
    starts = [0, *ends]
    parts = [body[start:end] for start, end in zip(starts, [*ends, len(body)], strict=True)]
    return [head + part for part in parts if part.strip()]


def without_comments(text: str) -> str | None:
    """The text without its comments; None if a comment is cut off."""
    rest = _COMMENT.sub(" ", text) if _MARK in text else text
    return None if _MARK in rest else rest


class _Cutter:
    """The cleaned lines of one note, and how to cut sections out of them."""

    def __init__(self, note: Note, body: Body, limits: ChunkLimits) -> None:
        self._note = note
        self._body = body
        self._room = limits.room
        self._text, self._code = _clean(body, strip_code=limits.strip_code)
        lengths = map(len, self._text)
        if self._code:
            lengths = map(add, lengths, (len(line or "") for line in self._code.lines))
        self._offsets = [0, *accumulate(lengths)]
        fences = body.fences if self._code else ()
        self._fence_lines = frozenset(
            line
            for fence in fences
            for line in (fence.start, *([fence.end - 1] if fence.is_closed else []))
        )
        self._known_tags = frozenset(tag.casefold() for tag in note.tags)
        self._has_inline_tags = len(note.tags) > len(note.frontmatter_tags)

    def is_there(self, line: int) -> bool:
        """Whether anything is left of a line: a head in an HTML comment is gone."""
        return self._offsets[line] < self._offsets[line + 1]

    def size(self, start: int, end: int) -> int:
        """Characters of text and code in those lines."""
        return self._offsets[end] - self._offsets[start] + end - start

    def fits(self, start: int, end: int) -> bool:
        """Whether those lines fit into one chunk."""
        if self.size(start, end) > self._room.chars:
            return False
        return quarter_tokens("\n".join(self._text[start:end])) <= self._room.cost

    def bare_tags(self, section: Section) -> tuple[str, ...] | None:
        """The tags of a head without text below it or words beyond its name; else None."""
        if section.name is None:
            return None
        lines = self._text
        first = section.start
        below = first + 1
        if _UNDERLINE.fullmatch(lines[below] if below < section.end else "x"):
            below += 1
        if self._offsets[section.end] > self._offsets[below]:
            return None
        if not set(_WORD.findall(lines[first])) <= set(_WORD.findall(section.name)):
            return None
        return tuple(inline_tags(lines[first])) if "#" in section.name else ()

    def chunks(self, section: Section, room: Room) -> Iterator[Chunk]:
        """The chunks of one section: a single one if it fits."""
        start, end = self._trim(section.start, section.end)
        if start == end:
            return
        label = self._label(section)
        whole = self._whole(start, end, label, room)
        if whole is not None:
            yield self._chunk(section, whole)
            return
        for piece in split(self._text, self._code, (start, end), room, label):
            yield self._chunk(section, piece)

    def _whole(self, start: int, end: int, label: str, room: Room) -> Piece | None:
        """Those lines as one piece, if they fit."""
        text = tidy("\n".join(self._text[start:end]))
        if not self._code or len(text) > room.chars:
            return _if_small(Piece(start, end - 1, text or label, ""), room)
        places: list[tuple[int, int]] = []
        codes: list[str] = []
        before, at = "", start
        lines, openings = self._code
        for first, last in _code_blocks(lines, start, end):
            before = _collapse(before + "".join(f"{line}\n" for line in self._text[at:first]))
            places.append((len(before.strip()), first in openings))
            codes.append("\n".join(line or "" for line in lines[first:last]).rstrip("\n"))
            if len(codes) > room.chars:  # no block is empty
                return None
            at = first
        layout = code_layout(places, codes, has_text=bool(text))
        return _if_small(Piece(start, end - 1, text or label, "\n".join(codes), layout), room)

    def title_chunk(self) -> Chunk:
        """The only chunk of a note without text."""
        numbers = self._body.numbers
        title = self._cut(self._note.title)
        last = max(numbers) if numbers else 1
        return Chunk(title, "", None, (), 1, last, self._note.frontmatter_tags)

    def _trim(self, start: int, end: int) -> tuple[int, int]:
        text, code = self._text, self._code.lines if self._code else None
        while start < end and not text[start] and not (code and code[start]):
            start += 1
        while end > start and not text[end - 1] and not (code and code[end - 1]):
            end -= 1
        return start, end

    def _with_fences(self, piece: Piece) -> tuple[int, int]:
        """The first and the last line of a piece; code that it begins or ends with has fences."""
        first, last = piece.start, piece.end
        if self._code and piece.code:
            lines, fences = self._code.lines, self._fence_lines
            if lines[first] is not None and first not in fences and first - 1 in fences:
                first -= 1
            while last + 1 < len(lines) and lines[last] is not None and lines[last + 1] == "":
                last += 1
            if lines[last] is not None and last + 1 in fences:
                last += 1
        return first, last

    def _label(self, section: Section) -> str:
        return self._cut(section.path[-1] if section.path else self._note.title)

    def _cut(self, text: str) -> str:
        # Wide characters cost a whole token each, so this length always fits.
        return text[: min(_LABEL_CHARS, self._room.chars // 2, self._room.cost // QUARTERS)]

    def _chunk(self, section: Section, piece: Piece) -> Chunk:
        first, last = map(self._body.numbers.__getitem__, self._with_fences(piece))
        return Chunk(
            piece.text,
            piece.code,
            section.name,
            section.path,
            min(first, last),
            max(first, last),
            self._tags(section, piece.text),
            layout=piece.layout,
        )

    def _tags(self, section: Section, text: str) -> tuple[str, ...]:
        own = self._note.frontmatter_tags
        if not self._has_inline_tags or not (section.tags or "#" in text):
            return own
        # Only tags of the note itself: text from code may look like tags.
        inline = (
            tag
            for line in text.split("\n")
            if "#" in line
            for tag in inline_tags(line)
            if tag.casefold() in self._known_tags
        )
        return unique_tags((*own, *section.tags, *inline))


def _clean(body: Body, *, strip_code: bool) -> tuple[list[str], Code | None]:
    """The cleaned text, an entry per line, and the code, if it is kept apart."""
    lines = body.lines
    if body.first or body.fences:
        lines = [*[""] * body.first, *lines[body.first :]]
    if not body.fences or not strip_code:
        for fence in body.fences:
            lines[fence.start : fence.end] = map(keep_words, lines[fence.start : fence.end])
        return clean_lines(lines), None
    code: list[str | None] = [None] * len(lines)
    for fence in body.fences:
        inside = fence.end - 1 if fence.is_closed else fence.end
        code[fence.start] = drop_invisible(fence.info) or None
        code[fence.start + 1 : inside] = _code_lines(lines[fence.start : inside])
        lines[fence.start : fence.end] = [""] * (fence.end - fence.start)
    openings = frozenset(fence.start for fence in body.fences if code[fence.start])
    return clean_lines(lines), Code(code, openings)


def _code_lines(lines: Sequence[str]) -> list[str]:
    """The lines between the fences, without the indent or quote mark of the first line."""
    mark = _FENCE_INDENT.match(lines[0])
    indent = mark[0] if mark else ""
    if indent:
        blanks = re.compile(rf"[ \t]{{0,{len(indent)}}}")
        quote = indent if ">" in indent else None
        lines = [
            line.removeprefix(quote)
            if quote and line.startswith(quote)
            else blanks.sub("", line, 1)
            for line in lines
        ]
    return [drop_invisible(line).rstrip() for line in lines[1:]]


def _if_small(piece: Piece, room: Room) -> Piece | None:
    is_short = shown_chars(piece.text, piece.layout) <= room.chars
    return piece if is_short and quarter_tokens(piece.text) <= room.cost else None


def _code_blocks(code: Sequence[str | None], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The blocks of code between two lines: first line of each, and the line after its last."""
    first = None
    for i in range(start, end):
        if code[i] is None:
            if first is not None:
                yield first, i
            first = None
        elif first is None and code[i]:
            first = i
    if first is not None:
        yield first, end


def clean_lines(lines: list[str]) -> list[str]:
    """The lines without HTML, invisible characters and runs of spaces; their number stays."""
    text = "\n".join(lines)
    with_controls = has_controls(text)
    if with_controls or not text.isascii():
        text = "\n".join(drop_invisible_lines(lines, with_controls=with_controls))
    text = strip_html(text)
    lines = text.split("\n")
    if "\t" in text:
        return [_squeeze(line) if "  " in line or "\t" in line else line for line in lines]
    return [_squeeze(line) if "  " in line else line for line in lines] if "  " in text else lines


def tidy(text: str) -> str:
    """No space before a line end, at most one blank line in a row, none at the ends."""
    return _collapse(text).strip()


def _collapse(text: str) -> str:
    if " \n" in text:
        text = text.replace(" \n", "\n")
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text


def _squeeze(line: str) -> str:
    """Runs of blanks become one space, also the indentation."""
    indent = " " if line[0] in " \t" else ""
    return indent + " ".join(line.split())


def find_sections(body: Body, heads: Sequence[tuple[int, Heading]]) -> list[Section]:
    """Divide the body into sections: every line belongs to exactly one, heads to their own."""
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
    """Merge sections under TINY_CHARS into the section above that contains them, if that fits.

    So every section still begins with the head that names it. A head without text of its own is
    kept in the path of a larger child only. `bare_tags` are the tags of such a head, and None for a
    section with text. Tag heads are never merged: each is a section of a journal.
    """
    merged: list[Section] = []
    for section in sections:
        last = merged[-1] if merged else None
        if not section.is_tag_head and (tags := bare_tags(section)) is not None:
            section = section._replace(tags=tags, bare_path=section.path)
        if last is None or last.is_tag_head or section.is_tag_head:
            merged.append(section)
        elif _can_absorb(last, section, size, fits):
            merged[-1] = _merge(last, section)
        elif last.bare_path is not None and _is_below(section.path, last.bare_path):
            merged[-1] = section._replace(tags=(*last.tags, *section.tags))
        else:
            merged.append(section)
    return merged


def _can_absorb(
    last: Section,
    section: Section,
    size: Callable[[int, int], int],
    fits: Callable[[int, int], bool],
) -> bool:
    if last.name is None:
        # Only Canvas cards are consecutive sections without heads.
        is_tiny = size(last.start, last.end) < TINY_CHARS and section.name is None
    else:
        is_tiny = size(section.start, section.end) < TINY_CHARS
        is_tiny = is_tiny and _is_below(section.path, last.path)
    return is_tiny and fits(last.start, section.end)


def _merge(last: Section, section: Section) -> Section:
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


def mark_cut_comments(chunks: Sequence[Chunk], body: Body) -> list[Chunk]:
    """The chunks, with `has_cut_comment` set where only part of a comment is inside."""
    if not any(_MARK in line for line in body.lines):
        return list(chunks)
    counts = [0] * len(body.lines)
    for first, end in body.prose():
        counts[first:end] = [line.count(_MARK) for line in body.lines[first:end]]
    index = {number: at for at, number in reversed(list(enumerate(body.numbers)))}
    before = [0, *accumulate(counts)]
    return [
        replace(chunk, has_cut_comment=True) if _is_cut(chunk, before, index) else chunk
        for chunk in chunks
    ]


def _is_cut(chunk: Chunk, before: Sequence[int], index: dict[int, int]) -> bool:
    first, last = index.get(chunk.start_line), index.get(chunk.end_line)
    if first is None or last is None:
        return _MARK in chunk.text
    inside = before[last + 1] - before[first]
    # A passage may begin or end within a line: then its text has a different number of marks.
    return (
        before[first] % 2 == 1
        or inside % 2 == 1
        or (inside > 0 and chunk.text.count(_MARK) != inside)
    )


def _find_cut(body: str, wanted: int) -> int:
    """The place nearest to `wanted` where a line, a sentence or a word ends."""
    first = wanted - _SEARCH_CHARS
    near = body[first : wanted + _SEARCH_CHARS]
    for kind in _CUT_PLACES:
        found = [match.end() for match in kind.finditer(near) if 0 < match.end() < len(near)]
        if found:
            return first + min(found, key=lambda at: abs(at - _SEARCH_CHARS))
    return wanted
