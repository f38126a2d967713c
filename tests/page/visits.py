"""Vaults of a test's own behind the page, and what is asked of every view: axe, and pictures."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from tests.folders import write_config
from tests.page.site import HERE, SHOTS, Site, Window, new_window, sign_in

from obsidian_rag.transports.daemon_client import find_daemon

AXE = HERE / "node_modules" / "axe-core" / "axe.min.js"
SIZES = {"wide": (1280, 800), "narrow": (390, 844)}


@dataclass
class OtherSite(Site):
    """An installation whose folders another fixture has made."""

    vault_folder: Path | None = None

    @property
    def vault(self) -> Path:
        return self.vault_folder or super().vault


@dataclass
class Visit(Window):
    """A window that is signed in."""

    def go(self, path: str) -> Page:
        return self.open(path)

    def ask(self, path: str, body: Mapping[str, object] | None = None) -> Any:
        """The data of an answer, as a program of the owner asks."""
        daemon = find_daemon(self.site.home)
        assert daemon is not None
        return daemon.post(path, body or {}, is_owner=True)["data"]

    def look(self, *, is_away: bool) -> None:
        """Hide the tab or show it again."""
        self.page.evaluate(
            """(hidden) => {
              Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });
              document.dispatchEvent(new Event('visibilitychange'));
            }""",
            is_away,
        )

    def violations(self) -> list[str]:
        """What axe calls serious."""
        if not AXE.exists():
            pytest.skip("no axe-core; tests/page/install installs it")
        # It tries inline styles, which the page forbids.
        self.expected = (*self.expected, "inline style", "style-src")
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run()")["violations"]
        grave = [one for one in found if one["impact"] in ("serious", "critical")]
        return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in grave]

    def shoot(self, name: str) -> None:
        """Keep pictures of what is seen: light and dark, wide and narrow; all fit their window."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        for width, (x, y) in SIZES.items():
            self.page.set_viewport_size({"width": x, "height": y})
            assert self.page.evaluate(
                "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            )
            for scheme in ("light", "dark"):
                self.page.emulate_media(color_scheme=scheme)
                # The map draws itself in the next frame.
                self.page.evaluate("new Promise((done) => setTimeout(done, 200))")
                self.page.screenshot(path=SHOTS / f"{name}-{width}-{scheme}.png")
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size({"width": 1280, "height": 800})


@contextlib.contextmanager
def served(root: Path, notes: Mapping[str, str | bytes]) -> Iterator[Site]:
    """A daemon of these notes, which are indexed, until the block ends."""
    site = Site(root)
    site.write(notes)
    write_config(site.home, site.vault, {"server.port": 0, "relations.min_score": 0.0})
    site.run("index")
    site.run("serve", "--detach")
    yield site
    site.stop()


@contextlib.contextmanager
def visiting(browser: Browser, site: Site, *expected: str) -> Iterator[Visit]:
    """A visit that ends with the block, and in which nothing goes wrong but what is expected."""
    context, window = new_window(browser, site)
    visit = Visit(window.page, site, window.troubles, expected)
    with contextlib.closing(context):
        sign_in(visit)
        yield visit
        visit.check()
