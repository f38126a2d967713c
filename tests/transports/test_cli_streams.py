"""What leaves the command line is UTF-8 text, and nothing in a note can steer a terminal."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.fixture_types import Cli
from tests.transports.command_line import COMMAND, Done, on_terminal
from tests.waiting import PATIENCE_S

from obsidian_rag import config
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[8m\x9b31m\u202egnp\u2066\r"
NOTES: dict[str, str | bytes] = {
    "Suppe/味噌汁 Žluťoučký.md": "# 味噌汁\n\nA badger drinks Žluťoučký soup → 🦡.\n",
    "Windows.md": b"\xef\xbb\xbf# Lines\r\n\r\nof a walrus\r\n",
    f"odd{EVIL}.md": "# Odd\n",
    "bid\u202ei.md": "# Bidi \u202e name\n\nwombat\n",
    "evil.md": f"# Evil {EVIL} title\n\nwombat {EVIL} text #t{EVIL}ag [[plain]] at home\n",
    "plain.md": "---\nrelated: []\n---\n# Plain\n\nwombat and badger\n",
}
# All but the end of a line, a tab and what the terminal itself adds before the end of a line.
DANGEROUS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
# Colours, and what draws a bar.
OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[(?:\?25[lh]|2K|1A)|\r(?=\x1b)")
# One process for many commands: starting is what costs.
_MANY = """
import json, sys
from obsidian_rag.transports.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["obsidian-rag", *arguments]
    main()
    print("=====", flush=True)
"""
ENCODINGS: dict[str, dict[str, str]] = {
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "forced C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with an index, whose vault has names and texts of every kind."""
    root = tmp_path_factory.mktemp("streams")
    for path, text in NOTES.items():
        file = root / "vault" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    tree = {"vault_path": str(root / "vault"), "embedding": {"provider": "hash"}}
    config.save(tree, root / "home" / "config.json")
    settings = config.validate(tree, root / "home" / "config.json")
    engine = Engine(config.Config(root / "home", root / "home" / "config.json", settings))
    run_index(engine, Mode.FULL)
    engine.close()
    return root


@pytest.fixture(autouse=True)
def _here(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(installed / "home"))


def run(*arguments: str | bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize("environment", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_output_is_utf8_whatever_the_locale_says(environment: Mapping[str, str]) -> None:
    shown = run("search", "Žluťoučký", "badger", "--top", "1", **environment)
    assert shown.returncode == 0, shown.stderr.decode()
    assert "Suppe/味噌汁 Žluťoučký.md" in shown.stdout.decode()
    assert "→ 🦡" in shown.stdout.decode()


def test_ids_are_checked_and_json_is_valid_where_little_can_be_encoded() -> None:
    shown = run("uuid", "check", PYTHONIOENCODING="cp1252")
    assert shown.returncode == 1, shown.stderr.decode()
    assert "Suppe/味噌汁 Žluťoučký.md" in shown.stdout.decode()
    told = json.loads(run("search", "Žluťoučký", "--json", PYTHONIOENCODING="ascii").stdout)
    assert told["data"]["results"][0]["source_file"] == "Suppe/味噌汁 Žluťoučký.md"


def test_an_argument_that_is_no_utf8_is_told_clearly() -> None:
    shown = run("search", b"caf\xe9")
    assert shown.returncode == 2
    assert "INVALID_ARGUMENT: 'caf\ufffd' is not valid UTF-8." in shown.stderr.decode()


def test_a_character_in_a_name_that_nobody_sees_is_written_out() -> None:
    shown = run("search", "wombat").stdout.decode()
    assert "bid\\u202ei.md" in shown


def test_whoever_stops_reading_hears_nothing() -> None:
    shown = subprocess.run(
        f"{sys.executable} -m obsidian_rag config show | head -1",
        shell=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert (shown.stdout, shown.stderr) == (b"{\n", b"")


def test_no_command_passes_a_control_character_on_to_a_terminal(installed: Path) -> None:
    evil = f"no{EVIL}such"
    commands = (
        ("memory", "store", f"k{EVIL}", f"v{EVIL}", "--source", "evil.md"),
        ("memory", "list"),
        ("search", "wombat", "--explain"),
        ("search", "wombat", "--json"),
        ("read", "evil"),
        ("read", "evil", "--json"),
        ("related", "plain", "--explain"),
        ("related", "plain", "--json"),
        ("suggest", "plain", "--json"),
        ("status", "--all"),
        ("uuid", "check"),
        ("uuid", "add", "--all", "--dry-run"),
        ("doctor",),
        ("eval", "--self"),
        ("search", f"tag:{EVIL}"),
        ("read", evil),
        ("related", evil),
        ("config", "set", evil, "1"),
        (evil,),
    )
    shown = on_terminal(json.dumps(commands), command=(sys.executable, "-c", _MANY))
    assert shown.code == 0, shown.err
    parts = shown.err.split("=====\n")
    assert len(parts) == len(commands) + 1
    for command, part in zip(commands, parts, strict=False):
        assert part, command
        rest = OURS.sub("", part)
        assert not DANGEROUS.search(rest), (command, rest)
        assert "\x1b[8m" not in part, command
    assert any("wombat" in part for part in parts)
    assert "━" in shown.err  # bars are drawn, by codes that are ours


def test_a_note_in_a_pipe_is_as_it_is(cli: Cli, installed: Path) -> None:
    for name in ("evil", "Windows"):
        assert cli("read", name).out.encode() == (installed / f"vault/{name}.md").read_bytes()
    assert cli("read", "Windows", "--lines", "3").out == "of a walrus\n"


@pytest.fixture
def interrupted_at(tmp_path: Path) -> Iterator[Callable[[str], Done]]:
    """Run `status` in a process that interrupts itself when it imports a module."""

    def call(module: str) -> Done:
        (tmp_path / "sitecustomize.py").write_text(
            "import os, signal, sys\n"
            # A shell that starts us in the background has it ignored.
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "class Interrupt:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            f"        if name == {module!r}:\n"
            "            os.kill(os.getpid(), signal.SIGINT)\n"
            "sys.meta_path.insert(0, Interrupt())\n"
        )
        shown = run("status", PYTHONPATH=str(tmp_path))
        return Done(shown.returncode, shown.stdout.decode(), shown.stderr.decode())

    yield call


@pytest.mark.parametrize("module", ["typer", "obsidian_rag.engine"])
def test_an_early_interrupt_shows_no_traceback(
    interrupted_at: Callable[[str], Done], module: str
) -> None:
    done = interrupted_at(module)
    assert (done.code, done.out) == (130, "")
    assert done.err in ("", "Interrupted.\n")
