"""How notes are cut: as the settings say, and no longer than the embedder takes."""

from obsidian_rag.config import Settings
from obsidian_rag.embed import Embedder
from obsidian_rag.notes import ChunkLimits

_MAX_CHARS = 2000
# Room for the title and the headings in front of a chunk's text.
_TITLE_TOKENS = 52
_FEWEST_TOKENS = 16


def limits_for(settings: Settings, embedder: Embedder) -> ChunkLimits:
    """The limits of a chunk."""
    fits, most = embedder.max_tokens, settings.indexing.chunk_size
    if fits is not None:
        most = min(most, max(fits - _TITLE_TOKENS, fits // 2, _FEWEST_TOKENS))
    return ChunkLimits(
        max_chars=_MAX_CHARS,
        max_tokens=most,
        overlap_tokens=min(settings.indexing.chunk_overlap, most // 2),
        strip_code=settings.security.strip_code_blocks,
        max_chunks=settings.indexing.max_chunks,
    )
