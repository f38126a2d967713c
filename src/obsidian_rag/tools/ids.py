"""Note ids, for the owner of the notes: functions for the command line, and tools.

Agents have no such tools: `obsidian_rag_add_relation` gives a note an id where one is needed, one
note at a time and after the user agreed.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

from obsidian_rag.engine import Engine
from obsidian_rag.relations import (
    AddedId,
    FoundId,
    IdCheck,
    add_note_ids,
    check_note_ids,
    has_id,
    note_for_id,
    notes_without_id,
    similar_titles,
)
from obsidian_rag.tools.dispatch import Found, NoParams, Params, tool
from obsidian_rag.tools.guard import Caller

__all__ = [
    "AddedId",
    "IdCheck",
    "add",
    "add_note_ids",
    "added_fields",
    "check",
    "check_fields",
    "check_note_ids",
    "has_id",
    "note_for_id",
    "notes_without_id",
    "similar_titles",
]

_MAX_NOTES = 500
_NotePath = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class AddIdsParams(Params):
    """Which notes get an id."""

    notes: Annotated[tuple[_NotePath, ...], Field(min_length=1, max_length=_MAX_NOTES)] = Field(
        description="Paths in the vault; a note that has a good id keeps it"
    )


@tool(
    "obsidian_rag_check_ids",
    "Notes whose id is missing, broken or used twice, and relations that lead nowhere.",
    NoParams,
    is_read_only=True,
)
def check(engine: Engine, _: NoParams, __: Caller) -> Found:
    """Check the ids of all notes."""
    return Found(check_fields(check_note_ids(engine, engine.vaults.primary)))


@tool(
    "obsidian_rag_add_ids",
    "Write an id into the frontmatter of notes that have none.",
    AddIdsParams,
    is_read_only=False,
)
def add(engine: Engine, params: AddIdsParams, _: Caller) -> Found:
    """Write an id into each of these notes that has none."""
    done = list(add_note_ids(engine.vaults.primary, params.notes))
    return Found({"notes": [added_fields(one) for one in done]})


def added_fields(one: AddedId) -> dict[str, object]:
    """The outcome for one note, as JSON."""
    fields: dict[str, object] = {"note": one.path, "outcome": one.outcome.value}
    return {**fields, "id": one.id or None, "error": one.error}


def check_fields(found: IdCheck) -> dict[str, object]:
    """The outcome of a check, as JSON."""
    report = found.report
    return {
        "is_clean": found.is_clean,
        "notes": report.notes,
        "missing": list(report.missing),
        "invalid": [_bad_id(one) for one in report.invalid],
        "not_lower_case": [_bad_id(one) for one in report.not_lower_case],
        "duplicates": [
            {"id": one.id, "kept": one.kept, "others": list(one.others)}
            for one in report.duplicates
        ],
        "legacy": list(report.legacy),
        "dangling": [{"note": one.path, "target": one.target} for one in found.dangling],
        "cycles": None if found.cycles is None else [list(way) for way in found.cycles],
        "unread": [{"note": path, "reason": reason} for path, reason in found.unread],
    }


def _bad_id(one: FoundId) -> dict[str, object]:
    return {"note": one.path, "id": one.id.value, "field": one.id.field, "trouble": one.id.trouble}
