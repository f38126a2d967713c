"""Turn ranked chunks into hits: merge neighbours, limit hits per note, drop copies, cut text.

A hit begins under the heading that it names: it holds chunks of one section, or of a section and
its subsections. Sections of `#tag` lines stay apart. Its text is that of the note, code included.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from obsidian_rag.notes import CUT_CHARS, cut_shown
from obsidian_rag.search.answer import Hit, Why
from obsidian_rag.search.words import folded, stem, words_in
from obsidian_rag.store import ChunkStore, Database, FoundRow, Properties, passages_of

MAX_CHARS = 2000
_MAX_SHARE_PER_NOTE = 0.4
# How far a cut may move to fall between lines, or else between words.
_LINE_CHARS = 100
_WORD_CHARS = 40
_SHARED_CHARS = 40
# Separator between two chunks of a hit.
_GAP_CHARS = 2


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score and each signal's share of it."""

    row: FoundRow
    score: float
    shares: Mapping[str, float]

    @property
    def note(self) -> tuple[str, str]:
        """Its note, by vault and path."""
        return self.row.link_id, self.row.source_file


@dataclass(slots=True)
class _Passage:
    """One or more neighbouring chunks of a note, and the best of them."""

    best: Ranked
    members: list[Ranked]

    def way_to(
        self, row: FoundRow, free: Mapping[int, Ranked], *, by_section: bool
    ) -> list[Ranked] | None:
        """The chunks to add so that the passage reaches `row`: those in between, then `row`.

        `free` are the note's chunks that were found and are not in a passage yet. None if one of
        the chunks is not free, is in another section, or would make the hit too long. A direct
        neighbour is never too long: it joins the passage, even if the cut does not show it.
        """
        places = [own.row.chunk_index for own in self.members]
        first, last, at = min(places), max(places), row.chunk_index
        between = range(last + 1, at + 1) if at > last else range(first - 1, at - 1, -1)
        way = [free[place] for place in between if place in free]
        if len(way) < len(between):
            return None
        if not all(
            _is_under(one, self.best.row, by_section=by_section)
            for one in (row, *(item.row for item in way))
        ):
            return None
        size = sum(item.row.shown_chars + _GAP_CHARS for item in (*self.members, *way))
        return way if len(way) <= 1 or size <= MAX_CHARS else None


def _is_under(row: FoundRow, head: FoundRow, *, by_section: bool) -> bool:
    """Whether a hit with the heading of `head` may hold `row`: same section or a subsection."""
    if (head.heading_path, head.section) == (row.heading_path, row.section):
        return True
    if by_section or head.section is None or row.section is None:
        return False
    is_tag = head.section.startswith("#") or row.section.startswith("#")
    depth = len(head.heading_path)
    return not is_tag and depth > 0 and row.heading_path[:depth] == head.heading_path


def passages(
    ranked: list[Ranked],
    words: tuple[str, ...],
    limit: int,
    *,
    one_each: bool,
    by_section: bool = False,
    ahead: int = 0,
) -> list[Hit]:
    """The best `limit` passages of `ranked`, which is sorted.

    The first `ahead` of them come before the others, even if they are all of one note.
    """
    first: list[_Passage] = []
    if ahead:
        first = _choose(ranked[:ahead], limit, one_each=one_each, by_section=by_section)
        shown = {passage.best.note for passage in first}
        ranked = [item for item in ranked[ahead:] if item.note not in shown]
    others = _choose(ranked, limit - len(first), one_each=one_each, by_section=by_section)
    return [_hit(passage.best, _fit_members(passage), words) for passage in (*first, *others)]


def _choose(
    ranked: list[Ranked], limit: int, *, one_each: bool, by_section: bool
) -> list[_Passage]:
    most = 1 if one_each else max(1, math.ceil(limit * _MAX_SHARE_PER_NOTE))
    chosen: list[_Passage] = []
    spare: list[_Passage] = []
    by_note: dict[tuple[str, str], list[_Passage]] = {}
    # The chunks of each note that are not in a passage yet.
    unused: dict[tuple[str, str], dict[int, Ranked]] = {}
    shown: dict[str, tuple[str, str]] = {}
    # Copies stay when notes are listed, and when sections are checked separately.
    has_copies = one_each or by_section
    placed = [(item.note, item) for item in ranked]
    for note, item in placed:
        unused.setdefault(note, {}).setdefault(item.row.chunk_index, item)
    for note, item in placed:
        free = unused[note]
        mine = by_note.setdefault(note, [])
        ways = ((one, one.way_to(item.row, free, by_section=by_section)) for one in mine)
        reached = next(((one, way) for one, way in ways if way is not None), None)
        if reached is not None:
            passage, way = reached
            passage.members.extend(way)
            for one in way:
                del free[one.row.chunk_index]
        elif len(chosen) == limit:
            continue
        elif len(mine) < most and (has_copies or shown.setdefault(_body(item), note) == note):
            mine.append(_Passage(item, [item]))
            chosen.append(mine[-1])
            free.pop(item.row.chunk_index, None)
        elif not one_each:
            spare.append(_Passage(item, [item]))
    if len(chosen) < limit:
        chosen += spare[: limit - len(chosen)]
        # Floating-point sums differ in the last digit with the order of rows.
        chosen.sort(key=lambda passage: -round(passage.best.score, 9))
    return chosen


