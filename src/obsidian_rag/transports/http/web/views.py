"""What the frame, Health, Memory and LiveSync of the page ask besides the tools."""

from collections.abc import Mapping

from obsidian_rag import __version__
from obsidian_rag.engine import Engine, health_of
from obsidian_rag.errors import InvalidArgument
from obsidian_rag.tools import (
    Envelope,
    memory_forget,
    success,
    sync_conflict,
    sync_conflicts,
    sync_resolve,
    sync_restore,
)


def start(engine: Engine, _: Mapping[str, str]) -> Envelope:
    """Which vaults there are, and how the engine is."""
    health = health_of(engine)
    vaults = [
        {
            "id": vault.link_id,
            "name": vault.name,
            "path": str(vault.root),
            "is_primary": vault.is_primary,
            "mode": str(vault.mode),
        }
        for vault in engine.vaults
    ]
    told = {"state": health.state, "error": health.error.body if health.error else None}
    return success({"version": __version__, "vaults": vaults, "health": told})


def forget(engine: Engine, asked: Mapping[str, object]) -> Envelope:
    """Remove a fact.

    Raises:
        NotFound: there is none with this key.
    """
    return memory_forget(engine, _text(asked, "key"))


def conflicts(engine: Engine, asked: Mapping[str, str]) -> Envelope:
    """The conflicts that wait or, with `path`, both sides of one.

    Raises:
        ObsidianRagError: LiveSync is not set up, or its database cannot be reached.
    """
    path = asked.get("path")
    return sync_conflict(engine, path) if path else sync_conflicts(engine)


def resolve(engine: Engine, asked: Mapping[str, object]) -> Envelope:
    """Settle a conflict.

    Raises:
        ObsidianRagError: as for `conflicts`.
    """
    text = asked.get("text")
    merged = text if isinstance(text, str) else None
    return sync_resolve(engine, _text(asked, "path"), _text(asked, "keep"), merged)


def restore(engine: Engine, asked: Mapping[str, object]) -> Envelope:
    """Put a file of the trash back.

    Raises:
        NotFound: the trash has it no more.
    """
    number = asked.get("id")
    if not isinstance(number, int):
        raise InvalidArgument("'id' is missing.", "Send the number of a file in the trash.")
    return sync_restore(engine, number)


def _text(asked: Mapping[str, object], name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidArgument(f"'{name}' is missing.", "Send it as text.")
    return value
