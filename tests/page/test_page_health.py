"""Health and Memory by clicking them: what is told, what can be done, what happens live."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.page.site import expect_toast
from tests.page.visits import Visit, served, visiting
from tests.waiting import until

NOTES: dict[str, str | bytes] = {
    "Debts.md": "# Debts\n\nI owe Sreenivas two hundred dollars.\n",
    "Plan.md": "# Plan\n\nDig the rain garden.\n",
    "broken.md": b"\xff\xff\x00",
    "Private/diary.md": "---\nrag: false\n---\nsecret\n",
}


def test_health_tells_state_counts_and_every_file_that_is_left_out(visit: Visit) -> None:
    page = visit.go("/health")
    expect(page.locator(".health-state")).to_contain_text(
        "Healthy: all that can be read; 1 file left out"
    )
    expect(page.locator(".health-head")).to_contain_text("All that can be read is searchable")
    expect(page.locator(".health-state")).to_contain_text("since")
    facts = page.locator(".facts")
    expect(facts).to_contain_text("2 searchable")
    expect(facts).to_contain_text("hash:")
    expect(facts).to_contain_text("no model")
    page.get_by_text("1 file failed").wait_for()
    expect(page.locator(".file-list").first).to_contain_text("broken.md")
    page.get_by_text("1 file skipped").click()
    expect(page.get_by_label("Files")).to_contain_text("diary.md")
    assert visit.violations() == []
    visit.shoot("health")


def test_a_sync_is_started_and_shows_in_the_chart(visit: Visit) -> None:
    page = visit.go("/health")
    bars = page.locator(".sync-bar")
    bars.first.wait_for()
    before = bars.count()
    (visit.site.vault / "Fresh.md").write_text("# Fresh\n\nnew\n")
    page.get_by_role("button", name="Sync now").click()
    expect(page.locator(".facts")).to_contain_text("3 searchable")
    expect(bars.nth(before)).to_be_visible()
    # The watcher may have been quicker than the click, and then the last sync found nothing.
    added = page.locator(".sync-bar[aria-label*='1 added']")
    added.focus()
    expect(page.get_by_label("Last syncs").get_by_role("paragraph")).to_contain_text("1 added")
    expect(added).to_be_focused()


def test_a_reindex_asks_first(visit: Visit) -> None:
    page = visit.go("/health")
    page.get_by_role("button", name="Reindex…").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Reindex…").click()
    page.get_by_role("dialog").get_by_role("button", name="Reindex", exact=True).click()
    expect_toast(page, "Reindex started; search still uses the old index")
    # A sync may come after it, and then the last one that is told in words is that.
    expect(page.locator(".sync-bar[aria-label^='Reindex']").first).to_be_visible()


def test_progress_never_goes_back_and_tells_the_time_left(visit: Visit) -> None:
    page = visit.go("/health")
    page.locator(".facts").wait_for()
    script = """async (told) => {
      const base = document.querySelector('script[type=module]').src.replace(/app.js$/, '');
      const { ProgressLine } = await import(base + 'views/health.js');
      const line = new ProgressLine('Adding meaning vectors');
      const seen = [];
      for (const one of told) { line.update(one); seen.push(line.bar.style.width); }
      return [seen, line.far.textContent]; }"""
    told = [
        {"phase": "meaning", "current": current, "total": 100, "seconds_left": 240, "unit": "x"}
        for current in (10, 40, 30)
    ]
    assert page.evaluate(script, told) == [["10%", "40%", "40%"], "30 of 100 x · 4 min left"]


def test_the_background_pass_is_paused_and_goes_on(visit: Visit) -> None:
    file = visit.site.home / "config.json"
    for is_paused in (True, False):
        changes = {"meaning.paused": is_paused}
        saved = visit.ask("/page/settings", {"changes": changes, "save": True})
        assert saved["saved"] is True
        assert json.loads(file.read_text())["meaning"] == {"paused": is_paused}


def test_a_fact_is_listed_found_and_forgotten(visit: Visit) -> None:
    page = visit.go("/memory")
    expect(page.locator(".state")).to_contain_text("Nothing is remembered yet")
    for key, value in (("debt", "I owe Sreenivas 200 dollars."), ("garden", "Dig in autumn.")):
        fact = {"key": key, "value": value, "source": "Debts.md"}
        visit.ask("/tools/obsidian_rag_memory_store", fact)
    page.reload()
    expect(page.locator(".facts-list li")).to_have_count(2)
    assert visit.violations() == []
    visit.shoot("memory")
    field = page.get_by_label("Search what is remembered")
    field.fill("Sreenivas dollars")
    expect(page.locator(".facts-list li").first).to_contain_text("debt")
    page.get_by_role("button", name="Forget debt").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    expect_toast(page, "Forgot “debt”")
    field.fill("")
    expect(page.locator(".facts-list li")).to_have_count(1)
    expect(page.locator(".facts-list")).to_contain_text("garden")


@pytest.fixture
def leaving(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    """A visit to a site whose vault may go away."""
    with (
        served(tmp_path_factory.mktemp("away"), {"a.md": "# A\n\ntext\n"}) as site,
        visiting(browser, site) as visit,
    ):
        yield visit


def take_away(vault: Path) -> None:
    vault.rename(vault.with_name("elsewhere"))


def test_a_vault_that_is_away_is_told_with_the_reason(leaving: Visit) -> None:
    take_away(leaving.site.vault)
    page = leaving.go("/health")
    expect(page.locator(".health-head")).to_contain_text("VAULT_AWAY")
    expect(page.locator(".health-state")).to_contain_text("Degraded")
    leaving.shoot("health-away")


def test_the_dot_tells_what_changed_while_nobody_looked(leaving: Visit) -> None:
    page = leaving.go("/search")
    dot = page.locator("#health-dot")
    expect(dot).to_have_attribute("data-health", "healthy")
    leaving.look(is_away=True)
    take_away(leaving.site.vault)
    until(lambda: leaving.ask("/tools/obsidian_rag_status")["plugin_health"] == "degraded")
    leaving.look(is_away=False)
    expect(dot).to_have_attribute("data-health", "degraded")
