-- The index says which files changed; what it owes to related notes is in its own queue. Indexes
-- made before are made again.

DELETE FROM note;
DELETE FROM note_line;
DROP TABLE owed;
ALTER TABLE note DROP COLUMN size_bytes;
ALTER TABLE note DROP COLUMN mtime_ns;
ALTER TABLE note DROP COLUMN file_id;

-- `lines` has the lines of a note in their order: which of them are blank, and xxh32 of the others.
-- `places` has all terms of a note, also those on lines that come from templates.
