"""The rooms behind the transports, loaded when they are first used.

`--help` is quick and a command that asks the daemon answers at once, because neither loads what
does the work. A command writes `engine.examine(...)`; naming a room costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["autostart", "engine", "ids", "livesync", "tools"]

if TYPE_CHECKING:
    from obsidian_rag import autostart, engine, tools
    from obsidian_rag.tools import ids, livesync
else:

    class _Room:
        """A room that is imported when one of its names is asked for."""

        def __init__(self, name: str) -> None:
            self._name = f"obsidian_rag.{name}"

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module(self._name), name)

    autostart = _Room("autostart")
    engine = _Room("engine")
    ids = _Room("tools.ids")
    livesync = _Room("livesync")
    tools = _Room("tools")
