"""The limits of an agent's server, passed from the command line to the daemon."""

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from obsidian_rag.transports.lazy import tools

if TYPE_CHECKING:
    from obsidian_rag.engine import Engine
    from obsidian_rag.tools import Caller

LIMITS_HEADER = "X-Obsidian-Rag-Limits"
# The id of the process that connects a client; the client counts as connected while it lives.
CLIENT_HEADER = "X-Obsidian-Rag-Client"


@dataclass(frozen=True, slots=True)
class Limits:
    """The vaults and folders that an agent may see (None is all), and whether it may only read."""

    vaults: tuple[str, ...] | None = None
    folders: tuple[str, ...] | None = None
    is_read_only: bool = False

    @property
    def fields(self) -> dict[str, object]:
        """These limits as JSON, for the daemon."""
        return {"vaults": self.vaults, "folders": self.folders, "read_only": self.is_read_only}

    @property
    def header(self) -> str | None:
        """The value of the header for the daemon; None without limits."""
        return None if self == NO_LIMITS else json.dumps(self.fields)

    def resolve(self, engine: "Engine") -> "Limits":
        """Resolve the vaults to link ids, and the folders to their spelling in the index.

        Raises:
            ObsidianRagError: there is no such vault or folder.
        """
        if not self.vaults and not self.folders:
            return self
        scope = engine.vaults.scope_of(self.vaults, self.folders)
        return replace(self, vaults=scope.vaults, folders=scope.folders)

    def caller(self) -> "Caller":
        """An agent within these limits."""
        scope = tools.Scope(self.vaults, self.folders)
        return tools.Caller(scope=scope, is_read_only=self.is_read_only)


NO_LIMITS = Limits()


def parse_limits_header(header: str) -> Limits:
    """Parse the header with the limits.

    Raises:
        ValueError: it is malformed.
    """
    return parse_limits(json.loads(header))


def parse_limits(fields: Any) -> Limits:
    """Parse limits sent as a JSON object.

    Raises:
        ValueError: they are malformed.
    """
    if not isinstance(fields, dict) or set(fields) != {"vaults", "folders", "read_only"}:
        raise ValueError("not the limits of a caller")
    if not isinstance(fields["read_only"], bool):
        raise ValueError("read_only is true or false")
    return Limits(_names(fields["vaults"]), _names(fields["folders"]), fields["read_only"])


def _names(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError("a list of names is needed")
    return tuple(value)
