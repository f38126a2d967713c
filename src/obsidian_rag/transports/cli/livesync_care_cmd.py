"""livesync resolve, restore and unlock: decisions that only the user can make."""

import contextlib
from typing import Annotated

import typer

from obsidian_rag.config import Config, load
from obsidian_rag.errors import InvalidArgument, ObsidianRagError
from obsidian_rag.transports.cli.backend import the_daemon
from obsidian_rag.transports.cli.livesync_setup_cmd import takes_database
from obsidian_rag.transports.cli.livesync_show import said, with_link
from obsidian_rag.transports.cli.output import JsonFlag, plain, print_data, print_done
from obsidian_rag.transports.cli.streams import say
from obsidian_rag.transports.daemon_client import DaemonGone
from obsidian_rag.transports.lazy import livesync


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("resolve")(takes_database(resolve))
    app.command("restore")(takes_database(restore))
    app.command("unlock")(takes_database(unlock))


def resolve(
    note: Annotated[
        str | None, typer.Argument(help="The note to settle; without it, all are listed")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option("--keep", help="ours, theirs, both, or the revision to keep"),
    ] = None,
    json_output: JsonFlag = False,
    *,
    options: "livesync.Options",
) -> int:
    """List notes that were changed in two places, or settle one

    The version that is not kept goes to the trash: `livesync restore` brings it back.

    Example:  obsidian-rag livesync resolve Notes/Plan.md --keep theirs
    """
    config = load()
    if note is None:
        if keep is not None:
            raise InvalidArgument("--keep needs a note.", "Name the note to settle.")
        waiting = livesync.waiting_conflicts(config, options)
        if json_output:
            told = {"conflicts": [_conflict(one) for one in waiting]}
            print_data(with_link(config, options, told))
        else:
            _print_conflicts(waiting)
        return 0
    if keep is None:
        raise InvalidArgument(
            "Which version should be kept?", "Add --keep ours, theirs, both, or a revision."
        )
    done = livesync.resolve_conflict(config, note, keep, options)
    fields = {"path": done.path, "kept": done.kept, "kept_as": list(done.kept_as)}
    beside = f"; the other version is {', '.join(map(plain, done.kept_as))}"
    settled = f"{plain(done.path)} is settled{beside if done.kept_as else ''}"
    print_done(with_link(config, options, fields), settled, json_output)
    try:
        with said("warning"):
            livesync.finish_resolving(config, options)
    except ObsidianRagError as error:
        say(f"It goes over with the next sync ({error.message})")
    return 0


def restore(
    file: Annotated[
        str | None, typer.Argument(help="Number or path; without it, all are listed")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Put back all files that other devices deleted")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Put back those deleted since: 2h, 3d, 2026-11-16"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, list what would come back")
    ] = False,
    json_output: JsonFlag = False,
    *,
    options: "livesync.Options",
) -> int:
    """List files that sync took out of the vault, or put them back

    If there is a file of that name by now, it comes back beside it. `--all` and `--since` bring
    back the latest version of each file, and leave copies of merged or moved notes in the trash;
    `--all` also refuses deletions that wait for your decision.

    Example:  obsidian-rag livesync restore --since 2h
    """
    config = load()
    if sum((file is not None, everything, since is not None)) > 1:
        raise InvalidArgument("Name a file, or --all, or --since.", "Choose one of them.")
    if everything or since is not None:
        done_many = livesync.restore_many(config, since, options, is_dry=dry_run)
        if json_output:
            print_data(with_link(config, options, _many_fields(done_many, dry_run)))
        else:
            _print_restored(done_many, dry_run)
        return 1 if done_many.failed else 0
    if dry_run:
        raise InvalidArgument("--dry-run needs --all or --since.", "Add one of them.")
    if file is not None:
        done = livesync.restore_trashed(config, file, options)
        back = f"{plain(done.path)} is back; the next sync sends it to the other devices"
        fields = with_link(config, options, {"path": done.path, "was": done.file.path})
        return print_done(fields, back, json_output)
    files = livesync.trashed_files(config, options)
    if json_output:
        told = {"files": [one.fields() for one in files]}
        print_data(with_link(config, options, told))
        return 0
    for one in files:
        when = one.removed_at[:16].replace("T", " ")
        print(f"{one.trash_id:>6}  {when}  {one.size:>9} B  {plain(one.path)}  ({one.reason})")
    if not files:
        say("The trash is empty.")
    return 0


