"""The indexes on disk: one SQLite file, updated note by note; readers follow its changes.

A rebuild makes a new file beside it. A file that is damaged or of another format is discarded:
everything in it can be rebuilt from the notes.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import RelationsSettings
from obsidian_rag.errors import IndexCorrupted, ReadOnly
from obsidian_rag.relations.content import Draft, Terms
from obsidian_rag.relations.packed import (
    BETWEEN_PHRASES,
    Places,
    VectorKind,
    count_distinct,
    pack,
    unpack,
)
from obsidian_rag.relations.templates import AMONG, Lines, NoteLines, Templates
from obsidian_rag.relations.words import (
    LINE_END,
    MUTE,
    NEXT_LINE,
    Vocabulary,
    count_shared_ngrams,
    ngrams,
)
from obsidian_rag.store import Database, Schema, now

FILE = "relations.db"
_NEXT_FILE = "relations-next.db"
_FORMAT = "format"
# Of another version nothing is taken over: the notes are read again.
_SCHEMA = Schema("obsidian_rag.relations", 9)
_CHANGE = "change"
_UPDATED = "updated_at"
MARK = "mark"
# The last change for which the steps over all notes were done.
_COMPLETED = "settled"
MADE_BY = {VectorKind.STATIC: "vectors_of", VectorKind.MEANING: "meanings_of"}
_MAX_GROUPS = 500
_NOTES_PER_BATCH = 500
_UNKNOWN = -1
_FIRST_TERM = NEXT_LINE + 1
_PUT = (
    "number, vault, path, change, content_hash, uid, kind, title, summary, is_daily, is_private,"
    " tags, links, related, words, terms, counts, phrases, places"
)
_OVERWRITE = ", ".join(f"{name} = excluded.{name}" for name in _PUT.split(", "))
_VECTORS = ("vector", "vector_hash", "meaning", "meaning_hash")
# A note without words has no vector. Any other keeps its old vector, which is better than none,
# until there is one of its present text.
_KEEP_VECTORS = ", ".join(
    f"{name} = CASE WHEN excluded.words > 0 THEN"
    f" iif(excluded.vector_hash IS NULL, {name}, excluded.{name}) END"
    for name in _VECTORS[:2]
) + "".join(f", {name} = CASE WHEN excluded.words > 0 THEN {name} END" for name in _VECTORS[2:])


class Rows:
    """Reads and writes the tables; notes are written within `changing`."""

    def __init__(self, database: Database, known_facts: Mapping[str, str] | None = None) -> None:
        self.database = database
        # The facts stored in the file when it was opened.
        self.known_facts = known_facts or {}
        self.templates = Templates(database)
        self._change = 0
        # By vocabulary: the number of each of its terms.
        self._tables: dict[str, NDArray[np.int32]] = {}
        # By link id: the number of each vault.
        self._vaults: dict[str, int] = {}

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """One transaction; its rows get one change number, which readers follow."""
        with self.database.transaction():
            self._change = self.database.add_to(_CHANGE, 1)
            self.database.put(_UPDATED, now())
            yield

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    @property
    def change(self) -> int:
        """The number of the last change."""
        return int(self.database.get(_CHANGE) or 0)

    @property
    def updated_at(self) -> str | None:
        """When something was last written."""
        return self.database.get(_UPDATED)

    @property
    def count(self) -> int:
        """The number of notes."""
        row = self.database.row("SELECT count(*) FROM note WHERE is_gone = 0")
        return cast("int", row[0]) if row else 0

    @property
    def mark(self) -> str | None:
        """The vault state that these indexes are known to match."""
        return self.database.get(MARK)

    @mark.setter
    def mark(self, value: str | None) -> None:
        self.database.put(MARK, value)

    def was_incomplete(self) -> bool:
        """Whether the steps over all notes were out of date when the file was opened."""
        return self.known_facts.get(_CHANGE) != self.known_facts.get(_COMPLETED)

    def mark_complete(self) -> None:
        """Record that the steps over all notes are done for the present state."""
        self.database.run(
            "INSERT OR REPLACE INTO meta (key, value) SELECT ?, value FROM meta WHERE key = ?",
            (_COMPLETED, _CHANGE),
        )

    def vault_number(self, link_id: str, *, is_added: bool = False) -> int:
        """The number of a vault; 0 for an unknown one unless it is added."""
        if link_id not in self._vaults:
            if is_added:
                self.database.run("INSERT OR IGNORE INTO vault (link_id) VALUES (?)", (link_id,))
            self._vaults |= {known: number for number, known in self.link_ids().items()}
        return self._vaults.get(link_id, 0)

    def known_vaults(self) -> list[str]:
        """The link ids of the vaults this writer has used, or of all."""
        return list(self._vaults or self.link_ids().values())

    def link_ids(self) -> dict[int, str]:
        """The link id of each vault, by its number."""
        found = self.database.rows("SELECT number, link_id FROM vault")
        return {cast("int", number): str(link_id) for number, link_id in found}

    def contents(self, link_id: str, paths: Sequence[str] | None = None) -> dict[str, str]:
        """The content hash of a vault's notes at these paths, or of all."""
        query = "SELECT path, content_hash FROM note WHERE is_gone = 0 AND vault = ?"
        values: tuple[object, ...] = (self.vault_number(link_id),)
        if paths is not None:
            query += f" AND path {AMONG}"
            values += (json.dumps(list(paths)),)
        return dict(cast("list[tuple[str, str]]", self.database.rows(query, values)))

    def contents_below(self, link_id: str, paths: Iterable[str]) -> dict[str, str]:
        """The content hashes of these notes and of those below these folders."""
        known: dict[str, str] = {}
        for path in paths:
            # "0" is the character after "/": everything below the folder lies between them.
            found = self.database.rows(
                "SELECT path, content_hash FROM note WHERE is_gone = 0 AND vault = ?"
                " AND (path = ? OR (path > ? AND path < ?))",
                (self.vault_number(link_id), path, f"{path}/", f"{path}0"),
            )
            known.update(cast("list[tuple[str, str]]", found))
        return known

    def move(self, link_id: str, old: str, new: str) -> None:
        """Change a note's path; it keeps its number but has to be read again.

        Its passages may get other vectors too: a file name can be the title.
        """
        vault = self.vault_number(link_id)
        # A removed note keeps its row, for readers that have not seen the removal yet.
        self.database.run(
            "UPDATE note SET path = '//' || number WHERE vault = ? AND path = ? AND is_gone = 1",
            (vault, new),
        )
        self.database.run(
            "UPDATE note SET path = ?, change = ?, content_hash = '', vector_hash = NULL,"
            " meaning_hash = NULL WHERE vault = ? AND path = ?",
            (new, self._change, vault, old),
        )

    def put(self, link_id: str, drafts: Sequence[Draft], *, with_places: bool = True) -> None:
        """Write notes of a vault into all indexes, replacing what was there."""
        vault = self.vault_number(link_id, is_added=True)
        numbers = self._numbers(vault, [draft.content.path for draft in drafts])
        self._add_terms([draft.fresh for draft in drafts])
        templates = self.templates.array()
        columns = f"{_PUT}, vector, vector_hash"
        self.database.run_many(
            f"INSERT INTO note ({columns}) VALUES ({', '.join('?' * len(columns.split(', ')))})"
            f" ON CONFLICT (number) DO UPDATE SET is_gone = 0, {_OVERWRITE}, {_KEEP_VECTORS}",
            (
                (
                    numbers[draft.content.path],
                    vault,
                    *self._row(draft, templates, with_places),
                )
                for draft in drafts
            ),
        )
        self.templates.write({numbers[draft.content.path]: draft.content.lines for draft in drafts})

    def _row(self, draft: Draft, templates: Lines, with_places: bool) -> tuple[object, ...]:
        content = draft.content
        table = self._tables[draft.fresh.vocabulary]
        is_term = content.stream > NEXT_LINE
        steps = np.cumsum(content.stream == NEXT_LINE, dtype=np.int32)
        places = Places(table[content.stream[is_term]], content.lines.first + steps[is_term])
        counts = _count_terms(_without_templates(places, content.lines, templates).terms)
        phrases: list[int] = []
        for phrase in content.phrases:
            phrases += [*table[list(phrase)].tolist(), BETWEEN_PHRASES]
        return (
            content.path,
            self._change,
            draft.content_hash,
            content.uid,
            content.kind,
            content.title,
            content.summary,
            content.is_daily,
            content.is_private,
            _json(content.tags),
            _json(content.links),
            _json([asdict(one) for one in content.related]),
            *counts,
            np.array(phrases, dtype=np.int32).tobytes(),
            pack(places.terms, places.lines) if with_places else None,
            *((draft.vector, draft.vector_hash) if counts[0] else (None, None)),
        )

    def remove(self, link_id: str, path: str) -> None:
        """Remove a note from all indexes; its number stays reserved in case it comes back."""
        number = self._numbers(self.vault_number(link_id), [path])[path]
        self.database.run(
            "UPDATE note SET is_gone = 1, change = ?, content_hash = '', uid = NULL, kind = '',"
            " title = '', summary = '', tags = '[]', links = '[]', related = '[]', words = 0,"
            " terms = x'', counts = x'', phrases = x'', places = NULL, vector = NULL,"
            " vector_hash = NULL, meaning = NULL, meaning_hash = NULL WHERE number = ?",
            (self._change, number),
        )
        self.templates.remove(number)

    def update_templates(self) -> None:
        """Find out which lines come from templates, and recount the notes that contain them.

        Notes without stored positions become stale.
        """
        lines = self.templates.shared(self.count)
        if lines != self.templates.lines():
            with self.database.transaction():
                self._recount(self.templates.adopt(lines))

    def _recount(self, concerned: Sequence[int]) -> None:
        with self.changing():
            for start in range(0, len(concerned), _NOTES_PER_BATCH):
                few = concerned[start : start + _NOTES_PER_BATCH]
                kept = self.places(few)
                self.database.run_many(
                    "UPDATE note SET words = ?1, terms = ?2, counts = ?3, change = ?4, "
                    + ", ".join(f"{name} = iif(?1 > 0, {name}, NULL)" for name in _VECTORS)
                    + " WHERE number = ?5",
                    (
                        (*_count_terms(own.terms), self._change, number)
                        for number, own in kept.items()
                    ),
                )
                self.database.run_many(
                    "UPDATE note SET content_hash = '' WHERE number = ?",
                    ((number,) for number in few if number not in kept),
                )

    def stale(self, link_id: str) -> list[str]:
        """Unchanged notes of a vault that have to be read again."""
        found = self.database.rows(
            "SELECT path FROM note WHERE vault = ? AND is_gone = 0 AND content_hash = ''"
            " ORDER BY path",
            (self.vault_number(link_id),),
        )
        return [str(path) for (path,) in found]

    def put_vectors(
        self,
        link_id: str,
        vectors: Iterable[tuple[str, str, bytes | None]],
        kind: VectorKind = VectorKind.STATIC,
    ) -> None:
        """Write vectors of a vault's notes: path, content hash, and the bytes if any."""
        vault = self.vault_number(link_id)
        self.database.run_many(
            f"UPDATE note SET {kind}_hash = ?, {kind} = ?, change = ? WHERE vault = ? AND path = ?",
            ((of, data, self._change, vault, path) for path, of, data in vectors),
        )

    def vectors_made_by(self, kind: VectorKind) -> str:
        """What made the vectors of a kind; empty if there are none."""
        return self.database.get(MADE_BY[kind]) or ""

    def expect_vectors_of(self, made_by: str) -> None:
        """Mark vectors made by anything else as outdated; they are kept until replaced."""
        if self.vectors_made_by(VectorKind.STATIC) != made_by:
            with self.database.transaction():
                self.database.run("UPDATE note SET vector_hash = NULL")
                self.database.put(MADE_BY[VectorKind.STATIC], made_by)
                self.database.put(_COMPLETED, None)

    def expect_meanings_of(self, made_by: str) -> None:
        """Delete meaning vectors of another model: for hours they would mix with the new ones."""
        if self.vectors_made_by(VectorKind.MEANING) != made_by:
            with self.changing():
                self.database.run(
                    "UPDATE note SET meaning = NULL, meaning_hash = NULL, change = ?"
                    " WHERE meaning_hash IS NOT NULL",
                    (self._change,),
                )
                self.database.put(MADE_BY[VectorKind.MEANING], made_by)

    def with_vector(self, kind: VectorKind) -> int:
        """How many notes have a vector of this kind."""
        row = self.database.row(
            f"SELECT count(*) FROM note WHERE is_gone = 0 AND {kind} IS NOT NULL"
        )
        return cast("int", row[0]) if row else 0

    def without_vector(self, link_id: str, kind: VectorKind = VectorKind.STATIC) -> dict[str, str]:
        """A vault's notes whose vector is missing or outdated, with their content hashes."""
        found = self.database.rows(
            "SELECT path, content_hash FROM note WHERE vault = ?"
            f" AND is_gone = 0 AND words > 0 AND {kind}_hash IS NOT content_hash",
            (self.vault_number(link_id),),
        )
        return {str(path): str(of) for path, of in found}

    def places(self, numbers: Sequence[int]) -> dict[int, Places]:
        """The term positions of these notes, where they were stored; template lines excluded."""
        found = self.database.rows(
            f"SELECT number, places FROM note WHERE places IS NOT NULL AND number {AMONG}",
            (json.dumps(numbers),),
        )
        with self.database.decoding():
            lines, templates = self.templates.lines_of(numbers), self.templates.array()
            kept = {cast("int", number): unpack(cast("bytes", data)) for number, data in found}
            return {
                number: _without_templates(places, lines[number], templates)
                for number, places in kept.items()
            }

    def numbers_of(self, vocabulary: Vocabulary, read: Sequence[int]) -> NDArray[np.int32]:
        """The numbers of the terms that a vocabulary read, in order, without unknown terms."""
        terms = vocabulary.terms[_FIRST_TERM:]
        known = self._find_numbers(terms)
        table = [MUTE, NEXT_LINE, *(known.get(term, _UNKNOWN) for term in terms)]
        found = (table[number] for number in read)
        return np.array([number for number in found if number != _UNKNOWN], dtype=np.int32)

    def _add_terms(self, fresh_terms: Iterable[Terms]) -> None:
        """Number the terms new in these lists."""
        by_vocabulary: dict[str, tuple[list[str], list[str]]] = {}
        for vocabulary, terms, words in fresh_terms:
            all_terms, all_words = by_vocabulary.setdefault(vocabulary, ([], []))
            all_terms += terms
            all_words += words
        for vocabulary, (terms, words) in by_vocabulary.items():
            known = self._find_numbers(terms) | {"": MUTE, LINE_END: NEXT_LINE}
            added = {
                term: word for term, word in zip(terms, words, strict=True) if term not in known
            }
            if added:
                known |= self._insert_terms(added)
            numbers = np.array([known[term] for term in terms], dtype=np.int32)
            table = self._tables.get(vocabulary, np.empty(0, dtype=np.int32))
            self._tables[vocabulary] = np.append(table, numbers)

    def _insert_terms(self, added: Mapping[str, str]) -> dict[str, int]:
        """Write new terms, each with one of its words; returns their numbers."""
        row = self.database.row("SELECT coalesce(max(number), ?) FROM term", (NEXT_LINE,))
        last = cast("int", row[0]) if row else NEXT_LINE
        numbers = {term: last + at for at, term in enumerate(added, start=1)}
        new = [(number, term, added[term]) for term, number in numbers.items()]
        self.database.run(
            "INSERT INTO term (number, term, word) SELECT json_extract(value, '$[0]'),"
            " json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?)",
            (json.dumps(new),),
        )
        return numbers

    def _find_numbers(self, terms: Sequence[str]) -> dict[str, int]:
        found = self.database.rows(
            f"SELECT term, number FROM term WHERE term {AMONG}", (json.dumps(terms),)
        )
        return dict(cast("list[tuple[str, int]]", found))

    def terms_of(self, numbers: Iterable[int]) -> dict[int, tuple[str, str]]:
        """The terms of these numbers, each with one of its words."""
        found = self.database.rows(
            f"SELECT number, term, word FROM term WHERE number {AMONG}",
            (json.dumps(list(numbers)),),
        )
        return {cast("int", number): (str(term), str(word)) for number, term, word in found}

    def alike(
        self, link_id: str, text: str, ngram_size: int, limit: int
    ) -> list[tuple[int, float]]:
        """A vault's notes whose title or summary shares n-grams with a text, best first."""
        groups = ngrams(text, ngram_size)[:_MAX_GROUPS]
        if not groups:
            return []
        found = self.database.rows(
            "SELECT number, path, title, summary FROM note WHERE is_gone = 0 AND vault = ?",
            (self.vault_number(link_id),),
        )
        scored = []
        for number, path, title, summary in found:
            shared = count_shared_ngrams(groups, f"{title} {summary}", ngram_size)
            if shared:
                scored.append((-shared, str(path), cast("int", number)))
        return [(number, -shared / len(groups)) for shared, _, number in sorted(scored)[:limit]]

    def _numbers(self, vault: int, paths: Sequence[str]) -> dict[str, int]:
        """The numbers of these notes; new notes get the next free ones."""
        found = self.database.rows(
            f"SELECT path, number FROM note WHERE vault = ? AND path {AMONG}",
            (vault, json.dumps(paths)),
        )
        numbers = dict(cast("list[tuple[str, int]]", found))
        unknown = [path for path in paths if path not in numbers]
        if unknown:
            row = self.database.row("SELECT coalesce(max(number), 0) FROM note")
            last = cast("int", row[0]) if row else 0
            numbers |= {path: last + at for at, path in enumerate(unknown, start=1)}
        return numbers