def _body(item: Ranked) -> str:
    """Its text without headings and white space, to recognise copies."""
    text = item.row.shown()
    body = "\n".join(line for line in text.split("\n") if not line.startswith("#")) or text
    return " ".join(body.split())


def _fit_members(passage: _Passage) -> list[FoundRow]:
    """The members that fit into one hit, best first until it is full; in order of position."""
    kept = [passage.best.row]
    first = last = passage.best.row.chunk_index
    size = passage.best.row.shown_chars
    for row in (item.row for item in passage.members):
        longer = size + row.shown_chars + _GAP_CHARS
        if row.chunk_index in (first - 1, last + 1) and longer <= MAX_CHARS:
            kept.append(row)
            size = longer
            first, last = min(first, row.chunk_index), max(last, row.chunk_index)
    return sorted(kept, key=lambda row: row.chunk_index)


def _hit(best: Ranked, rows: Sequence[FoundRow], words: tuple[str, ...]) -> Hit:
    row = best.row
    text = _merge_texts([part.shown() for part in rows])
    searched = (row.names, *(one for part in rows for one in (part.chunk_text, part.words_only)))
    return Hit(
        text=text if len(text) <= MAX_CHARS else cut_around(text, words),
        score=round(best.score, 4),
        source_file=row.source_file,
        title=row.title,
        section=row.section,
        heading_path=row.heading_path,
        start_line=min(part.start_line for part in rows),
        end_line=max(part.end_line for part in rows),
        date=row.date,
        tags=tuple(dict.fromkeys(tag for part in rows for tag in part.tags)),
        chunk_index=row.chunk_index,
        link_id=row.link_id,
        is_private=row.is_private,
        why=Why(
            signals={name: round(share, 4) for name, share in best.shares.items()},
            terms=words_in(words, folded("\n".join(searched))),
        ),
    )


def _merge_texts(texts: Sequence[str]) -> str:
    """Join neighbouring texts; text that two of them share appears once."""
    whole = ""
    for text in filter(None, texts):
        at = whole.rfind(text[:_SHARED_CHARS]) if len(text) > _SHARED_CHARS else -1
        if at >= 0 and text.startswith(whole[at:]):
            whole = whole[:at] + text
        else:
            whole += ("\n\n" if whole else "") + text
    return whole


def cut_around(text: str, words: tuple[str, ...], size: int = MAX_CHARS) -> str:
    """At most `size` characters around the place with most of the words."""
    if len(text) <= size:
        return text
    # Folded character by character, so that positions are the same in both texts.
    plain = "".join((folded(letter) or letter)[0] for letter in text)
    room = size - (CUT_CHARS if "```" in text else 2)
    middle = _find_densest(plain, words, room // 2)
    start = max(0, min(middle - room // 2, len(text) - room))
    end = start + room
    if start:
        gaps = (
            text.find("\n", start, start + _LINE_CHARS),
            text.find(" ", start, start + _WORD_CHARS),
        )
        start = next((gap + 1 for gap in gaps if gap >= 0), start)
    if end < len(text):
        gaps = text.rfind("\n", end - _LINE_CHARS, end), text.rfind(" ", end - _WORD_CHARS, end)
        end = next((gap for gap in gaps if gap >= 0), end)
    return cut_shown(text, start, end)


def _find_densest(text: str, words: Sequence[str], width: int) -> int:
    """The middle of the span of this width with the most different words, then most words."""
    places = sorted((at, word) for word in words for at in _find_word(text, word))
    best, middle, first = (0, 0), 0, 0
    inside: Counter[str] = Counter()
    for last, (at, word) in enumerate(places):
        inside[word] += 1
        while at - places[first][0] > width:
            inside[places[first][1]] -= 1
            first += 1
        found = (sum(1 for count in inside.values() if count), last - first)
        if found > best:
            best, middle = found, (at + places[first][0]) // 2
    return middle


def _find_word(text: str, word: str, most: int = 50) -> list[int]:
    """The positions of a word, or else of words with its stem."""
    for pattern in (rf"\b{re.escape(word)}\b", re.escape(stem(word))):
        found = [match.start() for match in re.finditer(pattern, text)]
        if found:
            return found[:most]
    return []


def note_passages(
    chunks: ChunkStore, database: Database, notes: Collection[tuple[str, str]]
) -> dict[tuple[str, str], tuple[list[FoundRow], str]]:
    """The passages and properties of these notes, by vault and path, if they have passages."""
    found: dict[tuple[str, str], tuple[list[FoundRow], str]] = {}
    for link_id in sorted({link_id for link_id, _ in notes}):
        paths = [path for own, path in notes if own == link_id]
        properties = Properties(database).texts(link_id, paths)
        for path, rows in passages_of(chunks, link_id, paths, with_words_only=True).items():
            if rows:
                found[link_id, path] = rows, properties[path]
    return found
