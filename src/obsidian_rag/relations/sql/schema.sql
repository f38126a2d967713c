-- The tables of relations.db, which can all be built again from the vault. A change of them needs a
-- higher version in relations/rows.py.
-- A note keeps its number for ever; `change` grows with every write, so that readers can follow.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE vault (
    number INTEGER PRIMARY KEY,
    link_id TEXT NOT NULL UNIQUE
);

-- A note with its rows of the term index: the numbers of its terms (`terms`), how often each occurs
-- (`counts`), and where (`places`, packed; also those on lines that come from templates). `links`
-- and `related` are the graph's edges. `vector` is the mean of its passages' static vectors,
-- `meaning` that of a transformer's; each hash is the content that the vector was made of.
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
-- Questions about all notes must not read all their pages.
CREATE INDEX note_by_change ON note (change);
CREATE INDEX note_present ON note (vault, path) WHERE is_gone = 0;
CREATE INDEX note_without_vector ON note (vault, path, content_hash)
    WHERE is_gone = 0 AND words > 0 AND vector_hash IS NOT content_hash;
CREATE INDEX note_without_meaning ON note (vault, path, content_hash)
    WHERE is_gone = 0 AND words > 0 AND meaning_hash IS NOT content_hash;
CREATE INDEX note_with_vector ON note (number) WHERE is_gone = 0 AND vector IS NOT NULL;
CREATE INDEX note_with_meaning ON note (number) WHERE is_gone = 0 AND meaning IS NOT NULL;
-- Notes that must be read again: their words depend on what has changed elsewhere.
CREATE INDEX note_stale ON note (vault, path) WHERE is_gone = 0 AND content_hash = '';

-- `word` is one that was read as the term, to be shown to people.
CREATE TABLE term (
    number INTEGER PRIMARY KEY,
    term TEXT NOT NULL UNIQUE,
    word TEXT NOT NULL
);

-- The lines of each note in their order: which of them are blank, and xxh32 of the others.
CREATE TABLE note_line (
    number INTEGER PRIMARY KEY,
    lines BLOB NOT NULL
);

-- In how many notes a line stands: of those that stand in many, exactly.
CREATE TABLE line_count (
    line INTEGER PRIMARY KEY,
    notes INTEGER NOT NULL
);

-- Lines that templates put into many notes: what notes were read without.
CREATE TABLE template_line (
    line INTEGER PRIMARY KEY
);
