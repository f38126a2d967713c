"""The house rules that a machine can check: who imports whom, who changes files, how large."""

import ast
import functools
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import PATIENCE_S

import obsidian_rag

PACKAGE = Path(obsidian_rag.__file__).parent
TESTS = Path(__file__).parent
DATA = {
    "notes",
    "documents",
    "vault",
    "embed",
    "store",
    "search",
    "relations",
    "index",
    "livesync",
    "chat",
}
# Every room may import these.
EVERYWHERE = {"errors", "config", "process"}
# DESIGN §2; docs/decisions.md says where this table has more, and why.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "data_folder": set(),
    "config": {"data_folder"},
    "process": set(),
    "notes": set(),
    "documents": {"notes"},
    "vault": set(),
    "embed": set(),
    "store": {"notes"},
    "search": {"notes", "embed", "store"},
    "relations": {"notes", "vault", "store", "search"},
    "health": {"notes", "vault", "embed", "store"},
    "index": {"notes", "documents", "vault", "embed", "store", "relations", "health"},
    "livesync": {"vault", "store"},
    "chat": {"notes", "embed", "search"},
    "engine": {*DATA, "health"},
    "autostart": set(),
    "tools": {
        "notes",
        "vault",
        "store",
        "search",
        "relations",
        "livesync",
        "chat",
        "health",
        "engine",
    },
    "transports": {"data_folder", "tools", "engine", "livesync", "autostart", "embed"},
    "__init__": set(),
    "__main__": {"transports"},
}
MOST_LATE_IMPORTS = 10
SHARED_BY_DOORS = {
    "daemon_client",
    "lazy",
    "light_client",
    "limits",
    "log",
    "servers",
}
# Who may change files at all; only the room `vault` changes files of a vault.
WRITERS = {
    "config/settings.py": "the folder of the config file",
    "data_folder.py": "the config file",
    "vault/write.py": "notes",
    "vault/files.py": "names and emptied folders of any file of a vault, when sync asks",
    "vault/temporary.py": "temporary files of ours that a kill left behind",
    "vault/trash.py": "what sync removes from a vault, and the trash outside it",
    "vault/boundary.py": "the folders of a new note, when write.py asks",
    "store/chunks.py": "the chunk table's folders",
    "store/checksums.py": "what is known of the chunk table's files",
    "store/folder.py": "the data folder, and who may read it",
    "store/lock.py": "the writer's lock",
    "store/owner.py": "the data folder's id, and the record of a store's owner",
    "store/meaning.py": "the meaning vectors",
    "relations/rows.py": "a damaged relations.db, removed",
    "index/relate.py": "indexes of related notes to compare with, removed at once",
    "store/repair.py": "a damaged state.db, set aside",
    "embed/convert.py": "the files of a model that is being added",
    "embed/tensor_file.py": "the weights of a model that is being added",
    "embed/package_index.py": "the files of a model that is being downloaded",
    "embed/models.py": "added models",
    "autostart/installation.py": "the entry that starts the daemon at login",
    "engine/presence.py": "daemon.json and its lock",
    "process/child.py": "the log of a process that was started",
    "transports/http/server.py": "daemon.json, removed when the daemon leaves",
    "transports/log.py": "the logs of the doors that stay open",
    "transports/cli/app.py": "the crash log",
    "transports/cli/instant.py": "nowhere, when whoever reads our output went away",
    "transports/mcp/bridge.py": "stdout, a line for each answer",
    "transports/cli/serve_cmd.py": "what a daemon in the background says",
}
VAGUE = {
    "utils",
    "helpers",
    "common",
    "misc",
    "base",
    "manager",
    "service",
    "handler",
    "factory",
    "runner",
    "processor",
}
HEAVY = (
    "lancedb",
    "pyarrow",
    "numpy",
    "rich",
    "httpx",
    "tokenizers",
    "onnxruntime",
    "wordllama",
    "yaml",
    "cryptography",
)
PATH_METHODS = {
    "write_text",
    "write_bytes",
    "unlink",
    "rename",
    "rmdir",
    "mkdir",
    "touch",
    "symlink_to",
    "hardlink_to",
    "chmod",
}
OS_FUNCTIONS = {
    "replace",
    "rename",
    "renames",
    "remove",
    "unlink",
    "mkdir",
    "makedirs",
    "rmdir",
    "removedirs",
    "link",
    "symlink",
    "truncate",
    "ftruncate",
    "chmod",
    "utime",
    "write",
    "mkfifo",
}
WRITE_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"}
HARMLESS = {"shutil.disk_usage", "shutil.which", "shutil.get_terminal_size"}

