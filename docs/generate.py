"""Write docs/reference from the code, the picture of the rooms, and the help of every command.

`python docs/generate.py` writes the files; `--check` exits 1 when one of them is out of date.
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from obsidian_rag import errors
from obsidian_rag.config import ENV_PREFIX, Settings
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.tools import TOOLS, Tool
from obsidian_rag.transports.cli.app import app
from obsidian_rag.transports.cli.instant import HELP_FILE

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
_ROOMS = ("<!-- rooms, made by docs/generate.py -->\n", "<!-- end of rooms -->\n")
# Everybody may import these, so arrows to them say nothing.
_EVERYWHERE = {"errors", "config", "process", "data_folder", "__init__", "__main__"}
_NOTICE = "<!-- Made by docs/generate.py: edit the code, then run `make fix`. -->\n"
_COLUMNS = 80
# What typer uses of a terminal of 80 columns or more.
_HELP_COLUMNS = 78
_PROGRAM = "obsidian-rag"
_HELP_OPTIONS = ["-h", "--help"]
_KINDS: dict[object, str] = {
    str: "text",
    SecretStr: "secret text",
    int: "whole number",
    float: "number",
    bool: "true/false",
}


def files() -> dict[Path, str]:
    """Every generated file, and what it should hold."""
    made = {
        "cli.md": _cli(),
        "settings.md": _settings(),
        "tools.md": _tools(),
        "errors.md": _errors(),
    }
    pages = {REFERENCE / name: f"{_NOTICE}\n{text.strip()}\n" for name, text in made.items()}
    pages[ARCHITECTURE] = _with_picture(ARCHITECTURE.read_text(encoding="utf-8"))
    return {**pages, HELP_FILE: json.dumps(_help_texts(), indent=0, ensure_ascii=False) + "\n"}


def stale() -> list[str]:
    """The files that differ from what the code says."""
    behind = [file for file, text in files().items() if _present(file) != text]
    return [file.relative_to(ROOT).as_posix() for file in behind]


def commands() -> Iterator[tuple[str, Any]]:
    """Every command and group with its full name, in the order of the help."""
    yield from _commands(_PROGRAM, typer.main.get_command(app))


def error_classes() -> list[type[ObsidianRagError]]:
    """Every class of the error tree, in the order of the file, without the root."""
    found = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    return [k for k in found if issubclass(k, ObsidianRagError) and k is not ObsidianRagError]


def main(arguments: list[str]) -> int:
    """Write the files, or compare them."""
    if "--check" in arguments:
        behind = stale()
        for name in behind:
            sys.stderr.write(f"{name} is out of date; run `make fix`\n")
        return 1 if behind else 0
    REFERENCE.mkdir(exist_ok=True)
    for file, text in files().items():
        file.write_text(text, encoding="utf-8", newline="\n")
    return 0


def _present(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for below, child in getattr(command, "commands", {}).items():
        yield from _commands(f"{name} {below}", child)


def _cli() -> str:
    parts = [_CLI_HEAD]
    for name, command in commands():
        lines = (line.rstrip() for line in _help(name, command, _COLUMNS).splitlines())
        text = "\n".join(lines).strip()
        parts.append(f"## {name}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def _help(name: str, command: Any, columns: int) -> str:
    context = typer.Context(
        command, info_name=name, terminal_width=columns, help_option_names=_HELP_OPTIONS
    )
    return str(command.get_help(context))


def _help_texts() -> dict[str, str]:
    """What each command prints with --help, by what is typed before that."""
    return {
        name.removeprefix(_PROGRAM).strip(): f"{_help(name, command, _HELP_COLUMNS)}\n"
        for name, command in commands()
    }


def _with_picture(page: str) -> str:
    before, _, rest = page.partition(_ROOMS[0])
    _, _, after = rest.partition(_ROOMS[1])
    return f"{before}{_ROOMS[0]}{_picture()}{_ROOMS[1]}{after}"


def _picture() -> str:
    """Who may import whom, by the table that the test enforces, without what follows by others."""
    table = _import_table()
    direct = {
        room: [b for b in sorted(allowed) if not any(b in table[o] for o in allowed - {b})]
        for room, allowed in table.items()
    }
    lines = [f"  {room} --> {' & '.join(below)}" for room, below in direct.items() if below]
    return "```mermaid\ngraph TD\n" + "\n".join(lines) + "\n```\n"


def _import_table() -> dict[str, set[str]]:
    """The rooms that exist, each with those it may import."""
    test = (ROOT / "tests" / "test_architecture.py").read_text(encoding="utf-8")
    values: dict[str, ast.expr] = {}
    for node in ast.parse(test).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            values[node.target.id] = node.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
    data = ast.literal_eval(values["DATA"])
    table = values["MAY_IMPORT"]
    assert isinstance(table, ast.Dict)
    folder = ROOT / "src" / "obsidian_rag"
    found: dict[str, set[str]] = {}
    for key, value in zip(table.keys, table.values, strict=True):
        room = ast.literal_eval(key) if key is not None else ""
        names = {
            part.value
            for part in ast.walk(value)
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        }
        uses_data = any(isinstance(part, ast.Starred) for part in ast.walk(value))
        if (folder / room).is_dir() and room not in _EVERYWHERE:
            found[room] = (names | (data if uses_data else set())) - _EVERYWHERE
    return {room: {one for one in allowed if one in found} for room, allowed in found.items()}


def _settings() -> str:
    parts = [_SETTINGS_HEAD, _settings_table("Top level", "", Settings)]
    for name, field in Settings.model_fields.items():
        if _is_section(field):
            parts.append(_settings_table(name, f"{name}.", field.annotation))
    return "\n".join(parts)


def _settings_table(heading: str, prefix: str, model: Any) -> str:
    is_top = not prefix
    note = "" if is_top else f"{model.__doc__}\n\n"
    rows = [
        f"| `{prefix}{field.alias or name}` | {_kind(field.annotation)}{_bounds(field)} "
        f"| {_default(field)} | {field.description} |"
        for name, field in model.model_fields.items()
        if not _is_section(field)
    ]
    head = "| setting | value | default | what it is |\n|---|---|---|---|\n"
    title = heading if is_top else f"`{heading}`"
    return f"## {title}\n\n{note}{head}" + "\n".join(rows) + "\n"


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _kind(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(f"`{word}`" for word in inner)
    if origin in (UnionType, Union):
        return " or ".join("null" if kind is NoneType else _kind(kind) for kind in inner)
    if origin is Annotated:
        return _kind(inner[0]) + _bounds(inner[1])
    if origin is tuple:
        return f"list of {_kind(inner[0])}"
    if origin is dict:
        return f"object of {_kind(inner[1])}"
    return _KINDS.get(annotation, str(annotation))


def _bounds(field: FieldInfo) -> str:
    signs = (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<"))
    found = [
        f"{sign} {getattr(bound, name)}"
        for bound in field.metadata
        for name, sign in signs
        if hasattr(bound, name)
    ]
    return f" ({', '.join(found)})" if found else ""


def _default(field: FieldInfo) -> str:
    return f"`{json.dumps(field.default, ensure_ascii=False)}`"


def _tools() -> str:
    return _TOOLS_HEAD + "\n".join(_tool(tool) for tool in TOOLS.values())


def _tool(tool: Tool[Any]) -> str:
    writes = "Only reads." if tool.is_read_only else "Writes what it says, and nothing else."
    rows = [
        f"| `{name}` | {_kind_of(field.annotation)}{_bounds(field)} | "
        f"{'required' if field.is_required() else _default(field)} | {field.description} |"
        for name, field in tool.params.model_fields.items()
    ]
    head = "| parameter | value | default | what it is |\n|---|---|---|---|\n"
    table = head + "\n".join(rows) + "\n" if rows else "No parameters.\n"
    return f"## {tool.name}\n\n{tool.description} {writes}\n\n{table}"


def _kind_of(annotation: Any) -> str:
    """As in the settings, but parameters may also be objects and bounded text."""
    if get_origin(annotation) is Annotated:
        return _kind_of(get_args(annotation)[0])
    if get_origin(annotation) in (UnionType, Union):
        return " or ".join(_kind_of(kind) for kind in get_args(annotation) if kind is not NoneType)
    if get_origin(annotation) is tuple:
        return f"list of {_kind_of(get_args(annotation)[0])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        names = (field.alias or name for name, field in annotation.model_fields.items())
        return "object with " + ", ".join(f"`{name}`" for name in names)
    return _kind(annotation)


def _errors() -> str:
    rows = [
        f"| `{kind.code}` | {kind.__doc__} | {'as it is' if kind.is_about_call else kind.status}"
        f" | {'yes' if kind.recoverable else 'no'}"
        f" | {kind.exit_code} | {kind.http_status} |"
        for kind in error_classes()
    ]
    head = (
        "| code | what happened | status | recoverable | exit code | HTTP |\n"
        "|---|---|---|---|---|---|\n"
    )
    return _ERRORS_HEAD + head + "\n".join(rows) + "\n"


_CLI_HEAD = """# Commands

