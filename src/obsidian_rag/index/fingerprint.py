"""What made an index: when any of it changes, old and new chunks do not fit together."""

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from obsidian_rag.embed import SERVED, Embedder
from obsidian_rag.errors import EmbeddingMismatch, IndexIncomplete
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.store import SCHEMA_VERSION, ChunkStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNKER_VERSION = 2
_EMBEDDER = "embedder"
# What an index was built with, and what the settings say now; empty where they say nothing of it.
_Changes = list[tuple[str, str]]


def fingerprint(embedder: Embedder, limits: ChunkLimits) -> str:
    """The fingerprint of an index made now."""
    parts = {
        "schema": SCHEMA_VERSION,
        "chunker": CHUNKER_VERSION,
        "chunks": f"{limits.max_tokens}/{limits.overlap_tokens}/{limits.max_chars}"
        f"/{'no-code' if limits.strip_code else 'code'}",
        _EMBEDDER: embedder.fingerprint,
    }
    return json.dumps(parts, sort_keys=True)


def check(made: str | None, wanted: str) -> None:
    """Refuse to mix an index with one that is made differently.

    Raises:
        EmbeddingMismatch: they differ in what the settings say; the message says in what.
        IndexIncomplete: they differ only in the program that makes them.
    """
    if made is None or made == wanted:
        return
    if is_outdated(made, wanted):
        raise IndexIncomplete(
            "The index was made by another version of obsidian-rag; answers come from it until it"
            " is built anew.",
            "Run `obsidian-rag sync`, which builds it anew; a daemon does so by itself.",
        )
    before, after = _parts(made), _parts(wanted)
    told = _embedder_change(before, after) or _chunk_changes(before, after)
    built = " and ".join(was for was, _ in told) or "other settings"
    now = " and ".join(now for _, now in told if now)
    raise EmbeddingMismatch(
        f"The index was built with {built}" + (f"; the settings now say {now}." if now else "."),
        "Run `obsidian-rag reindex`. Until then, search goes by words only.",
    )


def is_outdated(made: str | None, wanted: str) -> bool:
    """Whether an index differs only in the program that made it: no setting has changed."""
    if made is None or made == wanted:
        return False
    before, after = _parts(made), _parts(wanted)
    is_other = not has_same_vectors(made, wanted) and not (
        # Nobody chooses the built-in model: it comes with the program.
        _provider(before) == _provider(after) == "builtin" or _EMBEDDER not in before
    )
    return not is_other and not _chunk_changes(before, after)


def has_same_vectors(made: str, wanted: str) -> bool:
    """Whether vectors of two indexes can be compared."""
    return _parts(made).get(_EMBEDDER) == _parts(wanted).get(_EMBEDDER)


def has_fitting_vectors(made: str | None, wanted: str) -> bool:
    """Whether an index that is searched with these settings has vectors of their embedder.

    Raises:
        EmbeddingMismatch: the settings have changed since.
    """
    if made is not None and is_outdated(made, wanted):
        return has_same_vectors(made, wanted)
    check(made, wanted)
    return True


def other_width(made: int, stored: int | None) -> EmbeddingMismatch:
    """The embedder makes vectors that do not fit into the index, although its name is the same."""
    return EmbeddingMismatch(
        f"The embedder makes vectors of width {made} now, but the index has {stored}.",
        "Run `obsidian-rag reindex`. Until then, search goes by words only.",
    )


def fitting(
    vector: "NDArray[np.float32]", embedder: Embedder, chunks: ChunkStore
) -> "NDArray[np.float32]":
    """The vector of a question, if it fits: a server may have another model by now.

    Raises:
        EmbeddingMismatch: it does not.
    """
    if embedder.provider in SERVED and len(vector) != chunks.dimensions:
        raise other_width(len(vector), chunks.dimensions)
    return vector


def _parts(text: str) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _provider(parts: Mapping[str, object]) -> str:
    return _named(str(parts.get(_EMBEDDER, "")))[0]


def _embedder_change(before: Mapping[str, object], after: Mapping[str, object]) -> _Changes:
    """Another embedder, which may want chunks of another size as well."""
    was, now = str(before.get(_EMBEDDER, "")), str(after.get(_EMBEDDER, ""))
    if was == now:
        return []
    (old, old_model), (new, new_model) = _named(was), _named(now)
    if old != new:
        return [(old, new)]
    if old_model != new_model:
        return [(f"the model {old_model}", f"{new_model}")]
    return [(f"another version of the model {old_model}", "")]


def _named(embedder: str) -> tuple[str, str]:
    provider, _, rest = embedder.partition(":")
    # A model's name may hold colons; the vectors' width comes after it.
    return provider, re.split(r":(?:\d+|any):", rest, maxsplit=1)[0] or provider


def _chunk_changes(before: Mapping[str, object], after: Mapping[str, object]) -> _Changes:
    was, now = (str(parts.get("chunks", "")).split("/") for parts in (before, after))
    if len(was) != len(_CHUNK_WORDS) or len(now) != len(_CHUNK_WORDS):
        return []
    changes = zip(was, now, _CHUNK_WORDS, strict=True)
    return [(word(a), word(b)) for a, b, word in changes if a != b]


_CHUNK_WORDS: tuple[Callable[[str], str], ...] = (
    lambda value: f"chunks of {value} tokens",
    lambda value: f"an overlap of {value} tokens",
    lambda value: f"chunks of {value} characters",
    lambda value: f"code blocks {'left out' if value == 'no-code' else 'kept'}",
)
