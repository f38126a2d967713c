"""Private passages: shown plainly with what they are about, and gone while the screen is on."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.page.notes import picture
from tests.page.site import Site, Window, new_window, sign_in
from tests.page.visits import Visit, served

from obsidian_rag.transports.http.web.assets import ROOT, VIEWS

# Each says its secret in another construct; a word with `zq` stands nowhere else.
CONSTRUCTS = {
    "paragraph": "I owe Bo zqparagraph.",
    "list": "- I owe zqlist\n  - inner zqnested\n    1. deep zqdeep",
    "tasks": "- [ ] I owe zqtask\n- [x] paid zqdone",
    "table": "| debt | sum |\n|---|---|\n| Bo | zqtable |",
    "fence": "```python\nzqfence = 'debt'\n```",
    "indented code": "debt:\n\n    zqindented",
    "callout": "> [!warning] debt zqcallout\n> zqinside\n>\n> > zqquoted",
    "folded callout": "> [!note]- zqfolded\n> debt",
    "quote": "> I owe zqquote\nzqlazy",
    "setext": "I owe zqsetext\n======\n\nzqbelow",
    "raw block": "<div>\n\nI owe zqdiv\n\n</div>",
    "raw line": "<p>I owe zqraw</p>\n<table><tr><td>zqcell</td></tr></table>",
    "raw details": "<details open><summary>zqsummary</summary>debt zqdetails</details>",
    "comment": "debt zqaround <!-- zqcomment --> %%zqpercent%%",
    "math": "debt\n\n$$\nzqmath\n$$\n\n$zqinline$",
    "picture": "debt ![[zqpicture.png]] ![zqalt](zqpicture.png)",
    "sound": "debt ![[zqsound.mp3]]",
    "link": 'debt [[zqtarget|zqlabel]] [zqtext](http://zqhost.test/ "zqtitle")',
    "reference": "debt [zqref][zqkey]\n\n[zqkey]: http://zqreference.test",
    "embed": "debt ![[Embedded secret]]",
    "footnote": "debt[^9]\n\n[^9]: zqfootnote",
    "inline footnote": "debt ^[zqaside]",
    "highlight": "debt ==zqhighlight== **zqbold** ~~zqstrike~~ `zqcode`",
    "definition": "debt\n\n<dl><dt>zqterm</dt><dd>zqmeaning</dd></dl>",
    "tag": "debt #zqtag ^zqblock",
    "rule": "debt\n\n***\n\nzqrule",
    "unclosed fence": "debt\n\n```\nzqunclosed",
}
BEFORE, AFTER = "An apple before.", "A pear after."
LAST = ("unclosed fence", "raw block")


def written(name: str, secret: str) -> str:
    after = "" if name in LAST else f"\n\n# After\n\n{AFTER}\n"
    return f"# Before\n\n{BEFORE}\n\n## Debt zqheading\n\n{secret}{after}"


NOTES: dict[str, str | bytes] = {
    **{f"Kinds/{name}.md": written(name, text) for name, text in CONSTRUCTS.items()},
    "zqpicture.png": picture(),
    "Embedded secret.md": "# Embedded\n\nOpen lines.\n\n## Debt\n\nI owe zqembedded\n",
    "Embedding.md": "# Embedding\n\nSee ![[Embedded secret]]\n",
    "Diary.md": "---\nrag: private\nmood: zqmood\ntags: [zqdiary]\n---\n# Zqtitle\n\n"
    "zqdiarytext of the harbour\n\n## Zqpart\n\nmore zqmore\n",
    "Harbour.md": "# Harbour\n\nBoats of the harbour, see [[Diary]].\n",
    "Board.canvas": '{"nodes": [{"id": "1", "type": "text", "text": "**Sails** and ropes"}]}',
    "Blocks.md": "# Blocks\n\nnot this\n\nonly this\nand this ^one\n\n- no\n- item ^two\n- no\n",
    "Showing blocks.md": "![[Blocks#^one]]\n\n![[Blocks#^two]]\n",
    "Two.md": "# Two\n\n## Debt one\n\nI owe zqone\n\n## Peace\n\nquiet\n\n"
    "## Debt two\n\nI owe zqtwo\n",
}
EXPECTED = ("404 (Not Found)",)  # the sound is not in the vault


def everything(page: Page) -> str:
    """All that stands in the document: text, attributes, values, title."""
    return str(
        page.evaluate(
            """() => document.title + document.documentElement.outerHTML
              + [...document.querySelectorAll('input, textarea')].map((one) => one.value)"""
        )
    )


def secrets_in(page: Page) -> list[str]:
    return sorted(set(re.findall(r"zq\w+", everything(page).lower())))


def turn_on(page: Page) -> None:
    page.locator("#screen").click()
    expect(page.locator("#screen")).to_have_attribute("aria-pressed", "true")


@pytest.fixture(scope="module")
def own_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served(tmp_path_factory.mktemp("private"), NOTES) as one:
        yield one


@pytest.fixture(scope="module")
def pages(browser: Browser, own_site: Site) -> Iterator[tuple[Window, Window]]:
    """A window with the screen off, and one of another browser with the screen on."""
    made = [new_window(browser, own_site) for _ in range(2)]
    for _, window in made:
        sign_in(window)
        window.expected = EXPECTED
    turn_on(made[1][1].page)
    yield made[0][1], made[1][1]
    for context, window in made:
        window.check()
        context.close()


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_every_construct_is_plain_without_the_screen_and_absent_with_it(
    pages: tuple[Window, Window], name: str
) -> None:
    plain, screened = pages
    page = plain.open(f"/note/Notes/Kinds/{name}.md")
    body = page.locator(".note-body")
    expect(body).to_contain_text(BEFORE)
    expect(body.locator(".private-label").first).to_have_text("financial")
    seen = secrets_in(page)
    assert len(seen) > 1, "nothing to hide would prove nothing"
    page = screened.open(f"/note/Notes/Kinds/{name}.md")
    body = page.locator(".note-body")
    expect(body).to_contain_text(BEFORE)
    expect(body.locator(".screened")).to_have_count(1)
    assert secrets_in(page) == []
    assert page.locator(".note-body img, .note-body audio").count() == 0
    order = body.inner_text()
    places = [order.index(part) for part in (BEFORE, "financial", *([AFTER] * (name not in LAST)))]
    assert places == sorted(places)


def test_what_is_seen_is_the_same_whatever_stands_behind_the_screen(
    pages: tuple[Window, Window],
) -> None:
    """A picture of the page shows nothing of the text: neither its length nor its colours."""
    _, screened = pages
    shots = set()
    for name in ("paragraph", "table", "picture", "fence", "math"):
        page = screened.open(f"/note/Notes/Kinds/{name}.md")
        expect(page.locator(".note-body .screened")).to_be_visible()
        expect(page.locator(".note-body")).to_contain_text(AFTER)
        shots.add(page.locator(".note-body").screenshot(animations="disabled"))
    assert len(shots) == 1


def test_a_private_note_is_one_bar_without_its_title_properties_and_outline(visit: Visit) -> None:
    page = visit.go("/note/Notes/Diary.md")
    expect(page.locator(".note-body")).to_contain_text("zqdiarytext")
    expect(page.locator(".private-label").first).to_have_text("private")
    page.keyboard.press(".")
    expect(page.locator(".note-body .screened")).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_text("Diary")
    expect(page.locator(".related li").first).to_be_visible()
    assert secrets_in(page) == []
    page.reload()
    expect(page.locator(".note-body .screened")).to_have_count(1)
    assert secrets_in(page) == []
    page.get_by_role("button", name="Show this note").click()
    expect(page.locator(".note-body")).to_contain_text("zqdiarytext")
    visit.go("/note/Notes/Harbour.md")
    expect(page.locator(".note-body")).to_contain_text("Boats")
    visit.go("/note/Notes/Diary.md")
    expect(page.locator(".note-body .screened")).to_have_count(1)
    page.keyboard.press(".")
    expect(page.locator(".note-body")).to_contain_text("zqdiarytext")


def test_one_part_is_shown_and_the_other_stays_behind_the_screen(visit: Visit) -> None:
    page = visit.go("/note/Notes/Two.md")
    expect(page.locator(".note-body")).to_contain_text("zqtwo")
    turn_on(page)
    expect(page.locator(".note-body .screened")).to_have_count(2)
    page.get_by_role("button", name="Show this one").last.click()
    expect(page.locator(".note-body")).to_contain_text("zqtwo")
    assert secrets_in(page) == ["zqtwo"]
    visit.page.keyboard.press(".")
    expect(page.locator(".note-body")).to_contain_text("zqone")


def test_an_embedded_note_leaves_its_private_part_out(visit: Visit) -> None:
    page = visit.go("/note/Notes/Embedding.md")
    expect(page.locator(".embed")).to_contain_text("zqembedded")
    turn_on(page)
    expect(page.locator(".embed .screened")).to_have_count(1)
    expect(page.locator(".embed")).to_contain_text("Open lines.")
    assert secrets_in(page) == []


def test_search_lists_private_hits_in_their_place_without_their_text(visit: Visit) -> None:
    page = visit.go("/search?q=what+do+I+owe")
    hits = page.locator(".hit")
    expect(hits.first).to_be_visible()
    expect(page.locator(".hit .private-label").first).to_have_text("financial")
    expect(page.locator(".passage").first).to_contain_text("zq")
    order = [one.get_attribute("data-path") for one in hits.all()]
    turn_on(page)
    expect(page.locator(".hit .screened").first).to_be_visible()
    assert [one.get_attribute("data-path") for one in hits.all()] == order
    assert secrets_in(page) == []
    page.locator(".hit .screened").first.get_by_role("button").click()
    expect(page.locator(".passage").first).to_contain_text("zq")


# Every view, with an address at which it could tell something.
VIEWED = {
    "": "/",
    "health": "/health",
    "livesync": "/livesync",
    "map": "/map",
    "memory": "/memory",
    "note": "/note/Notes/Diary.md",
    "search": "/search?q=harbour+debt",
    "settings": "/settings",
    "signin": "/signin",
    "vaults": "/vaults",
    "welcome": "/welcome",
}


def test_privacy_screen_every_view_has_an_entry() -> None:
    assert set(VIEWED) == VIEWS, "say in VIEWED where the view could tell something"
    script = (ROOT / "views.js").read_text("utf-8")
    shown = re.findall(r"^  '?([\w-]+)'?: \{ load: ", script, re.MULTILINE)
    assert len(shown) + 1 == script.count("import(")  # all but the one for unknown addresses
    assert set(shown) <= VIEWS, "say in VIEWS of web/assets.py that the view has an address"


@pytest.mark.parametrize("view", VIEWED)
def test_privacy_screen_no_view_tells_private_text(pages: tuple[Window, Window], view: str) -> None:
    page = pages[1].open(VIEWED[view])
    expect(page.locator("#main > *").first).to_be_visible()
    if view == "map":
        page.wait_for_selector(".map[data-ready]")
    elif view in ("note", "search"):
        expect(page.locator(".screened").first).to_be_visible()
    else:
        page.wait_for_load_state("networkidle")
    assert secrets_in(page) == []


def test_an_embedded_block_is_shown_alone_and_a_canvas_as_its_cards(visit: Visit) -> None:
    page = visit.go("/note/Notes/Showing%20blocks.md")
    shown = page.locator(".embed")
    expect(shown).to_have_count(2)
    expect(shown.first).to_contain_text("only this")
    expect(shown.first).not_to_contain_text("not this")
    expect(shown.last.locator("li")).to_have_text(["item"])
    page = visit.go("/note/Notes/Board.canvas")
    expect(page.locator(".note-body strong")).to_have_text("Sails")
    expect(page.locator(".note-body")).not_to_contain_text("nodes")


def test_hide_linked_hides_notes_that_link_here_too(visit: Visit) -> None:
    page = visit.go("/note/Notes/Diary.md")
    related = page.locator(".related")
    expect(related.locator("li, .state").first).to_be_visible()
    expect(related.get_by_role("link", name="Harbour")).to_have_count(0)
    page.get_by_label("Hide linked").uncheck()
    expect(related.get_by_role("link", name="Harbour")).to_have_count(1)


def test_on_a_phone_the_privacy_screen_is_as_easy_to_touch_as_a_view(
    browser: Browser, own_site: Site
) -> None:
    context, window = new_window(browser, own_site, viewport={"width": 390, "height": 844})
    sign_in(window)
    page = window.open("/search")
    width = """(one) => one.getBoundingClientRect().width"""
    button, link = page.locator("#screen"), page.locator("#rail a").first
    expect(button).to_be_visible()
    assert abs(button.evaluate(width) - link.evaluate(width)) < 1
    turn_on(page)
    context.close()
