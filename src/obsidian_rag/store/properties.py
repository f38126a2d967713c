"""Properties of notes, for filters on them."""

import contextlib
import json
from collections.abc import Iterable

from obsidian_rag.store.database import Database

_JOIN = (
    "note_property JOIN note USING (note_id) JOIN property_name USING (name_id)"
    " JOIN property_value USING (value_id)"
)


class Properties:
    """The table `note_property`: names and values in lower case, each stored once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, link_id: str, notes: Iterable[tuple[str, tuple[tuple[str, str], ...]]]) -> None:
        """Replace the properties of these notes; writes only changes, as most edits make none."""
        given = {path: dict.fromkeys(pairs) for path, pairs in notes}
        before = self._load(link_id, given)
        listed = [
            (path, pairs) for path, pairs in given.items() if before.get(path, set()) != {*pairs}
        ]
        if not listed:
            return
        self.remove(link_id, (path for path, _ in listed))
        run_many = self._database.run_many
        run_many(
            "INSERT INTO note (link_id, rel_path) VALUES (?, ?)",
            ((link_id, path) for path, pairs in listed if pairs),
        )
        every = {pair for _, pairs in listed for pair in pairs}
        run_many(
            "INSERT OR IGNORE INTO property_name (name) VALUES (?)",
            ((name,) for name in sorted({name for name, _ in every})),
        )
        run_many(
            "INSERT OR IGNORE INTO property_value (value, number) VALUES (?, ?)",
            ((value, _to_number(value)) for value in sorted({value for _, value in every})),
        )
        run_many(
            "INSERT INTO note_property (note_id, name_id, value_id)"
            " SELECT note_id, name_id, value_id FROM note, property_name, property_value"
            " WHERE link_id = ? AND rel_path = ? AND name = ? AND value = ?",
            ((link_id, path, *pair) for path, pairs in listed for pair in pairs),
        )

    def remove(self, link_id: str, paths: Iterable[str]) -> None:
        """Forget the properties of these notes."""
        self._database.run_many(
            "DELETE FROM note WHERE link_id = ? AND rel_path = ?",
            ((link_id, path) for path in paths),
        )

    def _load(self, link_id: str, paths: Iterable[str]) -> dict[str, set[tuple[str, str]]]:
        found: dict[str, set[tuple[str, str]]] = {}
        for path, name, value in self._database.rows(
            f"SELECT rel_path, name, value FROM {_JOIN} WHERE link_id = ?"
            " AND rel_path IN (SELECT value FROM json_each(?))",
            (link_id, json.dumps(list(paths))),
        ):
            found.setdefault(str(path), set()).add((str(name), str(value)))
        return found

    def all(self, link_id: str) -> dict[str, set[tuple[str, str]]]:
        """Every name and value, by note."""
        found: dict[str, set[tuple[str, str]]] = {}
        for path, name, value in self._database.rows(
            f"SELECT rel_path, name, value FROM {_JOIN} WHERE link_id = ?", (link_id,)
        ):
            found.setdefault(str(path), set()).add((str(name), str(value)))
        return found

    def forget_others(self) -> None:
        """Remove the properties of notes that are not indexed, and unused names and values."""
        self._database.run(
            "DELETE FROM note WHERE NOT EXISTS (SELECT 1 FROM vault_file_index_state AS s"
            " WHERE s.link_id = note.link_id AND s.rel_path = note.rel_path)"
        )
        for part in ("name", "value"):
            self._database.run(
                f"DELETE FROM property_{part}"
                f" WHERE {part}_id NOT IN (SELECT {part}_id FROM note_property)"
            )

    def texts(self, link_id: str, paths: Iterable[str]) -> dict[str, str]:
        """The properties of each of these notes as lines, for the privacy check."""
        found: dict[str, str] = {}
        for path in paths:
            rows = self._database.rows(
                f"SELECT name, value FROM {_JOIN} WHERE link_id = ? AND rel_path = ?"
                " ORDER BY name, value",
                (link_id, path),
            )
            found[path] = "\n".join(f"{name}: {value}" for name, value in rows)
        return found

    def names(self) -> list[tuple[str, int]]:
        """All property names and how many values they have, most frequent first."""
        rows = self._database.rows(
            f"SELECT name, COUNT(*) AS times FROM {_JOIN} GROUP BY name ORDER BY times DESC, name"
        )
        return [(str(name), int(str(times))) for name, times in rows]

    def notes_with(
        self,
        key: str,
        low: str | None,
        high: str | None,
        *,
        is_open_low: bool = False,
        is_open_high: bool = False,
    ) -> dict[str, list[str]]:
        """Paths of the notes whose property is between `low` and `high`, by vault.

        Numbers are compared as numbers, everything else as text, which works for dates.
        """
        conditions, values = ["name = ?"], [key.casefold()]
        numbers = [_to_number(bound) for bound in (low, high) if bound is not None]
        column = "value" if None in numbers else "number"
        for bound, sign, is_open in ((low, ">", is_open_low), (high, "<", is_open_high)):
            if bound is not None:
                conditions.append(f"{column} {sign}{'' if is_open else '='} ?")
                values.append(bound.casefold())
        bounds = [values[0], *(_to_number(v) if column == "number" else v for v in values[1:])]
        rows = self._database.rows(
            f"SELECT DISTINCT link_id, rel_path FROM {_JOIN}"
            f" WHERE {' AND '.join(conditions)} ORDER BY rel_path",
            tuple(bounds),
        )
        found: dict[str, list[str]] = {}
        for link_id, path in rows:
            found.setdefault(str(link_id), []).append(str(path))
        return found


def _to_number(text: str) -> float | None:
    with contextlib.suppress(ValueError):
        number = float(text)
        if number == number and abs(number) != float("inf"):
            return number
    return None
