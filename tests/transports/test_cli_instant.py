"""What is answered before anything is loaded is what the loaded command would have said."""

import ast
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.integration.living import QUICK, Living, living, living_below
from tests.transports.command_line import COMMAND, Done, in_another_process, on_terminal
from tests.waiting import PATIENCE_S

from obsidian_rag.transports.cli import instant
from obsidian_rag.transports.cli.app import command_tree, run
from obsidian_rag.transports.light_client import post

NOTES = {
    "Debts.md": "---\ntags: [money]\ndate: 2024-03-05\nkind: list\n---\n"
    "# Debts\n\n## Open\n\nI owe Sreenivas 40 dollars for the rain garden.\n\n## Paid\n\nNo.\n",
    "Garden/Rain garden.md": "---\ntags: [garden]\n---\n# Rain garden\n\nDig it in March, by the "
    "downspout; see [[Debts]]. The soil drains well and the beans will like it.\n",
    "Garden/Beans.md": "# Beans\n\n#garden\n\nBeans by the wall need water, soil and March sun.\n",
    "Garden/Soil.md": "# Soil\n\n#garden\n\nClay drains badly; the rain garden has better soil.\n",
    "Diary.md": "---\nrag: private\n---\n# Diary\n\nzephyr thoughts\n",
    "Health.md": "# Log\n\n## #mentalhealth\n\nI slept badly in March.\n",
    "Escape.md": "# Evil\n\nA \x1b[31mred\x1b[0m line, \u202eesrever\u202c and \x07 a bell.\n",
    "Wide 世界.md": "# 世界\n\n長い文章がここにあります。\n",
    "Bom.md": "\ufeff# Bom\r\n\r\nEnds of lines are kept.\r\n",
}
LONG = "rain garden soil and beans in March by the wall near the downspout"
# Every option of the four commands, alone and together; the last ones are refused.
CASES = [
    ["search", "rain garden"],
    ["search", "rain", "garden", "--top", "2"],
    ["search", "--top=1", "rain garden"],
    ["search", "-n3", "soil"],
    ["search", "soil", "--tags", "garden", "-t", "money"],
    ["search", "soil", "--folder", "Garden"],
    ["search", "soil", "--folder", "Garden", "--folder", "Nowhere"],
    ["search", "soil", "--vault", "vault"],
    ["search", "owe", "--from", "2024-01-01", "--to", "2024-12-31"],
    ["search", "owe", "--from", "2025-01-01"],
    ["search", "owe", "--prop", "kind=list"],
    ["search", "soil", "--group", "--explain"],
    ["search", "beans in march 2024"],
    ["search", "beans in march 2024", "--no-dates"],
    ["search", LONG, "--explain", "--json"],
    ["search", "zephyr"],
    ["search", "slept badly"],
    ["search", "red esrever bell"],
    ["search", "長い文章"],
    ["search", "grden sol"],
    ["search", "xyzzy plugh"],
    ["search", "--", "--top"],
    ["search", "soil", "--", "-n", "3"],
    ["search", "soil", "--top", "99"],
    ["search", "soil", "--top", "99", "--json"],
    ["search", "soil", "--vault", "Nowhere", "--json"],
    ["search", "soil", "--from", "yesterday"],
    ["search", ""],
    ["read", "Debts"],
    ["read", "Debts.md", "--json"],
    ["read", "Garden/Beans.md", "--vault", "vault"],
    ["read", "Debts", "--heading", "Open"],
    ["read", "Debts", "--heading", "Nowhere"],
    ["read", "Debts", "--lines", "2-4"],
    ["read", "Debts", "--lines", "9-2"],
    ["read", "Debts", "--lines", "x"],
    ["read", "Debts", "--lines", "1", "--heading", "Open"],
    ["read", "Health", "--confirm-sensitive"],
    ["read", "Diary"],
    ["read", "Escape"],
    ["read", "Escape", "--json"],
    ["read", "Bom"],
    ["read", "Wide 世界"],
    ["read", "Debt"],
    ["read", "../outside.md", "--json"],
    ["read", "Nothing like it"],
    ["related", "Rain garden"],
    ["related", "Rain garden", "--top", "1", "--explain"],
    ["related", "Rain garden", "-n", "2", "--json"],
    ["related", "Rain garden", "--show-linked"],
    ["related", "Rain garden", "--hide-linked", "--vault", "vault"],
    ["related", "--text", "beans and soil", "--tags", "garden,money", "-t", "x"],
    ["related"],
    ["related", "Debts", "--text", "both", "--json"],
    ["related", "Debts", "--top", "0"],
    ["related", "Nowhere"],
    ["status"],
    ["status", "--all"],
    ["status", "--json"],
]
# The daemon leaves these to the command itself.
LEFT = [
    ["search"],
    ["search", "soil", "--nonsense"],
    ["search", "soil", "--top", "many"],
    ["search", "soil", "--help", "more"],
    ["search", "-hn3", "soil"],
    ["read"],
    ["read", "a", "b"],
    ["related", "--text"],
    ["status", "more"],
    ["status", "--json=yes"],
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    root = tmp_path_factory.mktemp("instant")
    with living_below(root, NOTES, QUICK) as one:
        one.index()
        one.call("status")
        yield one


@pytest.fixture
def daemon(shared: Living, monkeypatch: pytest.MonkeyPatch) -> Iterator[Living]:
    """The daemon of these tests; the file in which it says where it is stays as it was."""
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(shared.home))
    file = shared.home / "daemon.json"
    told = file.read_bytes()
    yield shared
    file.write_bytes(told)


