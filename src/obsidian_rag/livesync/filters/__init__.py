"""Which paths LiveSync's own filters leave out."""

from obsidian_rag.livesync.filters.filters import Filters, FilterSettings, check_filters

__all__ = ["FilterSettings", "Filters", "check_filters"]
