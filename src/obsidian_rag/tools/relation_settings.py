"""The settings about related notes, for the person whose notes these are."""

from typing import Any

from pydantic import Field

from obsidian_rag.engine import Engine
from obsidian_rag.tools.dispatch import Found, Params, tool
from obsidian_rag.tools.guard import Caller


class RelationSettingsParams(Params):
    """What shall change, if anything."""

    changes: dict[str, Any] = Field(
        {}, max_length=50, description="New values by name; null gives a setting its default"
    )


@tool(
    "obsidian_rag_relation_settings",
    "Show and change the settings about related notes.",
    RelationSettingsParams,
    is_read_only=False,
)
def relation_settings(engine: Engine, params: RelationSettingsParams, _: Caller) -> Found:
    """Change settings of the section `relations`, and tell them all."""
    if params.changes:
        changes = {f"relations.{name[:60]}": value for name, value in params.changes.items()}
        engine.settings_file.change(changes)
        engine.follow_settings()
    settings = engine.settings_file.config.settings.relations
    return Found({"settings": settings.model_dump(mode="json")})
