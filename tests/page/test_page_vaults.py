"""Vaults by clicking them: link one, watch it, pause, resume, remove; nothing is written to it."""

from pathlib import Path

from playwright.sync_api import Locator, expect
from tests.folders import write_notes
from tests.page.visits import Visit

NOTES = {"Pond.md": "# Pond\n\nfrogs and newts\n"}
OTHER = {
    "Recipes/Bread.md": "# Bread\n\nrye flour and salt, see [[Soup]]\n",
    "Recipes/Soup.md": "# Soup\n\nleeks\n",
    "Archive/Old.md": "# Old\n\nnothing\n",
}
# A folder that cannot be linked is refused with 400, which a browser logs.
EXPECTED = ("400 (Bad Request)",)


def row(visit: Visit, name: str) -> Locator:
    return visit.page.locator(".vault-list > li", has=visit.page.get_by_role("heading", name=name))


def test_a_vault_is_linked_searched_paused_and_removed(visit: Visit, tmp_path: Path) -> None:
    other = tmp_path / "Kitchen"
    write_notes(other, OTHER)
    before = sorted(other.rglob("*"))
    page = visit.go("/vaults")
    expect(row(visit, "Notes")).to_contain_text("Primary vault")
    expect(row(visit, "Notes").get_by_role("button", name="Remove…")).to_have_count(0)
    page.get_by_role("button", name="Link a vault…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("full path").fill(str(tmp_path / "nowhere"))
    dialog.get_by_role("button", name="Link vault").click()
    expect(dialog.get_by_role("alert")).to_contain_text("cannot be opened")
    assert visit.violations() == []
    dialog.get_by_label("full path").fill(str(other))
    dialog.get_by_label("Not these").fill("Archive")
    dialog.get_by_role("button", name="Link vault").click()
    kitchen = row(visit, "Kitchen")
    expect(kitchen).to_contain_text("Linked vault (read-only)")
    expect(kitchen).to_contain_text("2 notes searchable")
    expect(kitchen).to_contain_text("without Archive")
    assert visit.violations() == []
    visit.shoot("vaults")
    page = visit.go("/map")
    expect(page.locator(".map-told")).to_contain_text("3 notes")
    page.get_by_label("Colour by").select_option("vault")
    expect(page.locator(".map-legend")).to_contain_text("Kitchen")
    page.get_by_label("Find on the map").fill("bread")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Neighbourhood").click()
    expect(page.locator(".map-sheet h2")).to_have_text("Bread")
    visit.go("/vaults")
    kitchen.get_by_role("button", name="Pause").click()
    expect(kitchen.get_by_role("button", name="Sync now")).to_be_disabled()
    kitchen.get_by_role("button", name="Resume").click()
    expect(kitchen.get_by_role("button", name="Sync now")).to_be_enabled()
    (other / "Recipes" / "Tea.md").write_text("# Tea\n\nleaves\n")
    kitchen.get_by_role("button", name="Sync now").click()
    expect(kitchen).to_contain_text("3 notes searchable")
    kitchen.get_by_role("button", name="Remove…").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(kitchen).to_have_count(0)
    (other / "Recipes" / "Tea.md").unlink()
    assert sorted(other.rglob("*")) == before
