"""The six indexes on disk: one SQLite file, changed note by note, followed by its readers."""

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import cast

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.relations.content import Draft, Terms
from obsidian_rag.relations.kinds import Kind
from obsidian_rag.relations.packed import BETWEEN_PHRASES, Places, counted, packed, unpacked
from obsidian_rag.relations.templates import AMONG, Lines, NoteLines, Templates
from obsidian_rag.relations.words import LINE_END, MUTE, NEXT_LINE, Speller, letter_groups
from obsidian_rag.store import Database, now

_CHANGE = "change"
_UPDATED = "updated_at"
_MARK = "mark"
_UNSETTLED = "unsettled"
_MADE_BY = {Kind.STATIC: "vectors_of", Kind.MEANING: "meanings_of"}
_MOST_GROUPS = 500
_NOTES_AT_ONCE = 500
_UNKNOWN = -1
_FIRST_TERM = NEXT_LINE + 1
_PUT = (
    "number, vault, path, change, content_hash, uid, kind, title, summary, is_daily, is_private,"
    " tags, links, related, words, terms, counts, phrases, places"
)
_PUT_AGAIN = ", ".join(f"{name} = excluded.{name}" for name in _PUT.split(", "))
_VECTORS = ("vector", "vector_hash", "meaning", "meaning_hash")
# A note without words has no vector. Of another, the vector of what it said before is better than
# none until there is one of its present text.
_KEPT = ", ".join(
    f"{name} = CASE WHEN excluded.words > 0 THEN"
    f" iif(excluded.vector_hash IS NULL, {name}, excluded.{name}) END"
    for name in _VECTORS[:2]
) + "".join(f", {name} = CASE WHEN excluded.words > 0 THEN {name} END" for name in _VECTORS[2:])


