-- What is related depends on the notes that are there now, not on what was there before.

DROP TABLE boilerplate;

-- The lines of each note, as sorted numbers of 32 bits: xxh32 of each.
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

-- Paths that the next index run looks at, whatever it finds changed.
CREATE TABLE owed (
    turn INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE
);

-- Notes that must be read again: their words depend on what has changed elsewhere.
CREATE INDEX note_stale ON note (path) WHERE is_gone = 0 AND content_hash = '';