MODULES = sorted(PACKAGE.rglob("*.py"))
# `transports` itself publishes nothing: cli, http and mcp do.
ROOMS = sorted(
    ".".join(file.relative_to(PACKAGE).parent.parts)
    for file in PACKAGE.rglob("*/__init__.py")
    if file.parent.name != "transports"
)


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """Parsed when the first test asks: every worker imports this file, and one runs it."""
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in MODULES}


def name_of(file: Path) -> str:
    return file.relative_to(PACKAGE).as_posix()


def room_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else file.stem


def own_imports(file: Path) -> Iterator[tuple[str, str | None]]:
    """(dotted module, name taken from it) for every import of our own package."""
    for node in ast.walk(trees()[file]):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "obsidian_rag":
                    yield alias.name, None
        elif (
            isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "obsidian_rag"
        ):
            for alias in node.names:
                yield str(node.module), alias.name


def imported_room(module: str, name: str | None) -> str | None:
    """The room an import reaches; None for the package's own name or version."""
    parts = module.split(".")
    if len(parts) > 1:
        return parts[1]
    return name if name in MAY_IMPORT else None


def test_a_module_imports_only_the_rooms_its_row_allows() -> None:
    rooms = {room_of(file) for file in MODULES}
    assert rooms <= set(MAY_IMPORT), "a new room needs a reason in docs/decisions.md"
    strays = {}
    for file in MODULES:
        room = room_of(file)
        reached = {imported_room(module, name) for module, name in own_imports(file)}
        if stray := reached - {None, room} - EVERYWHERE - MAY_IMPORT[room]:
            strays[name_of(file)] = stray
    assert strays == {}


def test_a_module_takes_from_other_rooms_only_what_they_publish() -> None:
    hidden = [
        f"{name_of(file)} takes {module}.{name}"
        for file in MODULES
        for module, name in own_imports(file)
        if (room := imported_room(module, name)) not in (None, room_of(file), "errors", "config")
        and room_of(file) != "__main__"
        and not _is_published(str(room), module, name)
    ]
    assert hidden == []


def _is_published(room: str, module: str, name: str | None) -> bool:
    if module == "obsidian_rag":
        return True
    published = importlib.import_module(f"obsidian_rag.{room}").__all__
    return module == f"obsidian_rag.{room}" and (name is None or name in published)


@functools.cache
def rooms_used() -> dict[str, set[str]]:
    """For each room, the names that other rooms take from it: imported, or as `room.name`."""
    used: dict[str, set[str]] = {room: set() for room in ROOMS}
    for file in MODULES:
        own = ".".join(file.relative_to(PACKAGE).parent.parts)
        aliases = {}
        for node in ast.walk(trees()[file]):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("obsidian_rag"):
                source = str(node.module).removeprefix("obsidian_rag").lstrip(".")
                for alias in node.names:
                    if source in used and source != own:
                        used[source].add(alias.name)
                    # A room, or what stands for one until it is loaded.
                    room = next((one for one in ROOMS if one.split(".")[-1] == alias.name), "")
                    if room and room != own:
                        aliases[alias.asname or alias.name] = room
        for owner, name in _names_of_modules(trees()[file]):
            used.get(aliases.get(owner, ""), set()).add(name)
    return used


