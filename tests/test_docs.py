"""The docs say what the code does: nothing is missing, stale or broken."""

import ast
import io
import os
import re
import shlex
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.doc_examples import Example, examples, settled
from tests.scripts import imported

from obsidian_rag.config import CONFIG_VERSION, Config, save, setting_names, validate
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.tools import TOOLS
from obsidian_rag.transports.cli import main

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "obsidian_rag"
SAMPLES = ROOT / "samples"
MARKDOWN = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
_FENCE = re.compile(r"^( *)(`{3,})[^\n]*\n(.*?)^\1\2`*\s*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
# German sentence shapes, and words of other centuries; "there is no index" is English.
_DIALECT = re.compile(
    r"\bfor who\b|; who |\bleave word\b|\banew\b|\bof now\b|\btells (?:how|what|which|whether)\b"
    r"|(?<![Tt]here )\bis (?:no (?!longer|more)[a-z]+|none)\b"
)
_REASON_CALLS = {"skip", "SkippedFile", "NotANote"}
_REASON_FUNCTIONS = {"_skip_reason"}


@pytest.fixture(scope="module")
def generate() -> Iterator[ModuleType]:
    with imported(DOCS / "generate.py", "docs_generate") as module:
        yield module


def test_the_generated_reference_is_up_to_date(generate: ModuleType) -> None:
    assert generate.stale() == []


def test_every_command_has_help_with_an_example_and_is_documented(generate: ModuleType) -> None:
    page = _read(DOCS / "reference" / "cli.md")
    guides = "".join(_read(file) for file in (*DOCS.rglob("guides/*.md"), ROOT / "CHANGELOG.md"))
    for name, command in generate.commands():
        assert f"## {name}\n" in page
        assert command.help, f"{name} has no help"
        if not hasattr(command, "commands"):
            assert "Example:  " in command.help, f"{name} shows no example"
            assert re.search(rf"\b{name.split()[-1]}\b", guides), f"{name} is in no guide"


def test_every_setting_is_documented() -> None:
    page = _read(DOCS / "reference" / "settings.md")
    assert [name for name in setting_names() if f"| `{name}` |" not in page] == []


def test_every_tool_and_parameter_is_documented() -> None:
    page = _read(DOCS / "reference" / "tools.md")
    for name, tool in TOOLS.items():
        section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert [p for p in tool.params.model_fields if f"| `{p}` |" not in section] == []
        assert tool.description in section


def test_every_error_code_is_explained(generate: ModuleType) -> None:
    reference = _read(DOCS / "reference" / "errors.md")
    guide = _read(DOCS / "guides" / "troubleshooting.md")
    for kind in generate.error_classes():
        assert f"| `{kind.code}` |" in reference
        assert f"| `{kind.code}` |" in guide


def test_every_reason_for_leaving_out_a_file_is_explained() -> None:
    reasons = set(_reasons())
    assert {"too_large", "rag_false", "not_utf8", "embedding_failed", "broken_symlink"} <= reasons
    guide = _read(DOCS / "guides" / "troubleshooting.md")
    # A file that is gone is never shown with a reason, and only LiveSync leaves out every symlink.
    shown = reasons - {"missing", "symlink"}
    assert sorted(reason for reason in shown if f"| `{reason}` |" not in guide) == []


def test_no_page_explains_a_reason_that_the_code_does_not_know() -> None:
    guide = _read(DOCS / "guides" / "troubleshooting.md")
    table = guide.partition("## Files that are not searchable")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) <= set(_reasons())


