"""Which notes belong together: signals, score, suggest, and ids and relations that are written."""

from obsidian_rag.relations.consumer import RelatedNotes
from obsidian_rag.relations.explain import Explained, explain
from obsidian_rag.relations.ground import Ground, format_of
from obsidian_rag.relations.heldout import LinksFound, evaluate_links
from obsidian_rag.relations.ids import AddedId, AddOutcome, IdReport, add_ids, check_ids
from obsidian_rag.relations.in_use import VectorsInUse
from obsidian_rag.relations.kinds import Kind
from obsidian_rag.relations.loaded import Card, Loaded
from obsidian_rag.relations.rows import Rows
from obsidian_rag.relations.rows_file import (
    begin_anew,
    discard,
    find_rows,
    open_rows,
    promote,
)
from obsidian_rag.relations.score import is_hiding, related, weights_of
from obsidian_rag.relations.signals import Source, kind_of
from obsidian_rag.relations.source import note_source, text_source, words_in
from obsidian_rag.relations.vectors import refresh_meaning_vectors, refresh_vectors
from obsidian_rag.relations.write import WrittenRelation, add_relation

__all__ = [
    "AddOutcome",
    "AddedId",
    "Card",
    "Explained",
    "Ground",
    "IdReport",
    "Kind",
    "LinksFound",
    "Loaded",
    "RelatedNotes",
    "Rows",
    "Source",
    "VectorsInUse",
    "WrittenRelation",
    "add_ids",
    "add_relation",
    "begin_anew",
    "check_ids",
    "discard",
    "evaluate_links",
    "explain",
    "find_rows",
    "format_of",
    "is_hiding",
    "kind_of",
    "note_source",
    "open_rows",
    "promote",
    "refresh_meaning_vectors",
    "refresh_vectors",
    "related",
    "text_source",
    "weights_of",
    "words_in",
]
