"""Note ids of the primary vault, for its owner: functions for the command line, and tools.

Agents have no such tools: `obsidian_rag_add_relation` gives a note an id where one is needed, one
note at a time and after the user agreed.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

from pydantic import Field, StringConstraints

from obsidian_rag import relations
from obsidian_rag.engine import Engine
from obsidian_rag.relations import AddedId, FoundId, IdCheck
from obsidian_rag.tools.dispatch import Found, NoParams, Params, tool
from obsidian_rag.tools.guard import Caller

__all__ = [
    "AddedId",
    "IdCheck",
    "add",
    "add_ids",
    "added_fields",
    "check",
    "check_fields",
    "check_ids",
    "has_id",
    "note_for_id",
    "notes_without_id",
    "similar_titles",
]

# Notes done, and notes in all.
OnProgress = Callable[[int, int], None]
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
    return Found(check_fields(check_ids(engine)))


@tool(
    "obsidian_rag_add_ids",
    "Write an id into the frontmatter of notes that have none.",
    AddIdsParams,
    is_read_only=False,
)
def add(engine: Engine, params: AddIdsParams, _: Caller) -> Found:
    """Write an id into each of these notes that has none."""
    return Found({"notes": [added_fields(one) for one in add_ids(engine, params.notes)]})


def check_ids(engine: Engine, on_progress: OnProgress = lambda _done, _total: None) -> IdCheck:
    """Check every note's id against the rules; see `relations.check_note_ids`.

    Raises:
        NotFound: the vault's folder is missing.
    """
    return relations.check_note_ids(engine.relations, engine.vaults.primary, on_progress)


def notes_without_id(engine: Engine, on_progress: OnProgress) -> list[str]:
    """The notes without a valid id, in path order.

    Raises:
        NotFound: the vault's folder is missing.
    """
    return relations.notes_without_id(engine.relations, engine.vaults.primary, on_progress)


def note_for_id(engine: Engine, name: str) -> str:
    """The path of the note called `name`, indexed or not.

    Raises:
        NotFound: the note does not exist.
        InvalidArgument: there are several.
        SecurityViolation: the path leaves the vault.
    """
    return relations.note_for_id(engine.vaults.primary, name)


def has_id(engine: Engine, path: str) -> bool:
    """Whether a note has an id now, valid or not."""
    return relations.has_id(engine.vaults.primary, path)


def add_ids(engine: Engine, paths: Iterable[str], *, is_dry_run: bool = False) -> Iterator[AddedId]:
    """Add ids to these notes; a failure does not stop the others."""
    return relations.add_note_ids(engine.vaults.primary, paths, is_dry_run=is_dry_run)


def similar_titles(engine: Engine, text: str, limit: int) -> list[tuple[str, str, float]]:
    """Notes whose title or summary is spelled like a text: path, title and similarity.

    Raises:
        IndexNotFound: nothing is indexed yet.
    """
    return relations.similar_titles(engine.relations, text, limit)


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
