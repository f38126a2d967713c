"""Reading notes: all kinds of marks, what belongs to them, and notes that mean harm."""

import re
import time

import pytest
from playwright.sync_api import Page, Request, expect
from tests.page.notes import HOSTILE
from tests.page.site import Window

from obsidian_rag.transports.http.web.markdown import Links, render


def body(page: Page) -> str:
    page.wait_for_selector(".note-body", state="attached")
    return page.locator(".note-body").inner_text()


def test_a_note_shows_all_kinds_of_marks(window: Window) -> None:
    page = window.open("/note/Notes/Kinds/Marks.md")
    text = body(page)
    note = page.locator(".note-body")
    expect(page.get_by_role("heading", level=1)).to_have_text("All kinds of marks")
    expect(note.get_by_role("link", name="link", exact=True)).to_have_attribute(
        "href", "/note/Notes/Projects/Rain%20garden.md"
    )
    expect(note.locator(".wikilink.missing")).to_have_text("Nowhere at all")
    expect(note.locator("mark strong")).to_have_text("bright")
    expect(note.locator("p .tag")).to_have_attribute("href", "/search?tag=water/clean")
    expect(note.locator(".callout-warning .callout-title")).to_have_text("Mind the step")
    expect(note.locator("[data-task=done]")).to_have_count(1)
    expect(note.locator("[data-task=open]")).to_have_count(1)
    expect(note.locator("td a")).to_have_text("owed")
    expect(note.locator("pre .k").first).to_have_text("def")
    expect(note.locator(".embed .embed-title")).to_have_text("Rain garden")
    assert "never shown" not in text
    assert "several lines" not in text
    assert (
        note.locator("img").evaluate("(image) => image.decode().then(() => image.naturalWidth)")
        == 40
    )
    assert note.locator("img").count() == 1  # the one from elsewhere is only a link
    expect(note.get_by_role("link", name=re.compile("evil.test"))).to_have_attribute(
        "target", "_blank"
    )


def test_beside_a_note_are_related_ones_backlinks_and_outline(window: Window) -> None:
    page = window.open("/note/Notes/Projects/Rain%20garden.md")
    beside = page.get_by_role("complementary")
    related = beside.locator(".related li")
    expect(related.first).to_be_visible()
    score = related.first.get_by_role("button", name=re.compile("Score"))
    score.click()
    expect(related.first.locator(".why")).to_contain_text("·")
    expect(beside.locator(".links a").first).to_be_visible()
    beside.locator(".outline a", has_text="Plants").click()
    expect(page.locator(".note-body h2.here")).to_have_text("Plants")
    related.first.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Rain garden")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Rain garden")


def test_a_relation_is_written_only_after_a_look_at_the_exact_change(window: Window) -> None:
    file = window.site.vault / "Projects/Tool library.md"
    before = file.read_text()
    page = window.open("/note/Notes/Projects/Tool%20library.md")
    page.get_by_role("button", name="Add relation").first.click()
    shown = page.get_by_role("dialog").locator(".diff .added")
    expect(shown.first).to_be_visible()
    assert file.read_text() == before
    promised = [line.removeprefix("+ ") for line in "".join(shown.all_inner_texts()).splitlines()]
    page.get_by_role("dialog").get_by_role("button", name="Add relation").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    after = file.read_text()
    assert after != before
    own = [line for line in after.splitlines() if line not in before.splitlines()]
    # The preview made an id for a target without one; written was another new one.
    plain = [re.sub(r"[0-9a-f-]{36}", "ID", line) for line in own]
    assert set(plain) <= {re.sub(r"[0-9a-f-]{36}", "ID", line) for line in promised}


def test_a_note_that_is_gone_is_searched_for(window: Window) -> None:
    window.expected = ("404",)
    page = window.open("/note/Notes/Nothing/Here.md")
    expect(page.get_by_text("This note no longer exists.")).to_be_visible()
    page.get_by_role("link", name="Search for it").click()
    expect(page.get_by_role("searchbox")).to_have_value("Here.md")


