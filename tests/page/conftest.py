"""One browser for the tests of a file, one daemon for all, one window for each test."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.page.notes import NOTES
from tests.page.site import Site, Window, new_window, sign_in
from tests.page.visits import Visit, served, visiting


# Not for the session: while Playwright runs, no other test of the process could use asyncio.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no chromium; tests/page/install installs it")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The sample vault with some more notes, served."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.start(NOTES)
    yield made
    made.stop()


@pytest.fixture
def visitor(browser: Browser, site: Site) -> Iterator[Window]:
    """A window without a session."""
    context, window = new_window(browser, site)
    yield window
    window.check()
    context.close()


@pytest.fixture
def window(visitor: Window) -> Window:
    """A window that is signed in."""
    sign_in(visitor)
    return visitor


@pytest.fixture(scope="module")
def own_site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """The module's NOTES, served for its tests alone."""
    with served(tmp_path_factory.mktemp("own"), request.module.NOTES) as one:
        yield one


@pytest.fixture
def visit(request: pytest.FixtureRequest, browser: Browser, own_site: Site) -> Iterator[Visit]:
    """A visit to the module's own site; EXPECTED of the module are errors that it causes."""
    with visiting(browser, own_site, *getattr(request.module, "EXPECTED", ())) as one:
        yield one
