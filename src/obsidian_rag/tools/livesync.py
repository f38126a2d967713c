"""LiveSync as the command line uses it: functions with types of their own, and no envelope."""

import functools

from obsidian_rag.engine import watch_files
from obsidian_rag.livesync import (
    PASSPHRASE_VARIABLE,
    PASSWORD_VARIABLE,
    Direction,
    LivesyncCheck,
    NotEncrypted,
    Options,
    RestoredMany,
    SetUp,
    SyncResult,
    Tweaks,
    WaitingConflict,
    check_livesync,
    finish_resolving,
    needs_consent,
    needs_password,
    resolve_conflict,
    restore_many,
    restore_trashed,
    run_livesync,
    set_up,
    sync_once,
    take_held_deletions,
    trashed_files,
    unlock_database,
    waiting_conflicts,
)

# Be a node in the foreground, with a watcher of its own.
run_until_stopped = functools.partial(run_livesync, watch_files)

__all__ = [
    "PASSPHRASE_VARIABLE",
    "PASSWORD_VARIABLE",
    "Direction",
    "LivesyncCheck",
    "NotEncrypted",
    "RestoredMany",
    "SetUp",
    "SyncResult",
    "Tweaks",
    "WaitingConflict",
    "Options",
    "check_livesync",
    "finish_resolving",
    "needs_consent",
    "needs_password",
    "resolve_conflict",
    "restore_many",
    "restore_trashed",
    "run_until_stopped",
    "set_up",
    "sync_once",
    "take_held_deletions",
    "trashed_files",
    "unlock_database",
    "waiting_conflicts",
]
