"""Meaning vectors as search uses them: of the question, of passages, and of whole notes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from obsidian_rag.store import FoundRow, Lookup, MeaningStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

# So many of the best notes are compared as a whole, by at most so many of their passages.
_NOTES = 20
_PASSAGES = 5000

Vectoriser = Callable[[str], "NDArray[np.float32] | None"]
_Note = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Meanings:
    """Meaning vectors: of questions, and of the passages that have one."""

    vectorise: Vectoriser
    store: MeaningStore
    is_multilingual: bool = False

    def of_notes(
        self, lookup: Lookup, vector: "NDArray[np.float32]", rows: Iterable[FoundRow]
    ) -> dict[_Note, float]:
        """How near the first notes of these rows are as a whole, by the mean of their vectors."""
        notes: dict[_Note, None] = {}
        for row in rows:
            notes[row.link_id, row.source_file] = None
            if len(notes) == _NOTES:
                break
        ids = lookup.chunks_of_notes(list(notes), _PASSAGES)
        vectors = self.store.vectors([one for some in ids.values() for one in some])
        near = {}
        for note, some in ids.items():
            known = [vectors[one] for one in some if one in vectors]
            mean = np.sum(known, axis=0) if known else np.zeros_like(vector)
            if (length := float(np.linalg.norm(mean))) > 0:
                near[note] = float(mean @ vector) / length
        return near
