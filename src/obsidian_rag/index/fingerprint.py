"""What made an index: when any of it changes, old and new chunks do not fit together."""

import json
from collections.abc import Mapping

from obsidian_rag.embed import Embedder
from obsidian_rag.errors import EmbeddingMismatch
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.store import SCHEMA_VERSION

CHUNKER_VERSION = 1


def fingerprint(embedder: Embedder, limits: ChunkLimits) -> str:
    """The fingerprint of an index made now."""
    parts = {
        "schema": SCHEMA_VERSION,
        "chunker": CHUNKER_VERSION,
        "chunks": f"{limits.max_tokens}/{limits.overlap_tokens}/{limits.max_chars}"
        f"/{'no-code' if limits.strip_code else 'code'}",
        "embedder": embedder.fingerprint,
    }
    return json.dumps(parts, sort_keys=True)


def check(made: str | None, wanted: str) -> None:
    """Refuse to mix an index with one that is made differently.

    Raises:
        EmbeddingMismatch: they differ; the message says in what.
    """
    if made is None or made == wanted:
        return
    before, after = _parts(made), _parts(wanted)
    names = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    raise EmbeddingMismatch(
        "The index was made with other settings: "
        + "; ".join(f"{name} was {before.get(name)}, now {after.get(name)}" for name in names)
        + ".",
        "Run `obsidian-rag reindex`; until then word search goes on with the old index.",
    )


def _parts(text: str) -> Mapping[str, object]:
    found = json.loads(text)
    return found if isinstance(found, dict) else {}
