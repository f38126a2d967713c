"""What the frame of the page needs before it shows a view."""

from collections.abc import Mapping

from obsidian_rag import __version__
from obsidian_rag.engine import Engine, health_of
from obsidian_rag.tools import Envelope, success


def start(engine: Engine, _: Mapping[str, str]) -> Envelope:
    """Which vaults there are, and how the engine is."""
    health = health_of(engine)
    vaults = [
        {
            "id": vault.link_id,
            "name": vault.name,
            "path": str(vault.root),
            "is_primary": number == 0,
            "mode": str(vault.mode),
        }
        for number, vault in enumerate(engine.vaults)
    ]
    data = {
        "version": __version__,
        "vaults": vaults,
        "health": {
            "state": health.state,
            "error": health.error.body if health.error else None,
        },
    }
    return success(data)
