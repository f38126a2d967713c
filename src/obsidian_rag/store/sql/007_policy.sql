-- What a note's `rag` property allowed when its file was indexed; NULL where that is not known, as of
-- a file that could not be read, and of every file that was indexed before.

ALTER TABLE vault_file_index_state ADD COLUMN policy TEXT;
ALTER TABLE rebuild_index_state ADD COLUMN policy TEXT;
