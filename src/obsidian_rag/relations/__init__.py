"""Which notes belong together: signals, score, suggest, and ids and relations that are written."""

from obsidian_rag.relations.ids import AddedId, AddOutcome, IdReport, add_ids, check_ids
from obsidian_rag.relations.write import WrittenRelation, add_relation

__all__ = [
    "AddOutcome",
    "AddedId",
    "IdReport",
    "WrittenRelation",
    "add_ids",
    "add_relation",
    "check_ids",
]