Way = Callable[[Sequence[str]], Done | None]


@pytest.fixture
def at_once(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Way:
    """Runs a command without loading it, in this process; None if it is left to be loaded."""

    def ask(arguments: Sequence[str]) -> Done | None:
        capfdbinary.readouterr()
        monkeypatch.setattr(sys, "argv", ["obsidian-rag", *arguments])
        code = instant.answer_at_once([*arguments])
        out, err = capfdbinary.readouterr()
        return None if code is None else done(code, out, err)

    return ask


@pytest.fixture
def loaded(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Sequence[str]], Done]:
    """Runs a command as it always could be run, in this process."""

    def ask(arguments: Sequence[str]) -> Done:
        capfdbinary.readouterr()
        monkeypatch.setattr(sys, "argv", ["obsidian-rag", *arguments])
        code = run()
        return done(code, *capfdbinary.readouterr())

    return ask


def done(code: int, out: bytes, err: bytes) -> Done:
    """What was said, byte by byte, but for times."""
    return Done(code, comparable(out.decode("latin-1")), comparable(err.decode("latin-1")))


def comparable(text: str) -> str:
    text = re.sub(r'"query_time_ms": [\d.]+', '"query_time_ms": 0', text)
    return re.sub(r"\d+ (?:minute|hour)s? ago|just now", "some time ago", text)


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("arguments", CASES, ids=" ".join)
def test_both_ways_say_the_same_and_end_alike(
    at_once: Way, loaded: Callable[[Sequence[str]], Done], arguments: list[str]
) -> None:
    assert at_once(arguments) == loaded(arguments)


def test_every_option_of_the_commands_is_compared() -> None:
    typed = {(case[0], argument.split("=")[0]) for case in CASES for argument in case[1:]}
    typed |= {(name, argument[:2]) for name, argument in typed if re.match(r"-\w\d", argument)}
    for name in instant.ANSWERED:
        options = {
            option
            for parameter in command_tree().commands[name].params
            for option in (*parameter.opts, *parameter.secondary_opts)
            if option.startswith("-")
        }
        assert options - {option for command, option in typed if command == name} == set()


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("arguments", LEFT, ids=" ".join)
def test_what_the_daemon_cannot_say_is_left_to_the_command(
    at_once: Way, arguments: list[str]
) -> None:
    assert at_once(arguments) is None


ON_TERMINAL = [
    ["search", "rain garden"],
    ["search", "beans in march 2024", "--group", "--explain"],
    ["read", "Escape"],
    ["read", "Health"],
    ["read", "Nothing like it"],
    ["related", "Rain garden", "--explain"],
    ["status"],
]


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("arguments", ON_TERMINAL, ids=" ".join)
@pytest.mark.parametrize(
    "environ", [{"COLUMNS": "47"}, {"NO_COLOR": "1"}, {}], ids=["narrow", "plain", "coloured"]
)
def test_both_ways_look_the_same_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], environ: dict[str, str]
) -> None:
    for name, value in {"TERM": "xterm-256color", **environ}.items():
        monkeypatch.setenv(name, value)
    told, expected = on_terminal(*arguments), on_terminal(*arguments, command=LOADED)
    assert comparable(told.err) == comparable(expected.err)
    assert told.code == expected.code
    if arguments[0] == "search":
        assert ("\x1b[" in told.err) == ("NO_COLOR" not in environ)


