"""The health of an engine for every answer, and the look that a living one takes now and then."""

import contextlib
from dataclasses import replace

from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.index import (
    HealthAnswer,
    HealthFacts,
    JobFacts,
    assess,
    known_facts,
    newest_note,
    probed_facts,
)


def health_of(engine: Engine) -> HealthAnswer:
    """How the engine is, for an answer that is given now."""
    return assess(facts_of(engine))


def facts_of(engine: Engine) -> HealthFacts:
    """What can be known at once, and bears on answers: none of them needs LiveSync."""
    live = engine.live
    seen = replace(live.health.facts, livesync=None) if live is not None else None
    engine.follow_database()
    is_followed = live is not None and live.health.is_followed
    return known_facts(engine, seen, _jobs(engine), is_followed=is_followed)


def look(engine: Engine) -> HealthFacts:
    """Probe everything, and tell a living engine's health."""
    engine.follow_database()
    facts = HealthFacts(
        config=engine.settings_file.trouble,
        restart=engine.settings_file.restart_trouble,
        livesync=_livesync_trouble(engine),
    )
    facts = probed_facts(engine, facts, _jobs(engine))
    if engine.live is not None:
        engine.live.health.take(facts)
    return facts


def index_stamp(engine: Engine) -> tuple[str, str | None]:
    """What an answer was made from: the version of the index, and the time of its newest note."""
    return engine.index_version, newest_note(engine)


def _jobs(engine: Engine) -> JobFacts:
    if engine.live is None:
        return JobFacts()
    last = engine.live.jobs.latest
    ended = (last.finished_at or "", last.error) if last is not None else None
    return JobFacts(engine.live.jobs.active is not None, ended)


def _livesync_trouble(engine: Engine) -> ObsidianRagError | None:
    """What the daemon's own node says; who has none has no trouble with it."""
    with contextlib.suppress(ObsidianRagError):
        state = engine.live.livesync() if engine.live else None
        return state.trouble if state else None
    return None
