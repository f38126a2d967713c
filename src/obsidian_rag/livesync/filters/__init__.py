"""Which paths LiveSync's own filters exclude."""

from obsidian_rag.livesync.filters.filters import (
    Filters,
    FilterSettings,
    check_filters,
    present_ignore_files,
)

__all__ = ["FilterSettings", "Filters", "check_filters", "present_ignore_files"]
