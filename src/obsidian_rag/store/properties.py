"""Properties of notes, for filters on them."""

import contextlib
from collections.abc import Iterable

from obsidian_rag.store.database import Database


class Properties:
    """The table `note_property`: keys and values in lower case, numbers beside them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, link_id: str, notes: Iterable[tuple[str, tuple[tuple[str, str], ...]]]) -> None:
        """Replace the properties of these notes."""
        listed = list(notes)
        self.remove(link_id, (path for path, _ in listed))
        self._database.run_many(
            "INSERT OR REPLACE INTO note_property (link_id, rel_path, key, value, number)"
            " VALUES (?, ?, ?, ?, ?)",
            (
                (link_id, path, key, value, _number(value))
                for path, pairs in listed
                for key, value in pairs
            ),
        )

    def remove(self, link_id: str, paths: Iterable[str]) -> None:
        """Forget the properties of these notes."""
        self._database.run_many(
            "DELETE FROM note_property WHERE link_id = ? AND rel_path = ?",
            ((link_id, path) for path in paths),
        )

    def all(self, link_id: str) -> dict[str, set[tuple[str, str]]]:
        """Every key and value, by note."""
        found: dict[str, set[tuple[str, str]]] = {}
        for path, key, value in self._database.rows(
            "SELECT rel_path, key, value FROM note_property WHERE link_id = ?", (link_id,)
        ):
            found.setdefault(str(path), set()).add((str(key), str(value)))
        return found

    def forget_others(self) -> None:
        """Forget the properties of notes that are not in the index."""
        self._database.run(
            "DELETE FROM note_property WHERE NOT EXISTS (SELECT 1 FROM vault_file_index_state AS s"
            " WHERE s.link_id = note_property.link_id AND s.rel_path = note_property.rel_path)"
        )

    def texts(self, link_id: str, paths: Iterable[str]) -> dict[str, str]:
        """The properties of each of these notes as lines, for who judges what may be told of it."""
        found: dict[str, str] = {}
        for path in paths:
            rows = self._database.rows(
                "SELECT key, value FROM note_property WHERE link_id = ? AND rel_path = ?",
                (link_id, path),
            )
            found[path] = "\n".join(f"{key}: {value}" for key, value in rows)
        return found

    def notes_with(
        self,
        key: str,
        low: str | None,
        high: str | None,
        *,
        is_open_low: bool = False,
        is_open_high: bool = False,
    ) -> dict[str, list[str]]:
        """Paths of the notes whose property lies between `low` and `high`, by vault.

        Two numbers are compared as numbers, everything else as text, which is right for dates.
        """
        conditions, values = ["key = ?"], [key.casefold()]
        numbers = [_number(bound) for bound in (low, high) if bound is not None]
        column = "value" if None in numbers else "number"
        for bound, sign, is_open in ((low, ">", is_open_low), (high, "<", is_open_high)):
            if bound is not None:
                conditions.append(f"{column} {sign}{'' if is_open else '='} ?")
                values.append(bound.casefold())
        bounds = [values[0], *(_number(v) if column == "number" else v for v in values[1:])]
        rows = self._database.rows(
            "SELECT DISTINCT link_id, rel_path FROM note_property"
            f" WHERE {' AND '.join(conditions)} ORDER BY rel_path",
            tuple(bounds),
        )
        found: dict[str, list[str]] = {}
        for link_id, path in rows:
            found.setdefault(str(link_id), []).append(str(path))
        return found


def _number(text: str) -> float | None:
    with contextlib.suppress(ValueError):
        number = float(text)
        if number == number and abs(number) != float("inf"):
            return number
    return None
