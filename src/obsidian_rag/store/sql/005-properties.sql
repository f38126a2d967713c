-- Property names and values are stored once, and notes are known by a number: a vault's notes have
-- much the same properties.

CREATE TABLE note (
    note_id INTEGER PRIMARY KEY,
    link_id TEXT NOT NULL REFERENCES vault_link (link_id) ON DELETE CASCADE,
    rel_path TEXT NOT NULL,
    UNIQUE (link_id, rel_path)
);
CREATE TABLE property_name (
    name_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
CREATE TABLE property_value (
    value_id INTEGER PRIMARY KEY,
    value TEXT NOT NULL UNIQUE,
    number REAL
);

ALTER TABLE note_property RENAME TO note_property_before;
DROP INDEX note_property_by_value;
CREATE TABLE note_property (
    note_id INTEGER NOT NULL REFERENCES note (note_id) ON DELETE CASCADE,
    name_id INTEGER NOT NULL REFERENCES property_name (name_id),
    value_id INTEGER NOT NULL REFERENCES property_value (value_id),
    PRIMARY KEY (note_id, name_id, value_id)
) WITHOUT ROWID;
CREATE INDEX note_property_by_value ON note_property (name_id, value_id);

INSERT INTO note (link_id, rel_path) SELECT DISTINCT link_id, rel_path FROM note_property_before;
INSERT INTO property_name (name) SELECT DISTINCT key FROM note_property_before;
INSERT INTO property_value (value, number)
    SELECT value, max(number) FROM note_property_before GROUP BY value;
INSERT INTO note_property (note_id, name_id, value_id)
    SELECT note_id, name_id, value_id FROM note_property_before AS before
    JOIN note USING (link_id, rel_path)
    JOIN property_name ON name = before.key
    JOIN property_value USING (value);
DROP TABLE note_property_before;
