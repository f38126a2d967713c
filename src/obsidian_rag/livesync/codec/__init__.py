"""Files as LiveSync keeps them, and back: to the byte what the other devices write."""

from obsidian_rag.livesync.codec.documents import Codec, Encoded, MissingChunks
from obsidian_rag.livesync.codec.entries import Entry
from obsidian_rag.livesync.codec.tweaks import Tweaks

__all__ = ["Codec", "Encoded", "Entry", "MissingChunks", "Tweaks"]
