"""What users of such plugins complain about: ten requirements, each with a test of its name."""

import json
from typing import TYPE_CHECKING

from tests.obsidian.harness import NEEDS_BROWSER, PLUGIN, Place
from tests.obsidian.notes import (
    BOG,
    HOSTILE,
    NOTES,
    POND,
    RAIN,
    active,
    command,
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


def asked(page: "Page") -> list[str]:
    """Count questions about related notes from now on."""
    found: list[str] = []
    page.on(
        "request",
        lambda one: found.append(one.post_data or "") if "rag_related" in one.url else None,
    )
    return found


def test_1_never_blocks_leafing_through_notes_causes_few_questions(page: "Page") -> None:
    open_note(page, BOG)
    rows(page).first.wait_for()
    questions = asked(page)
    page.evaluate(
        """(paths) => {
          for (const path of paths) {
            const file = app.vault.getFileByPath(path);
            app.workspace.active.view.file = file;
            app.workspace.trigger('file-open', file);
          }
        }""",
        [*(f"Others/Note {number}.md" for number in range(50)), POND],
    )
    until(lambda: shown(page) == "Pond")
    assert len(questions) <= 2
    # The app itself holds no index: what the plugin keeps is a few answers.
    assert (PLUGIN / "src" / "main.ts").stat().st_size < 20_000


def test_2_follows_new_moved_and_never_indexed_notes_and_shows_no_old_results(
    page: "Page", place: Place
) -> None:
    open_note(page, BOG)
    until(lambda: shown(page) == "Bog")
    names = page.evaluate(
        """async () => {
          const seen = [];
          const titles = () => [...document.querySelectorAll('.rag-companion-title')];
          const look = () => seen.push([
            document.querySelector('.rag-companion-note').textContent,
            titles().map((one) => one.textContent).join('|'),
          ]);
          const timer = setInterval(look, 5);
          app.workspace.active.openFile(app.vault.getFileByPath('Garden/Rain garden.md'));
          const isThere = () => look() && seen.at(-1)[0] === 'Rain garden' && titles().length;
          while (!isThere()) await new Promise((done) => setTimeout(done, 20));
          await new Promise((done) => setTimeout(done, 300));
          clearInterval(timer);
          return seen;
        }"""
    )
    by_name: dict[str, set[str]] = {}
    for name, titles in names:
        by_name.setdefault(name, set()).add(titles)
    assert all(len(titles) == 1 for titles in by_name.values()), by_name
    assert set(by_name) == {"Bog", "Rain garden"}
    # A note that Obsidian has and the engine has not seen yet.
    page.evaluate(
        """async () => {
          const file = new (app.vault.getFileByPath('Bog.md').constructor)('New.md');
          app.vault.files.set('New.md', file);
          await app.vault.write('New.md', 'sundew, fox sedge and marsh marigold');
          await app.workspace.active.openFile(file);
        }"""
    )
    until(lambda: shown(page) == "New" and page.locator(".rag-companion-row").count() > 0)
    page.evaluate("app.vault.rename('New.md', 'Moved.md')")
    until(lambda: shown(page) == "Moved")
    page.evaluate("app.vault.remove('Moved.md')")


def test_3_never_blank_or_loading_for_ever(page: "Page") -> None:
    state(page).get_by_text("No note is open").wait_for()
    for path, words in (
        ("Left out.md", "This note is left out"),
        ("Empty.md", "No related notes"),
        ("Others/Note 3.md", ""),
    ):
        open_note(page, path)
        if words:
            state(page).get_by_text(words).wait_for()
            assert state(page).locator("button").count() == 1
    page.route("**/obsidian_rag_related", lambda route: route.abort())
    open_note(page, BOG)
    state(page).wait_for()
    assert state(page).locator("button").count() == 1
    page.unroute("**/obsidian_rag_related")


def test_4_quiet_in_the_background(page: "Page", place: Place) -> None:
    open_note(page, BOG)
    rows(page).first.wait_for()
    page.locator("textarea.editor").focus()
    questions = asked(page)
    (place.vault / "Heath.md").write_text(f"{NOTES['Heath.md']!s}\nmore sundew\n")
    # Playwright tells of requests only while it is asked something.
    until(lambda: page.title() and questions)
    page.wait_for_timeout(300)
    assert page.locator(".notice").count() == 0
    assert page.evaluate("document.activeElement.className") == "editor"


def test_5_a_click_neither_scrolls_nor_renders_the_list_anew(page: "Page") -> None:
    open_note(page, POND)
    first = rows(page).first
    first.locator(".rag-companion-chevron").click()
    page.evaluate("document.querySelector('.rag-companion-list').firstChild.dataset.mark = 'same'")
    page.evaluate("document.querySelector('.rag-companion-list').scrollTop = 40")
    rows(page).nth(1).locator(".rag-companion-chevron").click()
    assert page.evaluate("document.querySelector('.rag-companion-list').scrollTop") == 40
    assert page.locator("[data-mark=same]").count() == 1
    # The same note asked for again keeps place and what is open.
    page.evaluate("plugin.renewPanels()")
    until(lambda: page.locator("[data-mark=same]").count() == 0)
    assert page.evaluate("document.querySelector('.rag-companion-list').scrollTop") == 40
    assert page.locator(".rag-companion-body:visible").count() == 2
    # Focus alone asks nothing.
    questions = asked(page)
    page.locator("textarea.editor").focus()
    first.locator(".rag-companion-head").focus()
    page.wait_for_timeout(250)
    assert questions == []


def test_6_click_opens_here_ctrl_and_middle_click_a_tab_at_the_line(page: "Page") -> None:
    open_note(page, POND)
    until(lambda: shown(page) == "Pond")
    row(page, "Rain garden").locator(".rag-companion-title").click()
    # The plugin opens the note first and goes to the line after that.
    until(lambda: active(page)["path"] == RAIN and active(page)["line"] not in (None, ""))
    assert active(page)["pane"] == "false"
    for button, keys in (("left", ["Control"]), ("middle", [])):
        open_note(page, POND)
        until(lambda: shown(page) == "Pond")
        page.evaluate("document.body.dataset.opened = ''")
        title = row(page, "Heath").locator(".rag-companion-title")
        title.click(button=button, modifiers=keys)  # type: ignore[arg-type]
        until(lambda: active(page)["path"] == "Heath.md")
        assert active(page)["pane"] == "tab"


def test_7_leaves_out_the_note_itself_hides_linked_filters_and_says_why(page: "Page") -> None:
    open_note(page, POND)
    titles = rows(page).locator(".rag-companion-title").all_inner_texts()
    assert "Pond" not in titles and "Bog" not in titles
    assert not any(title.endswith(".md") for title in titles)
    assert all(rows(page).locator(".rag-companion-reasons").all_inner_texts())
    assert page.get_by_label("Filter", exact=True).count() == 1


def test_8_deleted_and_renamed_notes_vanish_at_once(page: "Page") -> None:
    open_note(page, BOG)
    row(page, "Debt").wait_for()
    # Only the app knows yet: the engine is not asked again.
    page.evaluate(
        """() => {
          const file = app.vault.files.get('Debt.md');
          app.vault.files.delete('Debt.md');
          app.vault.trigger('delete', file);
        }"""
    )
    titles = page.locator(".rag-companion-title")
    assert "Debt" not in titles.all_inner_texts()


def test_9_links_go_where_they_are_dropped_and_are_right_for_headings_with_links(
    page: "Page",
) -> None:
    open_note(page, "Heath.md")
    one = row(page, "Pond")
    one.locator(".rag-companion-chevron").click()
    section = one.get_by_role("button", name="Link to section")
    page.evaluate("app.workspace.active.view.area.setSelectionRange(2, 2)")
    section.click()
    text = active(page)["text"]
    assert text.startswith("# [[Pond")
    assert "[[Bog]]" not in text.split("\n")[0].removeprefix("# [[")
    (dropped,) = page.evaluate(
        """() => {
          const moved = new DataTransfer();
          const head = document.querySelector('.rag-companion-head');
          head.dispatchEvent(new DragEvent('dragstart', {dataTransfer: moved, bubbles: true}));
          return [moved.getData('text/plain')];
        }"""
    )
    assert dropped.startswith("[[") and dropped.endswith("]]")


def test_10_nothing_big_in_the_vault(page: "Page", place: Place) -> None:
    before = sorted(file.name for file in place.vault.iterdir())
    open_note(page, POND)
    rows(page).first.wait_for()
    page.evaluate("plugin.savePanel({hideLinked: true})")
    assert len(json.dumps(page.evaluate("plugin.data"))) < 2048
    assert sorted(file.name for file in place.vault.iterdir()) == before


def test_hostile_names_and_contents_are_text_and_nothing_else(page: "Page") -> None:
    open_note(page, BOG)
    rows(page).first.wait_for()
    page.get_by_label("Open or fold all").click()
    command(page, "search")
    page.locator(".prompt-input").fill("sedge onerror hacked")
    page.wait_for_selector(".suggestion-item")
    page.keyboard.press("Escape")
    open_note(page, HOSTILE)
    until(lambda: shown(page).startswith("<img"))
    rows(page).first.wait_for()
    command(page, "suggest-relations")
    page.wait_for_selector(".suggestion-item")
    assert page.evaluate("window.hacked") is None
    outside = "#right img, #right script, .modal img, .modal script"
    assert page.locator(outside).count() == 0


def test_unloading_ends_everything(page: "Page") -> None:
    open_note(page, POND)
    rows(page).first.wait_for()
    page.evaluate(
        """async () => {
          for (const leaf of app.workspace.getLeavesOfType('rag-companion-related')) {
            await leaf.view.onClose();
            leaf.view.unload();
          }
          plugin.unload();
        }"""
    )
    assert page.evaluate("[app.workspace.size, app.vault.size]") == [0, 0]
    later: list[str] = []
    page.on("request", lambda one: later.append(one.url))
    open_note(page, BOG)
    page.wait_for_timeout(600)
    assert not [url for url in later if "/engine/" in url]
