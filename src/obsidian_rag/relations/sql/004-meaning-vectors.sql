-- The vector that a transformer's vectors of the passages make, beside the static one.

ALTER TABLE note ADD COLUMN meaning BLOB;
ALTER TABLE note ADD COLUMN meaning_hash TEXT;

CREATE INDEX note_without_meaning ON note (path, content_hash)
    WHERE is_gone = 0 AND words > 0 AND meaning_hash IS NOT content_hash;
-- How many have one, without reading the pages of all notes.
CREATE INDEX note_with_vector ON note (number) WHERE is_gone = 0 AND vector IS NOT NULL;
CREATE INDEX note_with_meaning ON note (number) WHERE is_gone = 0 AND meaning IS NOT NULL;
