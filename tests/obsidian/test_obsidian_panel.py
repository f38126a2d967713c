"""Related notes in the sidebar, by clicking."""

from typing import TYPE_CHECKING

from tests.obsidian.harness import NEEDS_BROWSER, Place, picture
from tests.obsidian.notes import (
    BOG,
    POND,
    RAIN,
    active,
    command,
    notice,
    open_note,
    row,
    rows,
    shown,
    state,
)
from tests.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = NEEDS_BROWSER


def test_related_notes_have_scores_reasons_shares_and_passages(page: "Page") -> None:
    open_note(page, POND)
    row(page, "Heath").wait_for()
    assert shown(page) == "Pond"
    one = row(page, "Rain garden")
    assert float(one.locator(".rag-companion-score").inner_text()) > 0.1
    assert "water" in one.locator(".rag-companion-reasons").inner_text()
    one.locator(".rag-companion-chevron").click()
    assert one.locator(".rag-companion-share").count() > 1
    assert one.locator(".tag", has_text="#water").count() == 1
    quotes = one.locator(".rag-companion-quote").all_inner_texts()
    assert any("sedge" in text.lower() for text in quotes)
    picture(page, "panel-light")
    page.evaluate("document.body.className = 'theme-dark'")
    picture(page, "panel-dark")


def test_scores_are_coloured_and_shown_as_numbers(page: "Page") -> None:
    open_note(page, POND)
    for score in rows(page).locator(".rag-companion-score").all():
        value = float(score.inner_text())
        kind = "is-high" if value > 0.7 else "is-middle" if value > 0.4 else "is-low"
        assert kind in (score.get_attribute("class") or "") or value in (0.7, 0.4)


def test_a_link_is_inserted_by_button_and_by_dragging(page: "Page") -> None:
    open_note(page, POND)
    one = row(page, "Rain garden")
    one.locator(".rag-companion-chevron").click()
    one.get_by_role("button", name="Insert link").click()
    assert "[[Rain garden]]" in active(page)["text"]
    page.evaluate("app.workspace.active.view.area.setSelectionRange(0, 0)")
    row(page, "Heath").locator(".rag-companion-head").drag_to(page.locator("textarea.editor"))
    until(lambda: "[[Heath]]" in active(page)["text"])


def test_a_relation_is_written_after_what_was_typed_is_saved(page: "Page", place: Place) -> None:
    open_note(page, RAIN)
    row(page, "Pond").wait_for()
    page.locator("textarea.editor").focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("Typed but not saved yet.")
    one = row(page, "Pond")
    one.locator(".rag-companion-chevron").click()
    one.get_by_role("button", name="Add relation").click()
    notice(page, "Related to “Pond”.")
    text = (place.vault / RAIN).read_text()
    assert "Typed but not saved yet." in text
    assert "550e8400-e29b-41d4-a716-446655440000" in text


def test_a_target_without_an_id_gets_one_only_after_asking(page: "Page", place: Place) -> None:
    open_note(page, POND)
    one = row(page, "Heath")
    one.locator(".rag-companion-chevron").click()
    one.get_by_role("button", name="Add relation").click()
    page.get_by_role("button", name="Cancel").click()
    assert "id:" not in (place.vault / "Heath.md").read_text()
    one.get_by_role("button", name="Add relation").click()
    page.get_by_role("button", name="Add ID and relation").click()
    notice(page, "Related to “Heath”.")
    assert "id:" in (place.vault / "Heath.md").read_text()


def test_filters_by_folder_tag_property_and_word(page: "Page") -> None:
    open_note(page, BOG)
    rows(page).first.wait_for()
    page.get_by_label("Hide linked notes").click()  # two of them link here
    row(page, "Pond").wait_for()
    page.get_by_label("Filter", exact=True).click()
    field = page.get_by_label("Filter by folder, tag, property or words")

    for text, expected in (
        ("path:Garden", {"Pond", "Rain garden"}),
        ("status=done", {"Pond"}),
        ("#water", {"Pond", "Rain garden"}),
        ("heath", {"Heath"}),
        ("path:Nowhere", set()),
    ):
        field.fill(text)
        titles = page.locator(".rag-companion-title")
        until(lambda: set(titles.all_inner_texts()) == expected, text)  # noqa: B023
    assert state(page).inner_text().startswith("No related notes")
    page.get_by_role("button", name="Clear filter").click()
    until(lambda: rows(page).count() > 2)


def test_the_same_folder_is_one_click_away(page: "Page") -> None:
    open_note(page, POND)
    rows(page).first.wait_for()
    page.get_by_label("Filter", exact=True).click()
    page.get_by_role("button", name="Same folder").click()
    until(lambda: page.locator(".rag-companion-title").all_inner_texts() == ["Rain garden"])


def test_linked_notes_are_hidden_or_shown(page: "Page") -> None:
    open_note(page, RAIN)
    rows(page).first.wait_for()
    titles = page.locator(".rag-companion-title")
    assert "Bog" not in titles.all_inner_texts()
    page.get_by_label("Hide linked notes").click()
    until(lambda: "Bog" in titles.all_inner_texts())
    assert row(page, "Bog").locator(".rag-companion-linked").count() == 1
    assert page.evaluate("plugin.data.hideLinked") is False


def test_the_ribbon_and_the_command_show_one_panel(page: "Page") -> None:
    page.locator("#ribbon button").click()
    command(page, "related")
    assert page.locator(".rag-companion-panel").count() == 1


def test_the_keyboard_moves_opens_and_folds(page: "Page") -> None:
    open_note(page, POND)
    rows(page).first.locator(".rag-companion-head").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    second = rows(page).nth(1)
    assert second.locator(".rag-companion-head").get_attribute("aria-expanded") == "true"
    page.keyboard.press("ArrowLeft")
    assert second.locator(".rag-companion-head").get_attribute("aria-expanded") == "false"
    title = second.locator(".rag-companion-title").inner_text()
    page.keyboard.press("Enter")
    until(lambda: active(page)["path"] != POND, title)


def test_private_text_is_blurred_until_it_is_wanted(page: "Page") -> None:
    open_note(page, POND)
    one = row(page, "Debt")
    one.locator(".rag-companion-chevron").click()
    veil = one.locator(".rag-companion-quote.is-private")
    assert veil.count() > 0
    before = veil.count()
    one.get_by_role("button", name="Show private text").first.click()
    assert veil.count() == before - 1


def test_private_notes_and_others_open_and_fold_all_at_once(page: "Page") -> None:
    open_note(page, POND)
    count = rows(page).count()
    page.get_by_label("Open or fold all").click()
    assert page.locator(".rag-companion-body:visible").count() == count
    page.get_by_label("Open or fold all").click()
    assert page.locator(".rag-companion-body:visible").count() == 0