def _names_of_modules(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each `owner.name`, also in an annotation that is written as text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id, node.attr
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            for one in ast.walk(annotation or ast.Pass()):
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    yield from re.findall(r"(\w+)\.(\w+)", one.value)


@pytest.mark.parametrize("room", ROOMS)
def test_a_public_name_is_used_by_another_room(room: str) -> None:
    published = importlib.import_module(f"obsidian_rag.{room}").__all__
    assert [name for name in published if name not in rooms_used()[room]] == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_republishes_only_types_of_other_rooms(room: str) -> None:
    """Those that its functions take or return; whoever wants to call a function asks its room."""
    module = importlib.import_module(f"obsidian_rag.{room}")
    taken = {
        alias.name
        for node in trees()[PACKAGE / room.replace(".", "/") / "__init__.py"].body
        if isinstance(node, ast.ImportFrom)
        # `data_folder` is the part of `config` that works without pydantic.
        and not f"{node.module}.".startswith((f"obsidian_rag.{room}.", "obsidian_rag.data_folder."))
        for alias in node.names
    }
    foreign = [name for name in taken & set(module.__all__) if not _is_type(module, name)]
    assert foreign == []


def _is_type(module: object, name: str) -> bool:
    return isinstance(getattr(module, name), type)


def test_a_protocol_has_two_implementations() -> None:
    members: dict[str, set[str]] = {}
    protocols: dict[str, set[str]] = {}
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                where = f"{name_of(file)}:{node.name}"
                is_protocol = any("Protocol" in ast.unparse(base) for base in node.bases)
                is_ours = is_protocol and "H11Protocol" not in map(ast.unparse, node.bases)
                (protocols if is_ours else members)[where] = _members_of(node)
    lonely = {
        where
        for where, wanted in protocols.items()
        if sum(wanted <= there for there in members.values()) < 2
    }
    assert lonely == set()


def _members_of(node: ast.ClassDef) -> set[str]:
    """The methods and attributes that a class defines itself."""
    found = set()
    for one in ast.walk(node):
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(one.name)
        elif isinstance(one, ast.AnnAssign | ast.Assign):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found.add(target.id)
                elif isinstance(target, ast.Attribute):
                    found.add(target.attr)
    return found


def test_one_place_makes_a_vault_of_the_settings() -> None:
    """All others ask for the value `Vault`, or for all vaults."""
    readers = {
        name_of(file)
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "vault_root"
    }
    assert readers == {"vault/vault.py"}


def test_the_architecture_page_names_files_that_exist() -> None:
    page = (TESTS.parent / "docs/architecture.md").read_text("utf-8")
    named = set(re.findall(r"`((?:\w+/)+\w+)(?:\.py)?`", page))
    assert len(named) > 20
    assert {name for name in named if not _is_ours(name)} == set()


def _is_ours(name: str) -> bool:
    places = (PACKAGE / name, PACKAGE / f"{name}.py", TESTS.parent / f"{name}.py")
    return any(place.exists() for place in places)


def test_imports_are_absolute() -> None:
    relative = [
        f"{name_of(file)}:{node.lineno}"
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_own_imports_stand_at_the_top_of_a_module() -> None:
    """All but a few: what is loaded late is loaded by `transports/lazy.py`."""
    late = {
        f"{name_of(file)}:{node.lineno}"
        for file, tree in trees().items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if (isinstance(node, ast.ImportFrom) and str(node.module).startswith("obsidian_rag"))
        or (isinstance(node, ast.Import) and "obsidian_rag" in ast.unparse(node))
    }
    assert len(late) <= MOST_LATE_IMPORTS, sorted(late)


def test_transports_never_import_each_other() -> None:
    strays = {}
    for file in MODULES:
        parts = file.relative_to(PACKAGE).parts
        if parts[0] == "transports" and len(parts) > 2:
            doors = {
                module.split(".")[2] if module.count(".") > 1 else name
                for module, name in own_imports(file)
                if module.startswith("obsidian_rag.transports")
            }
            # The rest is what they share.
            if doors - {parts[1], *SHARED_BY_DOORS}:
                strays[name_of(file)] = doors
    assert strays == {}


def test_a_module_says_what_it_is_for() -> None:
    assert [name_of(file) for file, tree in trees().items() if not ast.get_docstring(tree)] == []


def test_no_source_file_is_over_700_lines_and_no_test_over_800() -> None:
    sizes = {name_of(file): len(file.read_text("utf-8").splitlines()) for file in MODULES}
    assert {name: size for name, size in sizes.items() if size > 700} == {}
    tests = {str(file): len(file.read_text("utf-8").splitlines()) for file in TESTS.rglob("*.py")}
    assert {name: size for name, size in tests.items() if size > 800} == {}
    assert sizes["engine/engine.py"] < 200


# Small, or with a single reader, and still a file: why.
SMALL = {
    "livesync/codec/compression.py": "a format of the wire, with its vectors",
    "livesync/codec/splitter.py": "a format of the wire, with its vectors",
    "notes/canvas.py": "a reader in the table of kinds",
    "store/owner.py": "a threat of its own",
    "transports/cli/answering.py": "the daemon's side of the command line",
    "transports/http/web/first_run.py": "the page before a vault is chosen",
    "transports/mcp/over_http.py": "MCP at the daemon's door, not loaded by the server on stdin",
    "transports/lazy.py": "the rooms that are loaded late, in one place",
}


def importers() -> dict[str, set[str]]:
    """Which files of ours import each file."""
    found: dict[str, set[str]] = {name_of(file): set() for file in MODULES}
    for file in MODULES:
        for module, name in own_imports(file):
            path = "/".join(module.split(".")[1:])
            for target in (f"{path}/{name}.py".lstrip("/"), f"{path}.py", f"{path}/__init__.py"):
                if target in found:
                    found[target].add(name_of(file))
                    break
    return found


def test_a_file_is_worth_opening() -> None:
    """None is smaller than a screen, and none is a part of the only file that uses it.

    What a room publishes has readers outside, and each command has a file.
    """
    lines = {name_of(file): len(file.read_text("utf-8").splitlines()) for file in MODULES}
    small = set()
    for name, users in importers().items():
        if name.endswith(("__init__.py", "__main__.py", "_cmd.py")):
            continue
        is_published = any(user.endswith("__init__.py") for user in users)
        is_lone = len(users) == 1 and not is_published
        if lines[name] < 60 or (lines[name] < 150 and is_lone):
            small.add(name)
    assert small == set(SMALL)


def test_module_names_are_nouns_of_the_domain() -> None:
    names = {file: file.relative_to(PACKAGE).with_suffix("").parts for file in MODULES}
    words = {
        file: {word for part in parts for word in part.split("_")} for file, parts in names.items()
    }
    assert [name_of(file) for file in MODULES if VAGUE & words[file]] == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_lists_its_public_names_and_has_them(room: str) -> None:
    module = importlib.import_module(f"obsidian_rag.{room}")
    assert list(module.__all__) == sorted(set(module.__all__), key=_as_ruff_sorts)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def _as_ruff_sorts(name: str) -> tuple[int, str]:
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_only_named_writers_change_files() -> None:
    found = {name_of(file): sorted(set(changes_of_files(tree))) for file, tree in trees().items()}
    assert {name: calls for name, calls in found.items() if calls and name not in WRITERS} == {}
    assert {name for name in WRITERS if not found[name]} == set(), "named, but changes nothing"


def test_the_boundary_makes_folders_only_and_only_for_the_writer_of_notes() -> None:
    boundary = trees()[PACKAGE / "vault/boundary.py"]
    assert set(changes_of_files(boundary)) <= {"mkdir", "os.mkdir"}
    askers = {
        name_of(file)
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "folder_of"
        and node.keywords
    }
    assert askers == {"vault/write.py"}


@pytest.mark.parametrize(
    "source",
    [
        "open(p, 'w')",
        "open(p, mode='ab')",
        "p.open('x')",
        "os.open(p, os.O_RDWR)",
        "p.write_text('')",
        "p.unlink()",
        "p.replace(q)",
        "os.remove(p)",
        "os.fdopen(d, 'r+')",
        "from shutil import copy",
        "shutil.move(p, q)",
        "tempfile.mkstemp()",
    ],
)
def test_the_search_for_writers_sees_each_way_to_write(source: str) -> None:
    assert list(changes_of_files(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    ["open(p)", "p.open('rb')", "text.replace('a', 'b')", "replace(note, a=1)", "os.replaced"],
)
def test_the_search_for_writers_lets_reading_pass(source: str) -> None:
    assert list(changes_of_files(ast.parse(source))) == []


def changes_of_files(tree: ast.AST) -> Iterator[str]:
    """What in this code may change a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("shutil", "tempfile"):
            yield f"from {node.module} import"
        elif isinstance(node, ast.Attribute) and node.attr in WRITE_FLAGS:
            yield node.attr
        elif isinstance(node, ast.Call):
            yield from _changing_call(node)


def _changing_call(call: ast.Call) -> Iterator[str]:
    if isinstance(call.func, ast.Name):
        if call.func.id == "open" and _writes(call, 1):
            yield "open"
    elif isinstance(call.func, ast.Attribute):
        name, owner = call.func.attr, call.func.value
        module = owner.id if isinstance(owner, ast.Name) else ""
        full = f"{module}.{name}"
        if module in ("shutil", "tempfile"):
            if full not in HARMLESS:
                yield full
        elif module == "os":
            if name in OS_FUNCTIONS or (name == "fdopen" and _writes(call, 1)):
                yield full
        elif name in PATH_METHODS or (name == "open" and _writes(call, 0)):
            yield name
        elif name == "replace" and len(call.args) == 1 and not call.keywords:
            yield "Path.replace"


def _writes(call: ast.Call, position: int) -> bool:
    modes = [call.args[position]] if len(call.args) > position else []
    modes += [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    return any(
        not isinstance(mode, ast.Constant) or bool(set(str(mode.value)) & set("wax+"))
        for mode in modes
    )


@pytest.mark.parametrize(
    ("door", "heavy"),
    [
        ("transports.cli.app", HEAVY),
        ("engine", ("lancedb", "pyarrow", "httpx", "wordllama", "onnxruntime", "cryptography")),
    ],
)
def test_no_heavy_library_is_loaded_until_it_must(door: str, heavy: tuple[str, ...]) -> None:
    script = f"import sys, obsidian_rag.{door}\nprint(sorted(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
