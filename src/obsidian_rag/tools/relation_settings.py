"""The settings about related notes, for the person whose notes these are."""

import time
from typing import Any

from pydantic import Field

from obsidian_rag.engine import Engine, change_relation_settings
from obsidian_rag.tools.dispatch import Params, Tool, answer_meta
from obsidian_rag.tools.envelope import Envelope, success
from obsidian_rag.tools.guard import OWNER, Caller


class RelationSettingsParams(Params):
    """What shall change, if anything."""

    changes: dict[str, Any] = Field(
        {}, max_length=50, description="New values by name; null gives a setting its default"
    )


def relation_settings(
    engine: Engine, params: RelationSettingsParams, _: Caller = OWNER
) -> Envelope:
    """Change settings of the section `relations`, and tell them all."""
    started = time.perf_counter()
    if params.changes:
        change_relation_settings(engine, params.changes)
    settings = engine.settings_file.config.settings.relations
    data = {"settings": settings.model_dump(mode="json")}
    return success(data, answer_meta(engine, started))


RELATION_SETTINGS = Tool(
    name="obsidian_rag_relation_settings",
    description="Show and change the settings about related notes.",
    params=RelationSettingsParams,
    run=relation_settings,
    is_read_only=False,
)
