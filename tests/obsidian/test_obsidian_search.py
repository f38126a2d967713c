"""Search as a modal: as you type, open at the line, insert a link."""

from typing import TYPE_CHECKING

from tests.obsidian.harness import NEEDS_BROWSER, picture
from tests.obsidian.notes import BOG, POND, active, command, open_note, rows
from tests.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = NEEDS_BROWSER


def ask(page: "Page", query: str) -> list[str]:
    """Type a question and read what is found."""
    command(page, "search")
    page.locator(".prompt-input").fill("")
    page.keyboard.type(query, delay=15)
    # Answers to the first letters came before.
    page.wait_for_selector(f'.prompt-results[data-answered="{query}"] .suggestion-item')
    return page.locator(".rag-companion-hit-title span:first-child").all_inner_texts()


def test_a_question_is_answered_as_it_is_typed_with_a_preview(page: "Page") -> None:
    open_note(page, BOG)
    assert "Debt" in ask(page, "how much do I owe Sreenivas")
    assert page.locator(".prompt-input").input_value() == "how much do I owe Sreenivas"
    page.locator(".prompt-input").fill("sundew heather")
    page.locator(".rag-companion-mark").first.wait_for()
    picture(page, "search")


def test_enter_opens_at_the_line_and_leaves_no_newline(page: "Page") -> None:
    open_note(page, BOG)
    ask(page, "marsh marigold is cheap")
    before = active(page)["text"]
    page.keyboard.press("Enter")
    until(lambda: active(page)["path"] != BOG)
    assert page.locator(".prompt").count() == 0
    assert int(active(page)["line"]) > 0
    assert before in (before, active(page)["text"])


def test_shift_enter_inserts_a_link_where_the_cursor_is(page: "Page") -> None:
    open_note(page, BOG)
    page.locator("textarea.editor").focus()
    page.evaluate("app.workspace.active.view.area.setSelectionRange(0, 0)")
    ask(page, "sundew heather")
    page.keyboard.press("Shift+Enter")
    until(lambda: active(page)["text"].startswith("[["))
    assert active(page)["path"] == BOG


def test_ctrl_enter_opens_a_tab(page: "Page") -> None:
    open_note(page, BOG)
    ask(page, "rye water salt")
    page.keyboard.press("Control+Enter")
    until(lambda: active(page)["path"] == "Bread.md")
    assert active(page)["pane"] == "tab"


def test_a_weak_answer_is_said_to_be_one(page: "Page") -> None:
    open_note(page, BOG)
    ask(page, "quantum chromodynamics of lattice gauge theories")
    said = page.locator(".prompt .rag-companion-saying")
    until(lambda: "Nothing in your notes seems to answer this" in said.inner_text())
    picture(page, "search-weak")


def test_private_passages_are_named_not_shown(page: "Page") -> None:
    open_note(page, BOG)
    ask(page, "owe Sreenivas")
    until(lambda: page.locator(".rag-companion-private").count() > 0)
    assert "1,150" not in page.locator(".prompt").inner_text()


def test_enter_while_a_word_is_being_composed_opens_nothing(page: "Page") -> None:
    open_note(page, BOG)
    ask(page, "sundew")
    page.evaluate(
        """() => document.querySelector('.prompt-input').dispatchEvent(
          new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true}))"""
    )
    assert page.locator(".prompt").count() == 1
    assert active(page)["path"] == BOG


def test_the_last_question_is_selected_when_search_is_opened_again(page: "Page") -> None:
    open_note(page, BOG)
    ask(page, "sundew")
    page.keyboard.press("Escape")
    command(page, "search")
    chosen = "(() => { const i = document.querySelector('.prompt-input'); "
    chosen += "return i.value.slice(i.selectionStart, i.selectionEnd) })()"
    assert page.evaluate(chosen) == "sundew"


def test_typing_quickly_never_loses_a_letter_or_shows_an_older_answer(page: "Page") -> None:
    open_note(page, POND)
    rows(page).first.wait_for()
    command(page, "search")
    page.locator(".prompt-input").fill("")
    page.keyboard.type("bread rye salt then sundew and heather on the heath")
    assert page.locator(".prompt-input").input_value().endswith("on the heath")
    expected = page.evaluate(
        """async (query) => {
          const asked = { query, max_results: 20 };
          const { data } = await plugin.connection.call('obsidian_rag_search', asked);
          return data.results.filter((one) => one.score >= 0.005).map((one) => one.title);
        }""",
        page.locator(".prompt-input").input_value(),
    )
    titles = page.locator(".rag-companion-hit-title span:first-child")
    until(lambda: titles.all_inner_texts() == expected)
