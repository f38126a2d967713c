"""A note cut into chunks: one per section, or overlapping windows if it has no sections.

Every chunk keeps the limits, every word of the note is in some chunk, and every chunk names the
exact lines it comes from.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import add

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.notes.html import keep_words
from obsidian_rag.notes.invisible import drop_invisible
from obsidian_rag.notes.kinds import kind_of
from obsidian_rag.notes.lines import Body
from obsidian_rag.notes.note import Chunk, Note
from obsidian_rag.notes.properties import property_words
from obsidian_rag.notes.sanitise import clean_lines, tidy
from obsidian_rag.notes.sections import Section, find_sections, merge_tiny
from obsidian_rag.notes.shown import shown_chars
from obsidian_rag.notes.split import Code, Piece, Room, code_layout, split
from obsidian_rag.notes.tags import inline_tags, unique_tags
from obsidian_rag.notes.tokens import QUARTERS, quarter_tokens

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
    # Of one note; who makes chunks of many notes asks.
    max_chunks: int = 20_000

    def __post_init__(self) -> None:
        if self.max_chars < 32 or self.max_tokens < 8:
            raise InvalidArgument("A chunk must hold at least 32 characters and 8 tokens.")
        if not 0 <= self.overlap_tokens * 2 <= self.max_tokens:
            raise InvalidArgument("The overlap may be at most half of a chunk.")

    @property
    def room(self) -> Room:
        """The same limits, for the splitter."""
        return Room(self.max_chars, self.max_tokens * QUARTERS)


def chunk_note(note: Note, limits: ChunkLimits) -> list[Chunk]:
    """The chunks of a note in the order of its lines; a note without text gives its title."""
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
    return chunks


def embedding_text(title: str, heading_path: Sequence[str], text: str) -> str:
    """What is embedded: title, heading path and text."""
    return embedding_head(title, heading_path) + text


def embedding_head(title: str, heading_path: Sequence[str]) -> str:
    """What stands before the text that is embedded."""
    if heading_path and heading_path[0] == title:
        heading_path = heading_path[1:]
    return f"{title}\n{' > '.join(heading_path)}\n" if heading_path else f"{title}\n"


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
        """Whether something is left of a line; a head in a comment is none."""
        return self._offsets[line] < self._offsets[line + 1]

    def size(self, start: int, end: int) -> int:
        """Characters of text and code in those lines."""
        return self._offsets[end] - self._offsets[start] + end - start

    def fits(self, start: int, end: int) -> bool:
        """Whether those lines make one chunk."""
        if self.size(start, end) > self._room.chars:
            return False
        return quarter_tokens("\n".join(self._text[start:end])) <= self._room.cost

    def bare_tags(self, section: Section) -> tuple[str, ...] | None:
        """The tags of a head that has no text below it, and no word that its name lacks."""
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
        """The chunks of one section: one if it fits."""
        start, end = self._trim(section.start, section.end)
        if start == end:
            return
        label = self._label(section)
        piece = self._whole(start, end, label)
        is_small = shown_chars(piece.text, piece.layout) <= room.chars
        if is_small and quarter_tokens(piece.text) <= room.cost:
            yield self._chunk(section, piece)
            return
        for piece in split(self._text, self._code, (start, end), room, label):
            yield self._chunk(section, piece)

    def _whole(self, start: int, end: int, label: str) -> Piece:
        """Those lines as one piece."""
        text = tidy("\n".join(self._text[start:end]))
        if not self._code:
            return Piece(start, end - 1, text or label, "")
        places: list[tuple[int, int]] = []
        codes: list[str] = []
        for first, last in _runs(self._code.lines, start, end):
            lines = self._code.lines[first:last]
            places.append(
                (len(tidy("\n".join(self._text[start:first]))), first in self._code.openings)
            )
            codes.append("\n".join(line or "" for line in lines).rstrip("\n"))
        layout = code_layout(places, codes, has_text=bool(text))
        return Piece(start, end - 1, text or label, "\n".join(codes), layout)

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
        # Wide characters cost a whole token each, so this many always fit.
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
        # Only tags the note is known to have: text shown from code may look like more.
        inline = (
            tag
            for line in text.split("\n")
            if "#" in line
            for tag in inline_tags(line)
            if tag.casefold() in self._known_tags
        )
        return unique_tags((*own, *section.tags, *inline))


def _clean(body: Body, *, strip_code: bool) -> tuple[list[str], Code | None]:
    """Cleaned text, an entry per line, and code, if it is set apart."""
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
    """What stands between the fences, without the indent or the quote mark of the first line."""
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


def _runs(code: Sequence[str | None], start: int, end: int) -> Iterator[tuple[int, int]]:
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
