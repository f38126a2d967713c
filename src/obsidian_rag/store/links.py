"""The known vaults: the primary one from the settings, and linked ones."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from obsidian_rag.store.database import Database, now

_COLUMNS = (
    "link_id, provider, root_path, mode, enabled, created_at, updated_at, last_scan_at,"
    " last_error, is_primary, name, include, exclude, is_paused"
)


@dataclass(frozen=True, slots=True)
class Link:
    """A vault known to this installation.

    `include` and `exclude` limit it to some paths; `warnings` are about the folder when it was
    linked.
    """

    link_id: str
    name: str
    root_path: Path
    mode: str
    enabled: bool
    is_primary: bool
    is_paused: bool = False
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    provider: str = "obsidian"
    created_at: str = ""
    updated_at: str = ""
    last_scan_at: str | None = None
    last_error: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def fields(self) -> dict[str, object]:
        """The vault as every interface shows it."""
        return {
            "link_id": self.link_id,
            "name": self.name,
            "root_path": str(self.root_path),
            "mode": self.mode,
            "is_primary": self.is_primary,
            "enabled": self.enabled,
            "paused": self.is_paused,
            "include": list(self.include),
            "exclude": list(self.exclude),
            "created_at": self.created_at,
            "last_scan_at": self.last_scan_at,
            "last_error": self.last_error,
        }


class Links:
    """The table `vault_link`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def primary(self) -> Link | None:
        """The configured vault, once it has been indexed."""
        row = self._database.row(f"SELECT {_COLUMNS} FROM vault_link WHERE is_primary = 1")
        return _link(row) if row else None

    def get(self, link_id: str) -> Link | None:
        """The vault with this id."""
        row = self._database.row(f"SELECT {_COLUMNS} FROM vault_link WHERE link_id = ?", (link_id,))
        return _link(row) if row else None

    def all(self) -> list[Link]:
        """Every vault, the primary one first, then in the order they were linked."""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM vault_link ORDER BY is_primary DESC, created_at, name"
        )
        return [_link(row) for row in rows]

    def free_name(self, wanted: str, but: str = "") -> str:
        """This name, or the first free one of "name-2", "name-3"; ignores the vault `but`."""
        taken = {link.name.casefold() for link in self.all() if link.link_id != but}
        name, number = wanted, 1
        while name.casefold() in taken:
            number += 1
            name = f"{wanted}-{number}"
        return name

    def add(
        self,
        root: Path,
        mode: str,
        name: str,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        *,
        is_primary: bool = False,
    ) -> Link:
        """Add a vault; `name` gets a number if it is taken."""
        link_id, at = str(uuid.uuid4()), now()
        with self._database.transaction():
            self._database.run(
                "INSERT INTO vault_link (link_id, root_path, mode, created_at, updated_at, name,"
                " include, exclude, is_primary) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    link_id,
                    str(root),
                    mode,
                    at,
                    at,
                    self.free_name(name),
                    json.dumps(list(include), ensure_ascii=False),
                    json.dumps(list(exclude), ensure_ascii=False),
                    int(is_primary),
                ),
            )
            found = self.get(link_id)
        assert found is not None
        return found

    def set_primary(self, root: Path) -> Link:
        """Make `root` the primary vault.

        The row is kept if the folder changes: file metadata then shows what really differs, so a
        moved vault keeps its index and another vault replaces it, without special cases.
        """
        with self._database.transaction():
            known = self.primary()
            if known is None:
                return self.add(root, "read_write", root.name, is_primary=True)
            if known.root_path != root:
                self._database.run(
                    "UPDATE vault_link SET root_path = ?, name = ?, updated_at = ?"
                    " WHERE link_id = ?",
                    (str(root), self.free_name(root.name, known.link_id), now(), known.link_id),
                )
            found = self.primary()
        assert found is not None
        return found

    def remove(self, link_id: str) -> None:
        """Remove a vault, and every row of `state.db` about its files."""
        self._database.run("DELETE FROM vault_link WHERE link_id = ?", (link_id,))

    def set_mode(self, link_id: str, mode: str) -> None:
        """Set whether the vault may be written."""
        self._update(link_id, "mode", mode)

    def set_paused(self, link_id: str, *, is_paused: bool) -> None:
        """Pause or resume the vault."""
        self._update(link_id, "is_paused", int(is_paused))

    def set_enabled(self, link_id: str, *, is_enabled: bool) -> None:
        """Enable or disable the vault; one that is being removed is disabled."""
        self._update(link_id, "enabled", int(is_enabled))

    def _update(self, link_id: str, column: str, value: object) -> None:
        self._database.run(
            f"UPDATE vault_link SET {column} = ?, updated_at = ? WHERE link_id = ?",
            (value, now(), link_id),
        )

    def scanned(self, link_id: str, error: str | None) -> None:
        """Record that the vault was just scanned, or why it could not be."""
        self._database.run(
            "UPDATE vault_link SET last_scan_at = iif(? IS NULL, ?, last_scan_at), last_error = ?"
            " WHERE link_id = ?",
            (error, now(), error, link_id),
        )


