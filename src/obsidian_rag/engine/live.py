"""What an engine has only while its process stays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from obsidian_rag.engine.events import Bus
from obsidian_rag.engine.health import Health
from obsidian_rag.engine.jobs import Jobs

if TYPE_CHECKING:
    from obsidian_rag.livesync import LivesyncState
    from obsidian_rag.relations import VaultMap


@dataclass(frozen=True, slots=True)
class Live:
    """What an engine has besides when its process stays: a daemon, or an MCP server alone."""

    bus: Bus
    jobs: Jobs
    health: Health
    is_watching: Callable[[], bool] = lambda: False
    watch_trouble: Callable[[], str | None] = lambda: None
    look_soon: Callable[[], None] = lambda: None
    # A vault was linked, removed, paused or resumed.
    links_changed: Callable[[], None] = lambda: None
    # None where no node is to run.
    livesync: Callable[[], "LivesyncState | None"] = lambda: None
    # None where nobody looks at it.
    vault_map: "VaultMap | None" = None
