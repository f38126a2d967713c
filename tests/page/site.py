"""A real daemon over a real vault, and a browser that fails on whatever goes wrong in it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.waiting import PATIENCE_S, until

from obsidian_rag.transports.daemon_client import find_daemon

SAMPLES = Path(__file__).parents[2] / "samples" / "vault"
HERE = Path(__file__).parent
SHOTS = Path(__file__).parents[2] / ".cache" / "screenshots"
PATIENCE_MS = PATIENCE_S * 1000
expect.set_options(timeout=PATIENCE_MS)
# Tells of everything that the Content-Security-Policy has blocked, and keeps what is shown for a
# moment only.
_WATCH = """
window.violations = [];
addEventListener('securitypolicyviolation', (event) => {
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`);
});
window.toasts = [];
new MutationObserver((changes) => {
  for (const node of changes.flatMap((change) => [...change.addedNodes])) {
    if (node.classList?.contains('toast')) window.toasts.push(node.textContent);
  }
}).observe(document, { childList: true, subtree: true });
"""


@dataclass
class Site:
    """An installation of its own: data folder, vault and daemon."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def vault(self) -> Path:
        return self.folder / "Notes"

    def run(self, *words: str) -> str:
        """Run a command; what it printed."""
        places = {"OBSIDIAN_RAG_HOME": str(self.home), "HOME": str(self.folder / "user")}
        done = subprocess.run(
            [sys.executable, "-m", "obsidian_rag", *words],
            env={**os.environ, **places},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    def start(self, notes: Mapping[str, str | bytes] = {}) -> None:
        """Index the sample vault with some more notes, and serve it."""
        shutil.copytree(SAMPLES, self.vault)
        self.write(notes)
        self.home.mkdir(mode=0o700)
        (self.home / "config.json").write_text(json.dumps({"vault_path": str(self.vault)}))
        self.run("index")
        self.run("serve", "--detach")

    def write(self, notes: Mapping[str, str | bytes]) -> None:
        for path, text in notes.items():
            file = self.vault / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def stop(self) -> None:
        self.run("serve", "--stop")

    def link(self) -> str:
        """A new sign-in link, as `obsidian-rag open` gets it."""
        daemon = find_daemon(self.home)
        assert daemon is not None
        return str(daemon.post("/page/link", is_owner=True)["data"]["url"])

    @property
    def url(self) -> str:
        return str(json.loads((self.home / "daemon.json").read_text())["url"])


@dataclass
class Window:
    """A page of the browser; `expected` are console errors that a test means to cause."""

    page: Page
    site: Site
    troubles: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()

    def open(self, path: str) -> Page:
        self.page.goto(self.site.url + path)
        return self.page

    def check(self) -> None:
        """Nothing was logged, thrown or blocked that no test expected."""
        blocked = self.page.evaluate("() => window.violations ?? []")
        told = [*self.troubles, *blocked]
        assert [one for one in told if not any(part in one for part in self.expected)] == []


def new_window(browser: Browser, site: Site, **options: Any) -> tuple[BrowserContext, Window]:
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    context.set_default_timeout(PATIENCE_MS)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.add_init_script(_WATCH)
    window = Window(context.new_page(), site)

    def hear(kind: str, text: str) -> None:
        if kind == "error":
            window.troubles.append(text)

    window.page.on("console", lambda message: hear(message.type, message.text))
    window.page.on("pageerror", lambda error: hear("error", str(error)))
    window.page.on("dialog", lambda dialog: hear("error", f"dialog {dialog.message}"))
    return context, window


def expect_toast(page: Page, text: str) -> None:
    """Wait for a message that goes by itself, perhaps before a busy machine looks at it."""
    until(lambda: text in page.evaluate("window.toasts"), f"the message “{text}”")


def sign_in(window: Window) -> None:
    window.page.goto(window.site.link())
    window.page.wait_for_selector("body[data-state=ready] #main > *")
