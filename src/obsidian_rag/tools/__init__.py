"""One function per tool, one envelope for every door."""

from obsidian_rag.relations import LinksFound
from obsidian_rag.search import Evaluated, Outcome, Report, Weakness
from obsidian_rag.tools import ids, livesync
from obsidian_rag.tools.citation import obsidian_link, without_files
from obsidian_rag.tools.dispatch import TOOLS, Params, Tool, call, parse, register, run, schemas
from obsidian_rag.tools.envelope import ENVELOPE_SCHEMA, Envelope, Meta, failure, success
from obsidian_rag.tools.evaluation import Measurement, measure_links, measure_search
from obsidian_rag.tools.index import CANCEL, INDEX, index_outcome
from obsidian_rag.tools.memory import MEMORY_RECALL, MEMORY_STORE, memory_forget, memory_list
from obsidian_rag.tools.next_step import for_agents
from obsidian_rag.tools.read import READ, ReadParams, read
from obsidian_rag.tools.related import ADD_RELATION, RELATED, SUGGEST_RELATIONS
from obsidian_rag.tools.search import SEARCH, SearchParams, search
from obsidian_rag.tools.sections import listed_notes, media_type
from obsidian_rag.tools.status import STATUS, status
from obsidian_rag.tools.sync_status import SYNC_STATUS

# Every tool there is: a new one is added here, and all doors have it.
register(SEARCH, STATUS, INDEX, CANCEL, READ, MEMORY_STORE, MEMORY_RECALL)
register(RELATED, SUGGEST_RELATIONS, ADD_RELATION)
register(SYNC_STATUS)

__all__ = [
    "ENVELOPE_SCHEMA",
    "TOOLS",
    "Envelope",
    "Evaluated",
    "LinksFound",
    "Measurement",
    "Meta",
    "Outcome",
    "Params",
    "ReadParams",
    "Report",
    "SearchParams",
    "Tool",
    "Weakness",
    "call",
    "failure",
    "for_agents",
    "ids",
    "index_outcome",
    "listed_notes",
    "livesync",
    "measure_links",
    "measure_search",
    "media_type",
    "memory_forget",
    "memory_list",
    "obsidian_link",
    "parse",
    "read",
    "run",
    "schemas",
    "search",
    "status",
    "success",
    "without_files",
]
