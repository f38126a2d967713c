"""The daemon as a login item of systemd, launchd or the Task Scheduler."""

from obsidian_rag.autostart.entry import (
    Entry,
    Machine,
    Platform,
    daemon_config,
    entry_for,
    platform_of,
    unseen_settings,
)
from obsidian_rag.autostart.installation import install_entry, observe_entry, remove_entry

__all__ = [
    "Entry",
    "Machine",
    "Platform",
    "daemon_config",
    "entry_for",
    "install_entry",
    "observe_entry",
    "platform_of",
    "remove_entry",
    "unseen_settings",
]
