"""The error matrix of seed 000 and our own codes: each failure really provoked, whole envelopes.

Each row breaks one thing in a working installation and asks one tool. The shapes that healthy
answers must have are below, as models of the plugin design's JSON.
"""

import json
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field
from tests.embed.embedding_doubles import FakeOllama, error, fake_ollama

from obsidian_rag import config, errors
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.index import Mode, Phase, Progress
from obsidian_rag.tools import call

SEARCH = "obsidian_rag_search"
INDEX = "obsidian_rag_index"
READ = "obsidian_rag_read"
STATUS = "obsidian_rag_status"
STORE = "obsidian_rag_memory_store"
NOTES = {
    "Finance/Debts.md": "# Debts\n\nI owe Sreenivas two hundred dollars.\n",
    "Journal/2024-01-15.md": "#mentalhealth\n\nSlept badly. #therapy\n",
    "Projects/Plan.md": "# Plan\n\nDig the rain garden.\n",
    "Private/Diary.md": "---\nrag: private\n---\n# Diary\n\nzephyr thoughts\n",
}
# One passage: in a vault this small a second one would be the private note.
ASK: dict[str, object] = {"query": "rain garden", "max_results": 1}
HOLD = """
import sys
import uuid
from pathlib import Path
from obsidian_rag.store import writer_lock
with writer_lock(Path(sys.argv[1]), "reindex"):
    print("held", flush=True)
    sys.stdin.read()
"""


