-- A note is owed to the index and to related notes alike: one row per file. What the two agree on is
-- found out by the next run.

INSERT INTO sync_queue (link_id, rel_path, consumer, change_type, enqueued_at, updated_at)
    SELECT link_id, rel_path, 'chunks', 'update', enqueued_at, updated_at FROM sync_queue
    WHERE consumer = 'relations'
    ON CONFLICT DO NOTHING;
DELETE FROM sync_queue WHERE consumer = 'relations';
DROP INDEX sync_queue_one_per_file;
ALTER TABLE sync_queue DROP COLUMN consumer;
CREATE UNIQUE INDEX sync_queue_one_per_file ON sync_queue (link_id, rel_path);
DELETE FROM meta WHERE key = 'consumer_mark';
