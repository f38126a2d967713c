"""The vaults we know: the primary one and, later, linked ones."""

import uuid
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.store.database import Database, now

_COLUMNS = "link_id, root_path, mode, enabled, is_primary, last_scan_at, last_error"


@dataclass(frozen=True, slots=True)
class Link:
    """A vault known to this installation."""

    link_id: str
    root_path: Path
    mode: str
    enabled: bool
    is_primary: bool
    last_scan_at: str | None
    last_error: str | None


class Links:
    """The table `vault_link`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def primary(self) -> Link | None:
        """The configured vault, once it has been indexed."""
        row = self._database.row(f"SELECT {_COLUMNS} FROM vault_link WHERE is_primary = 1")
        return _link(row) if row else None

    def all(self) -> list[Link]:
        """Every vault, the primary one first."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM vault_link ORDER BY is_primary DESC")
        return [_link(row) for row in rows]

    def set_primary(self, root: Path) -> Link:
        """Make `root` the primary vault.

        The row stays when the folder moves: file metadata then shows what really differs, so a
        moved vault keeps its index and another vault replaces it, without a rule for either.
        """
        with self._database.transaction():
            known = self.primary()
            if known is None:
                self._database.run(
                    "INSERT INTO vault_link (link_id, root_path, created_at, updated_at,"
                    " is_primary) VALUES (?, ?, ?, ?, 1)",
                    (str(uuid.uuid4()), str(root), now(), now()),
                )
            elif known.root_path != root:
                self._database.run(
                    "UPDATE vault_link SET root_path = ?, updated_at = ? WHERE link_id = ?",
                    (str(root), now(), known.link_id),
                )
            found = self.primary()
        assert found is not None
        return found

    def scanned(self, link_id: str, error: str | None) -> None:
        """Record that the vault was just walked, or why it could not be."""
        self._database.run(
            "UPDATE vault_link SET last_scan_at = iif(? IS NULL, ?, last_scan_at), last_error = ?"
            " WHERE link_id = ?",
            (error, now(), error, link_id),
        )


def _link(row: tuple[object, ...]) -> Link:
    link_id, root_path, mode, enabled, is_primary, last_scan_at, last_error = row
    return Link(
        link_id=str(link_id),
        root_path=Path(str(root_path)),
        mode=str(mode),
        enabled=bool(enabled),
        is_primary=bool(is_primary),
        last_scan_at=None if last_scan_at is None else str(last_scan_at),
        last_error=None if last_error is None else str(last_error),
    )
