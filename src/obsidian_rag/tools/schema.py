"""The JSON schema of a tool's parameters, as short as it can be: every agent reads all of them.

What pydantic writes for each field is said once or not at all: no titles made from names, no
"or null" beside a default of null (leaving the parameter out says the same), no references, no
limits of a list's items nor of names and paths (a call that breaks them is refused with the limit).
"""

from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]
_LIMITS = {"minLength", "maxLength"}
_LONGEST_NAME = 1000


def parameters_schema(params: type[BaseModel]) -> Schema:
    """The schema that agents see; the model itself accepts null where it has that default too."""
    whole = params.model_json_schema()
    definitions = whole.pop("$defs", {})
    whole.pop("description", None)
    short = _short(whole, definitions)
    return {**short, "properties": short.get("properties", {})}


def _short(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        return _short(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    short = {name: value for name, value in schema.items() if name not in ("title", "anyOf")}
    if "anyOf" in schema:
        kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
        if len(kinds) == 1:
            described = {"description": short["description"]} if "description" in short else {}
            return {**_short(kinds[0], definitions), **described}
        short["anyOf"] = [_short(kind, definitions) for kind in kinds]
    if short.get("maxLength", _LONGEST_NAME + 1) <= _LONGEST_NAME:
        short = {name: value for name, value in short.items() if name not in _LIMITS}
    if short.get("default", ...) is None:
        del short["default"]
    if "properties" in short:
        short["properties"] = {
            name: _short(field, definitions) for name, field in short["properties"].items()
        }
    if isinstance(short.get("items"), dict):
        items = _short(short["items"], definitions)
        short["items"] = {name: items[name] for name in items if name not in _LIMITS}
        short.pop("maxItems", None)
    return short
