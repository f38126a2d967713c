-- Properties of notes, one row per value, for filters; and facts the user asked us to remember.

CREATE TABLE note_property (
    link_id TEXT NOT NULL REFERENCES vault_link (link_id) ON DELETE CASCADE,
    rel_path TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    number REAL,
    PRIMARY KEY (link_id, rel_path, key, value)
) WITHOUT ROWID;
CREATE INDEX note_property_by_value ON note_property (key, value);

CREATE TABLE memory (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    source TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    vector BLOB,
    embedder TEXT
) WITHOUT ROWID;
