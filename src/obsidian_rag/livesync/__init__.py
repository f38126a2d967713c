"""A node of a LiveSync network: keeps a vault and a CouchDB database the same, both ways."""

from obsidian_rag.livesync.care import (
    RestoredMany,
    WaitingConflict,
    check_livesync,
    conflict_versions,
    finish_resolving,
    merge_conflict,
    resolve_conflict,
    restore_many,
    restore_trashed,
    take_held_deletions,
    trashed_files,
    unlock_database,
    waiting_conflicts,
)
from obsidian_rag.livesync.codec import Tweaks
from obsidian_rag.livesync.codec.tweaks import NotEncrypted
from obsidian_rag.livesync.loop import LivesyncLoop, run_until_stopped
from obsidian_rag.livesync.merge import find_hunks
from obsidian_rag.livesync.session import sync_once
from obsidian_rag.livesync.setup import (
    SetUp,
    forget_secrets,
    needs_consent,
    needs_password,
    set_up,
)
from obsidian_rag.livesync.site import (
    PASSPHRASE_VARIABLE,
    PASSWORD_VARIABLE,
    Direction,
    Options,
    settings_for_syncing,
    shares_vault,
    synced_root,
)
from obsidian_rag.livesync.status import (
    LivesyncState,
    SyncReport,
    livesync_state,
    livesync_trouble,
    status_fields,
    synced_link,
)

__all__ = [
    "PASSPHRASE_VARIABLE",
    "PASSWORD_VARIABLE",
    "Direction",
    "LivesyncLoop",
    "LivesyncState",
    "NotEncrypted",
    "Options",
    "RestoredMany",
    "SetUp",
    "SyncReport",
    "Tweaks",
    "WaitingConflict",
    "check_livesync",
    "conflict_versions",
    "find_hunks",
    "finish_resolving",
    "forget_secrets",
    "livesync_state",
    "livesync_trouble",
    "merge_conflict",
    "needs_consent",
    "needs_password",
    "resolve_conflict",
    "restore_many",
    "restore_trashed",
    "run_until_stopped",
    "set_up",
    "settings_for_syncing",
    "shares_vault",
    "status_fields",
    "sync_once",
    "synced_link",
    "synced_root",
    "take_held_deletions",
    "trashed_files",
    "unlock_database",
    "waiting_conflicts",
]
