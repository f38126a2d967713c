"""livesync status, check, resolve, restore and unlock: the state, and decisions of the user."""

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer

from obsidian_rag.config import Config, load
from obsidian_rag.errors import InvalidArgument, ObsidianRagError
from obsidian_rag.transports.cli.backend import ask_tool, the_daemon
from obsidian_rag.transports.cli.livesync_setup_cmd import (
    ConsentFlag,
    DbOption,
    PassphraseEnvOption,
    PasswordEnvOption,
    UrlOption,
    UserOption,
    VaultOption,
    database_options,
)
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    counted,
    plain,
    print_answer,
    print_data,
    print_done,
    print_envelope,
    print_failure,
    print_sections,
    print_trouble,
)
from obsidian_rag.transports.cli.streams import put, say, screen
from obsidian_rag.transports.daemon_client import DaemonGone
from obsidian_rag.transports.lazy import livesync, tools

_SHOWN = 20
_LOG_LINE = "[livesync] [%(levelname)s] %(message)s"


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("status")(status)
    app.command("check")(check)
    app.command("resolve")(resolve)
    app.command("restore")(restore)
    app.command("unlock")(unlock)


def status(json_output: JsonFlag = False) -> int:
    """Show whether the vault is in sync and what waits

    Example:  obsidian-rag livesync status
    """
    envelope = ask_tool("obsidian_sync_status", {})
    return print_answer(envelope, json_output, _print_status)


def _print_status(data: Any) -> None:
    if not data["configured"]:
        put(data["message"])
        return
    for name, value in _status_lines(data):
        put(f"{name:<10} {value}")
    for line in not_synced_lines(data["not_synced"]):
        put(line)
    if trouble := data["trouble"]:
        put()
        print_trouble(trouble, screen().out)


def _status_lines(data: Any) -> Iterable[tuple[str, object]]:
    stats = data["stats"]
    yield "sync", _state(data)
    yield "server", data["server"]
    yield "database", data["database"]
    yield "vault", data["vault"]
    yield "files", data["files"]
    yield "taken", f"{stats['pulled']}, deleted here {stats['deleted_here']}"
    yield "sent", f"{stats['pushed']}, deleted there {stats['deleted_there']}"
    yield "merged", stats["merged"]
    yield "conflicts", _waiting(stats["conflicts"], "resolve")
    yield "unread", _waiting(stats["quarantined"], "check")
    yield "trash", _waiting(stats["trash"], "restore")
    if stats["lag"]:
        yield "behind", counted(stats["lag"], "change")


def _state(data: Any) -> str:
    if not data["running"]:
        return "not running"
    progress = data["progress"]
    if progress is not None and progress["total"]:
        return f"catching up ({progress['current']} of {progress['total']})"
    connected = "connected" if data["connected"] else "not connected"
    return f"running, {connected}{', watching the vault' if data['watching'] else ''}"


def _waiting(number: int, command: str) -> str:
    return f"{number} (`obsidian-rag livesync {command}`)" if number else "0"


def check(
    show_all: Annotated[
        bool, typer.Option("--all", help="List everything, not only 20 each")
    ] = False,
    url: UrlOption = None,
    db: DbOption = None,
    user: UserOption = None,
    password_env: PasswordEnvOption = None,
    passphrase_env: PassphraseEnvOption = None,
    vault: VaultOption = None,
    consent: ConsentFlag = False,
    json_output: JsonFlag = False,
) -> int:
    """List what is not synced, and why

    Documents, files, conflicts, and names that other systems cannot write.
    Asks the database and changes nothing. Exits with 1 if something needs attention.

    Example:  obsidian-rag livesync check
    """
    config = load()
    options = database_options(url, db, user, password_env, passphrase_env, vault, consent)
    found = livesync.check_livesync(config, options)
    if json_output:
        fields = with_link(config, options, _check_fields(found))
        print_envelope(tools.success(fields, trouble=found.trouble))
    else:
        _print_check(found, None if show_all else _SHOWN)
    return 0 if found.is_clean else 1


