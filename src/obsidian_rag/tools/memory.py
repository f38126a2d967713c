"""`obsidian_rag_memory_store` and `_recall`: facts worth keeping, each with the note it is from.

Threat: a fact is a sentence of a note, and outlives it. So a fact is guarded as its note is, and by
its own words; one whose note is gone, and cannot be judged any more, counts as private.
"""

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StringConstraints, model_validator

from obsidian_rag.engine import Engine, Fact, Memory
from obsidian_rag.errors import (
    EmbeddingMismatch,
    NotFound,
    ObsidianRagError,
    OllamaUnreachable,
    ProviderFailed,
    SensitiveFiltered,
)
from obsidian_rag.notes import Note
from obsidian_rag.tools.citation import find_note, open_note
from obsidian_rag.tools.dispatch import Params, Tool, answer_meta
from obsidian_rag.tools.envelope import Envelope, success
from obsidian_rag.tools.guard import (
    PRIVATE,
    Caller,
    GuardSettings,
    Verdict,
    guard_settings,
    judge,
)
from obsidian_rag.tools.sections import joined, sections_of_note

# No more of a fact is embedded than of a chunk.
_EMBEDDED_CHARS = 2000
_WORDS_SHARE = 0.5

Key = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Value = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=10_000)]
Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class MemoryStoreParams(Params):
    """A fact and where it comes from."""

    key: Key = Field(description="Short name of the fact, such as debt_to_sreenivas")
    value: Value = Field(description="The fact to remember, as a sentence")
    source: Path = Field(description="Path in the vault of the note that says so")
    confirm_sensitive: bool = Field(False, description="True if the user agreed; see search")


class MemoryRecallParams(Params):
    """What to remember: by its key, or by what it is about."""

    query: Query | None = Field(None, description="What the fact is about, as a question or words")
    key: Key | None = Field(None, description="The exact key of the fact")
    limit: int = Field(5, ge=1, le=50, description="Most facts to return")
    confirm_sensitive: bool = Field(False, description="True if the user agreed; see search")

    @model_validator(mode="after")
    def _something_is_asked(self) -> "MemoryRecallParams":
        if self.query is None and self.key is None:
            raise ValueError("Parameter 'query' or parameter 'key' is needed")
        return self


@dataclass(frozen=True, slots=True)
class _Judged:
    """A fact with its score, and what is to be done with it."""

    fact: Fact
    score: float
    verdict: Verdict
    is_withheld: bool


def memory_store(engine: Engine, params: MemoryStoreParams, *, is_owner: bool = False) -> Envelope:
    """Remember a fact, replacing an earlier one with the same key.

    Raises:
        NotFound: the source is not in the vault.
        SecurityViolation: the source is outside the vault or in a denied folder.
        SensitiveFiltered: the source is private, and the user has not been asked.
    """
    started = time.perf_counter()
    source = find_note(engine, params.source, Caller(is_owner, params.confirm_sensitive))
    Memory(engine.database).store(params.key, params.value, source)
    return success({"stored": True, "key": params.key}, answer_meta(engine, started))


def memory_recall(
    engine: Engine, params: MemoryRecallParams, *, is_owner: bool = False
) -> Envelope:
    """The fact with this key, else the facts nearest to the query."""
    started = time.perf_counter()
    caller = Caller(is_owner, params.confirm_sensitive)
    memory = Memory(engine.database)
    exact = memory.get(params.key) if params.key else None
    judged = list(_known(engine, [(exact, 1.0)] if exact else [], caller))
    trouble = None
    if not judged and params.query is not None:
        found, trouble = _nearest(engine, memory, params.query)
        judged = list(islice(_known(engine, found, caller), params.limit))
    withheld = sum(1 for one in judged if one.is_withheld)
    data = {
        "facts": [_recalled(one) for one in judged],
        "sensitive_detected": any(one.verdict.is_sensitive for one in judged),
    }
    trouble = trouble or (_withheld(withheld) if withheld else None)
    return success(data, answer_meta(engine, started), trouble)


def _known(
    engine: Engine, found: Iterable[tuple[Fact, float]], caller: Caller
) -> Iterator[_Judged]:
    """The facts that the caller may know of, in their order."""
    settings = guard_settings(engine)
    for fact, score in found:
        own = judge(fact.text, None, (), (), False, settings)
        of_note = _verdict_of_source(engine, fact.source, settings, caller)
        if of_note is not None:
            verdict = joined((own, of_note))
            yield _Judged(fact, score, verdict, caller.misses(verdict))


def _verdict_of_source(
    engine: Engine, source: str, settings: GuardSettings, caller: Caller
) -> Verdict | None:
    """What is to be done with facts of a note; None if the caller may not know of it.

    Which section a fact is from is not known, so it is guarded as the strictest one.
    """
    found = _opened(engine, source)
    if found is None:
        return Verdict((PRIVATE,), True) if caller.sees_private else None
    if not caller.knows_of(found[0].policy):
        return None
    return sections_of_note(*found, settings, caller).whole()


