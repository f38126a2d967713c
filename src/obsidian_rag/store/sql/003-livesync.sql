-- What LiveSync knows: facts about a remote, the last synced state of each document, and what
-- waits for the user. `remote` is a digest of the server's address and the database's name, so
-- that two networks never mix. Times are ISO 8601 in UTC.

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
