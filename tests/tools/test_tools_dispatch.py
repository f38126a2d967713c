"""The way from a door to a tool: what is refused, and that every answer is an envelope."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fixture_types import MakeEngine, MakeVault

from obsidian_rag import config, errors
from obsidian_rag.engine import Engine
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.tools import OWNER, TOOLS, Caller, Envelope, Tool, call
from obsidian_rag.tools.dispatch import Params, parse, register, schemas

READ = "obsidian_rag_read"
SEARCH = "obsidian_rag_search"
STORE = "obsidian_rag_memory_store"
RECALL = "obsidian_rag_memory_recall"
INDEX = "obsidian_rag_index"
STATUS = "obsidian_rag_status"
FACT = {"key": "k", "value": "v", "source": "a.md"}
KINDS = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, ObsidianRagError)
]

# tool, arguments, the field that the message names, what it says is allowed
REFUSED: list[tuple[str, dict[str, object], str, str]] = [
    (STATUS, {"verbose": True}, "verbose", "none"),
    (INDEX, {}, "mode", "required"),
    (INDEX, {"mode": "everything"}, "mode", "'full', 'sync' or 'reindex'"),
    (INDEX, {"mode": "FULL"}, "mode", "'full', 'sync' or 'reindex'"),
    (INDEX, {"mode": None}, "mode", "'full', 'sync' or 'reindex'"),
    (INDEX, {"mode": 1}, "mode", "'full', 'sync' or 'reindex'"),
    (INDEX, {"mode": "sync", "force": True}, "force", "mode"),
    (STORE, {"key": "k", "value": "v"}, "source", "required"),
    (STORE, {"value": "v", "source": "a.md"}, "key", "required"),
    (STORE, {"key": "k", "source": "a.md"}, "value", "required"),
    (STORE, {**FACT, "key": ""}, "key", "1 to 200 characters"),
    (STORE, {**FACT, "key": " \n"}, "key", "1 to 200 characters"),
    (STORE, {**FACT, "key": "k" * 201}, "key", "1 to 200 characters"),
    (STORE, {**FACT, "key": 5}, "key", "valid string"),
    (STORE, {**FACT, "value": ""}, "value", "1 to 10000 characters"),
    (STORE, {**FACT, "value": "v" * 10_001}, "value", "1 to 10000 characters"),
    (STORE, {**FACT, "value": None}, "value", "valid string"),
    (STORE, {**FACT, "source": ""}, "source", "1 to 1000 characters"),
    (STORE, {**FACT, "source": "s" * 1001}, "source", "1 to 1000 characters"),
    (STORE, {**FACT, "source": ["a.md"]}, "source", "valid string"),
    (STORE, {**FACT, "sources": "a.md"}, "sources", "key, value, source"),
    (RECALL, {}, "query", "'key'"),
    (RECALL, {"query": ""}, "query", "1 to 2000 characters"),
    (RECALL, {"query": "q" * 2001}, "query", "1 to 2000 characters"),
    (RECALL, {"key": ""}, "key", "1 to 200 characters"),
    (RECALL, {"query": "q", "limit": 0}, "limit", "1 to 50"),
    (RECALL, {"query": "q", "limit": 51}, "limit", "1 to 50"),
    (RECALL, {"query": "q", "limit": "51"}, "limit", "1 to 50"),
    (RECALL, {"query": "q", "limit": "5.5"}, "limit", "valid integer"),
    (RECALL, {"query": "q", "limit": "five"}, "limit", "valid integer"),
    (RECALL, {"query": "q", "limit": "\u0665"}, "limit", "valid integer"),
    (RECALL, {"query": "q", "limit": "5" * 5000}, "limit", "valid integer"),
    (RECALL, {"query": "q", "limit": True}, "limit", "valid integer"),
    (RECALL, {"query": "q", "limit": 5.5}, "limit", "valid integer"),
    (RECALL, {"query": "q", "limit": None}, "limit", "valid integer"),
    (READ, {}, "note", "required"),
    (READ, {"note": ""}, "note", "1 to 1000 characters"),
    (READ, {"note": "n" * 1001}, "note", "1 to 1000 characters"),
    (READ, {"note": "a.md", "heading": ""}, "heading", "1 to 500 characters"),
    (READ, {"note": "a.md", "start_line": 0}, "start_line", "greater than or equal to 1"),
    (READ, {"note": "a.md", "start_line": "0"}, "start_line", "greater than or equal to 1"),
    (READ, {"note": "a.md", "end_line": -1}, "end_line", "greater than or equal to 1"),
    (READ, {"note": "a.md", "start_line": 3, "end_line": 2}, "end_line", "start_line"),
    (READ, {"note": "a.md", "heading": "A", "start_line": 1}, "heading", "start_line"),
    (READ, {"note": "a.md", "max_chars": 99}, "max_chars", "100 to 100000"),
    (READ, {"note": "a.md", "max_chars": 100_001}, "max_chars", "100 to 100000"),
    (READ, {"note": "a.md", "confirm_sensitive": 1}, "confirm_sensitive", "valid boolean"),
    (READ, {"note": "a.md", "confirm_sensitive": "true"}, "confirm_sensitive", "valid boolean"),
    (READ, {"note": "a.md", "is_owner": True}, "is_owner", "note, vault, heading"),
]

# The edges of every range, which must be let in.
ACCEPTED: list[tuple[str, dict[str, object]]] = [
    (STORE, {"key": "k" * 200, "value": "v" * 10_000, "source": "s" * 1000}),
    (RECALL, {"query": "q" * 2000, "limit": 1}),
    (RECALL, {"key": "k", "limit": 50}),
    (READ, {"note": "a", "max_chars": 100, "start_line": 1, "end_line": 1}),
    (READ, {"note": "a", "max_chars": 100_000, "heading": None, "start_line": None}),
    (INDEX, {"mode": "reindex"}),
    (STATUS, {}),
]


def assert_complete(envelope: Envelope) -> None:
    assert set(envelope) == {"status", "data", "error", "meta"}
    assert set(envelope["meta"]) == {
        "query_time_ms",
        "chunks_scanned",
        "index_version",
        "vault_mtime",
    }
    error = envelope["error"]
    assert error is not None
    assert set(error) == {"code", "message", "recoverable", "suggestion"}
    assert envelope["data"] is None
    json.dumps(envelope)


@pytest.fixture
def made(engine: MakeEngine, make_vault: MakeVault) -> Engine:
    return engine(make_vault({"a.md": "# A\n\ntext"}))


@contextmanager
def added(tool: Tool[Any]) -> Iterator[None]:
    register(tool)
    try:
        yield
    finally:
        del TOOLS[tool.name]


@pytest.mark.parametrize(("tool", "arguments", "field", "allowed"), REFUSED)
def test_a_wrong_argument_is_refused_by_name(
    made: Engine, home: Path, tool: str, arguments: dict[str, object], field: str, allowed: str
) -> None:
    envelope = call(made, tool, arguments)
    assert_complete(envelope)
    error: Any = envelope["error"]
    assert error["code"] == "INVALID_ARGUMENT"
    assert f"'{field}'" in error["message"]
    assert allowed in error["message"]
    assert not (home / "state.db").exists(), "nothing is opened for a question that is not one"


@pytest.mark.parametrize(("tool", "arguments"), ACCEPTED)
def test_the_edges_of_each_range_are_let_in(tool: str, arguments: dict[str, object]) -> None:
    parse(TOOLS[tool].params, arguments)


@pytest.mark.parametrize(
    ("tool", "written", "meant"),
    [
        (RECALL, {"query": "q", "limit": "5"}, {"query": "q", "limit": 5}),
        (READ, {"note": "a.md", "start_line": "2"}, {"note": "a.md", "start_line": 2}),
        (READ, {"note": "5", "heading": "[1]"}, {"note": "5", "heading": "[1]"}),
        (SEARCH, {"query": "5", "max_results": "7"}, {"query": "5", "max_results": 7}),
        (SEARCH, {"query": "q", "tags": "health"}, {"query": "q", "tags": ["health"]}),
        (SEARCH, {"query": "q", "tags": '["a", "b"]'}, {"query": "q", "tags": ["a", "b"]}),
        (SEARCH, {"query": "q", "tags": "[a"}, {"query": "q", "tags": ["[a"]}),
        (SEARCH, {"query": "q", "tags": "[1]"}, {"query": "q", "tags": ["[1]"]}),
        (
            SEARCH,
            {"query": "q", "directory_filter": "A, B"},
            {"query": "q", "directory_filter": ["A, B"]},
        ),
    ],
)
def test_a_number_or_a_list_may_be_written_as_a_string(
    tool: str, written: dict[str, object], meant: dict[str, object]
) -> None:
    params = TOOLS[tool].params
    assert parse(params, written) == parse(params, meant)


def test_several_wrong_arguments_are_named_together(made: Engine) -> None:
    error: Any = call(made, STORE, {"key": "", "extra": 1})["error"]
    for field in ("'key'", "'value'", "'source'", "'extra'"):
        assert field in error["message"]


def test_what_was_given_is_not_repeated_in_the_message(made: Engine) -> None:
    error: Any = call(made, STORE, {**FACT, "value": "my secret " * 2000})["error"]
    assert "secret" not in json.dumps(error)


@pytest.mark.parametrize(
    "arguments",
    [{"query": "\ud800"}, {"query": float("nan")}, {"query": b"bytes"}, {"query": {1, 2}}, {1: 2}],
    ids=["surrogate", "nan", "bytes", "set", "number as name"],
)
def test_arguments_that_are_no_json_are_refused(made: Engine, arguments: Any) -> None:
    envelope = call(made, RECALL, arguments)
    assert_complete(envelope)
    assert envelope["error"] is not None
    assert envelope["error"]["code"] == "INVALID_ARGUMENT"


def test_an_unknown_tool_is_refused_and_the_known_ones_are_told(made: Engine) -> None:
    envelope = call(made, "obsidian_rag_delete_everything", {})
    assert_complete(envelope)
    error: Any = envelope["error"]
    assert error["code"] == "INVALID_ARGUMENT"
    assert READ in error["suggestion"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_code_comes_through_as_a_complete_envelope(
    made: Engine, kind: type[ObsidianRagError]
) -> None:
    def fail(_: Engine, __: Params, ___: Caller) -> Envelope:
        raise kind("A sentence.", "A step.")

    call(made, INDEX, {"mode": "full"})
    with added(Tool("failing", "It fails", Params, fail, is_read_only=True)):
        envelope = call(made, "failing", {})
    assert_complete(envelope)
    assert envelope["status"] == ("healthy" if kind.is_about_call else kind.status)
    assert envelope["error"] == {
        "code": kind.code,
        "message": "A sentence.",
        "recoverable": kind.recoverable,
        "suggestion": "A step.",
    }


def test_an_unexpected_failure_is_logged_and_answered_without_its_text(
    made: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Engine, __: Params, ___: Caller) -> Envelope:
        raise KeyError("words of a private note")

    with (
        added(Tool("failing", "It fails", Params, fail, is_read_only=True)),
        caplog.at_level(logging.ERROR),
    ):
        envelope = call(made, "failing", {})
    assert_complete(envelope)
    error: Any = envelope["error"]
    assert error["code"] == "INDEXER_FAILED"
    assert envelope["status"] == "unavailable"
    assert "private note" not in json.dumps(envelope)
    assert "Traceback" not in json.dumps(envelope)
    assert "words of a private note" in caplog.text


def test_a_missing_vault_setting_comes_through() -> None:
    engine = Engine(config.load())
    envelope = call(engine, STATUS, {})
    assert_complete(envelope)
    assert envelope["error"] is not None
    assert envelope["error"]["code"] == "CONFIG_INVALID"


def test_damaged_books_come_through(made: Engine, home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "state.db").write_bytes(b"not a database " * 500)
    envelope = call(made, STATUS, {})
    assert_complete(envelope)
    assert (envelope["status"], envelope["error"] and envelope["error"]["code"]) == (
        "unavailable",
        "INDEX_CORRUPTED",
    )


def test_two_tools_cannot_have_one_name() -> None:
    with pytest.raises(ValueError, match=READ):
        register(TOOLS[READ])


def test_every_tool_and_parameter_is_explained_to_agents() -> None:
    assert set(TOOLS) >= {STATUS, INDEX, READ, STORE, RECALL}
    for name, schema in schemas().items():
        assert TOOLS[name].name == name
        assert len(TOOLS[name].description) > 40
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        for parameter in schema.get("properties", {}).values():
            assert parameter["description"]
        json.dumps(schema)


def test_tools_that_change_something_say_so() -> None:
    changing = {name for name, tool in TOOLS.items() if not tool.is_read_only}
    assert changing >= {INDEX, STORE}
    assert not changing & {STATUS, READ, RECALL}


def test_the_parameters_of_the_design_are_in_the_schemas() -> None:
    listed = schemas()
    assert listed[STATUS].get("properties", {}) == {}
    assert listed[INDEX]["required"] == ["mode"]
    assert listed[INDEX]["properties"]["mode"]["enum"] == ["full", "sync", "reindex"]
    assert listed[STORE]["required"] == ["key", "value", "source"]


@pytest.mark.parametrize("mode", ["full", "sync", "reindex"])
def test_the_index_tool_runs_a_job_to_its_end(made: Engine, mode: str) -> None:
    envelope = call(made, INDEX, {"mode": mode})
    data: Any = envelope["data"]
    assert (envelope["status"], envelope["error"]) == ("healthy", None)
    assert (data["status"], data["mode"]) == ("completed", mode)
    assert (data["indexed_files"], data["total_chunks"], data["errors"]) == (1, 1, [])
    assert data["duration_ms"] >= 0
    assert len(data["job_id"]) == 36
    assert envelope["meta"]["index_version"] == "1"


def test_the_index_tool_names_the_notes_that_failed_to_the_owner_alone(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"good.md": "text", "bad.md": b"\xff"}))
    data: Any = call(made, INDEX, {"mode": "full"}, OWNER)["data"]
    assert data["indexed_files"] == 1
    assert [failure["file"] for failure in data["errors"]] == ["bad.md"]
    # Nobody knows what a file allows that cannot be read.
    told: Any = call(made, INDEX, {"mode": "full"})["data"]
    assert (told["indexed_files"], told["errors"]) == (1, [])


def test_an_agent_without_an_index_is_told_which_tool_makes_one(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"A.md": "text"}))
    to_agent = call(made, "obsidian_rag_search", {"query": "text"})["error"]
    to_owner = call(made, "obsidian_rag_search", {"query": "text"}, OWNER)["error"]
    assert to_agent is not None
    assert to_owner is not None
    assert to_agent["suggestion"] == 'Call obsidian_rag_index with mode "full".'
    assert to_owner["suggestion"] == "Run `obsidian-rag index`."


def test_an_agent_cannot_say_that_notes_are_gone_and_is_told_who_can(made: Engine) -> None:
    arguments = {"mode": "sync", "accept_removals": True}
    error = call(made, "obsidian_rag_index", arguments)["error"]
    assert error is not None
    assert error["suggestion"] == "Ask the user to run `obsidian-rag sync --accept-removals`."
