"""From ranked chunks to hits: neighbours merged, no note filling the page, text cut to size."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from obsidian_rag.search.answer import Hit, Why
from obsidian_rag.search.words import folded, matched, stem
from obsidian_rag.store import FoundRow

MAX_CHARS = 2000
_SHARE_OF_PAGE = 0.4


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score, each signal's share of it, and its number in the store."""

    row: FoundRow
    score: float
    shares: Mapping[str, float]
    number: int = 0


@dataclass(slots=True)
class _Passage:
    """One or more neighbouring chunks of a note; the best one leads."""

    best: Ranked
    members: list[Ranked]

    def touches(self, row: FoundRow) -> bool:
        return any(abs(row.chunk_index - own.row.chunk_index) <= 1 for own in self.members)


WordsReader = Callable[[list[int]], Mapping[int, str]]


def passages(
    ranked: list[Ranked],
    words: tuple[str, ...],
    limit: int,
    *,
    one_each: bool,
    read_words_only: WordsReader | None = None,
) -> list[Hit]:
    """The best `limit` passages of `ranked`, which is in order.

    `read_words_only` fetches code and properties, where the text has not all that was asked for.
    """
    chosen = [_run(passage) for passage in _chosen(ranked, limit, one_each=one_each)]
    shown = [_shown(passage) for passage in chosen]
    unseen = [
        item.number
        for passage, text in zip(chosen, shown, strict=True)
        if len(matched(words, text)) < len(words)
        for item in passage.members
        if item.row.has_words_only and not item.row.words_only
    ]
    found = read_words_only(unseen) if read_words_only is not None and unseen else {}
    return [
        _hit(passage, words, "\n".join((text, *_others(passage, found))))
        for passage, text in zip(chosen, shown, strict=True)
    ]


def _chosen(ranked: list[Ranked], limit: int, *, one_each: bool) -> list[_Passage]:
    most = 1 if one_each else max(1, math.ceil(limit * _SHARE_OF_PAGE))
    chosen: list[_Passage] = []
    spare: list[_Passage] = []
    by_note: dict[tuple[str, str], list[_Passage]] = {}
    for item in ranked:
        mine = by_note.setdefault((item.row.link_id, item.row.source_file), [])
        neighbour = next((passage for passage in mine if passage.touches(item.row)), None)
        if neighbour is not None:
            neighbour.members.append(item)
        elif len(mine) < most and len(chosen) < limit:
            mine.append(_Passage(item, [item]))
            chosen.append(mine[-1])
        elif len(mine) >= most and not one_each:
            spare.append(_Passage(item, [item]))
    if len(chosen) < limit:
        chosen += spare[: limit - len(chosen)]
        chosen.sort(key=lambda passage: -passage.best.score)
    return chosen


def _hit(passage: _Passage, words: tuple[str, ...], plain: str) -> Hit:
    """The passage as it is answered; `plain` is all its words, folded."""
    row = passage.best.row
    rows = [item.row for item in passage.members]
    text = "\n\n".join(part.chunk_text for part in rows if part.chunk_text)
    hit = Hit(
        text=text,
        score=round(passage.best.score, 4),
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
            signals={name: round(share, 4) for name, share in passage.best.shares.items()},
            terms=matched(words, plain),
        ),
    )
    return hit if len(text) <= MAX_CHARS else replace(hit, text=centred(text, words))


def _shown(passage: _Passage) -> str:
    """The folded text and names of a passage."""
    texts = (item.row.chunk_text for item in passage.members)
    return folded("\n".join((*texts, passage.best.row.names)))


def _others(passage: _Passage, found: Mapping[int, str]) -> Iterator[str]:
    """The folded code and properties of a passage, as far as they were read."""
    for item in passage.members:
        yield folded(item.row.words_only or found.get(item.number, ""))


def _run(passage: _Passage) -> _Passage:
    """The neighbours that fit into one hit, the nearest to the best one first, in order."""
    best = passage.best
    kept = [best]
    size = len(best.row.chunk_text)
    for item in sorted(
        passage.members, key=lambda item: abs(item.row.chunk_index - best.row.chunk_index)
    ):
        first = min(part.row.chunk_index for part in kept)
        last = max(part.row.chunk_index for part in kept)
        longer = size + len(item.row.chunk_text) + 2
        if item.row.chunk_index in (first - 1, last + 1) and longer <= MAX_CHARS:
            kept.append(item)
            size = longer
    return _Passage(best, sorted(kept, key=lambda item: item.row.chunk_index))


def centred(text: str, words: tuple[str, ...], size: int = MAX_CHARS) -> str:
    """At most `size` characters around the place where most of the words stand."""
    if len(text) <= size:
        return text
    # Letter by letter, so that a place in the folded text is the same place in the text.
    plain = "".join((folded(letter) or letter)[0] for letter in text)
    room = size - 2
    places = [at for word in words for at in _places(plain, stem(word))]
    best = max(
        places, key=lambda at: sum(abs(at - other) < room // 2 for other in places), default=0
    )
    start = max(0, min(best - room // 2, len(text) - room))
    return (
        ("…" if start else "")
        + text[start : start + room]
        + ("…" if start + room < len(text) else "")
    )


def _places(text: str, word: str, most: int = 50) -> list[int]:
    found: list[int] = []
    at = text.find(word)
    while at >= 0 and len(found) < most:
        found.append(at)
        at = text.find(word, at + len(word))
    return found
