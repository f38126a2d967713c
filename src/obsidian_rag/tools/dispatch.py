"""Calls tools for every door, and turns their failures into envelopes.

Threat: arguments come from a model that may have read a hostile note. So each tool takes exactly
its own parameters, of their types (a number or a list may be written as a string), and an
unexpected failure reports only its type, because its text may quote a note.
"""

import contextlib
import functools
import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from obsidian_rag.engine import Engine, health_of, index_stamp
from obsidian_rag.errors import (
    ErrorBody,
    InvalidArgument,
    ObsidianRagError,
    Status,
    unexpected,
    worse,
)
from obsidian_rag.tools.access import check_may_call, with_known_vaults, without_installation
from obsidian_rag.tools.envelope import NO_META, Envelope, Meta, failure, success
from obsidian_rag.tools.guard import AGENT, Caller

Schema = dict[str, Any]
_LENGTH_LIMITS = {"minLength", "maxLength"}
_MAX_NAME_CHARS = 1000
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")


def parameters_schema(params: type[BaseModel]) -> Schema:
    """The schema shown to agents. The model also accepts null where that is the default."""
    whole = params.model_json_schema()
    definitions = whole.pop("$defs", {})
    whole.pop("description", None)
    short = _shorten(whole, definitions)
    return {**short, "properties": short.get("properties", {})}


def accept_strings(params: type[BaseModel], arguments: Mapping[str, object]) -> dict[str, object]:
    """Convert "5" to 5 and "x" to ["x"] where the schema asks for it: models write both."""
    types = _types(params)
    return {
        name: _convert(value, types.get(name, frozenset())) if isinstance(value, str) else value
        for name, value in arguments.items()
    }


@functools.cache
def _types(params: type[BaseModel]) -> dict[str, frozenset[str]]:
    fields: dict[str, Schema] = params.model_json_schema().get("properties", {})
    return {
        name: frozenset(kind.get("type", "") for kind in (field, *field.get("anyOf", ())))
        for name, field in fields.items()
    }


def _convert(text: str, types: frozenset[str]) -> object:
    if "string" in types:
        return text
    if "integer" in types and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in types and _NUMBER.fullmatch(text):
        return float(text)
    return _to_list(text) if "array" in types else text


def _to_list(text: str) -> list[object]:
    """Parse a JSON list of strings; any other text becomes a list of one."""
    if text.startswith("["):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return [text]
        if isinstance(found, list) and all(isinstance(one, str) for one in found):
            return found
    return [text]