FOLDER = Path(instant.__file__).parent
OWN_STREAMS = {"sys.stdout", "sys.stderr", "sys.stdin", "sys.argv"}
LOADED = [
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = 'obsidian-rag';"
    " from obsidian_rag.transports.cli.app import run; sys.exit(run())",
]
HEAVY = ("pydantic", "typer", "http.client", "rich", "httpx", "lancedb", "numpy", "filelock")
SHOW_IMPORTS = (
    "import sys; from obsidian_rag.transports.cli import main; code = main();"
    f" sys.stderr.write(repr(sorted(set({HEAVY!r}) & set(sys.modules)))); sys.exit(code)"
)


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["link", "add", "-h"],
        ["search", "soil"],
        ["search", "soil", "--json"],
        ["read", "Debts"],
        ["related", "Debts", "--top", "2"],
        ["status"],
        ["read", "Bom", "--heading", "Nowhere"],
    ],
    ids=" ".join,
)
def test_nothing_heavy_is_loaded_for_an_answer_at_once(arguments: list[str]) -> None:
    said = subprocess.run(
        [sys.executable, "-c", SHOW_IMPORTS, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert said.stderr.endswith("[]"), said.stderr
    assert said.returncode == (2 if "Nowhere" in arguments else 0)


def test_the_test_above_would_see_what_is_loaded() -> None:
    """Without a daemon the same command loads what it needs."""
    said = subprocess.run(
        [sys.executable, "-c", SHOW_IMPORTS, "status"], capture_output=True, timeout=PATIENCE_S
    )
    assert b"'pydantic', 'typer'" in said.stderr


# The help


def names(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from names(below, (*path, name))


@pytest.mark.parametrize("path", [*names(command_tree())], ids=" ".join)
def test_the_help_is_the_one_that_typer_makes(
    at_once: Way, loaded: Callable[[Sequence[str]], Done], path: tuple[str, ...]
) -> None:
    assert at_once([*path, "--help"]) == at_once([*path, "-h"]) == loaded([*path, "--help"])


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_help_of_a_wide_terminal_is_that_of_a_usual_one(
    at_once: Way,
    loaded: Callable[[Sequence[str]], Done],
    monkeypatch: pytest.MonkeyPatch,
    columns: str,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert at_once(["search", "--help"]) == loaded(["search", "--help"])


def test_a_narrow_terminal_and_a_shell_that_completes_are_left_to_typer(
    at_once: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_OBSIDIAN_RAG_COMPLETE", "complete_bash")
    assert at_once(["--version"]) is None
    monkeypatch.delenv("_OBSIDIAN_RAG_COMPLETE")
    monkeypatch.setenv("COLUMNS", "79")
    assert at_once(["--help"]) is None
    assert at_once(["nothing", "--help"]) is None


# When the daemon is not asked


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OBSIDIAN_RAG_INDEXING__MAX_FILE_MB", "3"),
        ("OBSIDIAN_RAG_CONFIG", "/elsewhere/config.json"),
        ("OBSIDIAN_RAG_HOME", "/elsewhere"),
        ("TZ", "Asia/Kolkata"),
    ],
)
def test_other_surroundings_are_not_the_daemons(
    at_once: Way, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    assert at_once(["status"]) is not None
    monkeypatch.setenv(name, value)
    assert at_once(["status"]) is None


def test_a_daemon_with_the_same_settings_in_its_environment_answers(
    shared: Living,
    at_once: Way,
    monkeypatch: pytest.MonkeyPatch,
    make_vault: Callable[..., Path],
    configure: Callable[..., None],
) -> None:
    configure(make_vault(NOTES), QUICK)
    monkeypatch.setenv("OBSIDIAN_RAG_LIVESYNC__COUCHDBPASSWORD", "secret")
    with living():
        assert at_once(["status", "--json"]) is not None
        monkeypatch.setenv("OBSIDIAN_RAG_LIVESYNC__COUCHDBPASSWORD", "another")
        assert at_once(["status", "--json"]) is None
        assert not any("secret" in str(fact) for fact in instant.surroundings())


def test_a_broken_config_file_is_told_by_the_command(daemon: Living, at_once: Way) -> None:
    file = daemon.home / "config.json"
    before = file.read_bytes()
    file.write_text("{")
    try:
        assert at_once(["status"]) is None
    finally:
        file.write_bytes(before)
    assert at_once(["status"]) is not None


@pytest.mark.parametrize(
    "changed", [{"version": "0.0.0"}, {"port": "x"}, {"token": 1}, {"token": "wrong"}]
)
def test_a_daemon_that_is_not_ours_is_not_asked_for_long(
    daemon: Living, at_once: Way, changed: dict[str, object]
) -> None:
    file = daemon.home / "daemon.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))
    assert at_once(["status"]) is None


@pytest.mark.usefixtures("daemon")
def test_arguments_that_are_not_utf8_are_refused_as_ever(at_once: Way) -> None:
    assert at_once(["search", "\udcff"]) is None
    shown = subprocess.run([*COMMAND, "search", b"\xff"], capture_output=True, timeout=PATIENCE_S)
    assert (shown.returncode, b"not valid UTF-8" in shown.stderr) == (2, True)


@pytest.mark.parametrize(
    "changed",
    [
        {"arguments": []},
        {"arguments": "status"},
        {"arguments": ["status", 1]},
        {"arguments": ["config", "show"]},
        {"arguments": ["index"]},
        {"columns": "wide"},
        {"terminals": [True]},
        {"terminals": None},
        {"surroundings": None},
        {"surroundings": []},
    ],
    ids=str,
)
def test_the_daemon_runs_nothing_else(daemon: Living, changed: dict[str, object]) -> None:
    asked = {
        "arguments": ["status"],
        "columns": 80,
        "terminals": [False, False],
        "is_plain": False,
        "surroundings": instant.surroundings(),
    }
    assert said_to(daemon, asked)[0] == 200
    assert said_to(daemon, {**asked, **changed})[0] == 409
    for missing in changed:
        assert said_to(daemon, {name: asked[name] for name in asked if name != missing})[0] == 409


def said_to(daemon: Living, asked: dict[str, object]) -> tuple[int, Any]:
    body = json.dumps(asked).encode()
    status, answer = post(daemon.door.port, daemon.door.token, instant.PATH, body)
    return status, json.loads(answer)


def test_commands_at_once_do_not_speak_into_each_others_answers(daemon: Living) -> None:
    def read(name: str) -> str:
        asked = {
            "arguments": ["read", name],
            "columns": 80,
            "terminals": [False, False],
            "is_plain": True,
            "surroundings": instant.surroundings(),
        }
        (said,) = said_to(daemon, asked)[1]["shown"]
        return str(said[1])

    names = ["Debts.md", "Garden/Beans.md", "Garden/Soil.md", "Escape.md", "Diary.md"] * 8
    with ThreadPoolExecutor(len(names)) as threads:
        assert [*threads.map(read, names)] == [NOTES[name] for name in names]


def test_what_the_daemon_runs_prints_on_the_screen_of_the_command() -> None:
    """What would go to the daemon's own streams is said to nobody."""
    names = ["search_cmd", "read_cmd", "related_cmd", "status_cmd"]
    names += ["output", "backend", "note_names"]
    strays = [
        f"{name}:{node.lineno}"
        for name in names
        for node in ast.walk(ast.parse(FOLDER.joinpath(f"{name}.py").read_text("utf-8")))
        if (isinstance(node, ast.Attribute) and ast.unparse(node) in OWN_STREAMS)
        or (isinstance(node, ast.Call) and ast.unparse(node.func) == "print" and not node.keywords)
    ]
    assert strays == []


# Where it is printed


def test_an_interrupt_ends_the_waiting(daemon: Living) -> None:
    file = daemon.home / "daemon.json"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE_S)
        port = silent.getsockname()[1]
        file.write_text(json.dumps({**json.loads(file.read_text()), "port": port}))
        with subprocess.Popen(
            [*COMMAND, "status"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as command:
            connection, _ = silent.accept()
            with connection:
                command.send_signal(signal.SIGINT)
                out, err = command.communicate(timeout=PATIENCE_S)
    assert (command.returncode, out, err) == (130, b"", b"Interrupted.\n")


@pytest.mark.usefixtures("daemon")
def test_what_a_pipe_gets_is_the_note_byte_by_byte() -> None:
    for name in ("Escape.md", "Bom.md"):
        shown = subprocess.run(
            [*COMMAND, "read", name], capture_output=True, timeout=PATIENCE_S, check=True
        )
        assert shown.stdout == NOTES[name].encode()


@pytest.mark.usefixtures("daemon")
def test_data_and_talk_keep_to_their_streams(at_once: Way) -> None:
    shown = in_another_process("search", "beans in march 2024")
    assert "--no-dates" in shown.err
    assert "--no-dates" not in shown.out
    assert "1. " in shown.out


@pytest.mark.usefixtures("daemon")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk_is_told_as_ever() -> None:
    with Path("/dev/full").open("wb") as full:
        shown = in_another_process("read", "Debts", stdout=full.fileno())
    assert (shown.code, "The disk is full" in shown.err) == (2, True)
