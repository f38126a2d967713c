"""The Obsidian plugin in a browser on a vault of 15,000 notes: switching notes, long tasks, memory.

A switch is the app's event until the panel shows the new note's related notes. The floor of the
same run is the engine's answer to such a question without a browser. Run:
`make bench NAME=obsidian_plugin`.
"""

import argparse
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.index import CACHE, put_between
from tests.obsidian.harness import Place, app, build, chromium, serving

MARKS = ("<!-- obsidian benchmark -->", "<!-- end of obsidian benchmark -->")
SWITCHES, FAST, PAUSE_MS = 200, 500, 200
TOPICS, WORDS_PER_TOPIC = 400, 60
WATCH = """() => {
  window.long = [];
  new PerformanceObserver((list) => long.push(...list.getEntries().map((one) => one.duration)))
    .observe({entryTypes: ['longtask']});
  window.show = (path) => {
    const file = app.vault.getFileByPath(path);
    app.workspace.active.view.file = file;
    app.workspace.trigger('file-open', file);
    return file;
  };
  window.timed = (path) => new Promise((done) => {
    const list = document.querySelector('.rag-companion-list');
    const note = document.querySelector('.rag-companion-note');
    const isWaiting = () => list.classList.contains('is-waiting');
    const isThere = () => note.textContent === file.basename && !isWaiting();
    const started = performance.now();
    const file = show(path);
    const look = () => {
      if (!isThere()) return false;
      watcher.disconnect();
      done(performance.now() - started);
      return true;
    };
    const watcher = new MutationObserver(look);
    const all = {subtree: true, childList: true, attributes: true};
    watcher.observe(document.getElementById('right'), all);
    look();
  });
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=15_000, help="at least 800")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    chosen = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        rows = measured(work, chosen.notes)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    text = "\n".join(
        ["| | plugin |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows), ""]
    )
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


def make_notes(count: int) -> dict[str, str]:
    """Notes about some topics, each with words of its own, tags and links."""
    chance = random.Random(7)
    notes = {}
    for number in range(count):
        topic = chance.randrange(TOPICS)
        words = [f"t{topic}w{chance.randrange(WORDS_PER_TOPIC)}" for _ in range(60)]
        words += [f"common{chance.randrange(2000)}" for _ in range(60)]
        links = [f"[[Note {chance.randrange(count)}]]" for _ in range(2)]
        text = " ".join([*words, *links])
        notes[f"Folder {topic % 50}/Note {number}.md"] = (
            f"---\ntags: [topic{topic}]\n---\n# Note {number}\n\n{text}\n"
        )
    return notes


def measured(work: Path, count: int) -> list[tuple[str, str]]:
    place = Place(work)
    notes = make_notes(count)
    place.write(notes)
    started = time.perf_counter()
    place.index()
    print(f"indexed in {time.perf_counter() - started:.0f} s", flush=True)
    chance = random.Random(11)
    build()
    with place.daemon(), serving(place) as address, chromium() as browser:
        settled(place)
        floor = [engine_ms(place, path) for path in chance.sample(sorted(notes), 100)]
        with app(browser, address) as page:
            paths = chance.sample(sorted(notes), SWITCHES + FAST + 1)
            page.evaluate(
                "(path) => app.workspace.getLeaf(false).openFile(app.vault.getFileByPath(path))",
                paths[-1],
            )
            page.wait_for_selector(".rag-companion-row", timeout=60_000)
            page.evaluate(WATCH)
            took = []
            for path in paths[:SWITCHES]:
                took.append(page.evaluate("(path) => timed(path)", path))
                page.wait_for_timeout(PAUSE_MS)
            slow = page.evaluate("long.splice(0)")
            before = heap(page)
            page.evaluate(
                """async (paths) => {
                  for (const path of paths) {
                    show(path);
                    await new Promise((done) => setTimeout(done, 20));
                  }
                  await timed(paths[0]);
                }""",
                paths[SWITCHES:-1],
            )
            fast = page.evaluate("long.splice(0)")
            after = heap(page)
    return [
        ("notes", f"{count:,}"),
        ("the engine's answer alone, p50 / p95", percentiles(floor)),
        (
            f"**related notes after a switch**, p50 / p95 of {SWITCHES} (target p95 150 ms)",
            percentiles(took),
        ),
        (
            f"long tasks over 50 ms in {SWITCHES} switches / {FAST} quick ones (target 0)",
            f"{len(slow)} / {len(fast)}"
            + (f" (longest {max([*slow, *fast]):.0f} ms)" if slow or fast else ""),
        ),
        (f"memory before / after {FAST} switches (target: flat)", f"{before:.1f} / {after:.1f} MB"),
    ]


def settled(place: Place) -> None:
    """Wait until the daemon has nothing to do."""
    while True:
        status = place.ask("status", {})
        if status["data"]["active_job"] is None and status["data"]["total_docs"]:
            return
        time.sleep(0.5)


def engine_ms(place: Place, path: str) -> float:
    started = time.perf_counter()
    place.ask("related", {"note": path, "hide_linked": True})
    return (time.perf_counter() - started) * 1000


def heap(page: Any) -> float:
    """What is used after the garbage is gone, in MB."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return float(used) / 1e6


def percentiles(values: list[float]) -> str:
    cuts = statistics.quantiles(values, n=20)
    return f"{statistics.median(values):.0f} / {cuts[18]:.0f} ms"


if __name__ == "__main__":
    main()