def _shorten(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        return _shorten(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    short = {name: value for name, value in schema.items() if name not in ("title", "anyOf")}
    if "anyOf" in schema:
        kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
        if len(kinds) == 1:
            described = {"description": short["description"]} if "description" in short else {}
            return {**_shorten(kinds[0], definitions), **described}
        short["anyOf"] = [_shorten(kind, definitions) for kind in kinds]
    if short.get("maxLength", _MAX_NAME_CHARS + 1) <= _MAX_NAME_CHARS:
        short = {name: value for name, value in short.items() if name not in _LENGTH_LIMITS}
    if short.get("default", ...) is None:
        del short["default"]
    if "properties" in short:
        short["properties"] = {
            name: _shorten(field, definitions) for name, field in short["properties"].items()
        }
    if isinstance(short.get("items"), dict):
        items = _shorten(short["items"], definitions)
        short["items"] = {name: items[name] for name in items if name not in _LENGTH_LIMITS}
        short.pop("maxItems", None)
    return short


_TOOLS = {
    "index": 'obsidian_rag_index with mode "full"',
    "sync": 'obsidian_rag_index with mode "sync"',
    "reindex": 'obsidian_rag_index with mode "reindex"',
    "status": "obsidian_rag_status",
    "livesync status": "obsidian_sync_status",
    "link list": "obsidian_link_list",
}
_TOOLS_OF_LINK = {
    "link add": 'obsidian_link_add with root_path "{name}"',
    "link resume": 'obsidian_link_set_mode with link_id "{name}" and paused false',
    "link pause": 'obsidian_link_set_mode with link_id "{name}" and paused true',
    "link sync": 'obsidian_sync_now with link_id "{name}"',
    "link status": 'obsidian_link_sync_status with link_id "{name}"',
    "link remove": 'obsidian_link_remove with link_id "{name}"',
}
_COMMAND = re.compile(r"(?:\b(?P<run>[Rr]un) )?(?P<whole>`obsidian-rag (?P<words>[^`]+)`)")
_ERROR_FIELDS = set(ErrorBody.__annotations__)


def for_agents(envelope: Envelope) -> Envelope:
    """Rewrite suggestions as steps an agent can take, also in errors inside the data."""
    error = envelope["error"]
    return {
        **envelope,
        "data": _rewrite(envelope["data"]),
        "error": _rewrite_error(error) if error else None,
    }


def _rewrite(data: object) -> object:
    if isinstance(data, Mapping):
        if data.keys() == _ERROR_FIELDS:
            return {**data, "suggestion": _for_agent(str(data["suggestion"]))}
        return {name: _rewrite(value) for name, value in data.items()}
    return [_rewrite(one) for one in data] if isinstance(data, list) else data


def _rewrite_error(error: ErrorBody) -> ErrorBody:
    return {**error, "suggestion": _for_agent(error["suggestion"])}


def _for_agent(suggestion: str) -> str:
    text = _COMMAND.sub(_step, suggestion)
    if "`obsidian-rag " in text and "sk the user" not in text:
        text += " Only the user can run commands."
    return text


def _step(found: re.Match[str]) -> str:
    tool = _tool_for(found["words"])
    if found["run"] is None:
        return tool or found["whole"]
    step = f"call {tool}" if tool else f"ask the user to run {found['whole']}"
    return step[0].upper() + step[1:] if found["run"] == "Run" else step


def _tool_for(words: str) -> str | None:
    group, _, rest = words.partition(" ")
    verb, _, name = rest.partition(" ")
    of_link = _TOOLS_OF_LINK.get(f"{group} {verb}") if name else None
    return of_link.format(name=name) if of_link else _TOOLS.get(words)


_MAX_PROBLEMS = 5
_OUT_OF_RANGE = {
    "greater_than_equal",
    "less_than_equal",
    "string_too_short",
    "string_too_long",
}
_REPORT = "Try again; if it happens again, the log has the details to report."
_log = logging.getLogger(__name__)


class Params(BaseModel):
    """What a tool is asked; every field has a description for agents."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class NoParams(Params):
    """Nothing to choose."""


P = TypeVar("P", bound=Params)


@dataclass(frozen=True, slots=True)
class Tool(Generic[P]):
    """A tool, the same for every door. `run` raises; `call` always returns an envelope."""

    name: str
    description: str
    params: type[P]
    run: Callable[[Engine, P, Caller], Envelope]
    is_read_only: bool
    # It shows or changes more than single notes, so limited callers may not use it.
    is_of_installation: bool = False
    # Its answer already contains the health, perhaps from a closer check.
    reports_health: bool = False
    # It deletes something: clients ask the user first.
    is_destructive: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its parameters."""
        return parameters_schema(self.params)

    def __call__(self, engine: Engine, params: P | None = None, caller: Caller = AGENT) -> Envelope:
        """Run it; raises what the tool raises."""
        return self.run(engine, self.params() if params is None else params, caller)


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a tool, before it becomes an envelope."""

    data: object
    trouble: ObsidianRagError | None = None
    status: Status | None = None
    chunks_scanned: int = 0


def tool(
    name: str,
    description: str,
    params: type[P],
    *,
    is_read_only: bool,
    is_of_installation: bool = False,
    reports_health: bool = False,
    is_destructive: bool = False,
) -> Callable[[Callable[[Engine, P, Caller], Found]], Tool[P]]:
    """Turn a function into a tool, and add the metadata to its envelope."""

    def decorate(find: Callable[[Engine, P, Caller], Found]) -> Tool[P]:
        def run(engine: Engine, asked: P, caller: Caller) -> Envelope:
            started = time.perf_counter()
            found = find(engine, asked, caller)
            meta = answer_meta(engine, started, found.chunks_scanned)
            return success(found.data, meta, found.trouble, found.status)

        return Tool(
            name,
            description,
            params,
            run,
            is_read_only,
            is_of_installation,
            reports_health,
            is_destructive,
        )

    return decorate


TOOLS: dict[str, Tool[Any]] = {}
# Only for the owner of the notes: no door lists them, and agents cannot call them.
OWNER_TOOLS: dict[str, Tool[Any]] = {}


def register(*tools: Tool[Any], for_owner: bool = False) -> None:
    """Register tools. Only `obsidian_rag.tools` does this, so the list is in one place."""
    registry = OWNER_TOOLS if for_owner else TOOLS
    for tool in tools:
        if tool.name in TOOLS or tool.name in OWNER_TOOLS:
            raise ValueError(f"two tools are called {tool.name}")
        registry[tool.name] = tool


def find_tool(name: str, caller: Caller) -> Tool[Any] | None:
    """The tool of this name, if the caller may use it."""
    return TOOLS.get(name) or (OWNER_TOOLS.get(name) if caller.is_owner else None)


def call(
    engine: Engine, name: str, arguments: Mapping[str, object], caller: Caller = AGENT
) -> Envelope:
    """Call a tool. The answer is always an envelope, also after a failure."""
    envelope = _run_or_fail(engine, name, arguments, caller)
    if caller.is_limited:
        envelope = without_installation(envelope)
    return envelope if caller.is_owner else for_agents(envelope)


def _run_or_fail(
    engine: Engine, name: str, arguments: Mapping[str, object], caller: Caller
) -> Envelope:
    started = time.perf_counter()
    try:
        return run(engine, name, arguments, caller)
    except ObsidianRagError as error:
        return failure(error, answer_meta(engine, started))
    except Exception as error:  # noqa: BLE001  (the outer edge of every door)
        _log.exception("%s failed", name)
        return failure(unexpected(error, _REPORT), answer_meta(engine, started))


def run(
    engine: Engine, name: str, arguments: Mapping[str, object], caller: Caller = AGENT
) -> Envelope:
    """Call a tool, for doors that handle failures themselves.

    Raises:
        InvalidArgument: there is no such tool, or the arguments do not fit it.
        ReadOnly, NotFound: the caller may not do it (see `access`).
        ObsidianRagError: the tool failed; the status is the engine's health.
    """
    try:
        tool = find_tool(name, caller)
        if tool is None:
            raise InvalidArgument(
                f"No tool is called {_quote(name)}.", f"The tools are: {', '.join(TOOLS)}."
            )
        check_may_call(tool.name, caller, tool.is_read_only, tool.is_of_installation)
        with engine.one_set_of_settings():
            params = parse(tool.params, arguments)
            envelope = tool.run(engine, params, with_known_vaults(engine, caller))
    except ObsidianRagError as error:
        error.status = _status_after(engine, error)
        raise
    return envelope if tool.reports_health else with_health(engine, envelope)


def _status_after(engine: Engine, error: ObsidianRagError) -> Status:
    """The engine's health. A wrong call does not change it; other failures can worsen it."""
    try:
        state = health_of(engine).state
    except ObsidianRagError as trouble:  # no vault is configured
        state = trouble.status
    return state if error.is_about_call else worse(state, error.status)


def with_health(engine: Engine, envelope: Envelope) -> Envelope:
    """Add the engine's health. An error of the answer itself takes precedence."""
    health = health_of(engine)
    trouble = health.error.body if health.error else None
    return Envelope(
        status=worse(envelope["status"], health.state),
        data=envelope["data"],
        error=envelope["error"] or trouble,
        meta=envelope["meta"],
    )


def parse(params: type[P], arguments: Mapping[str, object]) -> P:
    """Validate the arguments of a tool.

    Raises:
        InvalidArgument: they do not fit; the message names each field and what it allows.
    """
    try:
        # From JSON, strict mode accepts a list as a tuple, but still not "yes" as true.
        return params.model_validate_json(
            json.dumps(accept_strings(params, arguments), allow_nan=False)
        )
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        problems = [_problem(params, detail) for detail in details[:_MAX_PROBLEMS]]
        raise InvalidArgument(
            "; ".join(problems) + ".", f"The parameters are: {_parameter_names(params)}."
        ) from None
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgument(
            "The arguments are not a JSON object.",
            f"The parameters are: {_parameter_names(params)}.",
        ) from None


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON schema of each tool's parameters, by tool."""
    return {name: tool.schema for name, tool in TOOLS.items()}


def answer_meta(engine: Engine, started: float, chunks_scanned: int = 0) -> Meta:
    """Metadata of an answer; `started` comes from `time.perf_counter`.

    If the index cannot be read, the defaults stay: some answers need no index.
    """
    version, newest = NO_META["index_version"], NO_META["vault_mtime"]
    with contextlib.suppress(ObsidianRagError):
        if engine.parts.file.exists:  # reading must not create the file
            version, newest = index_stamp(engine)
    return Meta(
        query_time_ms=round((time.perf_counter() - started) * 1000, 1),
        chunks_scanned=chunks_scanned,
        index_version=version,
        vault_mtime=newest,
    )


def _problem(params: type[Params], detail: ErrorDetails) -> str:
    name = ".".join(str(part) for part in detail["loc"])
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        return f"There is no parameter {_quote(name)}; allowed are {_parameter_names(params)}"
    if not name:
        return message
    return f"Parameter '{name}' {_requirement(params, detail, message)}"


def _requirement(params: type[Params], detail: ErrorDetails, message: str) -> str:
    """What a parameter must be, as the rest of the sentence "Parameter 'x' …"."""
    if detail["type"] == "missing":
        return "is required"
    allowed = _allowed_range(params, str(detail["loc"][0]))
    if allowed and detail["type"] in _OUT_OF_RANGE:
        return f"must be {allowed}"
    if message.startswith("Input should "):
        return f"must {message.removeprefix('Input should ')}"
    return message if message.startswith("must ") else f"is wrong: {message}"


def _parameter_names(params: type[Params]) -> str:
    return ", ".join(params.model_json_schema().get("properties", {})) or "none"


def _allowed_range(params: type[Params], name: str) -> str:
    """The range of a parameter in words, if it has one."""
    field = params.model_json_schema()["properties"].get(name, {})
    kinds = [field, *field.get("anyOf", ())]
    found: dict[str, object] = {key: value for kind in kinds for key, value in kind.items()}
    for low, high, unit in (("minimum", "maximum", ""), ("minLength", "maxLength", " characters")):
        if low in found and high in found:
            return f"{found[low]} to {found[high]}{unit}"
    return ""


def _quote(name: str) -> str:
    return f"'{name[:60]}'"
