"""livesync run, push and pull: sync once, or until stopped."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import typer

from obsidian_rag.config import Config, load
from obsidian_rag.errors import Busy, InvalidArgument
from obsidian_rag.transports.cli import livesync_care_cmd, livesync_setup_cmd, livesync_show
from obsidian_rag.transports.cli.livesync_setup_cmd import Configuration, InitFlag, takes_database
from obsidian_rag.transports.cli.livesync_show import (
    first_sync,
    print_plan,
    print_result,
    result_fields,
    said,
    with_link,
)
from obsidian_rag.transports.cli.output import JsonFlag, print_data, print_done, stop_on_signals
from obsidian_rag.transports.lazy import livesync

app = typer.Typer(
    no_args_is_help=True,
    help="Sync the vault with other devices through Self-hosted LiveSync",
    rich_markup_mode=None,
)
OnceFlag = Annotated[bool, typer.Option("--once", help="Sync once and end")]
DryRunFlag = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing, print what would happen")
]
AllowFlag = Annotated[
    bool,
    typer.Option("--allow-deletions", help="Send and take deletions, however many files are gone"),
]

_RUN = """Sync the vault and the database, both ways, until Ctrl-C

    Everything that differs is brought together first; then changes go over as they happen.
    Nothing is lost: what another device deletes can be restored, what was changed in two
    places is merged or kept twice.

    Example:  obsidian-rag livesync run --dry-run
    """
_PUSH = """Send what was changed here; files of the vault stay as they are

    Example:  obsidian-rag livesync push --once
    """
_PULL = """Take what other devices changed; the database stays as it is

    Example:  obsidian-rag livesync pull --once
    """


def _command(direction: str, text: str) -> Callable[..., int]:
    """One command for each direction; their options are the same."""

    def sync(
        once: OnceFlag = False,
        dry_run: DryRunFlag = False,
        read_only: Annotated[
            bool,
            typer.Option("--read-only", help="Take changes, send none", hidden=direction != "both"),
        ] = False,
        allow_deletions: AllowFlag = False,
        init: InitFlag = False,
        json_output: JsonFlag = False,
        *,
        configuration: Configuration,
        options: "livesync.Options",
    ) -> int:
        if read_only and direction == "push":
            raise InvalidArgument("push and --read-only exclude each other.", "Choose one.")
        asked = replace(
            options,
            is_init=init,
            tweaks=configuration.tweaks(),
            encrypts=configuration.encrypts,
            direction=livesync.Direction(direction),
            is_read_only=read_only,
            is_dry=dry_run,
            allows_deletions=allow_deletions,
        )
        if once or dry_run:
            return _once(load(), asked, json_output)
        if json_output:
            raise InvalidArgument("--json needs --once or --dry-run.", "Add one of them.")
        return _until_stopped(load(), asked)

    sync.__doc__ = text
    return takes_database(sync)


def _once(config: Config, options: "livesync.Options", json_output: bool) -> int:
    stop = stop_on_signals("files")
    try:
        with said(config.settings.livesync.logLevel), first_sync() as show:
            result = livesync.sync_once(config, options, show, stop.is_set)
    except Busy:
        # The daemon syncs and holds deletions; this confirms them.
        is_meant = options.allows_deletions and not options.is_dry
        if not is_meant or not (held := livesync.take_held_deletions(config, options)):
            raise
        now = f"The running sync now carries out {held} deletion{'' if held == 1 else 's'}"
        return print_done({"accepted_deletions": held}, now, json_output)
    if json_output:
        print_data(with_link(config, options, result_fields(result)))
    elif options.is_dry:
        print_plan(result)
    else:
        print_result(result)
    return 130 if result.is_stopped else 0 if result.is_complete else 1


def _until_stopped(config: Config, options: "livesync.Options") -> int:
    stop = stop_on_signals("files")
    with said(config.settings.livesync.logLevel), first_sync() as show:
        if options.allows_deletions:
            # Only once: later deletions need a new confirmation.
            livesync.sync_once(config, options, show, stop.is_set)
            options = replace(options, allows_deletions=False)
        livesync.run_until_stopped(config, stop, options, show)
    return 0


livesync_setup_cmd.add_to(app)
app.command("run")(_command("both", _RUN))
app.command("push")(_command("push", _PUSH))
app.command("pull")(_command("pull", _PULL))
livesync_show.add_to(app)
livesync_care_cmd.add_to(app)
