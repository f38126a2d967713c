-- Work is owed per consumer of a parsed note: the chunk table, and what relates notes.

ALTER TABLE sync_queue ADD COLUMN consumer TEXT NOT NULL DEFAULT 'chunks';
DROP INDEX sync_queue_one_per_file;
CREATE UNIQUE INDEX sync_queue_one_per_file ON sync_queue (link_id, rel_path, consumer);