class Rows:
    """Reads and writes the tables; notes are written within `changing`."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.templates = Templates(database)
        self._change = 0
        self._last_number = 0
        # By speller: the number of each of its terms.
        self._tables: dict[str, NDArray[np.int32]] = {}
        # By link id: the number of each vault.
        self._vaults: dict[str, int] = {}

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """One transaction; all it writes has one number, by which readers follow."""
        with self.database.transaction():
            last = self.database.row("SELECT coalesce(max(number), 0) FROM note")
            self._last_number = cast("int", last[0]) if last else 0
            self._change = self.change + 1
            self.database.put(_CHANGE, str(self._change))
            self.database.put(_UPDATED, now())
            yield

    def close(self) -> None:
        """Let go of the file."""
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
        """How many notes there are."""
        row = self.database.row("SELECT count(*) FROM note WHERE is_gone = 0")
        return cast("int", row[0]) if row else 0

    @property
    def mark(self) -> str | None:
        """What state of the vault these indexes are known to agree with."""
        return self.database.get(_MARK)

    @mark.setter
    def mark(self, value: str | None) -> None:
        self.database.put(_MARK, value)

    @property
    def is_unsettled(self) -> bool:
        """Whether notes were written since what depends on all notes was done."""
        return self.database.get(_UNSETTLED) is not None

    @is_unsettled.setter
    def is_unsettled(self, value: bool) -> None:
        self.database.put(_UNSETTLED, "1" if value else None)

    def vault_number(self, link_id: str, *, is_added: bool = False) -> int:
        """The number of a vault; one that no note is of has 0 unless it is added."""
        if link_id not in self._vaults:
            if is_added:
                self.database.run("INSERT OR IGNORE INTO vault (link_id) VALUES (?)", (link_id,))
            self._vaults |= {known: number for number, known in self.link_ids().items()}
        return self._vaults.get(link_id, 0)

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
        """The same of these notes, and of those below these folders."""
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
        """A note has another path: it stays the note it was, but it has to be read again.

        Its passages may have other vectors as well: the name of a file can be its title.
        """
        vault = self.vault_number(link_id)
        # A note that was there and is gone stays known, for readers that have yet to hear of it.
        self.database.run(
            "UPDATE note SET path = '//' || number WHERE vault = ? AND path = ? AND is_gone = 1",
            (vault, new),
        )
        self.database.run(
            "UPDATE note SET path = ?, change = ?, content_hash = '', vector_hash = NULL,"
            " meaning_hash = NULL WHERE vault = ? AND path = ?",
            (new, self._change, vault, old),
        )

    def put(
        self, link_id: str, drafts: Sequence[Draft], *, ngram_size: int, with_places: bool = True
    ) -> None:
        """Write notes of a vault into all indexes, in place of what they held of them."""
        vault = self.vault_number(link_id, is_added=True)
        numbers = self._clear(vault, [draft.content.path for draft in drafts], ngram_size)
        self._add_terms([draft.fresh for draft in drafts])
        templates = self.templates.array()
        columns = f"{_PUT}, vector, vector_hash"
        self.database.run_many(
            f"INSERT INTO note ({columns}) VALUES ({', '.join('?' * len(columns.split(', ')))})"
            f" ON CONFLICT (number) DO UPDATE SET is_gone = 0, {_PUT_AGAIN}, {_KEPT}",
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
        self._count_tags((draft.content.tags for draft in drafts), 1)
        groups = [
            row
            for content, *_ in drafts
            for row in _letters(numbers[content.path], content.title, content.summary, ngram_size)
        ]
        # In the order of the table: one that jumps about in it takes three times as long.
        groups.sort()
        self.database.run_many(
            "INSERT OR IGNORE INTO letter_group (letters, number) VALUES (?, ?)", groups
        )

    def _row(self, draft: Draft, templates: Lines, with_places: bool) -> tuple[object, ...]:
        content = draft.content
        table = self._tables[draft.fresh.speller]
        is_term = content.stream > NEXT_LINE
        steps = np.cumsum(content.stream == NEXT_LINE, dtype=np.int32)
        places = Places(table[content.stream[is_term]], content.lines.first + steps[is_term])
        counts = _counts(_own(places, content.lines, templates).terms)
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
            packed(places.terms, places.lines) if with_places else None,
            *((draft.vector, draft.vector_hash) if counts[0] else (None, None)),
        )

    def remove(self, link_id: str, path: str, ngram_size: int) -> None:
        """Take a note out of all indexes; its number stays its own, should it come back."""
        number = self._clear(self.vault_number(link_id), [path], ngram_size)[path]
        self.database.run(
            "UPDATE note SET is_gone = 1, change = ?, content_hash = '', uid = NULL, kind = '',"
            " title = '', summary = '', tags = '[]', links = '[]', related = '[]', words = 0,"
            " terms = x'', counts = x'', phrases = x'', places = NULL, vector = NULL,"
            " vector_hash = NULL, meaning = NULL, meaning_hash = NULL WHERE number = ?",
            (self._change, number),
        )
        self.templates.remove(number)

    def settle(self) -> list[tuple[str, str]]:
        """Find out which lines come from templates, and count the notes that have them again.

        Tells link id and path of those that must be read for that: their places were not kept.
        """
        with self.database.transaction():
            concerned = self.templates.adopt(self.templates.shared(self.count))
            if concerned:
                self._count_again(concerned)
        return self.stale()

    def _count_again(self, concerned: Sequence[int]) -> None:
        with self.changing():
            for start in range(0, len(concerned), _NOTES_AT_ONCE):
                few = concerned[start : start + _NOTES_AT_ONCE]
                kept = self.places(few)
                self.database.run_many(
                    "UPDATE note SET words = ?1, terms = ?2, counts = ?3, change = ?4, "
                    + ", ".join(f"{name} = iif(?1 > 0, {name}, NULL)" for name in _VECTORS)
                    + " WHERE number = ?5",
                    ((*_counts(own.terms), self._change, number) for number, own in kept.items()),
                )
                self.database.run_many(
                    "UPDATE note SET content_hash = '' WHERE number = ?",
                    ((number,) for number in few if number not in kept),
                )

    def stale(self) -> list[tuple[str, str]]:
        """The notes that have to be read again although they did not change."""
        links = self.link_ids()
        found = self.database.rows(
            "SELECT vault, path FROM note WHERE is_gone = 0 AND content_hash = ''"
            " ORDER BY vault, path"
        )
        return [(links[cast("int", vault)], str(path)) for vault, path in found]

    def put_vectors(
        self,
        link_id: str,
        vectors: Iterable[tuple[str, str, bytes | None]],
        kind: Kind = Kind.STATIC,
    ) -> None:
        """Write vectors of a vault's notes: path, the content it is of, its bytes if any."""
        vault = self.vault_number(link_id)
        self.database.run_many(
            f"UPDATE note SET {kind}_hash = ?, {kind} = ?, change = ? WHERE vault = ? AND path = ?",
            ((of, data, self._change, vault, path) for path, of, data in vectors),
        )

    def vectors_made_by(self, kind: Kind) -> str:
        """What made the vectors of a kind; empty if nothing did."""
        return self.database.get(_MADE_BY[kind]) or ""

    def expect_vectors_of(self, made_by: str) -> None:
        """Vectors that were not made so have to be made again; until then they are kept."""
        if self.vectors_made_by(Kind.STATIC) != made_by:
            with self.database.transaction():
                self.database.run("UPDATE note SET vector_hash = NULL")
                self.database.put(_MADE_BY[Kind.STATIC], made_by)
                self.is_unsettled = True

    def expect_meanings_of(self, made_by: str) -> None:
        """Meaning vectors that another model made go: they would mix for hours with the new."""
        if self.vectors_made_by(Kind.MEANING) != made_by:
            with self.changing():
                self.database.run(
                    "UPDATE note SET meaning = NULL, meaning_hash = NULL, change = ?"
                    " WHERE meaning_hash IS NOT NULL",
                    (self._change,),
                )
                self.database.put(_MADE_BY[Kind.MEANING], made_by)

    def with_vector(self, kind: Kind) -> int:
        """How many notes have a vector of this kind."""
        row = self.database.row(
            f"SELECT count(*) FROM note WHERE is_gone = 0 AND {kind} IS NOT NULL"
        )
        return cast("int", row[0]) if row else 0

    def without_vector(self, link_id: str, kind: Kind = Kind.STATIC) -> dict[str, str]:
        """A vault's notes whose vector is missing or of an older content, with their content."""
        found = self.database.rows(
            "SELECT path, content_hash FROM note WHERE vault = ?"
            f" AND is_gone = 0 AND words > 0 AND {kind}_hash IS NOT content_hash",
            (self.vault_number(link_id),),
        )
        return {str(path): str(of) for path, of in found}

    def places(self, numbers: Sequence[int]) -> dict[int, Places]:
        """Where the terms of these notes stand, for those of which it is known.

        Lines that come from templates have none.
        """
        found = self.database.rows(
            f"SELECT number, places FROM note WHERE places IS NOT NULL AND number {AMONG}",
            (json.dumps(numbers),),
        )
        with self.database.decoding():
            lines, templates = self.templates.lines_of(numbers), self.templates.array()
            kept = {cast("int", number): unpacked(cast("bytes", data)) for number, data in found}
            return {
                number: _own(places, lines[number], templates) for number, places in kept.items()
            }

    def numbers_of(self, speller: Speller, read: Sequence[int]) -> NDArray[np.int32]:
        """The numbers of the terms that a speller read, in their order, of those that have one."""
        terms = speller.terms[_FIRST_TERM:]
        known = self._known(terms)
        table = [MUTE, NEXT_LINE, *(known.get(term, _UNKNOWN) for term in terms)]
        found = (table[number] for number in read)
        return np.array([number for number in found if number != _UNKNOWN], dtype=np.int32)

    def _add_terms(self, told: Iterable[Terms]) -> None:
        """Number the terms that spellers tell of."""
        by_speller: dict[str, tuple[list[str], list[str]]] = {}
        for speller, terms, words in told:
            all_terms, all_words = by_speller.setdefault(speller, ([], []))
            all_terms += terms
            all_words += words
        for speller, (terms, words) in by_speller.items():
            known = self._known(terms) | {"": MUTE, LINE_END: NEXT_LINE}
            row = self.database.row("SELECT coalesce(max(number), ?) FROM term", (NEXT_LINE,))
            last = cast("int", row[0]) if row else NEXT_LINE
            added = []
            for term, word in zip(terms, words, strict=True):
                if term not in known:
                    last += 1
                    known[term] = last
                    added.append((last, term, word))
            self.database.run_many("INSERT INTO term (number, term, word) VALUES (?, ?, ?)", added)
            numbers = np.array([known[term] for term in terms], dtype=np.int32)
            table = self._tables.get(speller, np.empty(0, dtype=np.int32))
            self._tables[speller] = np.append(table, numbers)

    def _known(self, terms: Sequence[str]) -> dict[str, int]:
        found = self.database.rows(
            f"SELECT term, number FROM term WHERE term {AMONG}", (json.dumps(terms),)
        )
        return dict(cast("list[tuple[str, int]]", found))

    def terms_of(self, numbers: Iterable[int]) -> dict[int, tuple[str, str]]:
        """The terms behind some numbers, each with a word that was once read as it."""
        found = self.database.rows(
            f"SELECT number, term, word FROM term WHERE number {AMONG}",
            (json.dumps(list(numbers)),),
        )
        return {cast("int", number): (str(term), str(word)) for number, term, word in found}

    def alike(
        self, link_id: str, text: str, ngram_size: int, limit: int
    ) -> list[tuple[int, float]]:
        """A vault's notes whose title or summary shares letter groups with a text, best first."""
        groups = letter_groups(text, ngram_size)[:_MOST_GROUPS]
        if not groups:
            return []
        found = self.database.rows(
            "SELECT number, shared FROM (SELECT number, count(*) AS shared FROM letter_group"
            f" WHERE letters {AMONG} GROUP BY number) JOIN note USING (number)"
            " WHERE vault = ? ORDER BY shared DESC, path LIMIT ?",
            (json.dumps(groups), self.vault_number(link_id), limit),
        )
        return [(cast("int", n), cast("int", shared) / len(groups)) for n, shared in found]

    def tags_beside(self, tag: str, limit: int) -> list[tuple[str, int]]:
        """Tags that stand in the same notes as this one, most often first."""
        found = self.database.rows(
            "SELECT CASE first WHEN ?1 THEN second ELSE first END, notes FROM tag_pair"
            " WHERE (first = ?1 OR second = ?1) AND first <> second"
            " ORDER BY notes DESC, first, second LIMIT ?2",
            (tag, limit),
        )
        return cast("list[tuple[str, int]]", found)

    def _clear(self, vault: int, paths: Sequence[str], ngram_size: int) -> dict[str, int]:
        """Take notes' rows out of the shared indexes; the numbers of all, new ones too."""
        numbers: dict[str, int] = {}
        tags, groups = [], []
        found = self.database.rows(
            f"SELECT path, number, tags, title, summary FROM note WHERE vault = ? AND path {AMONG}",
            (vault, json.dumps(paths)),
        )
        for row in found:
            path, number, tags_of, title, summary = cast("tuple[str, int, str, str, str]", row)
            numbers[path] = number
            tags.append(json.loads(tags_of))
            groups += _letters(number, title, summary, ngram_size)
        self._count_tags(tags, -1)
        self.database.run_many("DELETE FROM letter_group WHERE letters = ? AND number = ?", groups)
        for path in paths:
            if path not in numbers:
                self._last_number += 1
                numbers[path] = self._last_number
        return numbers

    def _count_tags(self, notes: Iterable[Sequence[str]], amount: int) -> None:
        pairs: Counter[tuple[str, str]] = Counter()
        for tags in notes:
            pairs.update(itertools.combinations_with_replacement(sorted(tags), 2))
        self.database.run_many(
            "INSERT INTO tag_pair (first, second, notes) VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET notes = notes + excluded.notes",
            [(*pair, amount * count) for pair, count in pairs.items()],
        )
        if amount < 0:
            self.database.run_many(
                "DELETE FROM tag_pair WHERE first = ? AND second = ? AND notes <= 0", list(pairs)
            )


def _letters(number: int, title: str, summary: str, ngram_size: int) -> list[tuple[str, int]]:
    """A note's rows of the letter groups: what is written, and later taken out again."""
    return [(letters, number) for letters in letter_groups(f"{title} {summary}", ngram_size)]


def _own(places: Places, lines: NoteLines, templates: Lines) -> Places:
    """The terms on lines that do not come from templates."""
    if not len(templates):
        return places
    is_own = lines.is_own(places.lines, templates)
    return Places(places.terms[is_own], places.lines[is_own])


def _counts(terms: NDArray[np.int32]) -> tuple[int, bytes, bytes]:
    """How many terms there are, which ones, and how often each."""
    different, counts = counted(terms)
    many = np.minimum(counts, 0xFFFF).astype(np.uint16)
    return len(terms), different.tobytes(), many.tobytes()


def _json(value: Sequence[object]) -> str:
    return json.dumps(value, ensure_ascii=False) if value else "[]"