# Commands on these pages that are not run here, and why; a test keeps the list true.
NOT_RUN = {
    r"make .*": "the Makefile is what runs this test",
    r"(claude|loginctl|mkdir|wl-paste|read -rs|cd|curl|url=).*": "not our command",
    r"obsidian-rag livesync .*": "needs a CouchDB: test_cli_livesync*.py",
    r"obsidian-rag model get .*": "needs the package registry: test_embed_package_index.py",
    r"obsidian-rag model add .*": "needs a model folder: test_cli_model.py",
    r"obsidian-rag serve( .*)?": "starts a process that stays: test_cli_daemon.py",
    r"obsidian-rag open": "starts such a process too: test_page_session.py",
    r"obsidian-rag service (install|status)": "asks systemd: test_cli_autostart.py",
    r'obsidian-rag suggest "Rain garden" --top 3': "asks at a terminal: test_cli_suggest.py",
}
# Commands that are meant to end otherwise than with 0.
ENDINGS = {
    "obsidian-rag uuid check": 1,
    # A template of the sample vault has broken frontmatter, on purpose.
    "obsidian-rag uuid add --all --dry-run": 1,
    'obsidian-rag relate "Rain garden" Costco': 2,
}
GUIDES = [ROOT / "README.md", *sorted((DOCS / "guides").glob("*.md"))]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's home with a copy of the sample vault, indexed with the default settings."""
    home = tmp_path_factory.mktemp("docs") / "me"
    shutil.copytree(SAMPLES / "vault", home / "Notes")
    file = home / ".obsidian-rag" / "config.json"
    tree = {"version": CONFIG_VERSION, "vault_path": str(home / "Notes")}
    save(tree, file)
    engine = Engine(Config(file.parent, file, validate(tree, file)))
    run_index(engine, Mode.FULL)
    engine.close()
    shutil.copytree(home, home.parent / "untouched")
    return home


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_every_command_of_the_readme_and_the_guides_runs_as_shown(
    page: Path, indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(indexed)
    shutil.copytree(indexed.parent / "untouched", indexed)
    monkeypatch.delenv("OBSIDIAN_RAG_HOME")
    for name, value in (("HOME", str(indexed)), ("COLUMNS", "100"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(ROOT)
    shown = [example for example in examples(_read(page)) if not _why_not(example)]
    if shown and shown[0].arguments[0] == "init":  # a page that starts from nothing
        shutil.rmtree(indexed / ".obsidian-rag")
    for example in shown:
        code, output = _on_screen(example.arguments, monkeypatch)
        output = output.replace(str(indexed), "/home/me")
        assert code == ENDINGS.get(example.command.partition(" #")[0].strip(), 0), output
        if example.shown is None:
            continue
        if "WRITE_DOCS" in os.environ:  # takes over what is printed now
            _take_over(page, example, output)
        else:
            assert settled(output) == settled(example.shown), example.command


def test_every_reason_not_to_run_a_command_is_needed() -> None:
    shown = [example for page in GUIDES for example in examples(_read(page))]
    needed = {_why_not(example) for example in shown}
    assert {reason for reason in NOT_RUN.values() if reason not in needed} == set()
    run = {example.command.partition(" #")[0].strip() for example in shown if not _why_not(example)}
    assert set(ENDINGS) <= run
    assert all(command.startswith("obsidian-rag ") for command in run)


def test_every_search_in_the_docs_finds_something(
    indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(indexed))
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(indexed / ".obsidian-rag"))
    for page in GUIDES:
        for example in examples(_read(page)):
            if example.command.startswith("obsidian-rag search "):
                code, output = _on_screen(example.arguments, monkeypatch)
                assert (code, output[:3]) == (0, "1. "), example.command


def _why_not(example: Example) -> str | None:
    command = example.command.partition(" #")[0].strip()
    return next((why for one, why in NOT_RUN.items() if re.fullmatch(one, command)), None)


class _Screen(io.RawIOBase):
    """What a person sees; only stdout says that it is a terminal, so that no bar is drawn."""

    def __init__(self, seen: bytearray, is_terminal: bool) -> None:
        self._seen, self._is_terminal = seen, is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._seen += data
        return len(data)


def _on_screen(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Run a command in this process as on a terminal; what it ends with and what is seen."""
    seen = bytearray()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with monkeypatch.context() as patch:
        for name, is_terminal in (("stdout", True), ("stderr", False)):
            raw = io.BufferedWriter(_Screen(seen, is_terminal))
            patch.setattr(sys, name, io.TextIOWrapper(raw, line_buffering=True))
        patch.setattr(sys, "stdin", io.StringIO())
        expanded = [str(Path(one).expanduser()) if one[:1] == "~" else one for one in arguments]
        patch.setattr(sys, "argv", ["obsidian-rag", *expanded])
        try:
            code = main()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return code, seen.decode()


def _take_over(page: Path, example: Example, output: str) -> None:
    assert example.shown is not None
    old, new = (f"{text.rstrip()}\n" for text in (example.shown, output))
    prompt = f"$ {example.command}\n"
    text = _read(page)
    if textwrap.indent(prompt + old, example.indent) in text:
        old, new = prompt + old, prompt + new
    old, new = (textwrap.indent(one, example.indent) for one in (old, new))
    assert old in text, old
    page.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_every_command_in_the_readme_exists(generate: ModuleType) -> None:
    known = dict(generate.commands())
    for line in _shell_lines(_read(ROOT / "README.md")):
        _check_command(line, known)


def test_every_command_in_the_guides_exists(generate: ModuleType) -> None:
    known = dict(generate.commands())
    pages = [*DOCS.rglob("*.md"), ROOT / "AGENTS.md", ROOT / "CONTRIBUTING.md"]
    lines = [line for page in pages if page.parent.name != "reference" for line in _code(page)]
    assert lines
    for line in lines:
        _check_command(line, known)


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    for target in _LINK.findall(_FENCE.sub("", _read(page))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in _anchors(file), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    ("page", "most"), [(DOCS / "architecture.md", 250), (ROOT / "AGENTS.md", 60)]
)
def test_overviews_stay_short(page: Path, most: int) -> None:
    assert len(_read(page).splitlines()) <= most


def test_every_room_has_a_section_in_the_architecture() -> None:
    page = _read(DOCS / "architecture.md")
    sections = page.partition("## errors")[2]
    headings = _HEADING.findall(page)
    rooms = [entry.stem for entry in SOURCE.iterdir() if not entry.name.startswith(("_", "."))]
    # A module beside a room, such as `config_file`, is told of in that room's section.
    assert [room for room in rooms if room not in headings and f"`{room}`" not in sections] == []


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _reasons() -> Iterator[str]:
    """Words given to the calls that leave a file out."""
    for room in ("vault", "index"):
        for file in (SOURCE / room).glob("*.py"):
            for node in ast.walk(ast.parse(_read(file))):
                if isinstance(node, ast.Call):
                    given = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
                    if _called(node) in _REASON_CALLS:
                        given += node.args
                    for value in given:
                        yield from _literals(value)
                elif isinstance(node, ast.FunctionDef) and node.name in _REASON_FUNCTIONS:
                    for inner in ast.walk(node):
                        if isinstance(inner, ast.Return) and inner.value is not None:
                            yield from _literals(inner.value)


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _literals(value: ast.expr) -> Iterator[str]:
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and re.fullmatch(r"[a-z]\w+", str(node.value)):
            yield str(node.value)


def _shell_lines(text: str) -> Iterator[str]:
    """Each `obsidian-rag` command in the code blocks of a page, without a prompt."""
    for _, _, block in _FENCE.findall(text):
        for line in block.splitlines():
            plain = line.strip().removeprefix("$ ")
            if plain.startswith("obsidian-rag "):
                yield from (part.strip() for part in re.split(r"&&|[|;]", plain))


def _code(page: Path) -> Iterator[str]:
    """The commands of a page, in blocks and between backticks."""
    text = _read(page)
    yield from _shell_lines(text)
    yield from re.findall(r"(?<!`)`(obsidian-rag [^`\n]+)`(?!`)", _FENCE.sub("", text))


def _check_command(line: str, known: dict[str, object]) -> None:
    if not line.startswith("obsidian-rag "):
        return
    words = shlex.split(line, comments=True)
    name = words.pop(0)
    while words and f"{name} {words[0]}" in known:
        name = f"{name} {words.pop(0)}"
    command = known[name]
    options = {option for parameter in getattr(command, "params", []) for option in parameter.opts}
    used = {word.partition("=")[0] for word in words if word.startswith("-")}
    assert used <= options | {"-h", "--help"}, line
    assert not (words and not used and hasattr(command, "commands")), f"no command `{line}`"


def _anchors(file: Path) -> set[str]:
    """GitHub's names for the headings of a page."""
    headings = _HEADING.findall(_FENCE.sub("", _read(file)))
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {word.replace(" ", "-") for word in words}


GOAL = re.compile(r"^- .+ \(`(tests/[\w/]+\.py)::(\w+)`\)$")


def test_sentences_are_plain_english() -> None:
    """What a pattern can hold; read the rest aloud."""
    plugins = ROOT / "plugins"
    scripts = [*SOURCE.rglob("page/**/*.js"), *plugins.glob("*/src/**/*.ts")]
    texts = [*SOURCE.rglob("*.py"), *MARKDOWN, *scripts, *plugins.glob("*/*.md")]
    found = [
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in texts
        for match in _DIALECT.finditer(" ".join(_read(file).split()))
    ]
    assert found == []


def test_every_goal_names_a_test_that_exists() -> None:
    lines = [
        line for line in (DOCS / "goals.md").read_text("utf-8").splitlines() if line[:2] == "- "
    ]
    assert len(lines) > 30
    for line in lines:
        named = GOAL.fullmatch(line)
        assert named, line
        assert f"def {named[2]}(" in (ROOT / named[1]).read_text("utf-8"), line


def test_nothing_tells_to_install_a_package_that_is_not_published() -> None:
    """Take this test out with the first release."""
    places = ("README.md", "AGENTS.md", "CONTRIBUTING.md", "Makefile", "docs", "plugins", "src")
    kinds = {"", ".md", ".py", ".ts", ".js", ".json", ".html"}
    install = re.compile(
        r"(?:pip[x3]?|uvx?|tool|npm|brew) (?:(?:install|add|run|i) )?(?:-\S+ )*obsidian-rag\b"
    )
    for file in (file for place in places for file in [ROOT / place, *(ROOT / place).rglob("*")]):
        if file.suffix in kinds and file.is_file() and "node_modules" not in file.parts:
            text = file.read_text("utf-8")
            assert not install.search(text), file
            assert "clawhub:obsidian-rag" not in text, file
