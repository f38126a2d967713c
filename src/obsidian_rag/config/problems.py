"""Turns pydantic's validation errors into plain sentences. Pure."""

import difflib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from obsidian_rag.data_folder import ENV_PREFIX
from obsidian_rag.errors import ConfigInvalid

__all__ = ["explain_problem", "nearest", "nearest_setting", "refusal"]

_NUMBER_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a number",
}


def refusal(
    problem: ErrorDetails,
    file: Path | None,
    fields: Mapping[str, FieldInfo],
    overrides: Mapping[str, object],
) -> ConfigInvalid:
    """The error for settings that cannot be used. `file` is None if they were just typed.

    `fields` are all settings by name, `overrides` those that did not come from the file.
    """
    name = ".".join(str(part) for part in problem["loc"]) or "the file"
    if problem["type"] == "extra_forbidden":
        return ConfigInvalid(
            f"Unknown setting '{name}' in {file}.{nearest_setting(name, fields)}",
            "Remove or rename it; `obsidian-rag config show` lists the known ones.",
        )
    setting = next((key for key in fields if f"{name}.".startswith(f"{key}.")), name)
    variable = ENV_PREFIX + setting.upper().replace(".", "__")
    if setting in overrides:
        subject, fix = f"Setting '{name}' (from {variable})", f"Change or unset {variable}."
    elif file is None:
        subject, fix = name, f"`obsidian-rag config get {setting}` shows the current value."
    else:
        subject = f"Setting '{name}' in {file}"
        fix = f"Run `obsidian-rag config set {setting} …` or edit the file."
    return ConfigInvalid(explain_problem(problem, subject, fields.get(setting)), fix)


def nearest_setting(name: str, known: Iterable[str]) -> str:
    """` Did you mean '…'?`, or nothing; section names are suggested too."""
    names = list(known)
    return nearest(name, [*names, *{key.split(".")[0] for key in names}])


def explain_problem(problem: ErrorDetails, subject: str, field: FieldInfo | None) -> str:
    """A sentence about `subject`, which names the setting; `field` is its declaration."""
    if predicate := _predicate(problem, field):
        return f"{subject} {predicate}"
    if problem["type"] == "value_error":
        return f"{subject}: {problem['msg'].removeprefix('Value error, ')}."
    return f"{subject} cannot be used ({problem['msg']})."


def _predicate(problem: ErrorDetails, field: FieldInfo | None) -> str:
    """What the setting is or must be; empty if pydantic's own message is used."""
    match problem["type"].split("_"):
        case ["tuple" | "list", "type"]:
            return _explain_list(problem)
        case ["dict" | "model", *_]:
            return _explain_object(problem, field)
        case ["int" | "float" | "finite", *_]:
            return _explain_number(problem, field)
        case ["bool", *_]:
            return "is true or false."
        case ["string", *_]:
            return "is text. Write it in double quotes."
        case ["literal", *_]:
            return _explain_choice(problem)
        case ["greater" | "less", "than", *_]:
            return f"must be {_format_range(field) or _format_bound(problem)}."
        case ["too", "short"]:
            return "must not be empty."
    return ""


def nearest(name: str, known: Iterable[str]) -> str:
    """` Did you mean '…'?`, or nothing if no known name is close."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean '{found[0]}'?" if found else ""


def _explain_list(problem: ErrorDetails) -> str:
    given = problem["input"]
    example = [given] if isinstance(given, str) and given else ["Archive"]
    return f"is a list. Write '{json.dumps(example, ensure_ascii=False)}'."


def _explain_object(problem: ErrorDetails, field: FieldInfo | None) -> str:
    if field is None or problem["type"] != "dict_type":
        return "has settings of its own; write them as a JSON object."
    return """is an object of lists. Write '{"health": ["therapy"]}'."""


def _explain_number(problem: ErrorDetails, field: FieldInfo | None) -> str:
    what = _NUMBER_WORDS[problem["type"].partition("_")[0]]
    allowed = _format_range(field)
    if allowed:
        return f"is {what}, {allowed}."
    default = getattr(field, "default", None)
    is_example = isinstance(default, int | float) and not isinstance(default, bool)
    return f"is {what}, such as {default:g}." if is_example else f"is {what}."


def _explain_choice(problem: ErrorDetails) -> str:
    expected = str(problem.get("ctx", {}).get("expected", "")).replace("'", "")
    words = expected.replace(" or ", ", ").split(", ")
    if len(words) == 1:
        return f"can only be {words[0]}."
    hint = nearest(str(problem["input"]), words)
    return f"is {', '.join(words[:-1])} or {words[-1]}.{hint}"


def _format_range(field: FieldInfo | None) -> str:
    """The allowed range: "32 to 8192", "0 or more", "more than 0"; empty if unlimited."""
    limits = _read_limits(field)
    low, high = limits.get("ge"), limits.get("le")
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    if (above := limits.get("gt")) is not None:
        return f"more than {above:g}" + (f" and at most {high:g}" if high is not None else "")
    if low is not None:
        return f"{low:g} or more"
    return f"{high:g} or less" if high is not None else ""


def _read_limits(field: FieldInfo | None) -> dict[str, float]:
    marks: list[Any] = list(field.metadata) if field else []
    if field is not None:
        # `Annotated[float, Field(ge=0)] | None` has its limits one level deeper.
        for inner in getattr(field.annotation, "__args__", ()):
            marks += [
                mark
                for meta in getattr(inner, "__metadata__", ())
                for mark in getattr(meta, "metadata", (meta,))
            ]
    names = ("ge", "gt", "le", "lt")
    return {name: getattr(mark, name) for mark in marks for name in names if hasattr(mark, name)}


def _format_bound(problem: ErrorDetails) -> str:
    context: Mapping[str, Any] = problem.get("ctx", {})
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    return next(f"{words[name]} {value}" for name, value in context.items() if name in words)
