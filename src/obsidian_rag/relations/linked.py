"""Which notes a note's links mean, which notes link to it, and what is known of all notes."""

from collections.abc import Iterable
from dataclasses import dataclass

from obsidian_rag.relations.memory_index import Card
from obsidian_rag.relations.place import RelationsPlace
from obsidian_rag.relations.query import admitted_cards, memory_index


@dataclass(frozen=True, slots=True)
class LinkedNotes:
    """The paths that links mean, by what they say, and the notes that link here."""

    targets: dict[str, str]
    backlinks: tuple[Card, ...]


def linked_notes(
    place: RelationsPlace, note: tuple[str, str], targets: Iterable[str]
) -> LinkedNotes:
    """What the links of a note, named by link id and path, mean, as Obsidian finds them.

    Raises:
        IndexNotFound: nothing is indexed yet.
    """
    loaded = memory_index(place)
    with loaded.lock:
        own = loaded.by_path.get(note)
        asked = targets if own is not None else ()
        meant = {target: loaded.graph.find(target, own or 0) for target in asked}
        found = {
            target: loaded.cards[slot].path for target, slot in meant.items() if slot is not None
        }
        back = [
            loaded.cards[slot]
            for slot, ahead in loaded.graph.outgoing.items()
            if own is not None and own in ahead and slot != own
        ]
    admitted = admitted_cards(place, back)
    return LinkedNotes(found, tuple(sorted(admitted, key=lambda card: card.title.casefold())))


def known_notes(place: RelationsPlace) -> list[Card]:
    """What is known of every note.

    Raises:
        IndexNotFound: nothing is indexed yet.
    """
    loaded = memory_index(place)
    with loaded.lock:
        present = [loaded.cards[slot] for slot in loaded.slot_of.values()]
    return admitted_cards(place, present)