class Site:
    """One working installation, and the ways to break it."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.root = root
        self.home = root / "home"
        self.vault = root / "vault"
        self.settings: dict[str, object] = {"embedding.provider": "hash"}
        self.stack = stack
        self.ollama: FakeOllama | None = None
        self._server = ExitStack()
        self._engine: Engine | None = None
        for path, text in NOTES.items():
            (self.vault / path).parent.mkdir(parents=True, exist_ok=True)
            (self.vault / path).write_text(text, encoding="utf-8")

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            self.use({})
        assert self._engine is not None
        return self._engine

    def use(self, settings: Mapping[str, object]) -> None:
        """Open the installation (again) with more settings."""
        self.settings |= settings
        flags = {"vault_path": str(self.vault), **self.settings}
        flags = {key: value for key, value in flags.items() if value is not None}
        self._engine = Engine(config.load(flags, {"OBSIDIAN_RAG_HOME": str(self.home)}))
        self.stack.callback(self._engine.close)

    def index(self) -> None:
        envelope = call(self.engine, INDEX, {"mode": "full"})
        assert envelope["status"] == "healthy", envelope

    def with_ollama(self) -> FakeOllama:
        self.stack.callback(self._server.close)
        self.ollama = self._server.enter_context(fake_ollama())
        self.use(
            {
                "embedding.provider": "ollama",
                "embedding.model": "tiny",
                "embedding.base_url": self.ollama.url,
            }
        )
        return self.ollama

    def stop_ollama(self) -> None:
        self._server.close()

    @property
    def table(self) -> Path:
        (folder,) = self.home.glob("vectors.lance/obsidian_chunks.lance")
        return folder


def indexed(site: Site) -> None:
    site.index()


def nothing_indexed(_: Site) -> None:
    pass


def ollama_stopped(site: Site) -> None:
    site.with_ollama()
    site.index()
    site.stop_ollama()


def model_removed(site: Site) -> None:
    ollama = site.with_ollama()
    site.index()
    ollama.on_embed = lambda _: error(404, 'model "tiny" not found, try pulling it first')


def vectors_deleted(site: Site) -> None:
    site.index()
    shutil.rmtree(site.home / "vectors.lance")
    site.use({})


def vectors_deleted_under_an_open_engine(site: Site) -> None:
    site.index()
    assert call(site.engine, SEARCH, ASK)["status"] == "healthy"
    shutil.rmtree(site.home / "vectors.lance")


def manifests_cut_off(site: Site) -> None:
    site.index()
    for file in site.table.glob("_versions/*.manifest"):
        file.write_bytes(file.read_bytes()[:20])
    site.use({})


def data_files_cut_off(site: Site) -> None:
    site.index()
    for file in site.table.glob("data/*.lance"):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    site.use({})


def books_overwritten(site: Site) -> None:
    site.index()
    site.engine.close()
    for file in site.home.glob("state.db*"):
        file.unlink()
    (site.home / "state.db").write_bytes(b"not a database " * 500)
    site.use({})


def store_of_another_data_folder(site: Site) -> None:
    site.use({"vector_store.path": str(site.root / "shared")})
    site.index()
    (site.home / "folder-id").write_text(f"{uuid.uuid4()}\n")
    site.use({})


def withholding(site: Site) -> None:
    site.use({"security.sensitive_policy": "withhold"})
    site.index()


def embedder_changed(site: Site) -> None:
    site.index()
    site.use({"embedding.provider": "builtin"})


def server_elsewhere(site: Site) -> None:
    site.index()
    site.use({"embedding.provider": "ollama", "embedding.base_url": "http://example.com"})


def vault_moved_on(site: Site) -> None:
    site.index()
    file = site.home / "sync-result.json"
    result = json.loads(file.read_text())
    result["last_sync"] = (datetime.now(UTC) - timedelta(hours=2)).isoformat()
    file.write_text(json.dumps(result))
    (site.vault / "Projects/New.md").write_text("a new note")


def vault_emptied(site: Site) -> None:
    shutil.rmtree(site.vault)
    site.vault.mkdir()


def stopped_half_way(site: Site) -> None:
    """A first index that ended after its first group."""
    for number in range(600):
        (site.vault / f"Projects/{number}.md").write_text(f"# Note {number}\n\nthe rain garden\n")
    groups = 0

    def stop() -> bool:
        return groups > 0

    def listen(progress: Progress) -> None:
        nonlocal groups
        groups += progress.phase is Phase.STORING

    run_index(site.engine, Mode.FULL, listen, stop)


def emptied_after_indexing(site: Site) -> None:
    site.index()
    vault_emptied(site)


def vault_gone(site: Site) -> None:
    shutil.rmtree(site.vault)


def unreadable_note(site: Site) -> None:
    (site.vault / "latin.md").write_bytes(b"\xff\xfe\xfd")


def no_vault(site: Site) -> None:
    site.settings["vault_path"] = None
    site.use({})


def another_process_writes(site: Site) -> None:
    site.index()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(site.home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    site.stack.enter_context(holder)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"


@dataclass(frozen=True)
class Row:
    """What is broken, what is asked, and the envelope that must come back."""

    code: str
    broken: Callable[[Site], None]
    tool: str
    arguments: dict[str, object] = field(default_factory=dict)
    has_data: bool = False
    status: str = "unavailable"
    recoverable: bool = True
    message_has: str = ""
    never: str = ""


def refused(arguments: dict[str, object], field: str, never: str = "") -> Row:
    return Row(
        "INVALID_ARGUMENT",
        indexed,
        SEARCH,
        {**ASK, **arguments},
        status="healthy",
        message_has=field,
        never=never,
    )


def degraded(code: str, broken: Callable[[Site], None], **arguments: object) -> Row:
    return Row(code, broken, SEARCH, {**ASK, **arguments}, has_data=True, status="degraded")


def violation(tool: str, arguments: dict[str, object]) -> Row:
    return Row("SECURITY_VIOLATION", indexed, tool, arguments, status="healthy", recoverable=False)


ROWS = [
    degraded("OLLAMA_UNREACHABLE", ollama_stopped),
    degraded("PROVIDER_FAILED", model_removed),
    Row("INDEX_NOT_FOUND", nothing_indexed, SEARCH, ASK),
    Row("INDEX_NOT_FOUND", vectors_deleted, SEARCH, ASK),
    Row("INDEX_NOT_FOUND", vectors_deleted_under_an_open_engine, SEARCH, ASK),
    Row("INDEX_CORRUPTED", manifests_cut_off, SEARCH, ASK),
    Row("INDEX_CORRUPTED", data_files_cut_off, SEARCH, ASK),
    Row("INDEX_CORRUPTED", books_overwritten, SEARCH, ASK),
    Row("INDEX_CORRUPTED", books_overwritten, STATUS),
    Row("STORE_FOREIGN", store_of_another_data_folder, SEARCH, ASK),
    Row("STORE_FOREIGN", store_of_another_data_folder, INDEX, {"mode": "sync"}),
    violation(SEARCH, {**ASK, "directory_filter": ["../outside"]}),
    violation(SEARCH, {**ASK, "directory_filter": ["Projects/../../x"]}),
    violation(SEARCH, {**ASK, "directory_filter": ["Projects", "/etc"]}),
    violation(SEARCH, {**ASK, "directory_filter": ["%2e%2e/x"]}),
    violation(READ, {"note": "../outside.md"}),
    violation(READ, {"note": "/etc/passwd"}),
    violation(STORE, {"key": "k", "value": "v", "source": "../x.md"}),
    Row("SECURITY_VIOLATION", server_elsewhere, SEARCH, ASK, recoverable=False),
    Row(
        "SENSITIVE_FILTERED",
        withholding,
        SEARCH,
        {"query": "owe Sreenivas"},
        has_data=True,
        status="degraded",
        never="two hundred",
    ),
    Row(
        "SENSITIVE_FILTERED",
        indexed,
        READ,
        {"note": "Private/Diary"},
        status="degraded",
        never="zephyr",
    ),
    Row("VAULT_AWAY", emptied_after_indexing, INDEX, {"mode": "sync"}, status="degraded"),
    degraded("VAULT_AWAY", emptied_after_indexing),
    degraded("INDEX_INCOMPLETE", stopped_half_way),
    Row("INDEXER_FAILED", unreadable_note, READ, {"note": "latin.md"}),
    refused({"max_results": 0}, "'max_results'"),
    refused({"max_results": 51}, "'max_results'"),
    refused({"max_results": "51"}, "'max_results'"),
    refused({"max_results": "five"}, "'max_results'"),
    refused({"max_results": 5.5}, "'max_results'"),
    refused({"query": ""}, "'query'"),
    refused({"query": " \n\t"}, "'query'"),
    refused({"query": "q" * 2001}, "'query'"),
    refused({"query": 5}, "'query'"),
    refused({"directory_filter": ["Elsewhere"]}, "'directory_filter'", never="Finance"),
    refused({"directory_filter": ["Fin"]}, "'directory_filter'", never="Finance"),
    refused({"directory_filter": [""]}, "directory_filter"),
    refused({"directory_filter": 5}, "'directory_filter'"),
    refused({"date_range": {"from": "2024-02-30"}}, "date_range"),
    refused({"date_range": {"from": "yesterday"}}, "date_range"),
    refused({"date_range": {"to": "20240101"}}, "date_range"),
    refused({"date_range": {"from": "2024-13-01"}}, "date_range"),
    refused({"date_range": {"from": "2025-01-02", "to": "2025-01-01"}}, "date_range"),
    refused({"date_range": {"since": "2025-01-01"}}, "since"),
    refused({"date_range": "2025"}, "'date_range'"),
    refused({"tags": {"health": True}}, "'tags'"),
    refused({"tags": [1]}, "tags"),
    refused({"properties": ["rating"]}, "'properties'"),
    refused({"limit": 5}, "'limit'"),
    refused({"confirm_sensitive": "yes"}, "'confirm_sensitive'"),
    Row("INVALID_ARGUMENT", indexed, SEARCH, {}, status="healthy", message_has="'query'"),
    Row("INVALID_ARGUMENT", indexed, "obsidian_rag_delete", {}, status="healthy"),
    Row("INVALID_ARGUMENT", indexed, INDEX, {"mode": "all"}, status="healthy"),
    Row("INVALID_ARGUMENT", nothing_indexed, SEARCH, {}, message_has="'query'"),
    Row("NOT_FOUND", indexed, READ, {"note": "Absent.md"}, status="healthy"),
    Row("NOT_FOUND", embedder_changed, READ, {"note": "Absent.md"}, status="degraded"),
    Row("NOT_FOUND", vault_gone, INDEX, {"mode": "full"}),
    Row("CONFIG_INVALID", no_vault, INDEX, {"mode": "full"}),
    Row("CONFIG_INVALID", no_vault, STATUS),
    Row("CONFIG_INVALID", no_vault, READ, {"note": "a.md"}),
    degraded("EMBEDDING_MISMATCH", embedder_changed),
    degraded("INDEX_STALE", vault_moved_on),
    Row("BUSY", another_process_writes, INDEX, {"mode": "sync"}, status="healthy"),
]

CODES = {
    kind.code
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, ObsidianRagError)
}
# Codes that no tool can give yet, and why.
NOT_YET = {
    "READ_ONLY": "no tool writes into a vault yet",
    "NOTE_CHANGED": "no tool edits a note yet",
    **{
        code: "LiveSync is told by its own commands"
        for code in CODES
        if code.startswith("LIVESYNC_")
    },
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(tmp_path, stack)


def _named(row: Row) -> str:
    said = re.sub(r"[^\w.:-]+", "_", json.dumps(row.arguments))[:40]
    return f"{row.code}-{row.broken.__name__}-{row.tool.removeprefix('obsidian_rag_')}-{said}"


@pytest.mark.parametrize("row", ROWS, ids=_named)
def test_each_failure_is_told_in_one_shape(site: Site, row: Row) -> None:
    row.broken(site)
    envelope: Any = call(site.engine, row.tool, row.arguments)
    message, suggestion = envelope["error"]["message"], envelope["error"]["suggestion"]
    assert envelope == {
        "status": row.status,
        "data": envelope["data"],
        "error": {
            "code": row.code,
            "message": message,
            "recoverable": row.recoverable,
            "suggestion": suggestion,
        },
        "meta": {
            "query_time_ms": envelope["meta"]["query_time_ms"],
            "chunks_scanned": envelope["meta"]["chunks_scanned"],
            "index_version": envelope["meta"]["index_version"],
            "vault_mtime": envelope["meta"]["vault_mtime"],
        },
    }
    Envelope.model_validate(envelope)
    assert (envelope["data"] is not None) is row.has_data
    assert message.strip()
    assert suggestion.strip()
    assert row.message_has in message
    assert not row.never or row.never not in json.dumps(envelope)
    if row.tool == SEARCH and row.has_data:
        SearchData.model_validate(envelope["data"])
        assert envelope["data"]["results"]


@pytest.mark.parametrize(
    "broken", [ollama_stopped, model_removed, embedder_changed, vault_moved_on]
)
def test_a_degraded_answer_still_has_the_right_note_first(
    site: Site, broken: Callable[[Site], None]
) -> None:
    broken(site)
    data: Any = call(site.engine, SEARCH, ASK)["data"]
    assert data["results"][0]["source_file"] == "Projects/Plan.md"
    is_by_words = broken is not vault_moved_on
    shares = data["results"][0]["why"]["signals"]
    assert not (is_by_words and shares.get("vector")), "no vector could be had"


def test_confirmation_lifts_what_was_withheld(site: Site) -> None:
    withholding(site)
    arguments: dict[str, object] = {"query": "owe Sreenivas"}
    kept: Any = call(site.engine, SEARCH, arguments)["data"]
    assert kept["sensitive_detected"] is True
    assert kept["results"][0]["withheld"] is True
    assert kept["results"][0]["chunk_text"] == ""
    envelope: Any = call(site.engine, SEARCH, {**arguments, "confirm_sensitive": True})
    assert (envelope["status"], envelope["error"]) == ("healthy", None)
    assert envelope["data"]["sensitive_detected"] is True
    assert envelope["data"]["results"][0]["chunk_text"]
    assert not any(result["withheld"] for result in envelope["data"]["results"])


def test_a_reindex_repairs_a_damaged_index(site: Site) -> None:
    manifests_cut_off(site)
    assert call(site.engine, INDEX, {"mode": "reindex"})["status"] == "healthy"
    assert call(site.engine, SEARCH, ASK)["status"] == "healthy"


def test_a_returning_embedder_makes_answers_whole_again(site: Site) -> None:
    model_removed(site)
    assert call(site.engine, SEARCH, ASK)["status"] == "degraded"
    assert site.ollama is not None
    site.ollama.on_embed = site.ollama.vectors
    assert call(site.engine, SEARCH, ASK)["status"] == "healthy"


def test_a_vault_without_notes_is_searchable_once_it_was_indexed(site: Site) -> None:
    vault_emptied(site)
    site.index()
    answer: Any = call(site.engine, SEARCH, ASK)
    assert (answer["status"], answer["error"], answer["data"]["results"]) == ("healthy", None, [])
    told: Any = call(site.engine, STATUS, {})
    assert (told["status"], told["error"], told["data"]["total_docs"]) == ("healthy", None, 0)


def test_a_sync_ends_staleness(site: Site) -> None:
    vault_moved_on(site)
    assert call(site.engine, SEARCH, ASK)["status"] == "degraded"
    assert call(site.engine, INDEX, {"mode": "sync"})["status"] == "healthy"
    assert call(site.engine, SEARCH, ASK)["status"] == "healthy"


def test_an_old_index_of_an_unchanged_vault_is_healthy(site: Site) -> None:
    vault_moved_on(site)
    (site.vault / "Projects/New.md").unlink()
    assert call(site.engine, SEARCH, ASK)["status"] == "healthy"


def test_the_matrix_has_every_code_that_a_tool_can_give() -> None:
    assert {row.code for row in ROWS} | set(NOT_YET) == CODES
    assert not {row.code for row in ROWS} & set(NOT_YET)


# The shapes of seed 000. Extra fields may be added, none may be missing or of another type.


class Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class ErrorShape(Shape):
    model_config = ConfigDict(strict=True, extra="forbid")

    code: str = Field(pattern=r"^[A-Z_]+$")
    message: str = Field(min_length=1)
    recoverable: bool
    suggestion: str = Field(min_length=1)


class MetaShape(Shape):
    model_config = ConfigDict(strict=True, extra="forbid")

    query_time_ms: float = Field(ge=0)
    chunks_scanned: int = Field(ge=0)
    index_version: str
    vault_mtime: str | None


class Envelope(Shape):
    model_config = ConfigDict(strict=True, extra="forbid")

    status: Literal["healthy", "degraded", "unavailable"]
    data: object | None
    error: ErrorShape | None
    meta: MetaShape


class SearchResult(Shape):
    chunk_text: str = Field(max_length=2000)
    score: float = Field(ge=0, le=1)
    source_file: str = Field(min_length=1)
    section: str | None
    date: str | None = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    tags: list[str]
    chunk_index: int = Field(ge=0)


class Suggested(Shape):
    key: str = Field(min_length=1)
    value: str = Field(min_length=1)


class SearchData(Shape):
    results: list[SearchResult]
    sensitive_detected: bool
    memory_suggestion: Suggested | None = None


class IndexData(Shape):
    job_id: str = Field(min_length=1)
    status: Literal["started", "completed"]
    indexed_files: int = Field(ge=0)
    total_chunks: int = Field(ge=0)
    duration_ms: int = Field(ge=0)
    errors: list[object]


class StatusData(Shape):
    plugin_health: Literal["healthy", "degraded", "unavailable"]
    total_docs: int = Field(ge=0)
    total_chunks: int = Field(ge=0)
    last_sync: str | None = Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}")
    unindexed_files: int = Field(ge=0)
    ollama_status: str
    active_job: object | None


class StoreData(Shape):
    stored: Literal[True]
    key: str


SHAPES: list[tuple[str, dict[str, object], type[Shape]]] = [
    (SEARCH, {"query": "owe Sreenivas", "max_results": 1}, SearchData),
    (
        SEARCH,
        {
            "query": "how did I sleep?",
            "max_results": 50,
            "directory_filter": ["Journal"],
            "date_range": {"from": "2024-01-01", "to": "2024-12-31"},
            "tags": ["#mentalhealth"],
        },
        SearchData,
    ),
    (INDEX, {"mode": "sync"}, IndexData),
    (INDEX, {"mode": "reindex"}, IndexData),
    (STATUS, {}, StatusData),
    (STORE, {"key": "debt", "value": "200", "source": "Finance/Debts.md"}, StoreData),
]


@pytest.mark.parametrize(("tool", "arguments", "shape"), SHAPES)
def test_healthy_answers_have_the_shapes_of_the_plugin_design(
    site: Site, tool: str, arguments: dict[str, object], shape: type[Shape]
) -> None:
    site.index()
    envelope = json.loads(json.dumps(call(site.engine, tool, arguments)))
    assert (envelope["status"], envelope["error"]) == ("healthy", None)
    Envelope.model_validate(envelope)
    shape.model_validate(envelope["data"])
    if shape is SearchData:
        assert envelope["data"]["results"]
        assert envelope["meta"]["chunks_scanned"] > 0
    if shape is StatusData:
        StatusData.model_validate(envelope["data"])
        assert (envelope["data"]["total_docs"], envelope["data"]["unindexed_files"]) == (4, 0)


def test_the_example_of_the_plugin_design_is_answered_field_by_field(site: Site) -> None:
    site.index()
    arguments: dict[str, object] = {"query": "slept badly", "max_results": 1}
    data: Any = call(site.engine, SEARCH, arguments)["data"]
    (result,) = data["results"]
    assert (result["source_file"], result["date"]) == ("Journal/2024-01-15.md", "2024-01-15")
    assert result["section"] == "#mentalhealth"
    assert result["tags"] == ["#mentalhealth", "#therapy"]
    assert result["chunk_index"] == 0
    assert data["sensitive_detected"] is True
