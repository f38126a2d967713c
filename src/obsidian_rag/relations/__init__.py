"""Which notes belong together: signals, score, suggest, and ids and relations that are written."""

from obsidian_rag.relations.explain import Explained, explain
from obsidian_rag.relations.heldout import LinksFound, evaluate_links
from obsidian_rag.relations.ids import AddedId, AddOutcome, IdReport, add_ids, check_ids
from obsidian_rag.relations.loaded import Loaded
from obsidian_rag.relations.rows import Rows, discard, find_rows, open_rows
from obsidian_rag.relations.score import is_hiding, related, weights_of
from obsidian_rag.relations.signals import Source
from obsidian_rag.relations.source import note_source, text_source
from obsidian_rag.relations.update import Ground, Updated, format_of, update
from obsidian_rag.relations.vectors import refresh_vectors
from obsidian_rag.relations.write import WrittenRelation, add_relation

__all__ = [
    "AddOutcome",
    "AddedId",
    "Explained",
    "Ground",
    "IdReport",
    "LinksFound",
    "Loaded",
    "Rows",
    "Source",
    "Updated",
    "WrittenRelation",
    "add_ids",
    "add_relation",
    "check_ids",
    "discard",
    "evaluate_links",
    "explain",
    "find_rows",
    "format_of",
    "is_hiding",
    "note_source",
    "open_rows",
    "refresh_vectors",
    "related",
    "text_source",
    "update",
    "weights_of",
]
