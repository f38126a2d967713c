"""The one shape of every answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.fixture_types import MakeEngine, MakeVault

from obsidian_rag import errors
from obsidian_rag.engine import run_index
from obsidian_rag.errors import IndexCorrupted, ObsidianRagError, OllamaUnreachable
from obsidian_rag.index import Mode
from obsidian_rag.tools import Envelope, failure, success, to_json
from obsidian_rag.tools.envelope import Meta
from obsidian_rag.tools.index import status

SEED_STATUS_FIELDS = {
    "plugin_health",
    "total_docs",
    "total_chunks",
    "last_sync",
    "unindexed_files",
    "ollama_status",
    "active_job",
}
KINDS = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, ObsidianRagError)
]


def assert_shape(envelope: Envelope) -> None:
    assert set(envelope) == {"status", "data", "error", "meta"}
    assert envelope["status"] in ("healthy", "degraded", "unavailable")
    assert set(envelope["meta"]) == {
        "query_time_ms",
        "chunks_scanned",
        "index_version",
        "vault_mtime",
    }
    if envelope["error"] is not None:
        assert set(envelope["error"]) == {"code", "message", "recoverable", "suggestion"}
    assert (envelope["error"] is None) == (envelope["status"] == "healthy")


def test_a_good_answer_has_data_and_no_error() -> None:
    meta = Meta(query_time_ms=1.5, chunks_scanned=3, index_version="7", vault_mtime=None)
    assert success({"a": 1}, meta) == {
        "status": "healthy",
        "data": {"a": 1},
        "error": None,
        "meta": {
            "query_time_ms": 1.5,
            "chunks_scanned": 3,
            "index_version": "7",
            "vault_mtime": None,
        },
    }


def test_a_degraded_answer_has_data_and_an_error() -> None:
    envelope = success({"a": 1}, trouble=OllamaUnreachable("It is down.", "Start it."))
    assert_shape(envelope)
    assert envelope["data"] == {"a": 1}
    assert envelope["status"] == "degraded"
    assert envelope["error"] == {
        "code": "OLLAMA_UNREACHABLE",
        "message": "It is down.",
        "recoverable": True,
        "suggestion": "Start it.",
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_failure_has_the_same_shape_and_no_data(kind: type[ObsidianRagError]) -> None:
    envelope = failure(kind("A sentence.", "A step."))
    assert_shape(envelope)
    assert envelope["data"] is None
    assert envelope["status"] == kind.status


def test_the_status_tool_answers_with_the_fields_of_the_design(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": "# A\n\ntext"}))
    before = status(made)
    assert_shape(before)
    assert before["status"] == "unavailable"
    assert before["error"] is not None
    assert before["error"]["code"] == "INDEX_NOT_FOUND"
    run_index(made, Mode.FULL)
    after = status(made)
    assert_shape(after)
    data: Any = after["data"]
    assert set(data) >= SEED_STATUS_FIELDS
    assert (data["plugin_health"], data["total_docs"], data["total_chunks"]) == ("healthy", 1, 1)
    assert (data["unindexed_files"], data["ollama_status"], data["active_job"]) == (
        0,
        "not_used",
        None,
    )
    assert after["status"] == "healthy"
    assert after["meta"]["index_version"] == "1"
    assert after["meta"]["vault_mtime"] is not None


def test_the_status_tool_fails_with_a_code_when_the_books_cannot_be_read(
    engine: MakeEngine,
    make_vault: MakeVault,
    home: Path,
) -> None:
    made = engine(make_vault({}))
    (home / "state.db").write_bytes(b"not a database " * 500)
    with pytest.raises(IndexCorrupted):
        status(made)


@dataclass(frozen=True, slots=True)
class Shelf:
    """A value with everything that values of ours have."""

    is_open: bool
    books: tuple["Shelf", ...] = ()
    place: Path = Path("a/b")
    since: date = date(2024, 1, 15)
    share: float = 0.5
    error: ObsidianRagError | None = None
    notes: Mapping[int, str | None] = field(default_factory=dict)


def test_a_value_as_json_keeps_numbers_and_writes_the_rest_as_text() -> None:
    assert to_json([Shelf(True, books=(Shelf(False),), notes={1: None})]) == [
        {
            "is_open": True,
            "books": [{**to_json(Shelf(False)), "is_open": False, "books": []}],
            "place": str(Path("a/b")),
            "since": "2024-01-15",
            "share": 0.5,
            "error": None,
            "notes": {"1": None},
        }
    ]


def test_fields_are_renamed_or_left_out_at_every_depth() -> None:
    names = {"is_open": "open", "place": None, "since": None, "share": None, "notes": None}
    broken = IndexCorrupted("The index is damaged.", "Run `obsidian-rag reindex`.")
    assert to_json(Shelf(True, books=(Shelf(False),), error=broken), names) == {
        "open": True,
        "books": [{"open": False, "books": [], "error": None}],
        "error": broken.body,
    }