def _many_fields(done: "livesync.RestoredMany", is_dry: bool) -> dict[str, object]:
    return {
        "dry_run": is_dry,
        "restored": [
            {"id": one.file.trash_id, "path": one.path, "was": one.file.path}
            for one in done.restored
        ],
        "failed": [
            {"id": file.trash_id, "path": file.path, "message": error.message}
            for file, error in done.failed
        ],
        "refused_deletions": list(done.held),
    }


def _print_restored(done: "livesync.RestoredMany", is_dry: bool) -> None:
    for one in done.restored:
        beside = f"  (as {plain(one.path)})" if one.path != one.file.path else ""
        print(f"{plain(one.file.path)}{beside}")
    for file, error in done.failed:
        say(f"{plain(file.path)}: {error.message}")
    for path in done.held:
        print(f"{plain(path)}  (its deletion waits, and is refused)")
    count = len(done.restored)
    files = f"{count} file{'' if count == 1 else 's'}"
    if is_dry:
        say(f"{files} would come back; nothing was changed")
    elif count or done.held:
        held = f"{len(done.held)} deletion{'' if len(done.held) == 1 else 's'} refused"
        told = [f"{files} came back"] * bool(count) + [held] * bool(done.held)
        say(f"{', '.join(told)}; the next sync tells the other devices")
    elif not done.failed:
        say("There is nothing to bring back.")
    if done.left:
        say(f"{done.left} more in the trash; `livesync restore` lists them")


def unlock(json_output: JsonFlag = False, *, options: "livesync.Options") -> int:
    """Take part again after another device locked or rebuilt

    Files stay as they are. If the database was rebuilt, the next sync compares everything again
    and deletes nothing; if it was only locked, it goes on where it stopped.

    Example:  obsidian-rag livesync unlock
    """
    config = load()
    livesync.unlock_database(config, options)
    accepted = "This device is accepted; the next sync looks at everything again"
    print_done({"unlocked": True}, accepted, json_output)
    _wake_daemon(config)
    return 0


def _wake_daemon(config: Config) -> None:
    """Make the daemon's node try again if it has stopped."""
    daemon = the_daemon(config)
    if daemon is not None:
        with contextlib.suppress(DaemonGone):
            daemon.call("obsidian_sync_status", {})


def _conflict(one: "livesync.WaitingConflict") -> dict[str, object]:
    conflict = one.conflict
    return {
        "path": conflict.path,
        "since": conflict.since,
        "kept_as": conflict.kept_as,
        "versions": [{"rev": rev, "ours": rev == one.ours} for rev in conflict.revs],
    }


def _print_conflicts(waiting: "tuple[livesync.WaitingConflict, ...]") -> None:
    for one in waiting:
        conflict = one.conflict
        print(f"{plain(conflict.path)}  since {conflict.since[:16].replace('T', ' ')}")
        if conflict.kept_as is not None:
            print(f"  ours    {plain(conflict.kept_as)}")
            print("  theirs  in the note itself")
            continue
        for rev in conflict.revs:
            is_ours = rev == one.ours and len(conflict.revs) > 1
            print(f"  {'ours  ' if is_ours else 'theirs'}  {rev}")
    if waiting:
        say("\nSettle one: `obsidian-rag livesync resolve NOTE --keep ours|theirs|both|REVISION`")
    else:
        say("No note waits.")
