"""One function over facts says how things are; a living engine tells every change once."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import get_args

import pytest

from obsidian_rag.engine import Bus, Event
from obsidian_rag.engine.health import Health
from obsidian_rag.errors import (
    ConfigInvalid,
    EmbeddingMismatch,
    IndexCorrupted,
    IndexerFailed,
    IndexNotFound,
    IndexStale,
    ObsidianRagError,
    OllamaUnreachable,
    Status,
)
from obsidian_rag.health import HealthFacts, VaultFacts, VaultPlace, assess
from obsidian_rag.health.brake import Away
from obsidian_rag.health.facts import Unfinished

OLLAMA = OllamaUnreachable("Ollama does not answer.", "Start it.")
GONE = IndexNotFound("There is no index.", "Run index.")
BROKEN = IndexCorrupted("The index is damaged.", "Run reindex.")
CRASHED = IndexerFailed("The indexer crashed.", "Try again.")
UNUSABLE = ConfigInvalid("config.json cannot be used.", "Correct it.")
WAITING = ConfigInvalid("server.port takes effect after a restart.", "Start anew.")
OTHERWISE_MADE = EmbeddingMismatch("Made with another model.", "Run reindex.")
OLD = IndexStale("The vault has changed.", "Run sync.")
HERE = VaultFacts(path="/notes", made_of="/notes")
MISSING = replace(HERE, place=VaultPlace.AWAY)
FEW = replace(MISSING, counted=Away("/notes", 800, 12, ("a.md",)))
OTHER = replace(HERE, place=VaultPlace.OTHER, made_of="/old")
BADNESS: dict[Status, int] = {"healthy": 0, "degraded": 1, "unavailable": 2}

# What the design says, the gravest first: the first line that holds is the answer.
Rule = tuple[Callable[[HealthFacts], object], Status, str]
SPECIFIED: tuple[Rule, ...] = (
    (lambda seen: seen.store is BROKEN, "unavailable", "INDEX_CORRUPTED"),
    (lambda seen: seen.store is GONE and seen.is_running, "degraded", "INDEX_INCOMPLETE"),
    (lambda seen: seen.store is GONE, "unavailable", "INDEX_NOT_FOUND"),
    (lambda seen: seen.indexer, "unavailable", "INDEXER_FAILED"),
    (lambda seen: seen.vault is OTHER, "degraded", "INDEX_INCOMPLETE"),
    (lambda seen: seen.vault in (MISSING, FEW), "degraded", "VAULT_AWAY"),
    (lambda seen: seen.config, "degraded", "CONFIG_INVALID"),
    (lambda seen: seen.settings, "degraded", "EMBEDDING_MISMATCH"),
    (lambda seen: seen.embedder, "degraded", "OLLAMA_UNREACHABLE"),
    (lambda seen: seen.unfinished is Unfinished.FIRST, "degraded", "INDEX_INCOMPLETE"),
    (lambda seen: left_undone(seen), "degraded", "INDEX_INCOMPLETE"),
    (lambda seen: seen.staleness, "degraded", "INDEX_STALE"),
    (lambda seen: seen.restart, "degraded", "CONFIG_INVALID"),
)


def left_undone(seen: HealthFacts) -> bool:
    """Whether a run stopped early and none is at it now."""
    began = seen.unfinished is Unfinished.REBUILD or seen.is_waiting
    return began and not seen.is_running


def every_combination() -> Iterator[HealthFacts]:
    stores: tuple[ObsidianRagError | None, ...] = (None, GONE, BROKEN)
    files: tuple[tuple[ObsidianRagError | None, ObsidianRagError | None], ...] = (
        (None, None),
        (UNUSABLE, None),
        (None, WAITING),
        (UNUSABLE, WAITING),
    )
    troubles = itertools.product(
        stores,
        (None, CRASHED),
        files,
        (None, OTHERWISE_MADE),
        (None, OLLAMA),
        (None, OLD),
    )
    vaults = (HERE, MISSING, FEW, OTHER)
    owings = ((0, False), (0, True), (14_269, True))
    work = list(itertools.product(vaults, Unfinished, owings, (False, True)))
    for store, indexer, (config, restart), settings, embedder, staleness in troubles:
        for vault, unfinished, (owed, is_waiting), is_running in work:
            yield HealthFacts(
                store=store,
                indexer=indexer,
                config=config,
                settings=settings,
                embedder=embedder,
                staleness=staleness,
                restart=restart,
                vault=vault,
                unfinished=unfinished,
                indexed=343,
                owed=owed,
                is_waiting=is_waiting,
                is_running=is_running,
                rebuilt=7,
            )


def test_every_combination_of_facts_has_the_answer_that_the_design_specifies() -> None:
    counted = 0
    for seen in every_combination():
        answer = assess(seen)
        found = (answer.state, answer.error.code if answer.error else None)
        expected = next(
            ((state, code) for holds, state, code in SPECIFIED if holds(seen)), ("healthy", None)
        )
        assert found == expected, seen
        counted += 1
    assert counted == 3 * 2**6 * 4 * 3 * 3 * 2


def test_whatever_is_not_healthy_says_why_and_what_to_do() -> None:
    for seen in every_combination():
        answer = assess(seen)
        assert (answer.state == "healthy") == (answer.error is None)
        if answer.error is not None:
            assert answer.error.message
            assert answer.error.suggestion


def test_whenever_only_a_part_is_searchable_the_answer_says_which() -> None:
    for seen in every_combination():
        answer = assess(seen)
        is_part = seen.owed and (seen.unfinished is Unfinished.FIRST or not seen.is_running)
        if is_part and seen.vault is not OTHER and answer.state == "degraded":
            is_begun = seen.store is not None  # there is nothing to count yet
            assert answer.error is not None
            assert is_begun or "343 of 14,612 notes are searchable" in answer.error.message, seen


def test_no_trouble_more_makes_anything_better() -> None:
    for seen in every_combination():
        worst = BADNESS[assess(seen).state]
        for better in (
            replace(seen, indexer=None),
            replace(seen, config=None),
            replace(seen, settings=None),
            replace(seen, embedder=None),
            replace(seen, vault=HERE),
            replace(seen, unfinished=Unfinished.NOTHING),
            replace(seen, owed=0, is_waiting=False),
            replace(seen, staleness=None),
            replace(seen, restart=None),
        ):
            assert BADNESS[assess(better).state] <= worst, (seen, better)


def test_the_sentences_name_vaults_and_counts() -> None:
    other, few, missing = (
        assess(HealthFacts(vault=vault)).error for vault in (OTHER, FEW, MISSING)
    )
    assert other is not None
    assert "/notes" in other.message
    assert "/old" in other.message
    assert "--accept-removals" in other.suggestion
    assert few is not None
    assert "12 of 800 notes are there" in few.message
    assert "sync --accept-removals" in few.suggestion
    assert missing is not None
    assert "/notes" in missing.message


SUBJECTS = (
    "store",
    "config",
    "indexer",
    "settings",
    "embedder",
    "staleness",
    "restart",
)
STATES: dict[Status, dict[str, ObsidianRagError | None]] = {
    "healthy": dict.fromkeys(SUBJECTS),
    "degraded": {**dict.fromkeys(SUBJECTS), "embedder": OLLAMA},
    "unavailable": {**dict.fromkeys(SUBJECTS), "store": GONE},
}


def watched() -> tuple[Health, list[Event]]:
    bus = Bus()
    told: list[Event] = []
    bus.subscribe(told.append)
    return Health(bus), told


@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(get_args(Status), 2)))
def test_all_six_transitions(before: Status, after: Status) -> None:
    health, told = watched()
    health.note(**STATES[before])
    assert health.state == before
    health.note(**STATES[after])
    assert health.state == after
    assert [event.data["state"] for event in told] == [before, after]
    assert (told[1].data["before"], bool(told[1].data["reason"])) == (before, True)
    assert health.changes[-1].at


def test_there_is_no_state_before_anybody_has_looked() -> None:
    health, told = watched()
    assert (health.state, told, health.trouble) == (None, [], None)


def test_the_same_again_is_no_change_but_another_reason_is() -> None:
    health, told = watched()
    health.note(store=GONE)
    health.note(store=IndexNotFound("Still none.", ""))
    health.note(store=IndexCorrupted("Broken.", ""))
    assert [event.data["code"] for event in told] == ["INDEX_NOT_FOUND", "INDEX_CORRUPTED"]


def test_one_subject_gets_well_while_another_does_not() -> None:
    health, _ = watched()
    health.note(store=GONE, embedder=OLLAMA)
    assert (health.state, health.trouble) == ("unavailable", GONE)
    health.note(store=None)
    assert (health.state, health.trouble) == ("degraded", OLLAMA)
    health.note(embedder=None)
    assert (health.state, health.trouble) == ("healthy", None)


def test_the_history_is_bounded() -> None:
    health, _ = watched()
    for _ in range(100):
        health.note(store=GONE)
        health.note(store=None)
    assert len(health.changes) == 50