Data goes to stdout, talk and progress to stderr. `--json` prints one envelope and nothing else on
stdout. Colour is used on a terminal only, and not when `NO_COLOR` is set.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | done, but some notes failed, or `uuid check` found something to correct |
| 2 | fatal: a known error, wrong usage, or a problem found by `doctor` |
| 130 | interrupted |
"""

_TOOLS_HEAD = """# Tools

What agents and programs can call, with the same parameters and the same envelope over HTTP
(`POST /tools/<name>`) and MCP. The JSON schemas are those of `GET /tools`. An unknown parameter
or a value of the wrong type is refused with `INVALID_ARGUMENT`; a number may be written as a string
(`"5"`), and one string stands for a list of it.

"""

_SETTINGS_HEAD = f"""# Settings

A value comes from an environment variable, else from the config file, else from the default. The
file is JSON: `config.json` in the data folder (`obsidian-rag config path` prints where). An
unknown key in it is an error. Relative paths start at the file's own folder.

The environment variable of a setting is `{ENV_PREFIX}` and its name in capitals, with `__` for
the dot: `{ENV_PREFIX}EMBEDDING__PROVIDER`. Its value is JSON or a bare word. A variable without
a setting is ignored.

| variable | what it is |
|---|---|
| `{ENV_PREFIX}HOME` | the data folder: `~/.obsidian-rag`, on Windows `%APPDATA%\\obsidian-rag` |
| `{ENV_PREFIX}CONFIG` | the config file, if it is not `config.json` in the data folder |
| `{ENV_PREFIX}MODEL_HUB` | a mirror for `obsidian-rag model get` |
"""

_ERRORS_HEAD = """# Error codes

Every expected failure has one of these codes, the same from every command. `status` is the health
that an answer with this error has at best; "as it is" means that the error does not change it.
What to do about each is in [troubleshooting](../guides/troubleshooting.md).

An error in the envelope (`--json`) has `code`, `message`, `recoverable` and `suggestion`.

"""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
