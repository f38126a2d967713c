"""The order for an index run, also as a message to the worker process."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from obsidian_rag.config import Config
from obsidian_rag.index.progress import Mode
from obsidian_rag.index.vault_place import VaultFacts


class Precedence(IntEnum):
    """Job priority: lower numbers go first, and preempt a running job."""

    # Edits, explicit requests, and any scan of the primary vault.
    EDIT = 0
    # A full scan of a linked vault that is already indexed.
    LOOK = 1
    # The first index of a linked vault, which may take hours.
    IMPORT = 2


@dataclass(frozen=True, slots=True)
class RunOrder:
    """Which files an index run covers, and how.

    `link_id` limits it to that vault; `paths` are in that vault, or in the primary one. None means
    all vaults, and all files. `accepts_removals`: the user confirmed that missing notes were
    deleted. `is_resumed` continues with what a preempted run left.
    """

    mode: Mode
    paths: tuple[str, ...] | None = None
    link_id: str | None = None
    accepts_removals: bool = False
    is_resumed: bool = False

    @classmethod
    def read(cls, message: Mapping[str, object]) -> Self:
        """Read the order from a message."""
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


def precedence_of(paths: Collection[str] | None, linked: VaultFacts | None) -> Precedence:
    """Priority of a run over these files, or all; `linked` is None for the primary vault."""
    if linked is None or paths is not None:
        return Precedence.EDIT
    return Precedence.IMPORT if linked.is_unfinished else Precedence.LOOK
