-- The tables of state.db. A change of them needs a higher version in store/schema.py.
-- Times are ISO 8601 in UTC.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- The vaults: the primary one of the settings, and linked ones.
CREATE TABLE vault_link (
    link_id TEXT PRIMARY KEY,
    provider TEXT NOT NULL DEFAULT 'obsidian',
    root_path TEXT NOT NULL,
    mode TEXT NOT NULL DEFAULT 'read_only' CHECK (mode IN ('read_only', 'read_write')),
    enabled INTEGER NOT NULL DEFAULT 1,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    last_scan_at TEXT,
    last_error TEXT,
    is_primary INTEGER NOT NULL DEFAULT 0,
    name TEXT NOT NULL UNIQUE,
    include TEXT NOT NULL DEFAULT '[]',
    exclude TEXT NOT NULL DEFAULT '[]',
    is_paused INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX vault_link_one_primary ON vault_link (is_primary) WHERE is_primary = 1;

-- What an index run remembers of one vault.
CREATE TABLE link_fact (
    link_id TEXT NOT NULL REFERENCES vault_link (link_id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (link_id, key)
) WITHOUT ROWID;

-- The files seen. One whose row says "exists" was last seen at its link's last_scan_at, so that a
-- scan that finds nothing new writes nothing per file.
CREATE TABLE vault_file_manifest (
    link_id TEXT NOT NULL REFERENCES vault_link (link_id) ON DELETE CASCADE,
    rel_path TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    file_id INTEGER,
    content_hash TEXT,
    "exists" INTEGER NOT NULL DEFAULT 1,
    deleted_at TEXT,
    last_seen_at TEXT NOT NULL,
    PRIMARY KEY (link_id, rel_path)
) WITHOUT ROWID;

-- The files that are searchable, and why others are not. `policy` is what a note's `rag` property
-- allowed when its file was indexed; NULL if it could not be read.
CREATE TABLE vault_file_index_state (
    link_id TEXT NOT NULL REFERENCES vault_link (link_id) ON DELETE CASCADE,
    rel_path TEXT NOT NULL,
    index_hash TEXT,
    indexed_at TEXT,
    embedding_status TEXT NOT NULL
        CHECK (embedding_status IN ('pending', 'indexed', 'failed', 'skipped')),
    parse_error TEXT,
    reason TEXT,
    chunk_count INTEGER NOT NULL DEFAULT 0,
    policy TEXT,
    PRIMARY KEY (link_id, rel_path)
) WITHOUT ROWID;
CREATE INDEX vault_file_index_state_troubled ON vault_file_index_state (link_id, embedding_status)
    WHERE embedding_status <> 'indexed' OR parse_error IS NOT NULL;

-- The same for an index that is being built beside the one in use (see `reindex`).
CREATE TABLE rebuild_index_state (
    link_id TEXT NOT NULL REFERENCES vault_link (link_id) ON DELETE CASCADE,
    rel_path TEXT NOT NULL,
    index_hash TEXT,
    indexed_at TEXT,
    embedding_status TEXT NOT NULL,
    parse_error TEXT,
    reason TEXT,
    chunk_count INTEGER NOT NULL DEFAULT 0,
    policy TEXT,
    PRIMARY KEY (link_id, rel_path)
) WITHOUT ROWID;

-- Changed files that the index and the related notes do not have yet. One row per file: a second
-- change to a file that waits already is the same work.
CREATE TABLE sync_queue (
    queue_id INTEGER PRIMARY KEY,
    link_id TEXT NOT NULL REFERENCES vault_link (link_id) ON DELETE CASCADE,
    rel_path TEXT NOT NULL,
    change_type TEXT NOT NULL CHECK (change_type IN ('create', 'update', 'delete', 'rename')),
    status TEXT NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'processing', 'done', 'failed', 'skipped')),
    attempts INTEGER NOT NULL DEFAULT 0,
    reason TEXT,
    old_path TEXT,
    enqueued_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (link_id, rel_path)
);

-- Properties of notes, for filters. Names and values are stored once, and notes are known by a
-- number: a vault's notes have much the same properties.
CREATE TABLE note (
    note_id INTEGER PRIMARY KEY,
    link_id TEXT NOT NULL REFERENCES vault_link (link_id) ON DELETE CASCADE,
    rel_path TEXT NOT NULL,
    UNIQUE (link_id, rel_path)
);
CREATE TABLE property_name (
    name_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
CREATE TABLE property_value (
    value_id INTEGER PRIMARY KEY,
    value TEXT NOT NULL UNIQUE,
    number REAL
);
CREATE TABLE note_property (
    note_id INTEGER NOT NULL REFERENCES note (note_id) ON DELETE CASCADE,
    name_id INTEGER NOT NULL REFERENCES property_name (name_id),
    value_id INTEGER NOT NULL REFERENCES property_value (value_id),
    PRIMARY KEY (note_id, name_id, value_id)
) WITHOUT ROWID;
CREATE INDEX note_property_by_value ON note_property (name_id, value_id);

-- Facts the user asked us to remember. `link_id` is the vault of the source, NULL for the primary
-- one; not a reference, because a fact outlives the vault that it was read in.
CREATE TABLE memory (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    source TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    vector BLOB,
    embedder TEXT,
    link_id TEXT
) WITHOUT ROWID;

-- What LiveSync knows: facts about a remote, the last synced state of each document, and what waits
-- for the user. `remote` is a digest of the server's address and the database's name, so that two
-- networks never mix.
CREATE TABLE livesync_fact (
    remote TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (remote, key)
) WITHOUT ROWID;

-- content_hash is NULL when the document was last synced as deleted.
CREATE TABLE livesync_file (
    remote TEXT NOT NULL,
    doc_id TEXT NOT NULL,
    path TEXT NOT NULL,
    rev TEXT NOT NULL,
    content_hash TEXT,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    PRIMARY KEY (remote, doc_id)
) WITHOUT ROWID;

CREATE TABLE livesync_quarantine (
    remote TEXT NOT NULL,
    doc_id TEXT NOT NULL,
    rev TEXT NOT NULL,
    path TEXT,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    since TEXT NOT NULL,
    PRIMARY KEY (remote, doc_id)
) WITHOUT ROWID;

CREATE TABLE livesync_conflict (
    remote TEXT NOT NULL,
    doc_id TEXT NOT NULL,
    path TEXT NOT NULL,
    revs TEXT NOT NULL,
    kept_as TEXT,
    since TEXT NOT NULL,
    PRIMARY KEY (remote, doc_id)
) WITHOUT ROWID;

CREATE TABLE livesync_trash (
    trash_id INTEGER PRIMARY KEY AUTOINCREMENT,
    remote TEXT NOT NULL,
    path TEXT NOT NULL,
    stored_as TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    removed_at TEXT NOT NULL,
    reason TEXT NOT NULL
);
CREATE INDEX livesync_trash_by_time ON livesync_trash (remote, removed_at);
