"""Make the store agree with the vault: plan, prepare, embed, store, swap."""

from obsidian_rag.index.brake import (
    REPLACE_WITH,
    Away,
    MadeOf,
    Root,
    away_before,
    compare_roots,
    is_away,
    made_of,
)
from obsidian_rag.index.consumer import Delivery, NoteConsumer, ParsedNote
from obsidian_rag.index.early import hand_over
from obsidian_rag.index.fingerprint import check, fingerprint
from obsidian_rag.index.pipeline import Guarded
from obsidian_rag.index.plan import UNSETTLED, compare
from obsidian_rag.index.prepare import chunk_hash
from obsidian_rag.index.progress import (
    Failure,
    IndexResult,
    Listener,
    Mode,
    Phase,
    Progress,
    Stop,
    Tally,
    paced,
)
from obsidian_rag.index.reader import Source
from obsidian_rag.index.run import (
    FINGERPRINT,
    FIRST_UNFINISHED,
    INDEX_VERSION,
    MAINTAINED,
    NEWEST_NOTE,
    REBUILDING,
    IndexRun,
    Workplace,
    catch_up,
    compact,
    finish_promotion,
)
from obsidian_rag.index.vault_check import not_there, other_vault, too_few

__all__ = [
    "FINGERPRINT",
    "FIRST_UNFINISHED",
    "INDEX_VERSION",
    "MAINTAINED",
    "NEWEST_NOTE",
    "REBUILDING",
    "REPLACE_WITH",
    "UNSETTLED",
    "Away",
    "Delivery",
    "Failure",
    "Guarded",
    "IndexResult",
    "IndexRun",
    "Listener",
    "MadeOf",
    "Mode",
    "NoteConsumer",
    "ParsedNote",
    "Phase",
    "Progress",
    "Root",
    "Source",
    "Stop",
    "Tally",
    "Workplace",
    "away_before",
    "catch_up",
    "check",
    "chunk_hash",
    "compact",
    "compare",
    "compare_roots",
    "fingerprint",
    "finish_promotion",
    "hand_over",
    "is_away",
    "made_of",
    "not_there",
    "other_vault",
    "paced",
    "too_few",
]
