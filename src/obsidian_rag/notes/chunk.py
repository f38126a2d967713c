"""A note cut into chunks: one per section, or overlapping windows if it has no sections.

Every chunk keeps the limits, every word of the note is in some chunk, and every chunk names the
exact lines it comes from.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from operator import add

from obsidian_rag.errors import InvalidArgument
from obsidian_rag.notes.canvas import canvas_body, read_canvas
from obsidian_rag.notes.lines import Body, markdown_body
from obsidian_rag.notes.note import Chunk, Heading, Note
from obsidian_rag.notes.parse import is_canvas
from obsidian_rag.notes.properties import property_words
from obsidian_rag.notes.sanitise import clean_code_line, clean_lines, tidy
from obsidian_rag.notes.scan import scan
from obsidian_rag.notes.sections import Section, find_sections, merge_tiny
from obsidian_rag.notes.split import Piece, Room, split
from obsidian_rag.notes.tags import inline_tags, unique_tags
from obsidian_rag.notes.tokens import QUARTERS, quarter_tokens

_LABEL_CHARS = 200


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """How large a chunk may be and what it leaves out."""

    max_chars: int = 2000
    max_tokens: int = 500
    overlap_tokens: int = 100
    strip_code: bool = True

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
    body, heads = _read(note)
    cutter = _Cutter(note, body, limits)
    sections = find_sections(body, heads)
    if heads or body.breaks:
        sections = merge_tiny(sections, cutter.size, cutter.fits, cutter.is_bare)
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
    if heading_path and heading_path[0] == title:
        heading_path = heading_path[1:]
    if not heading_path:
        return f"{title}\n{text}"
    return f"{title}\n{' > '.join(heading_path)}\n{text}"


def _read(note: Note) -> tuple[Body, list[tuple[int, Heading]]]:
    if is_canvas(note.path):
        body = canvas_body(read_canvas(note.text)[0])
        return body, scan(body).heads
    return markdown_body(note.text, note.body_line), [(h.line - 1, h) for h in note.headings]


class _Cutter:
    """The cleaned lines of one note, and how to cut sections out of them."""

    def __init__(self, note: Note, body: Body, limits: ChunkLimits) -> None:
        self._note = note
        self._body = body
        self._room = limits.room
        self._text, self._code = _clean(body, strip_code=limits.strip_code)
        lengths = map(len, self._text)
        if self._code:
            lengths = map(add, lengths, map(len, self._code))
        self._offsets = [0, *accumulate(lengths)]
        self._known_tags = frozenset(tag.casefold() for tag in note.tags)
        self._has_inline_tags = len(note.tags) > len(note.frontmatter_tags)

    def size(self, start: int, end: int) -> int:
        """Characters of text and code in those lines."""
        return self._offsets[end] - self._offsets[start] + end - start

    def fits(self, start: int, end: int) -> bool:
        """Whether those lines make one chunk."""
        if self.size(start, end) > self._room.chars:
            return False
        return quarter_tokens("\n".join(self._text[start:end])) <= self._room.cost

    def is_bare(self, section: Section) -> bool:
        """Whether the section is its heads and nothing else."""
        if section.name is None:
            return False
        offsets = self._offsets
        lines = range(section.start, section.end)
        filled = islice((i for i in lines if offsets[i] < offsets[i + 1]), section.heads + 1)
        return sum(1 for _ in filled) <= section.heads

    def chunks(self, section: Section, room: Room) -> Iterator[Chunk]:
        """The chunks of one section: one if it fits."""
        start, end = self._trim(section.start, section.end)
        if start == end:
            return
        label = self._label(section)
        text = tidy("\n".join(self._text[start:end]))
        code = "\n".join(filter(None, self._code[start:end])) if self._code else ""
        text = text or label
        if len(text) + len(code) <= room.chars and quarter_tokens(text) <= room.cost:
            yield self._chunk(section, Piece(start, end - 1, text, code))
            return
        for piece in split(self._text, self._code, (start, end), room, label):
            yield self._chunk(section, piece)

    def title_chunk(self) -> Chunk:
        """The only chunk of a note without text."""
        numbers = self._body.numbers
        title = self._cut(self._note.title)
        last = max(numbers) if numbers else 1
        return Chunk(title, "", None, (), 1, last, self._note.frontmatter_tags)

    def _trim(self, start: int, end: int) -> tuple[int, int]:
        text, code = self._text, self._code
        while start < end and not text[start] and not (code and code[start]):
            start += 1
        while end > start and not text[end - 1] and not (code and code[end - 1]):
            end -= 1
        return start, end

    def _label(self, section: Section) -> str:
        return self._cut(section.path[-1] if section.path else self._note.title)

    def _cut(self, text: str) -> str:
        # Wide characters cost a whole token each, so this many always fit.
        return text[: min(_LABEL_CHARS, self._room.chars // 2, self._room.cost // QUARTERS)]

    def _chunk(self, section: Section, piece: Piece) -> Chunk:
        numbers = self._body.numbers
        first, last = numbers[piece.start], numbers[piece.end]
        return Chunk(
            piece.text,
            piece.code,
            section.name,
            section.path,
            min(first, last),
            max(first, last),
            self._tags(section, piece.text),
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


def _clean(body: Body, *, strip_code: bool) -> tuple[list[str], list[str] | None]:
    """Cleaned text and raw code, each with one entry per line; None if no code is set apart."""
    lines = body.lines
    if body.first or body.fences:
        lines = [*[""] * body.first, *lines[body.first :]]
    code = [""] * len(lines) if body.fences and strip_code else None
    for fence in body.fences:
        if code is None:
            lines[fence.start : fence.end] = map(clean_code_line, lines[fence.start : fence.end])
            continue
        inside = fence.end - 1 if fence.is_closed else fence.end
        code[fence.start] = fence.info
        code[fence.start + 1 : inside] = lines[fence.start + 1 : inside]
        lines[fence.start : fence.end] = [""] * (fence.end - fence.start)
    return clean_lines(lines), code
