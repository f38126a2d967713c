"""LiveSync on the page: both sides of a conflict, four ways to settle it, and the trash."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.livesync.nodes import TestNode
from tests.page.site import expect_toast
from tests.page.visits import OtherSite, Visit, visiting
from tests.transports.command_line import Done
from tests.transports.conftest import device, livesync_secrets, synced_vault
from tests.transports.http_client import daemon
from tests.waiting import until

__all__ = ["device", "livesync_secrets", "synced_vault"]
Cli = Callable[..., Done]
NOTES = {
    "Plan.md": "# Plan\n\nfirst\n\nlast\n",
    "Shopping.md": "# Shopping\n\nmilk\n",
    "other.md": "b\n",
    "gone.md": "soon gone\n",
}
pytestmark = pytest.mark.usefixtures("no_keyring")


@pytest.fixture
def visit(
    browser: Browser, cli: Cli, synced_vault: Path, device: TestNode, home: Path
) -> Iterator[Visit]:
    """The page of a vault in which two notes were changed in two places, and one was deleted."""
    for note, line in (("Plan.md", "first"), ("Shopping.md", "milk")):
        text = NOTES[note]
        device.write(note, text.replace(line, "from the phone"))
        (synced_vault / note).write_text(text.replace(line, "from here"))
    (device.root / "gone.md").unlink()
    device.sync()
    assert cli("livesync", "run", "--once").code in (0, 1)
    assert cli("index").code == 0
    with daemon(), visiting(browser, OtherSite(home.parent, vault_folder=synced_vault)) as one:
        yield one


def opened(page: Page, note: str) -> Page:
    row = page.locator(".conflict-list li", has_text=note)
    row.locator("summary").click()
    row.locator(".sides").wait_for()
    return page


def test_conflicts_are_seen_side_by_side_and_settled(
    visit: Visit, synced_vault: Path, device: TestNode
) -> None:
    page = visit.go("/livesync")
    expect(page.locator(".conflict-list li")).to_have_count(2)
    opened(page, "Plan.md")
    sides = page.locator(".sides")
    expect(sides.locator("pre.ours")).to_contain_text("from here")
    expect(sides.locator("pre.theirs")).to_contain_text("from the phone")
    assert sides.locator("h3").all_inner_texts()[0].startswith("This device · written")
    assert visit.violations() == []
    visit.shoot("livesync")
    # After looking away and back, the view is refreshed, and an open conflict stays open.
    with page.expect_response("**/page/conflicts"):
        visit.look(is_away=True)
        visit.look(is_away=False)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert sides.count() == 1
    page.get_by_role("button", name="Merge…").click()
    text = page.get_by_label("Merged text")
    assert text.input_value() == "# Plan\n\nfrom here\nfrom the phone\n\nlast\n"
    text.fill("# Plan\n\nfrom both\n\nlast\n")
    page.get_by_role("button", name="Save merge").click()
    expect(page.locator(".conflict-list li")).to_have_count(1)
    assert (synced_vault / "Plan.md").read_text() == "# Plan\n\nfrom both\n\nlast\n"
    opened(page, "Shopping.md")
    page.get_by_role("button", name="Keep other").click()
    expect(page.get_by_label("Conflicts")).to_contain_text("There are no conflicts")
    assert (synced_vault / "Shopping.md").read_text() == "# Shopping\n\nfrom the phone\n"
    merged = b"# Plan\n\nfrom both\n\nlast\n"
    until(lambda: device.sync() and device.files()["Plan.md"] == merged, "the merge elsewhere")


def test_what_was_deleted_elsewhere_is_restored(visit: Visit, synced_vault: Path) -> None:
    page = visit.go("/livesync")
    assert not (synced_vault / "gone.md").exists()
    page.get_by_role("button", name="Restore gone.md").click()
    expect_toast(page, "gone.md is restored")
    assert (synced_vault / "gone.md").read_text() == "soon gone\n"
    expect(page.get_by_role("button", name="Restore gone.md")).to_have_count(0)


def test_a_vault_without_livesync_says_how_to_get_it(
    browser: Browser, cli: Cli, make_vault: Callable[..., Path], configure: Callable[..., None]
) -> None:
    vault = make_vault({"a.md": "# A"})
    configure(vault, {"server.port": 0})
    assert cli("index").code == 0
    with daemon(), visiting(browser, OtherSite(vault.parent, vault_folder=vault)) as one:
        page = one.go("/livesync")
        expect(page.locator(".state")).to_contain_text("obsidian-rag livesync setup")
        one.shoot("livesync-none")
