"""How fast the map is: laying it out, and frames per second while it is dragged in a browser.

    python -m benchmarks.map --write FILE         10,000 notes that are made up
    python -m benchmarks.map --home FOLDER        and the layout of an installation's own vault

The frames are counted beside those of an empty page, dragged in the same way by the same browser:
what the machine and a browser without a graphics card cost is in both.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benchmarks.index import put_between
from playwright.sync_api import Browser, Page, Route, sync_playwright
from tests.page.site import Site, new_window, sign_in

from obsidian_rag import config
from obsidian_rag.engine import Engine
from obsidian_rag.notes import file_title
from obsidian_rag.relations import Card
from obsidian_rag.relations.map import DrawnMap, NoteGraph, Tie, vault_graph

CHROMIUM = "/usr/bin/chromium"
MARKS = ("<!-- map benchmark -->", "<!-- end of map benchmark -->")
GROUP = 50
DRAG_S = 4.0
EMPTY = "<!doctype html><title>empty</title><body style='margin:0;height:100vh'>"
COUNT = """(seconds) => { window.gaps = new Promise((done) => {
  const gaps = []; let last = performance.now(); const end = last + 1000 * seconds;
  const frame = (now) => { gaps.push(now - last); last = now;
    if (now < end) requestAnimationFrame(frame); else done(gaps.slice(2)); };
  requestAnimationFrame(frame); }); return true; }"""


def made_up(count: int, seed: int = 1) -> NoteGraph:
    """Notes in groups that link mostly among themselves: three links each."""
    random = np.random.default_rng(seed)
    paths = (f"Folder {at // GROUP % 40}/Note {at}.md" for at in range(count))
    notes = [
        Card(at, "", path, file_title(path), "", None, (), (), (), (), False, False)
        for at, path in enumerate(paths)
    ]
    source = np.repeat(np.arange(count), 3)
    near = source // GROUP * GROUP + random.integers(GROUP, size=len(source))
    far = random.integers(count, size=len(source))
    target = np.where(random.random(len(source)) < 0.92, near % count, far)
    pairs = np.sort(np.column_stack([source, target]), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return NoteGraph(tuple(notes), pairs, np.full(len(pairs), Tie.LINK))


def timed_layout(name: str, graph: NoteGraph) -> tuple[DrawnMap, str]:
    """Lay a graph out; the line that says how long it took: from scratch, and after an edit."""
    begun = time.perf_counter()
    places = graph.laid_out()
    took = time.perf_counter() - begun
    known = {
        note.key: (float(x), float(y)) for note, (x, y) in zip(graph.notes, places, strict=True)
    }
    begun = time.perf_counter()
    graph.laid_out(known)
    again = time.perf_counter() - begun
    told = (
        f"| {name} | {len(graph.notes):,} | {len(graph.pairs):,} | {took:.1f} s | {again:.1f} s |"
    )
    return DrawnMap(graph, places, graph.version), told


def dragged(page: Page) -> tuple[float, float]:
    """Frames per second while the page is dragged about, and the 95th percentile of their gaps."""
    page.mouse.move(640, 400)
    page.mouse.down()
    page.evaluate(COUNT, DRAG_S)
    begun, turn = time.perf_counter(), 0.0
    while time.perf_counter() - begun < DRAG_S:
        turn += 0.08
        page.mouse.move(640 + 260 * np.sin(turn), 400 + 160 * np.sin(1.7 * turn))
    page.mouse.up()
    gaps = np.array(page.evaluate("window.gaps"))
    return 1000 / float(gaps.mean()), float(np.percentile(gaps, 95))


def frames(browser: Browser, drawn: DrawnMap) -> Iterator[str]:
    """Count the frames of the empty page and of the map, in turn; a line for each turn."""
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder))
        site.start()
        try:
            context, window = new_window(browser, site)
            sign_in(window)
            body = drawn.encoded()

            def answer(route: Route) -> None:
                route.fulfill(body=body, content_type="application/octet-stream")

            window.page.route("**/page/map", answer)
            empty = context.new_page()
            for turn in ("first", "second"):
                empty.set_content(EMPTY)
                empty.bring_to_front()
                reference = dragged(empty)
                window.page.bring_to_front()
                window.open("/map").wait_for_selector(".map[data-ready]")
                window.page.wait_for_timeout(1000)
                found = dragged(window.page)
                yield (
                    f"| {turn} | {reference[0]:.0f} fps, {reference[1]:.0f} ms"
                    f" | {found[0]:.0f} fps, {found[1]:.0f} ms |"
                )
            context.close()
        finally:
            site.stop()


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--notes", type=int, default=10_000)
    options.add_argument("--home", type=Path, help="data folder of an indexed vault")
    options.add_argument("--write", type=Path, help="put the tables into this file")
    chosen = options.parse_args()
    drawn, told = timed_layout("made up", made_up(chosen.notes))
    lines = [
        "| layout | notes | ties | from scratch | after an edit |",
        "|---|---|---|---|---|",
        told,
    ]
    if chosen.home:
        engine = Engine(config.load({}, {"OBSIDIAN_RAG_HOME": str(chosen.home)}))
        lines.append(timed_layout(engine.config.vault_root.name, vault_graph(engine.relations))[1])
        engine.close()
    lines += [
        "",
        "| dragged | empty page | map (target 30 fps) |",
        "|---|---|---|",
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        lines += frames(browser, drawn)
        browser.close()
    text = "\n".join([*lines, ""])
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


if __name__ == "__main__":
    main()
