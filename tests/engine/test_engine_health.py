"""One setter, three states, every change told once with its reason."""

import itertools
from typing import get_args

import pytest

from obsidian_rag.engine import Bus, Event, Health, Subject
from obsidian_rag.engine.health import state_of
from obsidian_rag.errors import (
    IndexCorrupted,
    IndexNotFound,
    NotFound,
    ObsidianRagError,
    OllamaUnreachable,
    Status,
)

WELL: dict[Subject, ObsidianRagError | None] = dict.fromkeys(Subject)
OLLAMA = OllamaUnreachable("Ollama does not answer.", "Start it.")
GONE = IndexNotFound("There is no index.", "Run index.")
STATES: dict[Status, dict[Subject, ObsidianRagError | None]] = {
    "healthy": WELL,
    "degraded": {**WELL, Subject.EMBEDDER: OLLAMA},
    "unavailable": {**WELL, Subject.STORE: GONE},
}


def watched() -> tuple[Health, list[Event]]:
    bus = Bus()
    told: list[Event] = []
    bus.subscribe(told.append)
    return Health(bus), told


@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(get_args(Status), 2)))
def test_all_six_transitions(before: Status, after: Status) -> None:
    health, told = watched()
    health.note(STATES[before])
    assert health.state == before
    health.note(STATES[after])
    assert health.state == after
    assert [event.data["state"] for event in told] == [before, after]
    assert (told[1].data["before"], bool(told[1].data["reason"])) == (before, True)
    assert health.changes[-1].at


def test_there_is_no_state_before_anybody_has_looked() -> None:
    health, told = watched()
    assert (health.state, told, health.trouble()) == (None, [], None)


def test_the_same_again_is_no_change_but_another_reason_is() -> None:
    health, told = watched()
    health.note({Subject.STORE: GONE})
    health.note({Subject.STORE: IndexNotFound("Still none.", "")})
    health.note({Subject.STORE: IndexCorrupted("Broken.", "")})
    assert [event.data["code"] for event in told] == ["INDEX_NOT_FOUND", "INDEX_CORRUPTED"]


def test_one_subject_gets_well_while_another_does_not() -> None:
    health, _ = watched()
    health.note({Subject.STORE: GONE, Subject.EMBEDDER: OLLAMA})
    assert (health.state, health.trouble()) == ("unavailable", GONE)
    health.note({Subject.STORE: None})
    assert (health.state, health.trouble()) == ("degraded", OLLAMA)
    health.note({Subject.EMBEDDER: None})
    assert (health.state, health.trouble()) == ("healthy", None)


def test_only_the_store_makes_answers_impossible() -> None:
    assert [s for s in Subject if state_of(s) == "unavailable"] == [Subject.STORE]
    health, _ = watched()
    health.note({Subject.VAULT: NotFound("The vault is unreachable.", "")})
    assert health.state == "degraded"


def test_the_history_is_bounded() -> None:
    health, _ = watched()
    for _ in range(100):
        health.note({Subject.STORE: GONE})
        health.note({Subject.STORE: None})
    assert len(health.changes) == 50