def _without_templates(places: Places, lines: NoteLines, templates: Lines) -> Places:
    """The terms on lines that are not from templates."""
    if not len(templates):
        return places
    is_own = lines.is_own(places.lines, templates)
    return Places(places.terms[is_own], places.lines[is_own])


def _count_terms(terms: NDArray[np.int32]) -> tuple[int, bytes, bytes]:
    """The number of terms, the distinct terms, and the count of each."""
    different, counts = count_distinct(terms)
    many = np.minimum(counts, 0xFFFF).astype(np.uint16)
    return len(terms), different.tobytes(), many.tobytes()


def _json(value: Sequence[object]) -> str:
    return json.dumps(value, ensure_ascii=False) if value else "[]"


def format_of(settings: RelationsSettings) -> str:
    """Identifies how indexes were built: our version, and how notes are read."""
    made_by = (settings.max_chars, settings.store_positions)
    # With auto_add_ids on, all notes need ids, not only those that change.
    return f"{_SCHEMA.version} {made_by} {settings.discount_boilerplate} {settings.auto_add_ids}"


def open_rows(home: Path, wanted: str) -> Rows:
    """Open the indexes for writing; damaged ones, and ones of another format, start empty."""
    return find_rows(home, wanted) or _new_rows(home, wanted, FILE)


