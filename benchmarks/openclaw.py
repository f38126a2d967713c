"""A warm search through a real OpenClaw gateway, beside the daemon's own answer and a bare tool.

The bare tool is in a plugin of its own that does nothing: what the gateway takes for any call is
not ours. Run by `make bench NAME=openclaw`, which installs OpenClaw.
"""

import argparse
import contextlib
import http.client
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.index import CACHE, put_between
from tests.openclaw.gateway import TOKEN, Gateway, Place, gateway
from tests.waiting import until

from obsidian_rag.transports.daemon_client import RunningDaemon

MARKS = ("<!-- openclaw benchmark -->", "<!-- end of openclaw benchmark -->")
SAMPLE = Path(__file__).parent.parent / "samples" / "vault"
TOOL = "obsidian_rag_search"
# Warm: Node compiles what runs often, and needs some thousand calls to be done with it.
ROUNDS, WARM_UP = 300, 1000
QUESTIONS = (
    "how much do I owe Sreenivas?",
    "when is the trash collected",
    "rain garden plants",
    "what did we decide about the podcast",
    "boiler repair winter",
)
BARE_MANIFEST = {
    "id": "bare",
    "name": "bare",
    "description": "one tool that does nothing",
    "activation": {"onStartup": True},
    "configSchema": {"type": "object", "additionalProperties": False, "properties": {}},
    "contracts": {"tools": ["bare_tool"]},
}
BARE_PACKAGE = {"name": "bare", "version": "1.0.0", "type": "module", "openclaw": {}}
BARE_SOURCE = """\
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";
export default definePluginEntry({
  id: "bare", name: "bare", description: "one tool that does nothing",
  register(api) {
    api.registerTool({
      name: "bare_tool", label: "bare", description: "does nothing",
      parameters: { type: "object", properties: {} },
      execute: async () => ({ content: [{ type: "text", text: "{}" }], details: {} }),
    });
  },
});
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", type=Path, help="put the table into this file")
    chosen = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        text = table(measured(work, chosen.rounds))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


def measured(work: Path, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each way to ask, asked in turns so that all see the same machine."""
    place = Place(work / "place")
    shutil.copytree(SAMPLE, place.vault, dirs_exist_ok=True)
    place.configure_engine({"embedding.provider": "builtin"})
    place.write_config()
    add_bare_plugin(place)
    with gateway(place) as one:
        one.index()
        daemon = until(place.daemon, "the daemon")
        with contextlib.ExitStack() as stack:
            ways = {
                "daemon": stack.enter_context(at_daemon(daemon)),
                "bare": stack.enter_context(at_gateway(one, "bare_tool")),
                "gateway": stack.enter_context(at_gateway(one, TOOL)),
            }
            taken: dict[str, list[float]] = {name: [] for name in ways}
            for number in range(WARM_UP + rounds):
                for name, ask in ways.items():
                    started = time.perf_counter()
                    ask(QUESTIONS[number % len(QUESTIONS)])
                    if number >= WARM_UP:
                        taken[name].append((time.perf_counter() - started) * 1000)
    return taken


def add_bare_plugin(place: Place) -> None:
    folder = place.root / "bare"
    folder.mkdir()
    (folder / "openclaw.plugin.json").write_text(json.dumps(BARE_MANIFEST))
    package = {**BARE_PACKAGE, "openclaw": {"extensions": ["./index.js"]}}
    (folder / "package.json").write_text(json.dumps(package))
    (folder / "index.js").write_text(BARE_SOURCE)
    tree = json.loads(place.config_file.read_text(encoding="utf-8"))
    tree["plugins"]["allow"].append("bare")
    tree["plugins"]["load"]["paths"].append(str(folder))
    tree["plugins"]["entries"]["bare"] = {"enabled": True}
    place.config_file.write_text(json.dumps(tree), encoding="utf-8")


@contextlib.contextmanager
def at_daemon(daemon: RunningDaemon) -> Iterator[Callable[[str], object]]:
    with asking(daemon.port, f"/tools/{TOOL}", daemon.token) as ask:
        yield lambda question: ask({"query": question})["data"]["results"]


@contextlib.contextmanager
def at_gateway(one: Gateway, tool: str) -> Iterator[Callable[[str], object]]:
    with asking(one.place.port, "/tools/invoke", TOKEN) as ask:
        yield lambda question: ask({"tool": tool, "args": {"query": question}})["result"]["content"]


@contextlib.contextmanager
def asking(port: int, path: str, token: str) -> Iterator[Callable[[object], Any]]:
    """Questions over one connection that stays open."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as line:

        def ask(body: object) -> Any:
            line.request("POST", path, json.dumps(body), headers)
            return json.loads(line.getresponse().read())

        yield ask


def table(taken: dict[str, list[float]]) -> str:
    middle = {name: statistics.median(values) for name, values in taken.items()}
    more = middle["gateway"] - middle["daemon"]
    rows = [
        ("the daemon's own answer, p50 / p95", pair(taken["daemon"])),
        ("a tool that does nothing, through the gateway, p50 / p95 (floor)", pair(taken["bare"])),
        ("**search through the gateway**, p50 / p95", pair(taken["gateway"])),
        ("**more than the daemon's own answer** (target 10 ms)", f"{more:.1f} ms"),
        ("of which the plugin's", f"{more - middle['bare']:.1f} ms"),
    ]
    lines = ["| | sample vault |", "|---|---|"]
    return "\n".join([*lines, *(f"| {label} | {value} |" for label, value in rows)]) + "\n"


def pair(taken: list[float]) -> str:
    p95 = sorted(taken)[int(len(taken) * 0.95)]
    return f"{statistics.median(taken):.1f} / {p95:.1f} ms"


if __name__ == "__main__":
    main()
