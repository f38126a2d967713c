-- The letters of titles are compared when somebody asks: no edit has to write them.

DROP TABLE letter_group;
