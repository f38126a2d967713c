-- Questions about all notes that must not read all their pages.

CREATE INDEX note_present ON note (path) WHERE is_gone = 0;
CREATE INDEX note_without_vector ON note (path, content_hash)
    WHERE is_gone = 0 AND words > 0 AND vector_hash IS NOT content_hash;
