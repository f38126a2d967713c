"""The page in a real browser on about 15,000 notes: first paint, weight, answers while typing.

Beside each number stands that of a trivial page in the same run. Run by `make bench NAME=page`.
"""

import argparse
import functools
import http.server
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.index import CACHE, put_between, shared_vaults
from playwright.sync_api import Browser, Page, sync_playwright

from obsidian_rag.transports.daemon_client import RunningDaemon, find_daemon

QUESTIONS = (
    "how do I center a div",
    "fetch with timeout",
    "cors preflight header",
    "array reduce example",
    "what is the event loop",
    "css grid areas",
)
TRIVIAL = "<!doctype html><title>x</title><h1>A trivial page</h1>"
PAINT = """() => new Promise((done) => new PerformanceObserver((list) => {
  const found = list.getEntriesByName('first-contentful-paint');
  if (found.length) done(found[0].startTime);
}).observe({ type: 'paint', buffered: true }))"""
LOADED = """() => performance.getEntries()
  .reduce((bytes, one) => bytes + (one.decodedBodySize ?? 0), 0)"""
ROUNDS = 7
MARKS = ("<!-- page benchmark -->", "<!-- end of page benchmark -->")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, help="a data folder that is indexed already")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    chosen = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=CACHE))
    home = chosen.home or work / "home"
    try:
        with served(home, work, is_ready=chosen.home is not None) as daemon:
            text = table(measured(daemon, work))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


@contextmanager
def served(home: Path, work: Path, *, is_ready: bool) -> Iterator[RunningDaemon]:
    environ = {**os.environ, "OBSIDIAN_RAG_HOME": str(home)}

    def run(*words: str) -> None:
        command = [sys.executable, "-m", "obsidian_rag", *words]
        subprocess.run(command, env=environ, check=False, stdout=subprocess.DEVNULL)

    if not is_ready:
        _, source = list(shared_vaults())[-1]
        home.mkdir(mode=0o700)
        (home / "config.json").write_text(json.dumps({"vault_path": str(source)}))
        run("index")
    run("serve", "--detach")
    daemon = find_daemon(home)
    assert daemon is not None
    try:
        yield daemon
    finally:
        run("serve", "--stop")


@contextmanager
def trivial(work: Path) -> Iterator[str]:
    folder = work / "trivial"
    folder.mkdir()
    (folder / "index.html").write_text(TRIVIAL)
    quiet = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def measured(daemon: RunningDaemon, work: Path) -> list[tuple[str, str, str]]:
    with sync_playwright() as playwright, trivial(work) as reference:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        page.goto(daemon.post("/page/link", is_owner=True)["data"]["url"])
        page.wait_for_selector("body[data-state=ready] input[type=search]")
        own = statistics.median(first_paint(page, daemon.url + "/search") for _ in range(ROUNDS))
        other = statistics.median(first_paint(page, reference) for _ in range(ROUNDS))
        typed = sorted(typing(page, daemon.url))
        rows = [
            ("first paint, median (target 300 ms)", f"{own:.0f} ms", f"{other:.0f} ms"),
            (
                "weight with a search (target 250 kB)",
                f"{weight(browser, daemon) / 1000:.0f} kB",
                "",
            ),
            ("answer while typing, p50", f"{typed[len(typed) // 2]:.0f} ms", ""),
            (
                f"answer while typing, p95 of {len(typed)} (target 120 ms)",
                f"{typed[int(len(typed) * 0.95)]:.0f} ms",
                "",
            ),
        ]
        browser.close()
    return rows


def first_paint(page: Page, url: str) -> float:
    page.goto(url)
    return float(page.evaluate(PAINT))


def weight(browser: Browser, daemon: RunningDaemon) -> int:
    """All bytes of a first visit that ends in a search, as they are without compression."""
    page = browser.new_context().new_page()
    page.goto(daemon.post("/page/link", is_owner=True)["data"]["url"])
    page.wait_for_selector("body[data-state=ready] input[type=search]")
    page.fill("input[type=search]", QUESTIONS[0])
    page.wait_for_selector(".hit")
    return int(page.evaluate(LOADED))


def typing(page: Page, url: str) -> list[float]:
    """How long each answer took that was not overtaken by the next letter."""
    taken: list[float] = []
    page.on(
        "requestfinished",
        lambda request: (
            taken.append(request.timing["responseEnd"]) if "/tools/" in request.url else None
        ),
    )
    page.goto(url + "/search")
    page.wait_for_selector("input[type=search]")
    for question in QUESTIONS * 3:
        page.fill("input[type=search]", "")
        page.locator("input[type=search]").press_sequentially(question, delay=130)
        page.wait_for_timeout(300)
    return taken


def table(rows: list[tuple[str, str, str]]) -> str:
    lines = ["| | the page | a trivial page |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


if __name__ == "__main__":
    main()
