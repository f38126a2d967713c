"""The docs say what the code does: nothing is missing, stale or broken."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.scripts import imported

from obsidian_rag.config import setting_names
from obsidian_rag.tools import TOOLS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "obsidian_rag"
MARKDOWN = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
_FENCE = re.compile(r"^( *)(`{3,})[^\n]*\n(.*?)^\1\2`*\s*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_REASON_CALLS = {"_skip", "SkippedFile", "NotANote"}


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
    # A file that is gone is never shown with a reason.
    shown = reasons - {"missing"}
    assert sorted(reason for reason in shown if f"| `{reason}` |" not in guide) == []


def test_no_page_explains_a_reason_that_the_code_does_not_know() -> None:
    guide = _read(DOCS / "guides" / "troubleshooting.md")
    table = guide.partition("## Files that are not searchable")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) <= set(_reasons())


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
    ("page", "most"), [(DOCS / "architecture.md", 300), (ROOT / "AGENTS.md", 60)]
)
def test_overviews_stay_short(page: Path, most: int) -> None:
    assert len(_read(page).splitlines()) <= most


def test_every_room_has_a_section_in_the_architecture() -> None:
    headings = _HEADING.findall(_read(DOCS / "architecture.md"))
    rooms = [entry.stem for entry in SOURCE.iterdir() if not entry.name.startswith(("_", "."))]
    assert sorted(room for room in rooms if room not in headings) == []


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
