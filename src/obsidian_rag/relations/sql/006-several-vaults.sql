-- Notes of several vaults: a note is known by its vault and its path. Indexes made before are made
-- again.

CREATE TABLE vault (
    number INTEGER PRIMARY KEY,
    link_id TEXT NOT NULL UNIQUE
);

DROP TABLE note;
CREATE TABLE note (
    number INTEGER PRIMARY KEY,
    vault INTEGER NOT NULL REFERENCES vault (number),
    path TEXT NOT NULL,
    change INTEGER NOT NULL,
    is_gone INTEGER NOT NULL DEFAULT 0,
    content_hash TEXT NOT NULL,
    uid TEXT,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    summary TEXT NOT NULL,
    is_daily INTEGER NOT NULL,
    is_private INTEGER NOT NULL,
    tags TEXT NOT NULL,
    links TEXT NOT NULL,
    related TEXT NOT NULL,
    words INTEGER NOT NULL,
    terms BLOB NOT NULL,
    counts BLOB NOT NULL,
    phrases BLOB NOT NULL,
    places BLOB,
    vector BLOB,
    vector_hash TEXT,
    meaning BLOB,
    meaning_hash TEXT,
    UNIQUE (vault, path)
);
DELETE FROM note_line;
CREATE INDEX note_by_change ON note (change);
CREATE INDEX note_present ON note (vault, path) WHERE is_gone = 0;
CREATE INDEX note_without_vector ON note (vault, path, content_hash)
    WHERE is_gone = 0 AND words > 0 AND vector_hash IS NOT content_hash;
CREATE INDEX note_without_meaning ON note (vault, path, content_hash)
    WHERE is_gone = 0 AND words > 0 AND meaning_hash IS NOT content_hash;
CREATE INDEX note_stale ON note (vault, path) WHERE is_gone = 0 AND content_hash = '';
CREATE INDEX note_with_vector ON note (number) WHERE is_gone = 0 AND vector IS NOT NULL;
CREATE INDEX note_with_meaning ON note (number) WHERE is_gone = 0 AND meaning IS NOT NULL;
