"""The map by clicking it: find, walk, colour, zoom, fit, and stay where one was."""

from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from tests.page.site import Site
from tests.page.visits import Visit, served, visiting
from tests.waiting import until

ID = "550e8400-e29b-41d4-a716-446655440000"
NOTES = {
    "Water/Pond.md": f"---\nid: {ID}\ntags: [water]\n---\n"
    "# Pond\n\ncarp, newts, lilies\n\n[[Bog]] [[Reed]]\n",
    "Water/Bog.md": "---\ntags: [water]\n---\n# Bog\n\nmoss, see [[Pond]]\n",
    "Water/Reed.md": "# Reed\n\nsee [[Bog]]\n",
    "Garden/Rain.md": f"---\nrelated: [{ID}]\ntags: [plan]\n---\n# Rain garden\n\ndig\n",
    "Garden/Bed.md": "# Bed\n\nsee [[Rain]] and [[Pond]]\n",
    "Water/Lake.md": "---\ntags: [water]\n---\n# Lake\n\ncarp, newts, lilies\n",
    "Bread.md": "# Bread\n\nrye flour, salt, water and time\n",
    "Rye.md": "# Rye bread\n\nrye flour, salt, water and more time\n",
}


def drawn(visit: Visit, path: str = "/map") -> Page:
    page = visit.go(path)
    expect(page.locator(".map[data-ready]")).to_be_visible()
    return page


def sheet(page: Page) -> str:
    expect(page.locator(".map-sheet")).to_be_visible()
    return page.locator(".map-sheet h2").inner_text()


def colours(page: Page) -> int:
    """How many different colours the picture has."""
    return int(
        page.evaluate(
            """() => { const c = document.querySelector('.map canvas');
            const d = new Uint32Array(
              c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);
            return new Set(d).size; }"""
        )
    )


def test_the_map_draws_the_vault_and_tells_what_it_shows(visit: Visit) -> None:
    page = drawn(visit)
    expect(page.locator(".map-told")).to_contain_text("8 notes · 5 links · 1 relation")
    until(lambda: colours(page) > 5, "the picture")
    legend = page.locator(".map-legend").inner_text().split("\n")
    assert legend[::2] == ["Water", "Garden", "No folder"]
    assert visit.violations() == []
    visit.shoot("map")


def test_a_note_is_found_chosen_and_walked_from(visit: Visit) -> None:
    page = drawn(visit)
    page.get_by_label("Find on the map").fill("pond")
    expect(page.locator("#map-found button")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(".map-sheet h2")).to_have_text("Pond")
    assert page.url.endswith("/map?at=Water%2FPond.md")
    sections = page.locator(".map-sheet h3").all_inner_texts()
    assert sections[:2] == ["Relations 1", "Links 3"]
    visit.shoot("map-chosen")
    assert visit.violations() == []
    page.locator(".map-sheet").get_by_role("button", name="Bog").click()
    expect(page.locator(".map-sheet h2")).to_have_text("Bog")
    page.reload()
    expect(page.locator(".map-sheet h2")).to_have_text("Bog")
    page.keyboard.press("Escape")
    expect(page.locator(".map-sheet")).to_be_hidden()


def test_a_click_on_the_picture_chooses_and_hovering_dims_the_rest(visit: Visit) -> None:
    page = drawn(visit, "/map?at=Bread.md")
    canvas = page.locator(".map canvas")
    box = canvas.bounding_box()
    assert box is not None
    page.keyboard.press("Escape")
    # The note was in view, so what was chosen has not moved: look for it by hovering.
    found = page.evaluate(
        """() => { const c = document.querySelector('.map canvas').getBoundingClientRect();
        return [c.x, c.y, c.width, c.height]; }"""
    )
    assert found[2] == box["width"]
    page.mouse.click(*hover_a_note(page, box))
    assert sheet(page) in {
        "Pond",
        "Bog",
        "Reed",
        "Rain garden",
        "Bed",
        "Bread",
        "Rye bread",
        "Lake",
    }


