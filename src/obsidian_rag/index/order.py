"""What an index run is asked to do, also as a message to the process that does it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from obsidian_rag.config import Config
from obsidian_rag.index.progress import Mode


@dataclass(frozen=True, slots=True)
class RunOrder:
    """Which files an index run looks at, and how.

    With `link_id` only that vault is looked at; `paths` are of that vault, or of the primary one.
    None is all vaults, and all files.
    `accepts_removals` is the user's word that notes which are missing are gone; `is_resumed` goes
    on with what a run that gave way has left.
    """

    mode: Mode
    paths: tuple[str, ...] | None = None
    link_id: str | None = None
    accepts_removals: bool = False
    is_resumed: bool = False

    @classmethod
    def read(cls, message: Mapping[str, object]) -> Self:
        """The order that a message with its fields tells."""
        paths, link_id = message["paths"], message.get("link_id")
        return cls(
            Mode(str(message["mode"])),
            tuple(str(path) for path in paths) if isinstance(paths, list) else None,
            str(link_id) if link_id else None,
            accepts_removals=message.get("accepts_removals") is True,
            is_resumed=message.get("is_resumed") is True,
        )


def settings_for_runs(config: Config) -> dict[str, object]:
    """The settings that an index run depends on."""
    return config.settings.model_dump(exclude={"server", "watcher", "livesync", "meaning"})
