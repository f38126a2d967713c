"""Storage: SQLite for files, queue and state, LanceDB for chunks and vectors.

The vault is the source of truth: everything here can be rebuilt from it, except facts that the
user asked us to remember.
"""

from obsidian_rag.store.chunks import (
    READER_WINDOW_S,
    ChunkStore,
    StoredChunk,
    no_index,
    quoted,
)
from obsidian_rag.store.database import (
    Database,
    FollowedDatabase,
    file_identity,
    now,
    timestamp,
)
from obsidian_rag.store.folder import make_private, open_to_others, own_folder
from obsidian_rag.store.index_state import (
    LIVE,
    REBUILD,
    EmbeddingStatus,
    FileState,
    IndexFact,
    IndexState,
)
from obsidian_rag.store.links import Link, LinkFact, LinkFacts, Links
from obsidian_rag.store.livesync import (
    Conflict,
    LivesyncRecords,
    Quarantined,
    SyncedFile,
    TrashedFile,
)
from obsidian_rag.store.lock import hold_lock, writer_lock
from obsidian_rag.store.lookup import (
    ChunkPlace,
    Clause,
    EmbeddedChunk,
    Lookup,
    chunk_places,
    embedded_chunks,
    passages_of,
    public_titles,
    summed,
)
from obsidian_rag.store.manifest import KnownFile, Manifest
from obsidian_rag.store.meaning import MeaningStore, stored_vectors, text_digest
from obsidian_rag.store.meaning_file import pack_ids
from obsidian_rag.store.memory import Fact, Memory
from obsidian_rag.store.probing import probe_indexes, unindexed, verify_table, verify_texts
from obsidian_rag.store.properties import Properties
from obsidian_rag.store.queue import MOST_ATTEMPTS, Change, ChangeType, Queue, QueuedFile
from obsidian_rag.store.repair import repair
from obsidian_rag.store.rows import ChunkRow, FoundRow, NoteRow, chunk_hash
from obsidian_rag.store.schema import SCHEMA_VERSION, TAKEN_OVER, Schema

__all__ = [
    "LIVE",
    "MOST_ATTEMPTS",
    "READER_WINDOW_S",
    "REBUILD",
    "SCHEMA_VERSION",
    "TAKEN_OVER",
    "Change",
    "ChangeType",
    "ChunkPlace",
    "ChunkRow",
    "ChunkStore",
    "Clause",
    "Conflict",
    "Database",
    "EmbeddedChunk",
    "EmbeddingStatus",
    "Fact",
    "FileState",
    "FollowedDatabase",
    "FoundRow",
    "IndexFact",
    "IndexState",
    "KnownFile",
    "Link",
    "LinkFact",
    "LinkFacts",
    "Links",
    "LivesyncRecords",
    "Lookup",
    "Manifest",
    "MeaningStore",
    "Memory",
    "NoteRow",
    "Properties",
    "Quarantined",
    "Queue",
    "QueuedFile",
    "Schema",
    "StoredChunk",
    "SyncedFile",
    "TrashedFile",
    "chunk_hash",
    "chunk_places",
    "embedded_chunks",
    "file_identity",
    "hold_lock",
    "make_private",
    "no_index",
    "now",
    "open_to_others",
    "own_folder",
    "pack_ids",
    "passages_of",
    "probe_indexes",
    "public_titles",
    "quoted",
    "repair",
    "stored_vectors",
    "summed",
    "text_digest",
    "timestamp",
    "unindexed",
    "verify_table",
    "verify_texts",
    "writer_lock",
]
