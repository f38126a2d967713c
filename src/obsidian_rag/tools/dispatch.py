"""The one way from a door to a tool, and the one place where failures become envelopes.

Threat: arguments come from a model that may have read a hostile note. So each tool takes exactly
its own parameters, of exactly their types, and an unexpected failure tells its kind only: its
text may quote a note.
"""

import contextlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from obsidian_rag.engine import Engine, health_of, index_stamp
from obsidian_rag.errors import InvalidArgument, ObsidianRagError, Status, unexpected, worse
from obsidian_rag.tools.access import check_may_call, with_known_vaults, without_installation
from obsidian_rag.tools.envelope import NO_META, Envelope, Meta, failure, success
from obsidian_rag.tools.guard import AGENT, Caller
from obsidian_rag.tools.next_step import for_agents
from obsidian_rag.tools.schema import parameters_schema

_MOST_PROBLEMS = 5
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
    """A tool as every door offers it. `run` raises; `call` answers."""

    name: str
    description: str
    params: type[P]
    run: Callable[[Engine, P, Caller], Envelope]
    is_read_only: bool
    # It tells of, or changes, more than some notes: nothing for a caller that is limited to them.
    is_of_installation: bool = False
    # Its answer has the health already: it needed it, or took a closer look than others.
    tells_health: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its parameters."""
        return parameters_schema(self.params)

    def __call__(self, engine: Engine, params: P | None = None, caller: Caller = AGENT) -> Envelope:
        """Ask it; raises what the tool raises."""
        return self.run(engine, self.params() if params is None else params, caller)


@dataclass(frozen=True, slots=True)
class Found:
    """What a tool has to say."""

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
    tells_health: bool = False,
) -> Callable[[Callable[[Engine, P, Caller], Found]], Tool[P]]:
    """Make a tool of a function: its envelope tells how long it took, and from what."""

    def made(find: Callable[[Engine, P, Caller], Found]) -> Tool[P]:
        def run(engine: Engine, asked: P, caller: Caller) -> Envelope:
            started = time.perf_counter()
            found = find(engine, asked, caller)
            meta = answer_meta(engine, started, found.chunks_scanned)
            return success(found.data, meta, found.trouble, found.status)

        return Tool(name, description, params, run, is_read_only, is_of_installation, tells_health)

    return made


TOOLS: dict[str, Tool[Any]] = {}
# For the person whose notes these are alone: no door lists them, and agents cannot call them.
OWNER_TOOLS: dict[str, Tool[Any]] = {}


def register(*tools: Tool[Any], for_owner: bool = False) -> None:
    """Offer tools; `obsidian_rag.tools` does it once, so that the list is in one place."""
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
    """Ask a tool; whatever happens, the answer is an envelope."""
    envelope = _outcome(engine, name, arguments, caller)
    if caller.is_limited:
        envelope = without_installation(envelope)
    return envelope if caller.is_owner else for_agents(envelope)


def _outcome(
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
    """Ask a tool, for doors that handle failures themselves.

    Raises:
        InvalidArgument: there is no such tool, or the arguments do not fit it.
        ReadOnly, NotFound: the caller may not do it (see `access`).
        ObsidianRagError: the tool could not do it; its status is the engine's health.
    """
    try:
        tool = find_tool(name, caller)
        if tool is None:
            raise InvalidArgument(
                f"No tool is called {_quoted(name)}.", f"The tools are: {', '.join(TOOLS)}."
            )
        check_may_call(tool.name, caller, tool.is_read_only, tool.is_of_installation)
        with engine.one_set_of_settings():
            params = parse(tool.params, arguments)
            envelope = tool.run(engine, params, with_known_vaults(engine, caller))
    except ObsidianRagError as error:
        error.status = _status_beside(engine, error)
        raise
    return envelope if tool.tells_health else with_health(engine, envelope)


def _status_beside(engine: Engine, error: ObsidianRagError) -> Status:
    """The engine's health, which a wrong call does not change and another failure may."""
    try:
        state = health_of(engine).state
    except ObsidianRagError as trouble:  # there is no vault to be healthy about
        state = trouble.status
    return state if error.is_about_call else worse(state, error.status)


def with_health(engine: Engine, envelope: Envelope) -> Envelope:
    """The answer with the engine's health; what is wrong with the answer itself is told first."""
    health = health_of(engine)
    told = health.error.body if health.error else None
    return Envelope(
        status=worse(envelope["status"], health.state),
        data=envelope["data"],
        error=envelope["error"] or told,
        meta=envelope["meta"],
    )


def parse(params: type[P], arguments: Mapping[str, object]) -> P:
    """The arguments as the tool's parameters.

    Raises:
        InvalidArgument: they do not fit; the message names each field and what it allows.
    """
    try:
        # By way of JSON, where a list may become a tuple but "5" is still not a number.
        return params.model_validate_json(json.dumps(arguments, allow_nan=False))
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        problems = [_problem(params, detail) for detail in details[:_MOST_PROBLEMS]]
        raise InvalidArgument(
            "; ".join(problems) + ".", f"The parameters are: {_names(params)}."
        ) from None
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgument(
            "The arguments are not a JSON object.", f"The parameters are: {_names(params)}."
        ) from None


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON schema of each tool's parameters, by tool."""
    return {name: tool.schema for name, tool in TOOLS.items()}


def answer_meta(engine: Engine, started: float, chunks_scanned: int = 0) -> Meta:
    """What an answer was made from; `started` is of `time.perf_counter`.

    An answer that needs no index is worth giving even if the index cannot tell its version.
    """
    version, newest = NO_META["index_version"], NO_META["vault_mtime"]
    with contextlib.suppress(ObsidianRagError):
        if engine.config.database.exists():  # a question makes no file
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
        return f"There is no parameter {_quoted(name)}; allowed are {_names(params)}"
    if not name:
        return message
    return f"Parameter '{name}' {_wish(params, detail, message)}"


def _wish(params: type[Params], detail: ErrorDetails, message: str) -> str:
    """What a parameter must be, as the end of a sentence."""
    if detail["type"] == "missing":
        return "is required"
    allowed = _allowed(params, str(detail["loc"][0]))
    if allowed and detail["type"] in _OUT_OF_RANGE:
        return f"must be {allowed}"
    if message.startswith("Input should "):
        return f"must {message.removeprefix('Input should ')}"
    return message if message.startswith("must ") else f"is wrong: {message}"


def _names(params: type[Params]) -> str:
    return ", ".join(params.model_json_schema().get("properties", {})) or "none"


def _allowed(params: type[Params], name: str) -> str:
    """The range of a parameter in words, where it has one."""
    field = params.model_json_schema()["properties"].get(name, {})
    kinds = [field, *field.get("anyOf", ())]
    found: dict[str, object] = {key: value for kind in kinds for key, value in kind.items()}
    for low, high, unit in (("minimum", "maximum", ""), ("minLength", "maxLength", " characters")):
        if low in found and high in found:
            return f"{found[low]} to {found[high]}{unit}"
    return ""


def _quoted(name: str) -> str:
    return f"'{name[:60]}'"
