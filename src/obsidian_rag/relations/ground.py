"""Which notes are related, and how."""

from dataclasses import dataclass

from obsidian_rag.config import RelationsSettings

_VERSION = 5


@dataclass(frozen=True, slots=True)
class Ground:
    """The settings by which notes are related, the same for all vaults."""

    settings: RelationsSettings

    def admits(self, path: str) -> bool:
        """Whether the note at this path is related to others."""
        folders = self.settings.excluded_folders
        return not path.startswith(tuple(f"{folder.strip('/ ')}/" for folder in folders))


def format_of(settings: RelationsSettings) -> str:
    """What indexes must agree in to be used together: our version, and how notes are read."""
    made_by = (settings.ngram_size, settings.max_chars, settings.store_positions)
    # A user who has ids added wants them in all notes, not only in those that change.
    return f"{_VERSION} {made_by} {settings.discount_boilerplate} {settings.auto_add_ids}"
