"""Searching by typing, by keys and by filters."""

from playwright.sync_api import Route, expect
from tests.page.site import Window, expect_toast


def test_answers_come_while_typing_and_the_address_follows(window: Window) -> None:
    page = window.open("/search")
    page.get_by_role("searchbox").press_sequentially("rain garden", delay=20)
    first = page.locator(".hit").first
    expect(first.locator(".hit-title")).to_contain_text("Rain garden")
    expect(page).to_have_url(window.site.url + "/search?q=rain+garden")
    page.reload()
    expect(page.locator(".hit").first.locator(".hit-title")).to_contain_text("Rain garden")
    expect(page.get_by_role("searchbox")).to_have_value("rain garden")


def test_only_the_last_letters_are_answered(window: Window) -> None:
    page = window.open("/search")
    field = page.get_by_role("searchbox")
    field.press_sequentially("boiler service", delay=5)
    field.fill("庭園")
    expect(page.locator(".hit").first).to_contain_text("京都")
    expect(page.locator(".hit mark").first).to_have_text("庭園")


def test_keys_alone_find_open_and_return(window: Window) -> None:
    page = window.open("/search")
    page.keyboard.type("rain garden")
    # Answers to the first letters may have come before.
    expect(page).to_have_url(window.site.url + "/search?q=rain+garden")
    expect(page.locator(".answer:not(.waiting) .hit").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit-title").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit-title").nth(1)).to_be_focused()
    page.keyboard.press("c")
    expect_toast(page, "Link copied")
    assert page.evaluate("() => navigator.clipboard.readText()").startswith("obsidian://open")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Rain garden")
    expect(page.locator(".note-body .here").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).to_have_value("rain garden")
    page.keyboard.press("Escape")
    page.locator("body").click(position={"x": 5, "y": 600})
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Copy its link")


def test_what_is_typed_while_the_page_loads_is_kept(window: Window) -> None:
    held: list[Route] = []
    window.page.route("**/views/search.js", lambda route: held.append(route))
    with window.page.expect_request("**/views/search.js"):
        page = window.open("/search")
    page.keyboard.type("/gm rain")
    page.keyboard.press("Backspace")
    held[0].continue_()
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("n gauge")
    expect(page.get_by_role("searchbox")).to_have_value("gm rain gauge")
    expect(page).to_have_url(window.site.url + "/search?q=gm+rain+gauge")
    expect(page.locator(".hit").first).to_be_visible()


def test_filters_are_chips_that_can_be_removed(window: Window) -> None:
    page = window.open("/search?q=garden")
    expect(page.locator(".hit").first).to_be_visible()
    page.get_by_role("button", name="Filter").click()
    tag = page.get_by_label("Tag")
    tag.fill("wat")
    expect(page.locator("datalist option[value=water]")).to_have_count(1)
    tag.fill("water")
    tag.press("Enter")
    chip = page.get_by_role("button", name="Remove the tag water")
    expect(chip).to_be_visible()
    expect(page).to_have_url(window.site.url + "/search?q=garden&tag=water")
    chip.click()
    expect(chip).to_have_count(0)


def test_a_date_in_the_question_is_a_chip_that_can_be_removed(window: Window) -> None:
    page = window.open("/search?q=what+happened+in+March+2024")
    chip = page.locator(".chip.found")
    expect(chip).to_contain_text("2024-03 · from your question")
    chip.click()
    expect(chip).to_have_count(0)
    expect(page.locator(".hit").first).to_be_visible()


def test_a_weak_answer_says_so_and_nothing_found_offers_a_way_on(window: Window) -> None:
    page = window.open("/search?q=quantum+chromodynamics+lattice+gauge")
    expect(page.locator(".lead")).to_contain_text("Nothing in your notes seems to answer this.")
    page = window.open("/search?q=rain&tag=no-such-tag")
    expect(page.get_by_text("Nothing found.")).to_be_visible()
    page.get_by_role("button", name="Search without the tag").click()
    expect(page.locator(".hit").first).to_be_visible()


def test_a_score_says_what_it_is_made_of(window: Window) -> None:
    page = window.open("/search?q=rain+garden")
    hit = page.locator(".hit").first
    hit.get_by_role("button", name="Score").click()
    expect(hit.locator(".why")).to_contain_text("words")


def test_a_change_of_a_setting_is_tried_before_it_is_saved(window: Window) -> None:
    page = window.open("/settings")
    size = page.get_by_label("chunk size")
    size.fill("7")
    size.blur()
    bar = page.get_by_role("region", name="Unsaved changes")
    expect(bar.locator("li.bad")).to_contain_text("32")
    expect(bar.get_by_role("button", name="Save")).to_be_disabled()
    window.expected = ("400",)
    size.fill("400")
    size.blur()
    expect(bar).to_contain_text("must be rebuilt")
    bar.get_by_role("button", name="Discard").click()
    expect(bar).to_be_hidden()
    policy = page.get_by_label("sensitive policy")
    policy.select_option("withhold")
    expect(bar).to_contain_text("Takes effect at once.")
    bar.get_by_role("button", name="Save").click()
    expect_toast(page, "Saved")
    assert '"withhold"' in (window.site.home / "config.json").read_text()
    page.get_by_label("sensitive policy").select_option("flag")
    bar.get_by_role("button", name="Save").click()
    expect(bar).to_be_hidden()