def _check_fields(found: "livesync.SyncReport") -> dict[str, object]:
    return {
        "is_clean": found.is_clean,
        "files": found.files,
        "quarantined": [
            {
                "path": one.path,
                "id": one.doc_id,
                "code": one.code,
                "message": one.message,
                "since": one.since,
            }
            for one in found.quarantined
        ],
        "conflicts": [{"path": one.path, "kept_as": one.kept_as} for one in found.conflicts],
        "left_out": [{"path": path, "reason": why} for path, why in sorted(found.left_out.items())],
        "warnings": [{"path": path, "reason": why} for path, why in sorted(found.warnings.items())],
        "filtered": [{"path": path, "reason": why} for path, why in sorted(found.filtered.items())],
    }


def _print_check(found: "livesync.SyncReport", most: int | None) -> None:
    sections: tuple[tuple[str, list[str]], ...] = (
        (
            "Set aside",
            [f"{one.path or one.doc_id}: {one.message}" for one in found.quarantined],
        ),
        ("Changed in two places", [one.path for one in found.conflicts]),
        (
            "Not synced",
            [f"{path or 'the vault'}: {why}" for path, why in sorted(found.left_out.items())],
        ),
        (
            "Excluded by your filters",
            [f"{path}: {why}" for path, why in sorted(found.filtered.items())],
        ),
        (
            "Synced, but some systems cannot write them",
            [f"{path}: {why}" for path, why in sorted(found.warnings.items())],
        ),
    )
    print_sections(sections, most, "--all")
    if found.trouble is not None:
        print_failure(found.trouble)
    if found.is_clean:
        others = "nothing else" if found.filtered else "nothing"
        put(f"{counted(found.files, 'file')} in sync, {others} left out")


def resolve(
    note: Annotated[
        str | None, typer.Argument(help="The note to resolve; without it, all are listed")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option("--keep", help="ours, theirs, both, or the revision to keep"),
    ] = None,
    url: UrlOption = None,
    db: DbOption = None,
    user: UserOption = None,
    password_env: PasswordEnvOption = None,
    passphrase_env: PassphraseEnvOption = None,
    vault: VaultOption = None,
    consent: ConsentFlag = False,
    json_output: JsonFlag = False,
) -> int:
    """List notes that were changed in two places, or resolve one

    The version that is not kept goes to the trash: `livesync restore` brings it back.

    Example:  obsidian-rag livesync resolve Notes/Plan.md --keep theirs
    """
    config = load()
    options = database_options(url, db, user, password_env, passphrase_env, vault, consent)
    if note is None:
        if keep is not None:
            raise InvalidArgument("--keep needs a note.", "Name the note to resolve.")
        waiting = livesync.waiting_conflicts(config, options)
        if json_output:
            listed = {"conflicts": [_conflict(one) for one in waiting]}
            print_data(with_link(config, options, listed))
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
    resolved = f"{plain(done.path)} is resolved{beside if done.kept_as else ''}"
    print_done(with_link(config, options, fields), resolved, json_output)
    try:
        with show_log("warning"):
            livesync.finish_resolving(config, options)
    except ObsidianRagError as error:
        say(f"The next sync sends it ({error.message})")
    return 0


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
        put(f"{plain(conflict.path)}  since {conflict.since[:16].replace('T', ' ')}")
        if conflict.kept_as is not None:
            put(f"  ours    {plain(conflict.kept_as)}")
            put("  theirs  in the note itself")
            continue
        for rev in conflict.revs:
            is_ours = rev == one.ours and len(conflict.revs) > 1
            put(f"  {'ours  ' if is_ours else 'theirs'}  {rev}")
    if waiting:
        say("\nResolve one: `obsidian-rag livesync resolve NOTE --keep ours|theirs|both|REVISION`")
    else:
        say("No conflicts.")


