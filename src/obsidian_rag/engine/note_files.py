"""The files of notes, for the tools: what may be read, read inside the boundary."""

from obsidian_rag.engine.engine import Engine
from obsidian_rag.vault import NoteFile, read_note


def note_text(engine: Engine, path: str) -> str | None:
    """The text of a note's file; None where it cannot be read.

    Raises:
        NoteChanged: somebody keeps writing to it.
        SecurityViolation: the path leaves the vault.
    """
    file = read_note(engine.config.vault_root, path, engine.rules.max_file_bytes)
    return file.text if isinstance(file, NoteFile) else None
