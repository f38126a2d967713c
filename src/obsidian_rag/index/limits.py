"""Chunk limits, and which passages must not leave this machine.

Chunks are as large as the settings say, but no larger than the embedder accepts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from obsidian_rag.config import Config, Settings
from obsidian_rag.embed import Embedder
from obsidian_rag.notes import (
    Chunk,
    ChunkLimits,
    chunk_categories,
    embedding_text,
    sensitive_categories,
    without_comments,
)
from obsidian_rag.store import NoteRow

_MAX_CHARS = 2000
# Room for the title and the headings in front of a chunk's text.
_TITLE_TOKENS = 52
_MIN_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Guarded:
    """Rules for private text, which is never sent to an external embedder.

    With `is_kept_out` it is not put into the chunk store either, because that is remote too.
    """

    patterns: Mapping[str, Sequence[str]]
    sections: Sequence[str]
    is_kept_out: bool = False

    @classmethod
    def of(cls, config: Config) -> "Guarded":
        """The rules from the settings."""
        settings = config.settings
        return cls(
            settings.memory.patterns,
            settings.security.sensitive_sections,
            config.is_store_remote and not settings.vector_store.private_consent,
        )

    def is_private(self, note: NoteRow, chunk: Chunk) -> bool:
        """Whether this chunk of a note is private."""
        return note.is_private or self._is_sensitive(note.title, chunk)

    def sendable(self, title: str, chunk: Chunk, *, is_private: bool) -> str | None:
        """The text of a chunk that may be sent; None if nothing may."""
        if is_private or chunk.has_cut_comment or self._is_sensitive(title, chunk):
            return None
        return without_comments(embedding_text(title, chunk.heading_path, chunk.text))

    def _is_sensitive(self, title: str, chunk: Chunk) -> bool:
        return bool(
            chunk_categories(chunk, self.patterns, self.sections)
            or sensitive_categories(title, None, (), self.patterns, self.sections)
        )

    def leaves_out(self, note: NoteRow, chunk: Chunk) -> bool:
        """Whether this chunk stays out of the store; its row would contain the note's aliases."""
        return self.is_kept_out and (
            self.is_private(note, chunk)
            or bool(
                sensitive_categories(
                    "\n".join(note.aliases), None, (), self.patterns, self.sections
                )
            )
        )


def limits_for(settings: Settings, embedder: Embedder) -> ChunkLimits:
    """The limits of a chunk."""
    fits, most = embedder.max_tokens, settings.indexing.chunk_size
    if fits is not None:
        most = min(most, max(fits - _TITLE_TOKENS, fits // 2, _MIN_TOKENS))
    return ChunkLimits(
        max_chars=_MAX_CHARS,
        max_tokens=most,
        overlap_tokens=min(settings.indexing.chunk_overlap, most // 2),
        strip_code=settings.security.strip_code_blocks,
        max_chunks=settings.indexing.max_chunks,
    )
