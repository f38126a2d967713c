"""`obsidian_rag_memory_store` and `_recall`: remembered facts, each with its source note.

Threat: a fact is a sentence from a note, and may outlive it. So a fact is judged like its note and
by its own words; if the note is gone and cannot be judged any more, the fact counts as private.
"""

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from obsidian_rag.engine import Engine
from obsidian_rag.errors import NotFound, ObsidianRagError
from obsidian_rag.notes import Note
from obsidian_rag.search import FoundFact
from obsidian_rag.tools.citation import WHICH_VAULT, NoteName, VaultName, find_note, withheld_error
from obsidian_rag.tools.dispatch import Found, Params, answer_meta, tool
from obsidian_rag.tools.envelope import Envelope, success
from obsidian_rag.tools.guard import (
    OWNER,
    PRIVATE,
    Caller,
    GuardSettings,
    Verdict,
    guard_settings,
    judge,
)
from obsidian_rag.tools.note_files import note_files
from obsidian_rag.tools.sections import combine, sections_of_note

Key = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Value = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=10_000)]
Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]


class MemoryStoreParams(Params):
    """A fact and where it comes from."""

    key: Key = Field(description="Short name of the fact, such as debt_to_sreenivas")
    value: Value = Field(description="The fact to remember, as a sentence")
    source: NoteName = Field(description="Path in the vault of the note that says so")
    vault: VaultName | None = WHICH_VAULT
    confirm_sensitive: bool = Field(False, description="True if the user agreed; see search")


class MemoryRecallParams(Params):
    """What to remember: by its key, or by what it is about."""

    query: Query | None = Field(None, description="What the fact is about, as a question or words")
    key: Key | None = Field(None, description="The exact key of the fact")
    limit: int = Field(5, ge=1, le=50, description="Most facts to return")
    confirm_sensitive: bool = Field(False, description="True if the user agreed; see search")

    @model_validator(mode="after")
    def _check_something_given(self) -> "MemoryRecallParams":
        if self.query is None and self.key is None:
            raise ValueError("Parameter 'query' or parameter 'key' is needed")
        return self


@dataclass(frozen=True, slots=True)
class _Judged:
    """A fact that was found, and its verdict."""

    found: FoundFact
    verdict: Verdict
    is_withheld: bool


@tool(
    "obsidian_rag_memory_store",
    "Remember a fact from the user's notes under a short key, with the note it comes from."
    " Ask the user first. The same key again replaces it.",
    MemoryStoreParams,
    is_read_only=False,
    # All callers share the keys: storing could replace, or reveal, a fact from outside a scope.
    is_of_installation=True,
)
def memory_store(engine: Engine, params: MemoryStoreParams, caller: Caller) -> Found:
    """Remember a fact, replacing an earlier one with the same key.

    Raises:
        NotFound: the source is not in the vault.
        SecurityViolation: the source is outside the vault or in a denied folder.
        SensitiveFiltered: the source is private, and the user has not been asked.
    """
    caller = caller.confirming(params.confirm_sensitive)
    vault, source = find_note(engine, params.source, caller, params.vault)
    engine.facts.store(params.key, params.value, source, vault.link_id)
    return Found({"stored": True, "key": params.key})


@tool(
    "obsidian_rag_memory_recall",
    "Facts remembered earlier, by exact key or by what they are about. Each names its source note.",
    MemoryRecallParams,
    is_read_only=True,
)
def memory_recall(engine: Engine, params: MemoryRecallParams, caller: Caller) -> Found:
    """Find the fact with this key, else the facts nearest to the query."""
    caller = caller.confirming(params.confirm_sensitive)
    facts = engine.facts
    exact = facts.get(params.key) if params.key else None
    judged = list(_judge_known(engine, [exact] if exact else [], caller))
    trouble = None
    if not judged and params.query is not None:
        found, trouble = facts.nearest(params.query)
        judged = list(islice(_judge_known(engine, found, caller), params.limit))
    count = sum(1 for one in judged if one.is_withheld)
    data = {
        "facts": [_recalled_fields(engine, one) for one in judged],
        "sensitive_detected": any(one.verdict.is_sensitive for one in judged),
    }
    if trouble is None and count and not caller.is_screened:
        facts_are = "facts are" if count > 1 else "fact is"
        trouble = withheld_error(f"{count} remembered {facts_are} sensitive and withheld.")
    return Found(data, trouble)


