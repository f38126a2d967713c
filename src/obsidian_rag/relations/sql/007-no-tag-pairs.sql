-- Nothing read the pairs of tags, and a note with 2,000 tags wrote two million of them.

DROP TABLE tag_pair;
