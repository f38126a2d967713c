"""Paths that the next index run looks at, whatever it finds changed."""

from collections.abc import Iterable
from typing import cast

from obsidian_rag.store import Database


class Owed:
    """What somebody has taken up too early, or could not read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, paths: Iterable[str]) -> None:
        """Owe a look at these paths."""
        self._database.run_many(
            "INSERT OR REPLACE INTO owed (path) VALUES (?)", ((path,) for path in paths)
        )

    def turns(self) -> dict[str, int]:
        """The paths, each with its turn: one that is owed again meanwhile has a later turn."""
        found = self._database.rows("SELECT path, turn FROM owed")
        return dict(cast("list[tuple[str, int]]", found))

    def settle(self, turns: Iterable[int]) -> None:
        """These turns are over."""
        self._database.run_many("DELETE FROM owed WHERE turn = ?", ((turn,) for turn in turns))
