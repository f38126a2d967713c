-- What we have seen (manifest), what is searchable (index state), what we owe (queue).
-- Times are ISO 8601 in UTC. A file whose row says "exists" was last seen at its link's last_scan_at,
-- so that a scan that finds nothing new writes nothing per file.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

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
    is_primary INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX vault_link_one_primary ON vault_link (is_primary) WHERE is_primary = 1;

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
    PRIMARY KEY (link_id, rel_path)
) WITHOUT ROWID;
CREATE INDEX vault_file_index_state_troubled ON vault_file_index_state (link_id, embedding_status)
    WHERE embedding_status <> 'indexed' OR parse_error IS NOT NULL;

-- The index state of an index that is being built beside the one in use (see `reindex`).
CREATE TABLE rebuild_index_state (
    link_id TEXT NOT NULL REFERENCES vault_link (link_id) ON DELETE CASCADE,
    rel_path TEXT NOT NULL,
    index_hash TEXT,
    indexed_at TEXT,
    embedding_status TEXT NOT NULL,
    parse_error TEXT,
    reason TEXT,
    chunk_count INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (link_id, rel_path)
) WITHOUT ROWID;

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
    updated_at TEXT NOT NULL
);
-- One open row per file: a second change to a file that waits already is the same work.
CREATE UNIQUE INDEX sync_queue_one_per_file ON sync_queue (link_id, rel_path);
