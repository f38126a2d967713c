"""The tools: one function for each, and one envelope for every door."""

from obsidian_rag.notes import Scope
from obsidian_rag.relations import LinksFound
from obsidian_rag.search import Evaluated, Outcome, Report, Weakness
from obsidian_rag.tools import ids
from obsidian_rag.tools.citation import without_files
from obsidian_rag.tools.dispatch import (
    TOOLS,
    Tool,
    call,
    find_tool,
    for_agents,
    register,
    run,
)
from obsidian_rag.tools.envelope import (
    ENVELOPE_SCHEMA,
    Envelope,
    failure,
    success,
    to_json,
)
from obsidian_rag.tools.evaluation import Measurement, measure_links, measure_search
from obsidian_rag.tools.guard import AGENT, OWNER, SCREENED, Caller
from obsidian_rag.tools.index import cancel, index, index_outcome, status
from obsidian_rag.tools.links import (
    link_add,
    link_list,
    link_remove,
    link_set_mode,
    link_sync_status,
    sync_now,
)
from obsidian_rag.tools.memory import memory_forget, memory_list, memory_recall, memory_store
from obsidian_rag.tools.note_files import note_bytes
from obsidian_rag.tools.note_view import (
    NoteView,
    PrivatePart,
    filter_choices,
    note_attachment,
    note_view,
    relation_preview,
)
from obsidian_rag.tools.read import read
from obsidian_rag.tools.related import add as add_relation
from obsidian_rag.tools.related import related, relation_settings, suggest
from obsidian_rag.tools.search import search
from obsidian_rag.tools.sections import listed_notes, media_type
from obsidian_rag.tools.sync import (
    sync_conflict,
    sync_conflicts,
    sync_resolve,
    sync_restore,
    sync_status,
    sync_trash,
)

# All tools: one that is registered here is available at all doors.
register(search, status, index, cancel, read, memory_store, memory_recall)
register(related, suggest, add_relation)
register(sync_status)
register(link_add, link_list, link_remove, link_set_mode, sync_now, link_sync_status)
register(ids.check, ids.add, relation_settings, for_owner=True)

__all__ = [
    "AGENT",
    "ENVELOPE_SCHEMA",
    "OWNER",
    "SCREENED",
    "TOOLS",
    "Caller",
    "Envelope",
    "Evaluated",
    "LinksFound",
    "Measurement",
    "NoteView",
    "Outcome",
    "PrivatePart",
    "Report",
    "Scope",
    "Tool",
    "Weakness",
    "call",
    "failure",
    "filter_choices",
    "find_tool",
    "for_agents",
    "ids",
    "index_outcome",
    "listed_notes",
    "measure_links",
    "measure_search",
    "media_type",
    "memory_forget",
    "memory_list",
    "note_attachment",
    "note_bytes",
    "note_view",
    "relation_preview",
    "run",
    "success",
    "sync_conflict",
    "sync_conflicts",
    "sync_resolve",
    "sync_restore",
    "sync_trash",
    "to_json",
    "without_files",
]