@pytest.mark.parametrize(
    "name", ["title", "textarea", "style", "script", "noscript", "template", "xmp", "iframe"]
)
@pytest.mark.parametrize("place", ["prose <{}> more", "<{}>", "- item <{} class=x>"])
def test_a_tag_that_nothing_closes_swallows_nothing(name: str, place: str) -> None:
    links = Links(lambda _: None, str, lambda _, __: None)
    made = render(f"{place.format(name)}\n\nafter *this*\n\n## Two\n", links)
    assert "after <em>this</em>" in made
    assert "<h2" in made
    assert f"&lt;{name}" in made
    closed = render(f"a <{name}>gone</{name}> b\n\nafter\n", links)
    assert "after" in closed
    assert f"<{name}" not in made + closed


@pytest.mark.parametrize("place", ["{}", "prose {} more", "- {}", "> {}"])
@pytest.mark.parametrize(
    "begun",
    [
        "<!-- begun",
        "<div><!-- begun",
        "<div title='begun",
        "<?php begun",
        "<!begun",
        "<![CDATA[ begun",
        "<script>begun</script",
        "<svg><desc>",
        "<div><math><mi>",
    ],
)
def test_html_without_an_end_swallows_nothing(begun: str, place: str) -> None:
    links = Links(lambda _: None, str, lambda _, __: None)
    made = render(f"{place.format(begun)}\n\nafter *this*\n\n## Two\n", links)
    assert "after <em>this</em>" in made
    assert "<h2" in made


@pytest.mark.parametrize("name", ["path", "text", "filter", "mi", "your-name"])
def test_a_name_in_angle_brackets_is_shown_as_it_is_written(name: str) -> None:
    links = Links(lambda _: None, str, lambda _, __: None)
    made = render(f"use <{name}>one</{name}> and <{name}> here\n\nafter *this*\n", links)
    shown = f"&lt;{name}&gt;"
    assert f"use {shown}one&lt;/{name}&gt; and {shown} here</p>" in made
    assert "after <em>this</em>" in made


def test_a_comment_and_a_drawing_are_left_out_whole() -> None:
    links = Links(lambda _: None, str, lambda _, __: None)
    drawing = "<svg viewBox='0 0 1 1'><path d='M0 0'/><text>drawn</text></svg>"
    made = render(f"<!-- gone\n\ngone --> \n\n{drawing}\n\na {drawing} b\n\nafter *this*\n", links)
    assert "gone" not in made
    assert "drawn" not in made
    assert "after <em>this</em>" in made


@pytest.mark.parametrize("part", ["<title>", "<style> ", "<div><!--", "<div <", "<!-- x\n\n"])
def test_many_tags_that_nothing_closes_are_quick(part: str) -> None:
    links = Links(lambda _: None, str, lambda _, __: None)
    started = time.process_time()
    render(part * 20_000, links)
    assert time.process_time() - started < 5


HARM = """(body) => [...body.querySelectorAll('*')].flatMap((one) => [
  ...[...one.attributes].filter((a) => /^on|^style$/.test(a.name)).map((a) => a.name),
  ...(/^(script|style|iframe|form|input|object|embed|svg|math|meta|base|button)$/i.test(one.tagName)
    ? [one.tagName] : []),
  ...(one.href && !/^(https?|mailto|obsidian):/.test(one.href) ? [one.href] : []),
])"""


def test_hostile_notes_can_do_nothing(window: Window) -> None:
    outside: list[str] = []

    def watch(request: Request) -> None:
        if not request.url.startswith(window.site.url):
            outside.append(request.url)

    page = window.page
    page.on("request", watch)
    window.expected = ("404 (Not Found)",)  # the picture that is not in the vault
    for name in ("All", *(f"Line {number:02}" for number in range(len(HOSTILE)))):
        window.open(f"/note/Notes/Hostile/{name}.md")
        body(page)
        assert page.locator(".note-body").evaluate(HARM) == [], name
        assert page.evaluate("() => document.getElementById('main').tagName") == "MAIN"
        assert outside == [], name
        window.check()


def test_files_outside_the_vault_or_of_other_kinds_are_not_served(window: Window) -> None:
    for path in (
        "../home/config.json",
        "../../etc/passwd.png",
        "Kinds/Picture.svg",
        "Kinds/Marks.md",
    ):
        found = window.page.evaluate(
            """(path) => fetch(`/page/file?path=${encodeURIComponent(path)}`, {
              headers: { 'X-Obsidian-Rag-Page': localStorage.getItem('proof') },
            }).then((r) => r.status)""",
            path,
        )
        assert found in (403, 404), path
    window.expected = ("403", "404")