def begin_anew(home: Path, wanted: str) -> Rows:
    """New indexes beside those in use; `promote` replaces the old ones."""
    return _new_rows(home, wanted, _NEXT_FILE)


def promote(home: Path) -> None:
    """Replace the indexes in use with the new ones, which must be closed.

    Between the two steps there are none; a process that dies there leaves a rebuild to the next.
    """
    discard(home)
    (home / _NEXT_FILE).rename(home / FILE)


def _new_rows(home: Path, wanted: str, name: str) -> Rows:
    discard(home, name)
    made = Rows(Database(home / name, _SCHEMA))
    made.database.put(_FORMAT, wanted)
    return made


def find_rows(home: Path, wanted: str, *, is_strict: bool = False) -> Rows | None:
    """Open the indexes; None if they are missing, damaged or of another format.

    Raises:
        IndexCorrupted: they are damaged, and `is_strict` is set.
    """
    if not (home / FILE).exists():
        return None
    try:
        database = Database(home / FILE, _SCHEMA)
        rows = Rows(database, database.facts())
        if rows.known_facts.get(_FORMAT) == wanted:
            return rows
    except IndexCorrupted:
        if is_strict:
            raise
        return None
    rows.close()
    return None


def discard(home: Path, name: str = FILE) -> None:
    """Remove the file; everything in it can be rebuilt.

    Raises:
        ReadOnly: it cannot be removed.
    """
    for suffix in ("", "-wal", "-shm"):
        file = home / f"{name}{suffix}"
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise ReadOnly(
                f"{file} is damaged and cannot be removed ({error.strerror}).",
                "Make the folder writable, then run `obsidian-rag sync`.",
            ) from error


def forget_notes(rows: Rows, link_id: str) -> int:
    """Remove all notes of a vault; returns their number."""
    paths = list(rows.contents(link_id))
    if paths:
        with rows.changing():
            for path in paths:
                rows.remove(link_id, path)
    return len(paths)
