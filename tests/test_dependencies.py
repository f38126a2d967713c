"""Other people's packages: they are declared, bounded, free to use, and as we expect them.

Where docs/decisions.md says that we use more of a library than it promises, a test here fails when
the library changes.
"""

import ast
import asyncio
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Awaitable, Callable
from contextlib import closing
from importlib import metadata
from pathlib import Path

import pyarrow as pa
import pytest
import uvicorn
from lancedb.query import AsyncQuery
from lancedb.schema import schema_has_blob_field
from tests.scripts import imported
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState
from watchfiles import Change
from watchfiles._rust_notify import RustNotify

from obsidian_rag.store import ChunkStore
from obsidian_rag.store.lance import all_rows, lancedb

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
DECLARED = PROJECT["project"]["dependencies"]
REQUIREMENT = re.compile(r"([\w.-]+)>=[\d.]+,<(\d+)(?:;.*)?$")
PINNED = re.compile(r"^([\w.-]+)==(\d+)", re.MULTILINE)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported_packages() -> set[str]:
    modules: set[str] = set()
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
    return {module.partition(".")[0] for module in modules} - {"obsidian_rag", "__future__"}


def test_every_package_that_is_imported_is_declared() -> None:
    declared = {normal(re.split(r"[>=<;\[ ]", line)[0]) for line in DECLARED}
    homes = metadata.packages_distributions()
    undeclared = {
        package
        for package in imported_packages() - sys.stdlib_module_names
        if not declared & {normal(home) for home in homes.get(package, ())}
    }
    assert undeclared == set()


def test_every_dependency_ends_before_the_major_version_after_the_locked_one() -> None:
    locks = "".join(
        (ROOT / "requirements" / f).read_text("utf-8") for f in ("app.lock", "dev.lock")
    )
    majors = {normal(name): int(major) for name, major in PINNED.findall(locks)}
    lines = [
        *PROJECT["build-system"]["requires"],
        *DECLARED,
        *(line for lines in PROJECT["project"]["optional-dependencies"].values() for line in lines),
        *(line for lines in PROJECT["dependency-groups"].values() for line in lines),
    ]
    for line in lines:
        match = REQUIREMENT.match(line)
        assert match, line
        assert int(match[2]) == majors[normal(match[1])] + 1, line


def test_every_licence_of_a_dependency_is_accepted() -> None:
    with imported(ROOT / "docs" / "licences.py", "docs_licences") as licences:
        found = licences.licences()
        assert len(found) > 80
        assert [name for name, text in found.items() if not licences.is_accepted(text)] == []
        for text in ("", "GPL-3.0-only", "MIT AND AGPL-3.0-or-later", "Proprietary"):
            assert not licences.is_accepted(text)
        assert licences.is_accepted("GPL-2.0-only OR MIT")


def test_lancedb_imports_its_rest_client_unless_it_is_replaced() -> None:
    """Else the import hook of `store/lance.py` has nothing to do any more and goes."""
    script = (
        "import sys\n"
        "{}\n"
        "client = sys.modules['lance_namespace_urllib3_client']\n"
        "print(getattr(client, '__file__', None) is not None)\n"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", script.format(line)],
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout.strip()
        for line in ("import lancedb", "from obsidian_rag.store.lance import lancedb; lancedb()")
    ]
    assert told == ["True", "False"]


def test_lancedb_asks_for_the_schema_before_a_query_unless_it_has_no_table(tmp_path: Path) -> None:
    """Else `all_rows` of `store/lance.py` has nothing to do any more and goes."""
    asked = []

    class Asked:
        """A table, as far as a query needs one."""

        async def schema(self) -> pa.Schema:
            asked.append("schema")
            return pa.schema({"number": pa.int64()})

    async def told(read: Callable[[AsyncQuery], Awaitable[pa.Table]]) -> list[str]:
        connection = await lancedb().connect_async(tmp_path)
        table = await connection.create_table("rows", [{"number": 1}], mode="overwrite")
        query = table.query()
        assert query._table is table
        query._table = Asked()
        assert (await read(query)).num_rows == 1
        return list(asked)

    assert asyncio.run(told(all_rows)) == []
    assert asyncio.run(told(AsyncQuery.to_arrow)) == ["schema"]


def test_no_column_of_the_chunk_table_is_a_blob(tmp_path: Path) -> None:
    with closing(ChunkStore(str(tmp_path))) as chunks:
        chunks.create(8)
        assert not schema_has_blob_field(chunks.table.schema)


class NothingNew(Exception):
    """As the watcher ends a look that has seen nothing."""


class TwoLooks:
    def __init__(self) -> None:
        self.looks = 0

    def is_set(self) -> bool:
        self.looks += 1
        if self.looks > 2:
            raise NothingNew
        return False


def test_watchfiles_has_a_notifier_that_can_be_asked_without_waiting(tmp_path: Path) -> None:
    assert [change.value for change in Change] == [1, 2, 3]
    assert [change.name for change in Change] == ["added", "modified", "deleted"]
    # It asks the event after every step and hands on what that raises, so that nobody waits.
    with (
        RustNotify([str(tmp_path)], False, True, 10, False, False) as part,
        pytest.raises(NothingNew),
    ):
        part.watch(0, 0, 0, TwoLooks())


def test_uvicorn_has_what_our_connections_and_our_server_override() -> None:
    async def answer(_scope: object, _receive: object, _send: object) -> None:
        """Never asked."""

    async def attributes() -> set[str]:
        config = uvicorn.Config(
            answer, ws="none", lifespan="off", interface="asgi3", log_config=None
        )
        return set(vars(H11Protocol(config, ServerState(), {})))

    assert asyncio.run(attributes()) >= {
        "conn", "connections", "cycle", "loop", "timeout_keep_alive_task", "transport",
    }  # fmt: skip
    taken = {
        (H11Protocol, "connection_made"): ["transport"],
        (H11Protocol, "connection_lost"): ["exc"],
        (H11Protocol, "data_received"): ["data"],
        (H11Protocol, "on_response_complete"): [],
        (H11Protocol, "pause_writing"): [],
        (H11Protocol, "resume_writing"): [],
        (H11Protocol, "send_400_response"): ["msg"],
        (uvicorn.Server, "capture_signals"): [],
        (uvicorn.Server, "on_tick"): ["counter"],
        (uvicorn.Server, "shutdown"): ["sockets"],
    }
    for (owner, name), parameters in taken.items():
        found = list(inspect.signature(getattr(owner, name)).parameters)
        assert found == ["self", *parameters], f"{owner.__name__}.{name}"
    assert "self.response_complete = False" in inspect.getsource(RequestResponseCycle.__init__)
