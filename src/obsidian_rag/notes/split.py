"""Splits text that is too long for one chunk, at the best places.

A text is divided into atoms (paragraphs, list items, sentences, words, in that order of
preference), and atoms are packed into chunks. Atoms partition the text, so nothing is lost and
every line is known.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from obsidian_rag.notes.shown import BEGINS, FENCES_CHARS, ONLY_CODE

QUARTERS = 4

_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
# Hangul, kana, CJK and everything outside the basic plane (emoji, rare ideographs).
_WIDE = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    "\U00010000-\U0010ffff]+"
)
PARAGRAPH = 2
SENTENCE = 1
WORD = 0
# Words that are not embedded cost no tokens.
_ANY_COST = 1 << 30
_LIST_ITEM = re.compile(r"[ >]*+(?:[-*+]|\d{1,9}[.)]) ")
_SENTENCE_END = re.compile(
    r"(?<=[.!?…])\s+|(?<=[.!?…][\"')\]”’»])\s+|(?<=[。！？｡])(?![。！？｡」』”’）])"
)
_ENDS_SENTENCE = (".", "!", "?", "…", "。", "！", "？", ":", '."', ".)")


def quarter_tokens(text: str) -> int:
    """The cost of `text` in quarters of a token: ASCII 1, wide characters 4, others 2."""
    if text.isascii():
        return len(text)
    strange = "".join(_NON_ASCII.findall(text))
    wide = sum(map(len, _WIDE.findall(strange)))
    return len(text) + len(strange) + 2 * wide


class Room(NamedTuple):
    """The limits of a chunk in characters and quarter tokens; `overlap` is in quarter tokens."""

    chars: int
    cost: int
    overlap: int = 0

    def fits(self, text: str) -> bool:
        """Whether `text` fits."""
        return len(text) <= self.chars and quarter_tokens(text) <= self.cost


class Atom(NamedTuple):
    """A piece that is never cut, from lines `start` to `end` (inclusive).

    `joint` separates it from the text before it; `rank` is how good a cut before it is; `cost` is
    that of the text in quarter tokens.
    """

    start: int
    end: int
    text: str
    code: str
    joint: str
    rank: int
    cost: int


class Piece(NamedTuple):
    """The text and the code of one chunk, and the lines they come from (inclusive).

    `layout` has the places of the code (see `shown`).
    """

    start: int
    end: int
    text: str
    code: str
    layout: tuple[int, ...] = ()


class Code(NamedTuple):
    """The code of a note, an entry per line; None for lines that are not code.

    `openings` are the lines of opening fences that name a language.
    """

    lines: Sequence[str | None]
    openings: frozenset[int]


def split(
    text_lines: Sequence[str],
    code: Code | None,
    span: tuple[int, int],
    room: Room,
    label: str,
) -> Iterator[Piece]:
    """Pieces of the lines in `span` that each fit in `room`.

    `label` is the text of pieces that hold only code.
    """
    atom_room = room
    if room.overlap:
        small = max(room.overlap, 128)
        atom_room = Room(min(room.chars, small), min(room.cost, small))
    lines = code.lines if code else None
    code_chars = room.chars - len(label) - FENCES_CHARS
    atoms = _Atoms(text_lines, lines, atom_room, code_chars).of(*span)
    openings = code.openings if code else frozenset()
    for first, last in _pack(atoms, room, len(label)):
        piece = _join(atoms[first:last], label, openings)
        if piece.text or piece.code:
            yield piece


class _Atoms:
    """Cuts lines into atoms that fit in `room`."""

    def __init__(
        self,
        text_lines: Sequence[str],
        code_lines: Sequence[str | None] | None,
        room: Room,
        code_chars: int,
    ) -> None:
        self._text = text_lines
        self._code = code_lines
        self._room = room
        self._code_chars = code_chars
        self._atoms: list[Atom] = []
        self._is_after_blank = False
        self._is_in_code = False
        self._blank_code = 0

    def of(self, start: int, end: int) -> list[Atom]:
        """The atoms of the lines from `start` to `end` (exclusive)."""
        paragraph: list[int] = []
        for i in range(start, end):
            line = self._text[i]
            if not line:
                if paragraph:
                    self._add_paragraph(paragraph)
                    paragraph = []
                self._add_code(i, self._code[i] if self._code else None)
            elif paragraph and _LIST_ITEM.match(line):
                self._add_paragraph(paragraph)
                paragraph = [i]
            else:
                paragraph.append(i)
        if paragraph:
            self._add_paragraph(paragraph)
        return self._atoms

    def _add_paragraph(self, lines: list[int]) -> None:
        joint = "\n\n" if self._is_after_blank else "\n"
        self._is_after_blank = False
        first, last = lines[0], lines[-1]
        text = self._text[first] if first == last else "\n".join(self._text[first : last + 1])
        cost = quarter_tokens(text)
        if cost <= self._room.cost and len(text) <= self._room.chars:
            self._atoms.append(Atom(first, last, text, "", joint, PARAGRAPH, cost))
            return
        rank = PARAGRAPH
        for i in lines:
            line = self._text[i]
            for part, part_rank in _split_line(line, self._room):
                rank = max(rank, part_rank)
                self._atoms.append(Atom(i, i, part, "", joint, rank, quarter_tokens(part)))
                joint, rank = "", WORD
            joint = "\n"
            rank = SENTENCE if line.endswith(_ENDS_SENTENCE) else WORD

    def _add_code(self, i: int, code: str | None) -> None:
        if code is None:
            self._is_after_blank = True
            self._is_in_code = False
            self._blank_code = 0
        elif not code:
            self._blank_code += 1  # added to the next line that is not blank
        else:
            code = "\n" * self._blank_code * self._is_in_code + code
            rank = WORD if self._is_in_code else PARAGRAPH
            for part in _split_words(code, Room(self._code_chars, _ANY_COST)):
                self._atoms.append(Atom(i, i, "", part, "\n", rank, 0))
                rank = WORD
            self._is_in_code = True
            self._blank_code = 0


def _split_line(line: str, room: Room) -> Iterator[tuple[str, int]]:
    """Divide one line into parts that fit, each with the rank of a cut before it."""
    if room.fits(line):
        yield line, WORD
        return
    cuts = [match.end() for match in _SENTENCE_END.finditer(line)]
    start = 0
    for end in (*cuts, len(line)):
        sentence = line[start:end]
        rank = SENTENCE if start else WORD
        if room.fits(sentence):
            if sentence:
                yield sentence, rank
        else:
            for part in _split_words(sentence, room):
                yield part, rank
                rank = WORD
        start = end


def _split_words(text: str, room: Room) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = _fit_text(text, start, room)
        if end < len(text):
            space = text.rfind(" ", start + (end - start) // 2, end)
            end = space + 1 if space >= 0 else end
        yield text[start:end]
        start = end


def _fit_text(text: str, start: int, room: Room) -> int:
    length = min(room.chars, room.cost)
    if room.cost == _ANY_COST:
        return start + length
    for _ in range(3):
        cost = quarter_tokens(text[start : start + length])
        if cost <= room.cost:
            return start + length
        length = max(1, length * room.cost // cost)
    return start + max(1, min(length, room.cost // 4))


def _pack(atoms: Sequence[Atom], room: Room, label_chars: int) -> Iterator[tuple[int, int]]:
    sizes = [0, *accumulate(len(atom.text) + len(atom.code) for atom in atoms)]
    start = 0
    while start < len(atoms):
        end = _fit_atoms(atoms, start, room, label_chars)
        if end < len(atoms):
            end = _best_cut(atoms, sizes, start, end)
        yield start, end
        if end == len(atoms):
            return
        begin = _find_overlap(atoms, start, end, room.overlap) if room.overlap else end
        is_further = begin < end and _fit_atoms(atoms, begin, room, label_chars) > end
        start = begin if is_further else end


def _fit_atoms(atoms: Sequence[Atom], start: int, room: Room, label_chars: int) -> int:
    text_chars = code_chars = cost = 0
    for i in range(start, len(atoms)):
        atom = atoms[i]
        if atom.code:
            is_first = not code_chars or atom.rank == PARAGRAPH
            code_chars += len(atom.code) + (FENCES_CHARS if is_first else 1)
        else:
            joint = len(atom.joint) if text_chars else 0
            text_chars += len(atom.text) + joint
            cost += atom.cost + joint
        is_full = (text_chars or label_chars) + code_chars > room.chars or cost > room.cost
        if is_full and i > start:
            return i
    return len(atoms)


def _best_cut(atoms: Sequence[Atom], sizes: Sequence[int], start: int, end: int) -> int:
    """The best place to cut in the second half of a full chunk; `end` if none is better."""
    least = sizes[start] + (sizes[end] - sizes[start]) // 2
    best, best_rank = end, atoms[end].rank
    for i in range(end, start, -1):
        if sizes[i] < least or best_rank == PARAGRAPH:
            break
        if atoms[i].rank > best_rank:
            best, best_rank = i, atoms[i].rank
    return best


def _find_overlap(atoms: Sequence[Atom], start: int, end: int, overlap: int) -> int:
    """Where the next window begins so that it repeats at most `overlap` of this one."""
    begin = end
    cost = 0
    while begin - 1 > start:
        # Code has no tokens of its own; about four characters of text make one.
        cost += (atoms[begin - 1].cost or len(atoms[begin - 1].code)) + 2
        if cost > overlap:
            break
        begin -= 1
    return next((i for i in range(begin, end) if atoms[i].rank), begin)


def _join(atoms: Sequence[Atom], label: str, openings: frozenset[int]) -> Piece:
    parts: list[str] = []
    blocks: list[tuple[int, int, list[str]]] = []
    is_in_code = False
    for atom in atoms:
        if atom.text:
            parts += (atom.joint, atom.text) if parts else (atom.text,)
        elif is_in_code and atom.rank != PARAGRAPH:
            blocks[-1][2].append(atom.code)
        else:
            begins = atom.rank == PARAGRAPH and atom.start in openings
            blocks.append((len("".join(parts).strip()), begins, [atom.code]))
        is_in_code = not atom.text
    text = "".join(parts).strip()
    codes = ["\n".join(lines) for _, _, lines in blocks]
    layout = code_layout([block[:2] for block in blocks], codes, has_text=bool(text))
    text = text or (label if blocks else "")
    return Piece(atoms[0].start, atoms[-1].end, text, "\n".join(codes), layout)


def code_layout(
    places: Sequence[tuple[int, int]], codes: Sequence[str], *, has_text: bool
) -> tuple[int, ...]:
    """The layout of blocks at these places, each with whether its first line is the language."""
    only = 0 if has_text else ONLY_CODE
    return tuple(
        number
        for (place, begins), code in zip(places, codes, strict=True)
        for number in (place, len(code), BEGINS * begins | only)
    )