def hover_a_note(page: Page, box: object) -> tuple[float, float]:
    """A point of the picture where a note is, found by the shape of the pointer."""
    assert isinstance(box, dict)
    for y in range(60, int(box["height"]) - 60, 12):
        for x in range(260, int(box["width"]) - 40, 12):
            page.mouse.move(box["x"] + x, box["y"] + y)
            if page.evaluate("document.querySelector('.map canvas').style.cursor") == "pointer":
                return box["x"] + x, box["y"] + y
    raise AssertionError("no note was found")


def test_the_neighbourhood_of_a_note_shows_its_ties_and_leads_on(visit: Visit) -> None:
    page = drawn(visit, "/map?note=Water/Pond.md")
    expect(page.locator(".map-sheet h2")).to_have_text("Pond")
    expect(page.locator(".map-told")).to_contain_text("similar")
    visit.shoot("map-neighbourhood")
    page.locator(".map-sheet").get_by_role("button", name="Bed").click()
    page.wait_for_url("**/map?note=Garden%2FBed.md")
    expect(page.locator(".map-sheet h2")).to_have_text("Bed")
    page.get_by_role("link", name="Whole vault").click()
    page.wait_for_url("**/map?at=Garden%2FBed.md")
    page.go_back()
    page.go_back()
    expect(page.locator(".map-sheet h2")).to_have_text("Pond")


def test_colours_follow_folders_or_tags_and_a_group_can_be_marked(visit: Visit) -> None:
    page = drawn(visit)
    page.get_by_label("Colour by").select_option("tag")
    legend = page.locator(".map-legend")
    expect(legend).to_contain_text("#water")
    legend.get_by_role("button", name="#water").click()
    expect(legend.get_by_role("button", name="#water")).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(page.locator(".map-legend")).to_contain_text("#water")


def test_the_view_moves_by_keys_wheel_and_drag_and_is_remembered(visit: Visit) -> None:
    page = drawn(visit)

    def camera() -> str:
        return str(page.evaluate("localStorage.getItem('map-camera')"))

    page.keyboard.press("f")
    first = camera()
    page.locator(".map canvas").focus()
    page.keyboard.press("ArrowRight")
    moved = camera()
    page.keyboard.press("+")
    zoomed = camera()
    page.mouse.move(700, 400)
    page.mouse.wheel(0, -240)
    wheeled = until(lambda: (now := camera()) != zoomed and now, "the wheel")
    page.mouse.down()
    page.mouse.move(760, 440, steps=4)
    page.mouse.up()
    dragged = camera()
    assert len({first, moved, zoomed, wheeled, dragged}) == 5
    page.reload()
    expect(page.locator(".map[data-ready]")).to_be_visible()
    assert camera() == dragged
    page.keyboard.press("f")
    assert camera() == first


def test_an_edit_shows_on_the_open_map(visit: Visit) -> None:
    page = drawn(visit)
    new = visit.site.vault / "Water" / "Spring.md"
    new.write_text("# Spring\n\nsee [[Pond]]\n")
    expect(page.locator(".map-told")).to_contain_text("9 notes")
    new.unlink()
    expect(page.locator(".map-told")).to_contain_text("8 notes")


def test_a_note_that_is_not_there_is_said_and_names_no_dead_end(
    browser: Browser, own_site: Site
) -> None:
    with visiting(browser, own_site, "404") as visit:
        page = visit.go("/map?note=Nowhere.md")
        expect(page.locator(".state.bad")).to_contain_text("NOT_FOUND")


def test_long_and_foreign_names_fit(browser: Browser, tmp_path: Path) -> None:
    notes = {
        f"{'Very ' * 12}long folder/{'A very long name ' * 9}.md": "# x\n\n[[日本の庭]]\n",
        "日本の庭.md": "# 日本の庭園についてのノート\n\n[[حديقة]]\n",
        "حديقة.md": "# ملاحظات الحديقة\n\n[[日本の庭]]\n",
    }
    with served(tmp_path, notes) as site, visiting(browser, site) as visit:
        page = drawn(visit, "/map?at=日本の庭.md")
        expect(page.locator(".map-sheet h2")).to_have_text("日本の庭園についてのノート")
        visit.shoot("map-names")
