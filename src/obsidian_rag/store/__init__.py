"""What we remember: SQLite for files, work and state, LanceDB for chunks and vectors.

The vault is the truth and everything here can be built again from it, except facts the user
asked us to remember.
"""

from obsidian_rag.store.chunks import (
    NEXT_TABLE,
    SCHEMA_VERSION,
    TABLE,
    ChunkStore,
    StoredChunk,
    quoted,
)
from obsidian_rag.store.database import Database, now
from obsidian_rag.store.index_state import (
    LIVE,
    REBUILD,
    EmbeddingStatus,
    FileState,
    IndexState,
)
from obsidian_rag.store.links import Link, Links
from obsidian_rag.store.livesync import (
    Conflict,
    LivesyncRecords,
    Quarantined,
    SyncedFile,
    TrashedFile,
)
from obsidian_rag.store.lock import writer_lock
from obsidian_rag.store.lookup import Clause, Lookup, passages_of, summed
from obsidian_rag.store.manifest import KnownFile, Manifest
from obsidian_rag.store.memory import Fact, Memory
from obsidian_rag.store.properties import Properties
from obsidian_rag.store.queue import Change, ChangeType, Queue
from obsidian_rag.store.rows import ChunkRow, FoundRow, NoteRow

__all__ = [
    "LIVE",
    "NEXT_TABLE",
    "REBUILD",
    "SCHEMA_VERSION",
    "TABLE",
    "Change",
    "ChangeType",
    "ChunkRow",
    "ChunkStore",
    "Clause",
    "Conflict",
    "Database",
    "EmbeddingStatus",
    "Fact",
    "FileState",
    "FoundRow",
    "IndexState",
    "KnownFile",
    "Link",
    "Links",
    "LivesyncRecords",
    "Lookup",
    "Manifest",
    "Memory",
    "NoteRow",
    "Properties",
    "Quarantined",
    "Queue",
    "StoredChunk",
    "SyncedFile",
    "TrashedFile",
    "now",
    "passages_of",
    "quoted",
    "summed",
    "writer_lock",
]
