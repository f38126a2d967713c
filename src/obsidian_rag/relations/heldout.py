"""Evaluates related notes: remove one of the author's links and see if its target is found."""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from obsidian_rag.config import RelationsSettings
from obsidian_rag.notes import Note, body_lines, parse_note
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.relations.score import related
from obsidian_rag.relations.signals import text_source
from obsidian_rag.relations.words import LINE_END
from obsidian_rag.vault import NoteFile, Vault

HITS_AT = (1, 5, 10, 20)
_MAX_RANK = 20
_SEED = 5


@dataclass(frozen=True, slots=True)
class LinksFound:
    """How often the target of a removed link is among the top results."""

    notes: int
    links: int
    hits: dict[int, float]
    mrr: float


def evaluate_links(
    loaded: MemoryIndex,
    settings: RelationsSettings,
    vaults: Mapping[str, Vault],
    *,
    limit: int,
    listener: Callable[[int, int], None] = lambda _done, _total: None,
) -> LinksFound:
    """Evaluate up to `limit` links, taking notes in turn."""
    pairs = list(_pairs(loaded, limit))
    ranks = []
    for done, (source, target) in enumerate(pairs, start=1):
        ranks.append(_rank(loaded, settings, vaults, (source, target)))
        listener(done, len(pairs))
    total = max(len(ranks), 1)
    found = [rank for rank in ranks if rank is not None]
    return LinksFound(
        notes=len({source for source, _ in pairs}),
        links=len(pairs),
        hits={most: sum(rank <= most for rank in found) / total for most in HITS_AT},
        mrr=sum(1 / rank for rank in found) / total,
    )


def _pairs(loaded: MemoryIndex, limit: int) -> Iterator[tuple[int, int]]:
    """Links, shuffled: the first of every note, then the second of every note, and so on."""
    chance = random.Random(_SEED)
    links = {}
    # Not from the graph's ties: a profile that ignores links must get the same links to evaluate.
    for slot in sorted(loaded.slot_of.values(), key=lambda one: loaded.cards[one].order):
        linked = {loaded.graph.find(link, slot) for link in loaded.cards[slot].links}
        targets = [one for one in linked if one is not None and one != slot]
        links[slot] = sorted(targets, key=lambda one: loaded.cards[one].order)
        chance.shuffle(links[slot])
    sources = [slot for slot, targets in links.items() if targets]
    chance.shuffle(sources)
    taken = 0
    for turn in range(max(map(len, links.values()), default=0)):
        for slot in sources:
            if taken < limit and turn < len(links[slot]):
                taken += 1
                yield slot, links[slot][turn]


def _rank(
    loaded: MemoryIndex,
    settings: RelationsSettings,
    vaults: Mapping[str, Vault],
    pair: tuple[int, int],
) -> int | None:
    source, target = pair
    card = loaded.cards[source]
    file = vaults[card.link_id].read(card.path)
    if not isinstance(file, NoteFile):
        return None
    text = _without_links(loaded, parse_note(card.path, file.text), source, target)
    asked = text_source(loaded, text, slot=source, without=target)
    settings = settings.model_copy(update={"min_score": 0.0})
    found = related(loaded, asked, settings, limit=_MAX_RANK)
    return next((at for at, one in enumerate(found, start=1) if one.slot == target), None)


def _without_links(loaded: MemoryIndex, note: Note, source: int, target: int) -> str:
    """The text of a note without its links to the target, including their labels."""
    first, lines = body_lines(note)
    for link in note.links:
        at = link.line - first
        if (
            0 <= at < len(lines)
            and link.target
            and loaded.graph.find(link.target, source) == target
        ):
            lines[at] = _without(lines[at], link.target)
    return LINE_END.join(lines)


def _without(line: str, target: str) -> str:
    written = "|".join({re.escape(target), re.escape(quote(target))})
    link = re.compile(
        rf"!?\[\[\s*(?:{written})[^\[\]]*\]\]|!?\[[^\[\]]*\]\(\s*<?(?:{written})[^()]*\)"
    )
    shortened = link.sub(" ", line)
    # If the link has an unexpected form, drop the whole line.
    return shortened if shortened != line else ""
