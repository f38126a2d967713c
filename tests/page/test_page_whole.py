"""Every view as a whole: its picture, its accessibility, and what wild clicking does to it."""

import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, Error, expect
from tests.page.site import HERE, SHOTS, Site, Window, new_window, sign_in

if TYPE_CHECKING:
    from collections.abc import Callable

AXE = HERE / "node_modules" / "axe-core" / "axe.min.js"
TSC = HERE / "node_modules" / ".bin" / "tsc"
VIEWS = {
    "search": ("/search", ".idle"),
    "found": ("/search?q=rain+garden", ".hit"),
    "private": ("/search?q=how+much+do+I+owe+Sreenivas", ".hit .private-label"),
    "weak": ("/search?q=quantum+chromodynamics+lattice", ".lead"),
    "nothing": ("/search?q=rain&tag=no-such-tag", ".state"),
    "note": ("/note/Notes/Projects/Rain%20garden.md?q=rain+garden#L10-14", ".note-body h2"),
    "marks": ("/note/Notes/Kinds/Marks.md", ".note-body p"),
    "right-to-left": ("/note/Notes/Kinds/Right%20to%20left.md", ".note-body p"),
    "japanese": ("/search?q=庭園", ".hit"),
    "settings": ("/settings", ".setting"),
    "whole-map": ("/map", ".map[data-ready]"),
}
LOOKS: dict[str, dict[str, Any]] = {
    "wide-light": {"viewport": {"width": 1440, "height": 900}},
    "wide-dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "narrow-light": {"viewport": {"width": 390, "height": 844}, "is_mobile": True},
    "narrow-dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}
_GRAVE = """() => axe.run().then((found) => found.violations
  .filter((one) => ['serious', 'critical'].includes(one.impact))
  .map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(' ')).join(', ')}`))"""


@pytest.mark.parametrize("look", LOOKS)
def test_every_view_has_a_picture_and_fits(browser: Browser, site: Site, look: str) -> None:
    context, window = new_window(browser, site, **LOOKS[look])
    sign_in(window)
    SHOTS.mkdir(parents=True, exist_ok=True)
    for name, (path, shown) in VIEWS.items():
        page = window.open(path)
        expect(page.locator(shown).first).to_be_visible()
        width, room = page.evaluate(
            "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert width <= room, (name, look)
        page.screenshot(path=SHOTS / f"{name}-{look}.png", animations="disabled")
    window.check()
    context.close()


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core; tests/page/install installs it")
@pytest.mark.parametrize("look", ["wide-dark", "narrow-light"])
def test_every_view_is_accessible(browser: Browser, site: Site, look: str) -> None:
    context, window = new_window(browser, site, **LOOKS[look])
    sign_in(window)
    for name, (path, shown) in VIEWS.items():
        page = window.open(path)
        expect(page.locator(shown).first).to_be_visible()
        page.evaluate(AXE.read_text(encoding="utf-8"))
        assert page.evaluate(_GRAVE) == [], (name, look)
    context.close()  # not checked: axe copies elements with their styles, which is blocked


def test_the_page_is_small(window: Window) -> None:
    window.open("/search?q=rain+garden")
    expect(window.page.locator(".hit").first).to_be_visible()
    weight = window.page.evaluate(
        """() => [...performance.getEntriesByType('navigation'),
          ...performance.getEntriesByType('resource')]
          .reduce((sum, entry) => sum + entry.encodedBodySize, 0)"""
    )
    assert 20_000 < weight < 250_000


@pytest.mark.slow
def test_200_wild_actions_break_nothing(window: Window) -> None:
    chance = random.Random(7)
    page = window.open("/search")
    window.expected = ("404", "400", "403")  # addresses and settings that nobody means
    keys = ["/", "ArrowDown", "ArrowUp", "Enter", "Escape", "r", " ", "?", "c", "Tab", "j", "k"]
    words = ["rain", "garden tag:water", '"exact', "-", "in March 2024", "庭園", "a" * 300, "<b>"]

    def click() -> None:
        found = page.locator("main button:visible, main a[href^='/']:visible, #rail a:visible")
        if count := found.count():
            found.nth(chance.randrange(count)).click(timeout=3000, no_wait_after=True)

    actions: list[Callable[[], object]] = [
        click,
        click,
        lambda: page.keyboard.press(chance.choice(keys)),
        lambda: page.keyboard.press(chance.choice(keys)),
        lambda: page.locator("input[type=search]").first.fill(chance.choice(words), timeout=2000),
        lambda: page.go_back(timeout=3000),
    ]
    for _ in range(200):
        try:
            chance.choice(actions)()
        except Error:  # covered, gone or disabled: people click beside things too
            page.keyboard.press("Escape")
        if not page.url.startswith(window.site.url) or page.url.endswith("/signin"):
            window.open("/search")
    page.goto(window.site.url + "/search")
    expect(page.get_by_role("searchbox").first).to_be_visible()


@pytest.mark.skipif(not TSC.exists(), reason="no TypeScript; tests/page/install installs it")
def test_the_scripts_are_well_typed() -> None:
    done = subprocess.run([TSC, "-p", HERE], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_every_module_of_the_page_is_short_and_says_what_it_is() -> None:
    root = Path(__file__).parents[2] / "src/obsidian_rag/transports/http/page"
    for script in root.rglob("*.js"):
        lines = script.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("// "), script
        assert len(lines) <= 500, script
