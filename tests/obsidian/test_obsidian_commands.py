"""The commands, the status bar, the settings tab."""

import json
import re
from typing import TYPE_CHECKING

from tests.obsidian.harness import NEEDS_BROWSER, Place, picture
from tests.obsidian.notes import BOG, ID, NOTES, POND, active, command, notice, open_note, rows
from tests.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = NEEDS_BROWSER


def test_relations_are_suggested_and_written(page: "Page", place: Place) -> None:
    open_note(page, BOG)
    command(page, "suggest-relations")
    page.locator(".suggestion-item", has_text="Pond").first.wait_for()
    picture(page, "suggest")
    page.keyboard.type("Pond")
    page.keyboard.press("Enter")
    notice(page, "Related to “Pond”.")
    assert ID in (place.vault / BOG).read_text()


def test_an_id_is_added_to_the_current_note(page: "Page", place: Place) -> None:
    open_note(page, "Bread.md")
    command(page, "add-id")
    notice(page, "The note has an ID now.")
    assert re.match(r"---\nid: ", (place.vault / "Bread.md").read_text())


def test_duplicate_ids_are_listed_and_open(page: "Page", place: Place) -> None:
    copy = place.vault / "Copy.md"
    copy.write_text(f"---\nid: {ID}\n---\ncopied\n")
    try:
        page.evaluate("app.vault.files.set('Copy.md', app.vault.files.get('Bread.md'))")
        command(page, "check-ids")
        page.locator(".rag-companion-ids", has_text=f"Used twice: {ID}").wait_for()
        picture(page, "ids")
        page.get_by_role("link", name="Garden/Pond").first.click()
        until(lambda: active(page)["path"] == POND)
    finally:
        copy.unlink()


def test_ids_are_added_to_all_notes_after_asking(page: "Page", place: Place) -> None:
    command(page, "add-ids")
    page.get_by_role("button", name="Cancel").click()
    assert "id:" not in (place.vault / "Others/Note 1.md").read_text()
    command(page, "add-ids")
    page.get_by_role("button", name="Add ids").click()
    notice(page, "notes have an ID now.")
    assert "id:" in (place.vault / "Others/Note 1.md").read_text()
    assert (place.vault / "Left out.md").read_text() == NOTES["Left out.md"]


def test_the_vault_is_reindexed_and_the_status_bar_says_so(page: "Page") -> None:
    bar = page.locator(".rag-companion-status")
    until(lambda: re.match(r"RAG: \d+ notes \| ", bar.inner_text()))
    page.evaluate(
        """() => {
          const bar = document.querySelector('.rag-companion-status');
          window.said = [];
          new MutationObserver(() => said.push(bar.textContent)).observe(bar, {childList: true});
        }"""
    )
    command(page, "reindex")
    notice(page, "Indexing started.")
    until(lambda: any("indexing" in one for one in page.evaluate("said")))
    until(lambda: re.match(r"RAG: \d+ notes \| just now", bar.inner_text()))


def test_the_status_bar_opens_the_details(page: "Page") -> None:
    until(lambda: "notes" in page.locator(".rag-companion-status").inner_text())
    page.locator(".rag-companion-status").click()
    told = page.locator(".rag-companion-details")
    told.get_by_text("passages").wait_for()
    assert "hash" in told.inner_text()
    picture(page, "details")
    page.get_by_role("button", name="Sync now").click()
    notice(page, "Sync started.")


def tab(page: "Page") -> "Locator":
    """The settings tab as older apps show it."""
    page.evaluate(
        """() => {
          const tab = plugin.tabs[0];
          document.getElementById('main').replaceChildren(tab.containerEl);
          tab.display();
        }"""
    )
    return page.locator(".vertical-tab-content")


def item(page: "Page", name: str) -> "Locator":
    """One setting."""
    exact = page.locator(".setting-item-name", has_text=re.compile(f"^{re.escape(name)}$"))
    return page.locator(".setting-item").filter(has=exact)


def test_settings_reach_the_engine_and_are_validated(page: "Page", place: Place) -> None:
    until(lambda: page.evaluate("plugin.engine.max_results") == 20)
    tab(page)
    picture(page, "settings")

    def relations() -> dict[str, object]:
        tree: dict[str, dict[str, object]] = json.loads((place.home / "config.json").read_text())
        return tree.get("relations", {})

    item(page, "Max related notes").locator("input").fill("7")
    page.keyboard.press("Tab")
    until(lambda: relations().get("max_results") == 7)
    item(page, "Max related notes").locator("input").fill("many")
    page.keyboard.press("Tab")
    until(lambda: "Enter a number." in item(page, "Max related notes").inner_text())
    item(page, "Min similarity threshold").locator("input").fill("1.5")
    page.keyboard.press("Tab")
    until(lambda: "from 0 to 1" in item(page, "Min similarity threshold").inner_text())
    item(page, "Excluded folders").locator("input").fill("Others, Odd/")
    page.keyboard.press("Tab")
    until(lambda: relations().get("excluded_folders") == ["Others", "Odd"])
    item(page, "Rich related format").locator("input").click()
    until(lambda: relations().get("rich_format") is False)
    item(page, "Words (BM25)").locator("input").fill("0.4")
    page.keyboard.press("Tab")
    until(lambda: relations().get("bm25_weight") == 0.4)
    item(page, "Words (BM25)").locator("input").fill("")
    page.keyboard.press("Tab")
    until(lambda: "bm25_weight" not in relations())
    assert relations()["max_results"] == 7
    item(page, "Excluded folders").locator("input").fill("")
    page.keyboard.press("Tab")
    until(lambda: not relations().get("excluded_folders"))


def test_the_folder_field_completes(page: "Page") -> None:
    until(lambda: page.evaluate("plugin.connection.state.kind") == "ready")
    tab(page)
    offered = page.locator("#rag-companion-folders option")
    assert "Garden" in [one.get_attribute("value") for one in offered.all()]


def test_both_forms_of_the_tab_have_the_same_settings(page: "Page") -> None:
    tab(page)
    old = page.locator(".setting-item:not(.setting-item-heading) .setting-item-name")
    new = page.evaluate(
        "plugin.tabs[0].getSettingDefinitions().flatMap((g) => g.items.map((one) => one.name))"
    )
    assert old.all_inner_texts() == new


def test_a_click_opens_a_tab_if_the_settings_say_so(page: "Page") -> None:
    until(lambda: page.evaluate("plugin.connection.state.kind") == "ready")
    open_note(page, POND)
    page.evaluate("plugin.savePanel({openIn: 'tab'})")
    rows(page).first.locator(".rag-companion-title").click()
    until(lambda: active(page)["path"] != POND)
    assert active(page)["pane"] == "tab"


def test_no_command_has_a_key_and_none_names_the_plugin(page: "Page") -> None:
    commands = page.evaluate("plugin.commands.map(({id, name, hotkeys}) => [id, name, hotkeys])")
    assert len(commands) == 8
    assert all(not keys and "RAG" not in name for _, name, keys in commands)
