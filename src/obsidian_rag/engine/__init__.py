"""Everything that runs: wiring, watcher, scheduler, jobs, worker process, health, events."""

from obsidian_rag.engine.daemon import Daemon
from obsidian_rag.engine.doctor import examine
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.events import Bus, Event
from obsidian_rag.engine.health import health_of, index_stamp
from obsidian_rag.engine.index_run import index_in_foreground, run_index
from obsidian_rag.engine.job import Job
from obsidian_rag.engine.linking import (
    accept_replacement,
    add_link,
    change_link,
    link_status,
    offered_vaults,
    remove_link,
    replaced_vault,
    sync_link,
)
from obsidian_rag.engine.live import Live
from obsidian_rag.engine.presence import announce, claim
from obsidian_rag.engine.query import AskResult, ask, known_folder
from obsidian_rag.engine.status import report_status
from obsidian_rag.engine.tokens import Tokens

__all__ = [
    "AskResult",
    "Bus",
    "Daemon",
    "Engine",
    "Event",
    "Job",
    "Live",
    "Tokens",
    "accept_replacement",
    "add_link",
    "announce",
    "ask",
    "change_link",
    "claim",
    "examine",
    "health_of",
    "index_in_foreground",
    "index_stamp",
    "known_folder",
    "link_status",
    "offered_vaults",
    "remove_link",
    "replaced_vault",
    "report_status",
    "run_index",
    "sync_link",
]
