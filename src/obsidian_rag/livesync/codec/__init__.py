"""Convert files to and from LiveSync's documents, byte for byte as other devices do."""

from obsidian_rag.livesync.codec.documents import Codec, Encoded, MissingChunks
from obsidian_rag.livesync.codec.entries import Entry
from obsidian_rag.livesync.codec.tweaks import Tweaks

__all__ = ["Codec", "Encoded", "Entry", "MissingChunks", "Tweaks"]
