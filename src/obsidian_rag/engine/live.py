"""What a daemon's engine has in addition, and the stand-in for a single command's engine."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from obsidian_rag.engine.events import Bus
    from obsidian_rag.engine.health import Health
    from obsidian_rag.engine.job import Job
    from obsidian_rag.engine.jobs import Jobs
    from obsidian_rag.health import HealthChange, HealthFacts
    from obsidian_rag.livesync import LivesyncState
    from obsidian_rag.relations import VaultMap


@dataclass(frozen=True, slots=True)
class Live:
    """The parts that only a daemon's engine has: jobs, watcher, known health."""

    bus: "Bus"
    jobs: "Jobs"
    health: "Health"
    is_watching: Callable[[], bool] = lambda: False
    watch_trouble: Callable[[], str | None] = lambda: None
    probe_soon: Callable[[], None] = lambda: None
    # A vault was linked, removed, paused or resumed.
    links_changed: Callable[[], None] = lambda: None
    # None if LiveSync is off.
    livesync: Callable[[], "LivesyncState | None"] = lambda: None
    # None without a map.
    vault_map: "VaultMap | None" = None

    @property
    def known(self) -> "HealthFacts":
        """The last known facts of the engine."""
        return self.health.facts

    @property
    def is_followed(self) -> bool:
        """Whether the engine is probed regularly."""
        return self.health.is_followed

    @property
    def health_changes(self) -> "tuple[HealthChange, ...]":
        """The last changes of health, oldest first."""
        return self.health.changes

    def note(self, **seen: object) -> None:
        """Update some facts of the engine, by name."""
        self.health.note(**seen)

    def note_all(self, facts: "HealthFacts") -> None:
        """Replace all known facts."""
        self.health.take(facts)

    def job_for(self, link_id: str) -> "Job | None":
        """The job under way for a vault."""
        return self.jobs.for_link(link_id)

    def end_jobs_for(self, link_id: str) -> None:
        """Cancel the running and waiting jobs of a vault."""
        self.jobs.end_link(link_id)


class Offline:
    """For a single command: no background parts; everything is checked and done in this process."""

    jobs: None = None
    known: None = None
    vault_map: None = None
    is_followed = False
    health_changes: "tuple[HealthChange, ...]" = ()

    def note(self, **seen: object) -> None:
        """Does nothing: a command keeps no health."""

    def note_all(self, facts: "HealthFacts") -> None:
        """Does nothing: a command keeps no health."""

    def probe_soon(self) -> None:
        """Does nothing: the next command probes."""

    def links_changed(self) -> None:
        """Does nothing: there is no watcher."""

    def is_watching(self) -> None:
        """None: a command cannot know."""

    def watch_trouble(self) -> None:
        """None: there is no watcher."""

    def livesync(self) -> None:
        """None: LiveSync does not run here."""

    def job_for(self, link_id: str) -> None:
        """None: there are no jobs here."""

    def end_jobs_for(self, link_id: str) -> None:
        """Does nothing: there are no jobs here."""


OFFLINE = Offline()