def restore(
    file: Annotated[
        str | None, typer.Argument(help="Number or path; without it, all are listed")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Restore all files that other devices deleted")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Restore those deleted since: 2h, 3d, 2026-11-16"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, list what would be restored")
    ] = False,
    url: UrlOption = None,
    db: DbOption = None,
    user: UserOption = None,
    password_env: PasswordEnvOption = None,
    passphrase_env: PassphraseEnvOption = None,
    vault: VaultOption = None,
    consent: ConsentFlag = False,
    json_output: JsonFlag = False,
) -> int:
    """List files that sync removed from the vault, or restore them

    A file whose name is taken again is restored beside the other one. `--all` and `--since`
    restore the latest version of each file, and leave copies of merged or moved notes in the
    trash; `--all` also refuses deletions that wait for your decision.

    Example:  obsidian-rag livesync restore --since 2h
    """
    config = load()
    options = database_options(url, db, user, password_env, passphrase_env, vault, consent)
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
        restored = f"{plain(done.path)} is restored; the next sync sends it to the other devices"
        fields = with_link(config, options, {"path": done.path, "was": done.file.path})
        return print_done(fields, restored, json_output)
    files = livesync.trashed_files(config, options)
    if json_output:
        listed = {"files": [one.fields() for one in files]}
        print_data(with_link(config, options, listed))
        return 0
    for one in files:
        when = one.removed_at[:16].replace("T", " ")
        put(f"{one.trash_id:>6}  {when}  {one.size:>9} B  {plain(one.path)}  ({one.reason})")
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
        put(f"{plain(one.file.path)}{beside}")
    for file, error in done.failed:
        say(f"{plain(file.path)}: {error.message}")
    for path in done.held:
        put(f"{plain(path)}  (its pending deletion is refused)")
    count = len(done.restored)
    files = f"{count} file{'' if count == 1 else 's'}"
    if is_dry:
        say(f"{files} would be restored; nothing was changed")
    elif count or done.held:
        held = f"{len(done.held)} deletion{'' if len(done.held) == 1 else 's'} refused"
        parts = [f"{files} restored"] * bool(count) + [held] * bool(done.held)
        say(f"{', '.join(parts)}; the next sync tells the other devices")
    elif not done.failed:
        say("There is nothing to restore.")
    if done.left:
        say(f"{done.left} more in the trash; `livesync restore` lists them")


def unlock(
    url: UrlOption = None,
    db: DbOption = None,
    user: UserOption = None,
    password_env: PasswordEnvOption = None,
    passphrase_env: PassphraseEnvOption = None,
    vault: VaultOption = None,
    consent: ConsentFlag = False,
    json_output: JsonFlag = False,
) -> int:
    """Sync again after another device locked or rebuilt the database

    Files stay as they are. If the database was rebuilt, the next sync compares everything again and
    deletes nothing; if it was only locked, sync continues where it stopped.

    Example:  obsidian-rag livesync unlock
    """
    config = load()
    options = database_options(url, db, user, password_env, passphrase_env, vault, consent)
    livesync.unlock_database(config, options)
    accepted = "This device is accepted; the next sync checks everything again"
    print_done({"unlocked": True}, accepted, json_output)
    _wake_daemon(config)
    return 0


def _wake_daemon(config: Config) -> None:
    """Let the daemon's node try again if it has stopped."""
    daemon = the_daemon(config)
    if daemon is not None:
        with contextlib.suppress(DaemonGone):
            daemon.call("obsidian_sync_status", {})


# -- for all livesync commands


def with_link(
    config: Config, options: "livesync.Options", fields: Mapping[str, object]
) -> dict[str, object]:
    """Add the link id of the vault that is synced, if it is one."""
    return {"link_id": livesync.synced_link(config, options), **fields}


def not_synced_lines(groups: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is not synced, a line for each reason with the first few names."""
    lines = []
    for group in groups:
        paths, count = group["paths"], group["count"]
        more = f" and {count - len(paths)} more" if count > len(paths) else ""
        names = f"{', '.join(map(plain, paths))}{more}"
        title = "synced, but" if group["kind"] == "elsewhere" else "not synced"
        lines.append(f"{title:<11} {count}: {plain(group['reason'])}: {names}")
    return lines


@contextlib.contextmanager
def show_log(level: str) -> Iterator[None]:
    """Context manager: print the node's log on stderr."""
    logger = logging.getLogger("obsidian_rag.livesync")
    target = _OnStderr()
    target.setFormatter(logging.Formatter(_LOG_LINE))
    before = logger.level
    logger.addHandler(target)
    logger.setLevel(level.upper())
    try:
        yield
    finally:
        logger.removeHandler(target)
        logger.setLevel(before)


class _OnStderr(logging.Handler):
    """Writes to the current stderr, which prints above the bar while one is drawn."""

    def emit(self, record: logging.LogRecord) -> None:
        # A path may contain control characters.
        say(plain(self.format(record)))
