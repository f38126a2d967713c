"""The first run: no vault yet, one is chosen on the page, indexed and searched."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.page.site import SAMPLES, Site, new_window


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Site]:
    """A daemon without a vault, on a machine where Obsidian knows one."""
    made = Site(tmp_path / "machine")
    shutil.copytree(SAMPLES, made.vault)
    known = made.folder / "user" / ".config" / "obsidian" / "obsidian.json"
    known.parent.mkdir(parents=True)
    vaults = {"a1": {"path": str(made.vault), "ts": 1, "open": True}}
    known.write_text(json.dumps({"vaults": vaults}))
    made.run("serve", "--detach")
    yield made
    made.stop()


def test_a_vault_is_chosen_indexed_and_searched_without_a_terminal(
    browser: Browser, empty: Site
) -> None:
    context, window = new_window(browser, empty)
    page = window.page
    page.goto(empty.link())
    expect(page.get_by_role("heading")).to_have_text("Which notes do you want to search?")
    page.get_by_label("Folder of your vault").fill(str(empty.folder / "nowhere"))
    page.get_by_role("button", name="Use this folder").click()
    expect(page.get_by_role("alert")).to_contain_text("There is no folder")
    page.get_by_role("button", name="Notes").click()
    expect(page.get_by_role("searchbox")).to_be_visible()
    page.get_by_role("searchbox").fill("rain garden")
    expect(page.locator(".hit").first).to_contain_text("Rain garden")
    window.expected = ("404", "401", "ERR_", "503")  # while the daemon takes up its work
    window.check()
    context.close()