class LinkFact(StrEnum):
    """Keys of the facts about one vault."""

    # Set from linking, or before anything is searchable, until all of the vault is.
    FIRST_UNFINISHED = "first_index_unfinished"
    # The folder that the index was made from, and a scan that missed too many of its notes.
    MADE_OF = "made_of"
    AWAY = "vault_away"
    # Modification time of the newest note.
    NEWEST_NOTE = "newest_note_ns"
    # Equal to the mark of the related notes while they agree with the index.
    RELATED_MARK = "related_mark"


class LinkFacts:
    """Key-value facts about one vault."""

    def __init__(self, database: Database, link_id: str) -> None:
        self._database = database
        self._link_id = link_id

    def all(self) -> dict[str, str]:
        """All facts, read at once."""
        rows = self._database.rows(
            "SELECT key, value FROM link_fact WHERE link_id = ?", (self._link_id,)
        )
        return {str(key): str(value) for key, value in rows}

    def get(self, key: str) -> str | None:
        """The value of one fact."""
        found = self._database.row(
            "SELECT value FROM link_fact WHERE link_id = ? AND key = ?", (self._link_id, key)
        )
        return str(found[0]) if found else None

    def put(self, key: str, value: str | None) -> None:
        """Store a fact; None deletes it."""
        if value is None:
            self._database.run(
                "DELETE FROM link_fact WHERE link_id = ? AND key = ?", (self._link_id, key)
            )
        else:
            self._database.run(
                "INSERT OR REPLACE INTO link_fact (link_id, key, value) VALUES (?, ?, ?)",
                (self._link_id, key, value),
            )

    @staticmethod
    def of_all(database: Database) -> Mapping[str, Mapping[str, str]]:
        """The facts of every vault, by link id, read at once."""
        found: dict[str, dict[str, str]] = {}
        for link_id, key, value in database.rows("SELECT link_id, key, value FROM link_fact"):
            found.setdefault(str(link_id), {})[str(key)] = str(value)
        return found


def _link(row: tuple[object, ...]) -> Link:
    return Link(
        link_id=str(row[0]),
        provider=str(row[1]),
        root_path=Path(str(row[2])),
        mode=str(row[3]),
        enabled=bool(row[4]),
        created_at=str(row[5]),
        updated_at=str(row[6]),
        last_scan_at=None if row[7] is None else str(row[7]),
        last_error=None if row[8] is None else str(row[8]),
        is_primary=bool(row[9]),
        name=str(row[10]),
        include=_list(row[11]),
        exclude=_list(row[12]),
        is_paused=bool(row[13]),
    )


def _list(text: object) -> tuple[str, ...]:
    return tuple(str(item) for item in json.loads(str(text)))
