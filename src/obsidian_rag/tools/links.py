"""`obsidian_link_*` and `obsidian_sync_now`: other vaults, searched in place.

Threat: an agent is talked into linking a folder that it should not read. These tools are marked as
changing something, so that clients ask the user first, and limited callers cannot use them. A vault
outside the caller's scope counts as not linked.
"""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from obsidian_rag.engine import (
    Engine,
    Job,
    add_link,
    change_link,
    health_of,
    link_status,
    remove_link,
    run_index,
    sync_link,
)
from obsidian_rag.tools.citation import known_files
from obsidian_rag.tools.dispatch import Found, NoParams, Params, tool
from obsidian_rag.tools.guard import Caller
from obsidian_rag.tools.index import started_job

Text = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Texts = Annotated[tuple[Text, ...], Field(max_length=50)]
Mode = Literal["read_only", "read_write"]
_WHICH = "Its link id or name"


class LinkAddParams(Params):
    """Which folder, and how much of it."""

    root_path: Text = Field(description="Absolute path of its folder")
    mode: Mode = Field("read_only", description="read_write is refused for now")
    include: Texts | None = Field(None, description="Only these folders")
    exclude: Texts | None = Field(None, description="Skip these folders")
    name: Annotated[str, StringConstraints(max_length=100)] | None = Field(
        None, description="Name for it"
    )


class LinkParams(Params):
    """Which vault."""

    link_id: Text = Field(description=_WHICH)


class LinkModeParams(LinkParams):
    """What is to change."""

    mode: Mode | None = Field(None, description="read_write is refused for now")
    paused: bool | None = Field(None, description="True pauses it, false resumes it")


class SyncNowParams(Params):
    """Which vault."""

    link_id: Text | None = Field(None, description=f"{_WHICH}; by default all vaults")


class LinkSyncStatusParams(LinkParams):
    """Which vault, and how much of its queue."""

    limit: int = Field(20, ge=0, le=500, description="Most files to list")


@tool(
    "obsidian_link_add",
    "Make another vault on this machine searchable where it is; its files are only read."
    " Only if the user asked for it.",
    LinkAddParams,
    is_read_only=False,
    is_of_installation=True,
    reports_health=True,
)
def link_add(engine: Engine, params: LinkAddParams, _: Caller) -> Found:
    """Link a vault; a daemon starts to import it.

    Raises:
        InvalidArgument: the folder cannot be a linked vault.
        ReadOnly: write access was requested.
    """
    # Before the link is added: a new vault is not imported yet, and that is not a failure.
    health = health_of(engine)
    link = add_link(
        engine,
        params.root_path,
        params.mode,
        params.include or (),
        params.exclude or (),
        params.name,
    )
    is_importing = engine.live.jobs is not None
    call = "obsidian_link_sync_status" if is_importing else "obsidian_sync_now"
    purpose = "shows how far the import is" if is_importing else "imports it"
    data = {
        **link.fields,
        "warnings": list(link.warnings),
        "importing": is_importing,
        "next_step": f'{call} with link_id "{link.name}" {purpose}.',
    }
    return Found(data, health.error, health.state)


@tool(
    "obsidian_link_list",
    "The vaults that are searched: names, modes, how far each is indexed.",
    NoParams,
    is_read_only=True,
)
def link_list(engine: Engine, _: NoParams, caller: Caller) -> Found:
    """List the vaults that the caller may know of, the primary one first."""
    found = [
        _link_fields(link_status(engine, link.link_id, 0), caller)
        for link in engine.vaults.links_within(caller.scope)
    ]
    return Found({"links": found})


@tool(
    "obsidian_link_remove",
    "Stop searching a linked vault and drop its index; its files stay. Ask the user.",
    LinkParams,
    is_read_only=False,
    is_of_installation=True,
    is_destructive=True,
)
def link_remove(engine: Engine, params: LinkParams, caller: Caller) -> Found:
    """Remove a linked vault; its files stay as they are.

    Raises:
        NotFound: there is no such vault.
        InvalidArgument: it is the primary one.
        Busy: another process writes the index.
    """
    link = engine.vaults.link(params.link_id, caller.scope)
    removed = remove_link(engine, link.link_id)
    return Found({**link.fields, "removed": asdict(removed), "files_untouched": True})


@tool(
    "obsidian_link_set_mode",
    "Change the mode of a linked vault, pause its import or resume it.",
    LinkModeParams,
    is_read_only=False,
    is_of_installation=True,
)
def link_set_mode(engine: Engine, params: LinkModeParams, caller: Caller) -> Found:
    """Change the mode of a linked vault, pause it or resume it.

    Raises:
        NotFound: there is no such vault.
        ReadOnly: write access was requested.
        InvalidArgument: it is the primary one.
    """
    link = engine.vaults.link(params.link_id, caller.scope)
    changed = change_link(engine, link.link_id, params.mode, params.paused)
    return Found(changed.fields)


@tool(
    "obsidian_sync_now",
    "Index what changed in one vault, or in all, now.",
    SyncNowParams,
    is_read_only=False,
    is_of_installation=True,
)
def sync_now(engine: Engine, params: SyncNowParams, caller: Caller) -> Found:
    """Sync the index with one vault, or with all of them, now.

    Raises:
        NotFound: there is no such vault.
        InvalidArgument: it is paused.
        Busy: another process writes the index.
    """
    if params.link_id is not None:
        done = sync_link(engine, engine.vaults.link(params.link_id, caller.scope).link_id)
    elif engine.live.jobs is not None:
        done = engine.live.jobs.request("sync")
    else:
        done = run_index(engine, "sync")
    if isinstance(done, Job):
        return Found(started_job(done))
    fields = done.fields
    shown = {**fields, "errors": known_files(engine, fields["errors"], caller)}
    return Found({"status": "completed", "mode": "sync", **shown})


@tool(
    "obsidian_link_sync_status",
    "How far the import of one vault is, and which files wait or failed.",
    LinkSyncStatusParams,
    is_read_only=True,
)
def link_sync_status(engine: Engine, params: LinkSyncStatusParams, caller: Caller) -> Found:
    """Show how far the import of a vault is, and which files wait or failed.

    Raises:
        NotFound: there is no such vault.
    """
    link = engine.vaults.link(params.link_id, caller.scope)
    found = link_status(engine, link.link_id, params.limit)
    waiting = [{**asdict(row), "file": row.rel_path} for row in found.queue]
    return Found({**_link_fields(found, caller), "queue": known_files(engine, waiting, caller)})


def _link_fields(found: Any, caller: Caller) -> dict[str, Any]:
    """A vault and its progress as JSON; a limited caller does not see its size or location."""
    link = found.link.fields
    if caller.is_limited:
        kept = ("link_id", "name", "mode", "is_primary")
        return {**{key: link[key] for key in kept}, "label": found.label}
    error = found.health.error
    return {
        **link,
        "label": found.label,
        "health": found.health.state,
        "trouble": error.body if error else None,
        "progress": asdict(found.progress),
        "totals": asdict(found.totals),
    }
