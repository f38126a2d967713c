-- Several vaults: each link has a name, may be narrowed to some paths, and can be paused. What an
-- index run remembers of one vault is kept per link. Facts name their vault.

ALTER TABLE vault_link ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE vault_link ADD COLUMN include TEXT NOT NULL DEFAULT '[]';
ALTER TABLE vault_link ADD COLUMN exclude TEXT NOT NULL DEFAULT '[]';
ALTER TABLE vault_link ADD COLUMN is_paused INTEGER NOT NULL DEFAULT 0;
UPDATE vault_link SET mode = 'read_write' WHERE is_primary = 1;
-- A link from before has its folder's name until it is written again.
CREATE UNIQUE INDEX vault_link_one_name ON vault_link (name) WHERE name <> '';

CREATE TABLE link_fact (
    link_id TEXT NOT NULL REFERENCES vault_link (link_id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (link_id, key)
) WITHOUT ROWID;
INSERT INTO link_fact (link_id, key, value)
    SELECT link_id, key, value FROM meta JOIN vault_link ON is_primary = 1
    WHERE key IN ('made_of', 'vault_away', 'first_index_unfinished', 'newest_note_ns');
DELETE FROM meta
    WHERE key IN ('made_of', 'vault_away', 'first_index_unfinished', 'newest_note_ns');
-- Related notes of before are made again, so nothing is known to agree with them.
DELETE FROM meta WHERE key = 'consumer_mark';

-- Not a reference: a fact outlives the vault that it was read in. NULL is the primary vault.
ALTER TABLE memory ADD COLUMN link_id TEXT;
