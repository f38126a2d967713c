"""What a server of ours is limited to, on its way from the command line to the daemon."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from obsidian_rag.transports.lazy import tools

if TYPE_CHECKING:
    from obsidian_rag.tools import Caller

LIMITS_HEADER = "X-Obsidian-Rag-Limits"


@dataclass(frozen=True, slots=True)
class Limits:
    """The vaults and folders that an agent may know of (None is all), and whether it may write."""

    vaults: tuple[str, ...] | None = None
    folders: tuple[str, ...] | None = None
    is_read_only: bool = False

    @property
    def header(self) -> str | None:
        """The value of the header that tells the daemon; None without limits."""
        if self == NO_LIMITS:
            return None
        told = {"vaults": self.vaults, "folders": self.folders, "read_only": self.is_read_only}
        return json.dumps(told)

    def caller(self) -> "Caller":
        """An agent within these limits."""
        scope = tools.Scope(self.vaults, self.folders)
        return tools.Caller(scope=scope, is_read_only=self.is_read_only)


NO_LIMITS = Limits()


def limits_from(header: str) -> Limits:
    """The limits that a header tells.

    Raises:
        ValueError: they cannot be understood.
    """
    told: Any = json.loads(header)
    if not isinstance(told, dict) or set(told) != {"vaults", "folders", "read_only"}:
        raise ValueError("not the limits of a caller")
    if not isinstance(told["read_only"], bool):
        raise ValueError("read_only is true or false")
    return Limits(_names(told["vaults"]), _names(told["folders"]), told["read_only"])


def _names(told: Any) -> tuple[str, ...] | None:
    if told is None:
        return None
    if not isinstance(told, list) or not all(isinstance(name, str) for name in told):
        raise ValueError("a list of names is needed")
    return tuple(told)
