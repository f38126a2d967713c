"""The vault of the harness's tests, and what a person does in the app."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

ID = "550e8400-e29b-41d4-a716-446655440000"
POND, RAIN, BOG = "Garden/Pond.md", "Garden/Rain garden.md", "Bog.md"
HOSTILE = "Odd/<img src=x onerror=window.hacked=1> & 'q' \"d\" ${x}.md"
NOTES: dict[str, str | bytes] = {
    POND: f"---\nid: {ID}\ntags: [water, garden]\nstatus: done\n---\n# Pond\n\nIntro.\n\n"
    "## Plants of the [[Bog]] edge\n\nFox sedge and marsh marigold grow at the pond's edge.\n",
    RAIN: "---\ntags: [water]\nstatus: raw\n---\n# Rain garden\n\nFox sedge takes up the rain; see"
    " [[Bog]].\n\n## Cost\n\nMarsh marigold is cheap.\n",
    BOG: "---\ntags: [water/bog]\n---\n# Bog\n\nMarsh marigold, fox sedge and sundew.\n",
    "Heath.md": "# Heath\n\nSundew and fox sedge, marsh marigold beside the heather.\n",
    "Debt.md": "# Debt\n\nI owe Sreenivas 1,150 dollars for the marsh marigold and fox sedge.\n",
    "Bread.md": "# Bread\n\nRye, water, salt.\n",
    "Left out.md": "---\nrag: false\n---\n# Left out\n\nfox sedge\n",
    "Empty.md": "",
    HOSTILE: '---\ntags: ["<b>x</b>"]\n---\n# <script>window.hacked=1</script> Sedge\n\n'
    "fox sedge <img src=x onerror=window.hacked=1> marsh marigold [x](javascript:hacked)\n",
    "Odd/日本語のノート.md": "# 日本語のノート\n\nfox sedge marsh marigold 湿地の植物\n",
    "Odd/مذكرة.md": "# مذكرة\n\nfox sedge marsh marigold نباتات\n",
    "Odd/" + "Very long title " * 12 + ".md": "# Very long title that never ends " * 6
    + "\n\nfox sedge marsh marigold\n",
    **{
        f"Others/Note {number}.md": f"# Other {number}\n\nword{number} and thing{number}\n"
        for number in range(60)
    },
}


def open_note(page: "Page", path: str, pane: bool = False) -> None:
    """Open a note as a click in the file list would."""
    page.evaluate(
        "([path, pane]) => app.workspace.getLeaf(pane).openFile(app.vault.getFileByPath(path))",
        [path, pane],
    )


def command(page: "Page", id: str) -> None:
    """Run a command of the palette."""
    page.evaluate(
        """(id) => {
          const one = plugin.commands.find((command) => command.id === id);
          if (one.callback) one.callback();
          else if (one.checkCallback(true)) one.checkCallback(false);
        }""",
        id,
    )


def rows(page: "Page") -> "Locator":
    """The related notes that are shown, once they are the active note's."""
    page.wait_for_selector(".rag-companion-list:not(.is-waiting) .rag-companion-row")
    return page.locator(".rag-companion-row")


def row(page: "Page", title: str) -> "Locator":
    """The related note of this title."""
    return rows(page).filter(has=page.locator(".rag-companion-title", has_text=title)).first


def shown(page: "Page") -> str:
    """Whose related notes these are."""
    return page.locator(".rag-companion-note").inner_text()


def state(page: "Page") -> "Locator":
    """What the panel says instead of results."""
    return page.locator(".rag-companion-state")


def notice(page: "Page", text: str) -> None:
    """Wait for a notice."""
    page.locator(".notice", has_text=text).first.wait_for()


def active(page: "Page") -> dict[str, Any]:
    """Where the user is: path, line, and into what it was opened."""
    found: dict[str, Any] = page.evaluate(
        """() => ({
          path: app.workspace.getActiveFile()?.path,
          line: app.workspace.active?.view.containerEl.dataset.line,
          pane: document.body.dataset.opened,
          text: app.workspace.active?.view.area?.value,
        })"""
    )
    return found
