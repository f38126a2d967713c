"""A database in a data folder that is not there yet."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from obsidian_rag.store import Database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data/state.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    with closing(Database(path)) as made:
        yield made