def _judge_known(engine: Engine, found: Iterable[FoundFact], caller: Caller) -> Iterator[_Judged]:
    """Judge facts, and leave out those that the caller may not know of; keeps the order."""
    settings = guard_settings(engine)
    for one in found:
        own = judge(one.fact.text, None, (), (), False, settings)
        of_note = _verdict_of_source(engine, one, settings, caller)
        if of_note is not None:
            verdict = combine((own, of_note))
            yield _Judged(one, verdict, caller.misses(verdict))


def _verdict_of_source(
    engine: Engine, one: FoundFact, settings: GuardSettings, caller: Caller
) -> Verdict | None:
    """Judge the source note of a fact; None if the caller may not know of it.

    The section of a fact is unknown, so the strictest one counts. In a scope are the facts of notes
    that were in it when they were stored and still are.
    """
    found = _load_source(engine, one)
    if found is None:
        return Verdict((PRIVATE,), True) if caller.sees_private and not caller.is_limited else None
    link_id = one.fact.link_id or engine.vaults.primary.link_id
    if not all(caller.scope.admits(link_id, path) for path in (one.fact.source, found[0].path)):
        return None
    if not caller.knows_of(found[0].policy):
        return None
    return sections_of_note(*found, settings, caller).whole()


def _load_source(engine: Engine, one: FoundFact) -> tuple[Note, str] | None:
    """Load the source note of a fact, even if it was moved; None if it cannot be found."""
    fact = one.fact
    for name in (fact.source, fact.source.rpartition("/")[2]):
        with contextlib.suppress(ObsidianRagError):
            vault, path = find_note(engine, name, OWNER, fact.link_id)
            return note_files(engine, vault.link_id).load(path)
    return None


def _recalled_fields(engine: Engine, one: _Judged) -> dict[str, object]:
    shown = _fields(engine, one.found)
    if one.is_withheld:
        shown = dict.fromkeys(shown, "")
    return {
        **shown,
        "score": round(one.found.score, 1 if one.is_withheld else 4),
        "sensitive_categories": list(one.verdict.categories),
        "withheld": one.is_withheld,
    }


def memory_list(engine: Engine, caller: Caller = OWNER) -> Envelope:
    """List every fact, the latest first; for the owner."""
    started = time.perf_counter()
    found = engine.facts.all()
    facts = (
        [_recalled_fields(engine, one) for one in _judge_known(engine, found, caller)]
        if caller.is_screened
        else [_fields(engine, one) for one in found]
    )
    return success({"facts": facts}, answer_meta(engine, started))


def memory_forget(engine: Engine, key: str) -> Envelope:
    """Remove a fact.

    Raises:
        NotFound: there is no fact with this key.
    """
    started = time.perf_counter()
    if not engine.facts.forget(key):
        raise NotFound(f"Nothing is remembered as '{key}'.", "See `obsidian-rag memory list`.")
    return success({"forgotten": True, "key": key}, answer_meta(engine, started))


def _fields(engine: Engine, found: FoundFact) -> dict[str, object]:
    fact = found.fact
    names = {vault.link_id: vault.name for vault in engine.vaults}
    return {
        "key": fact.key,
        "value": fact.value,
        "source": fact.source,
        # The name of a vault that is no longer linked is unknown.
        "vault": names.get(fact.link_id, "") if fact.link_id else engine.vaults.primary.name,
        "stored_at": fact.updated_at,
    }
