"""A vault and an engine on it, driven the way the command line drives them."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from obsidian_rag.config import load
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import IndexResult, Mode, Progress


@dataclass
class World:
    """One vault, one data folder; `engine()` opens a fresh engine, as a new process would."""

    vault: Path
    home: Path
    settings: dict[str, Any]

    def write(self, files: dict[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.vault / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            # Old enough for its timestamp to be trusted.
            os.utime(path, ns=(1_700_000_000_000_000_001, 1_700_000_000_000_000_001))

    def engine(self) -> Engine:
        self.home.mkdir(exist_ok=True)
        tree = {"vault_path": str(self.vault), **self.settings}
        (self.home / "config.json").write_text(json.dumps(tree))
        return Engine(load(environ={"OBSIDIAN_RAG_HOME": str(self.home)}))

    def run(
        self,
        mode: str = "sync",
        listener: Callable[[Progress], None] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
        paths: list[str] | None = None,
        accepts_removals: bool = False,
    ) -> IndexResult:
        engine = self.engine()
        try:
            return run_index(
                engine, Mode(mode), listener, stop, paths, accepts_removals=accepts_removals
            )
        finally:
            engine.close()

    def rows(self) -> list[dict[str, Any]]:
        """Everything in the chunk table, in the order of the notes."""
        engine = self.engine()
        found: list[dict[str, Any]] = engine.chunks.table.to_arrow().to_pylist()
        engine.close()
        return sorted(found, key=lambda row: (row["source_file"], row["chunk_index"]))

    def texts(self) -> list[tuple[str, str]]:
        return [(row["source_file"], row["chunk_text"]) for row in self.rows()]

    def ids(self) -> dict[tuple[str, str], str]:
        return {(row["source_file"], row["chunk_text"]): row["chunk_id"] for row in self.rows()}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    vault = tmp_path / "vault"
    vault.mkdir()
    yield World(vault, tmp_path / "home", {"embedding": {"provider": "hash"}})
