"""The rooms behind the transports, loaded when they are first used.

`--help` and commands that the daemon answers are fast because they load none of these. A command
writes `engine.examine(...)`; only that access imports the room.
"""

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["autostart", "embed", "engine", "ids", "livesync", "tools"]

if TYPE_CHECKING:
    from obsidian_rag import autostart, embed, engine, livesync, tools
    from obsidian_rag.tools import ids
else:

    class _Room:
        """A room that is imported when one of its names is used."""

        def __init__(self, name: str) -> None:
            self._name = f"obsidian_rag.{name}"

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module(self._name), name)

    autostart = _Room("autostart")
    embed = _Room("embed")
    engine = _Room("engine")
    ids = _Room("tools.ids")
    livesync = _Room("livesync")
    tools = _Room("tools")
