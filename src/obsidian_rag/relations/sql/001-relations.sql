-- The six indexes of related notes. All of it can be built again from the vault.
-- A note keeps its number for ever; `change` grows with every write, so that readers can follow.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- The id index and the document statistics, with the term index's rows of the note: the numbers of
-- its terms, how often each occurs, and (packed) where. `links` and `related` are the graph's edges.
CREATE TABLE note (
    number INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    change INTEGER NOT NULL,
    is_gone INTEGER NOT NULL DEFAULT 0,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    file_id INTEGER,
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
    vector_hash TEXT
);
CREATE INDEX note_by_change ON note (change);

-- `word` is one that was read as the term, to be shown to people.
CREATE TABLE term (
    number INTEGER PRIMARY KEY,
    term TEXT NOT NULL UNIQUE,
    word TEXT NOT NULL
);

-- How many notes have both tags; a tag with itself: how many have it.
CREATE TABLE tag_pair (
    first TEXT NOT NULL,
    second TEXT NOT NULL,
    notes INTEGER NOT NULL,
    PRIMARY KEY (first, second)
) WITHOUT ROWID;

-- Letter groups of titles and summaries, for fuzzy matching.
CREATE TABLE letter_group (
    letters TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (letters, number)
) WITHOUT ROWID;

-- Lines that templates put into many notes.
CREATE TABLE boilerplate (
    line TEXT PRIMARY KEY
) WITHOUT ROWID;