def _opened(engine: Engine, source: str) -> tuple[Note, str] | None:
    """The note that a fact came from, also where it was moved; None if it cannot be found."""
    for name in (source, source.rpartition("/")[2]):
        with contextlib.suppress(ObsidianRagError):
            return open_note(engine, find_note(engine, name, Caller(is_owner=True)))
    return None


def _recalled(one: _Judged) -> dict[str, object]:
    shown = _fields(one.fact)
    if one.is_withheld:
        shown = dict.fromkeys(shown, "")
    return {
        **shown,
        "score": round(one.score, 1 if one.is_withheld else 4),
        "sensitive_categories": list(one.verdict.categories),
        "withheld": one.is_withheld,
    }


def _withheld(count: int) -> ObsidianRagError:
    return SensitiveFiltered(
        f"{count} remembered fact{'s are' if count > 1 else ' is'} sensitive and withheld.",
        "Ask the user; if they agree, call again with confirm_sensitive: true.",
    )


def memory_list(engine: Engine) -> Envelope:
    """Every fact, the latest first."""
    started = time.perf_counter()
    facts = [_fields(fact) for fact in Memory(engine.database).all()]
    return success({"facts": facts}, answer_meta(engine, started))


def memory_forget(engine: Engine, key: str) -> Envelope:
    """Remove a fact.

    Raises:
        NotFound: there is no fact with this key.
    """
    started = time.perf_counter()
    if not Memory(engine.database).forget(key):
        raise NotFound(f"Nothing is remembered as '{key}'.", "See `obsidian-rag memory list`.")
    return success({"forgotten": True, "key": key}, answer_meta(engine, started))


def _fields(fact: Fact) -> dict[str, object]:
    return {
        "key": fact.key,
        "value": fact.value,
        "source": fact.source,
        "stored_at": fact.updated_at,
    }


def _nearest(
    engine: Engine, memory: Memory, query: str
) -> tuple[list[tuple[Fact, float]], ObsidianRagError | None]:
    """Facts by meaning and words; by words alone, and why, when the embedder fails."""
    shares = {fact.key: share for fact, share in memory.search(query)}
    facts = memory.all()
    trouble: ObsidianRagError | None = None
    try:
        meanings = _similarities(engine, memory, facts, query)
    except (OllamaUnreachable, ProviderFailed, EmbeddingMismatch) as error:
        meanings, trouble = {}, error
    scored = [(fact, _score(shares.get(fact.key, 0.0), meanings.get(fact.key))) for fact in facts]
    found = [(fact, score) for fact, score in scored if score > 0]
    return sorted(found, key=lambda pair: -pair[1]), trouble


def _score(share: float, meaning: float | None) -> float:
    if meaning is None or share == 1.0:
        return share
    return _WORDS_SHARE * share + (1 - _WORDS_SHARE) * min(max(meaning, 0.0), 1.0)


def _similarities(
    engine: Engine, memory: Memory, facts: Sequence[Fact], query: str
) -> dict[str, float]:
    """The cosine of each fact with the query."""
    embedder = engine.embedder
    # A fact may come from a private note, and what is private does not leave the machine.
    if embedder.is_external or not facts:
        return {}
    asked = embedder.embed_query(query)
    rows = _vectors(engine, memory, facts, len(asked))
    return dict(zip((fact.key for fact in facts), (rows @ asked).tolist(), strict=True))


def _vectors(
    engine: Engine, memory: Memory, facts: Sequence[Fact], width: int
) -> NDArray[np.float32]:
    """One row per fact: kept ones, and new ones for facts that have none of this embedder."""
    embedder = engine.embedder
    known = {
        key: row
        for key, data in memory.vectors(embedder.fingerprint).items()
        if len(row := np.frombuffer(data, dtype=np.float32)) == width
    }
    missing = [fact for fact in facts if fact.key not in known]
    if missing:
        made = embedder.embed_documents([fact.text[:_EMBEDDED_CHARS] for fact in missing])
        known |= {fact.key: row for fact, row in zip(missing, made, strict=True)}
        memory.keep_vectors(
            embedder.fingerprint, ((fact, known[fact.key].tobytes()) for fact in missing)
        )
    return np.stack([known[fact.key] for fact in facts])


MEMORY_STORE = Tool(
    name="obsidian_rag_memory_store",
    description=(
        "Remember a fact from the user's notes under a short key, with the note it comes from."
        " Ask the user first. Storing the same key again replaces the fact."
    ),
    params=MemoryStoreParams,
    run=memory_store,
    is_read_only=False,
    run_for_owner=partial(memory_store, is_owner=True),
)
MEMORY_RECALL = Tool(
    name="obsidian_rag_memory_recall",
    description=(
        "Facts remembered earlier, by exact key or by what they are about. Quicker than a search"
        " when the user asks for something that was stored. Each fact names its source note."
    ),
    params=MemoryRecallParams,
    run=memory_recall,
    is_read_only=True,
    run_for_owner=partial(memory_recall, is_owner=True),
)
