"""One browser and one daemon for a file of tests; each test gets a page of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.obsidian.harness import Place, app, build, chromium, serving
from tests.obsidian.notes import NOTES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """Debian's chromium, with the page built."""
    build()
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A small vault that is indexed."""
    place = Place(tmp_path_factory.mktemp("obsidian"), {"watcher.debounce_s": 0})
    place.write(NOTES)
    place.index()
    return place


@pytest.fixture(scope="module")
def address(place: Place) -> Iterator[str]:
    """The page, with the daemon running."""
    with place.daemon(), serving(place) as address:
        # The first question loads what the others find loaded.
        place.ask("search", {"query": "sundew"})
        yield address


@pytest.fixture
def page(browser: "Browser", address: str) -> "Iterator[Page]":
    """The plugin in the app, with no note open yet."""
    with app(browser, address) as page:
        yield page


@pytest.fixture
def new_place(tmp_path: Path) -> Callable[[], Place]:
    """Another vault, not indexed and without a daemon."""
    return lambda: Place(tmp_path / "another")
