"""What an index was built with: if any of it changes, old and new chunks do not match."""

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import xxhash

from obsidian_rag.embed import SERVED, Embedder
from obsidian_rag.errors import EmbeddingMismatch, IndexIncomplete
from obsidian_rag.index.limits import Guarded
from obsidian_rag.notes import ChunkLimits
from obsidian_rag.store import SCHEMA_VERSION, ChunkStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNKER_VERSION = 3
_EMBEDDER = "embedder"
# The rules for private text, if that is kept out of the store.
_LEFT_OUT = "left_out"
# Pairs of what the index was built with and what the settings say now (empty if nothing).
_Changes = list[tuple[str, str]]


def fingerprint(embedder: Embedder, limits: ChunkLimits, guarded: Guarded) -> str:
    """The fingerprint of an index built now."""
    parts = {
        "schema": SCHEMA_VERSION,
        "chunker": CHUNKER_VERSION,
        "chunks": f"{limits.max_tokens}/{limits.overlap_tokens}/{limits.max_chars}"
        f"/{'no-code' if limits.strip_code else 'code'}",
        _EMBEDDER: embedder.fingerprint,
    }
    if guarded.is_kept_out:
        said = json.dumps([dict(guarded.patterns), list(guarded.sections)], sort_keys=True)
        parts[_LEFT_OUT] = xxhash.xxh3_64_hexdigest(said.encode(errors="surrogatepass"))
    return json.dumps(parts, sort_keys=True)


def check_fingerprint(made: str | None, wanted: str) -> None:
    """Check that the index matches the wanted fingerprint.

    Raises:
        EmbeddingMismatch: settings differ; the message names them.
        IndexIncomplete: only the program version differs.
    """
    if made is None or made == wanted:
        return
    if is_outdated(made, wanted):
        raise IndexIncomplete(
            "The index was made by another version of obsidian-rag; answers come from it until it"
            " is rebuilt.",
            "Run `obsidian-rag sync`, which rebuilds it; a daemon does so by itself.",
        )
    before, after = _parts(made), _parts(wanted)
    differences = (
        _embedder_change(before, after)
        or _chunk_changes(before, after)
        or _private_changes(before, after)
    )
    built = " and ".join(was for was, _ in differences) or "other settings"
    now = " and ".join(now for _, now in differences if now)
    raise EmbeddingMismatch(
        f"The index was built with {built}" + (f"; the settings now say {now}." if now else "."),
        "Run `obsidian-rag reindex`. Until then, search goes by words only.",
    )


def is_outdated(made: str | None, wanted: str) -> bool:
    """Whether an index differs only in the program version, not in any setting."""
    if made is None or made == wanted:
        return False
    before, after = _parts(made), _parts(wanted)
    is_other = not has_same_vectors(made, wanted) and not (
        # The built-in model is not a setting: it comes with the program.
        _provider(before) == _provider(after) == "builtin" or _EMBEDDER not in before
    )
    return not (is_other or _chunk_changes(before, after) or _private_changes(before, after))


def has_same_vectors(made: str, wanted: str) -> bool:
    """Whether the vectors of two indexes are comparable."""
    return _parts(made).get(_EMBEDDER) == _parts(wanted).get(_EMBEDDER)


def has_fitting_vectors(made: str | None, wanted: str) -> bool:
    """Whether the index has vectors of the configured embedder.

    Raises:
        EmbeddingMismatch: the settings have changed since.
    """
    if made is not None and is_outdated(made, wanted):
        return has_same_vectors(made, wanted)
    check_fingerprint(made, wanted)
    return True


def other_width(made: int, stored: int | None) -> EmbeddingMismatch:
    """The error for vectors of another width from an embedder of the same name."""
    return EmbeddingMismatch(
        f"The embedder makes vectors of width {made} now, but the index has {stored}.",
        "Run `obsidian-rag reindex`. Until then, search goes by words only.",
    )


def check_width(
    vector: "NDArray[np.float32]", embedder: Embedder, chunks: ChunkStore
) -> "NDArray[np.float32]":
    """Check a query vector's width: a server may have switched to another model.

    Raises:
        EmbeddingMismatch: the width differs from the index.
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
    return _split_embedder(str(parts.get(_EMBEDDER, "")))[0]


def _embedder_change(before: Mapping[str, object], after: Mapping[str, object]) -> _Changes:
    """A change of embedder; chunk sizes may differ because of it."""
    was, now = str(before.get(_EMBEDDER, "")), str(after.get(_EMBEDDER, ""))
    if was == now:
        return []
    (old, old_model), (new, new_model) = _split_embedder(was), _split_embedder(now)
    if old != new:
        return [(old, new)]
    if old_model != new_model:
        return [(f"the model {old_model}", f"{new_model}")]
    return [(f"another version of the model {old_model}", "")]


def _split_embedder(embedder: str) -> tuple[str, str]:
    provider, _, rest = embedder.partition(":")
    # A model's name may contain colons; the vectors' width follows it.
    return provider, re.split(r":(?:\d+|any):", rest, maxsplit=1)[0] or provider


def _chunk_changes(before: Mapping[str, object], after: Mapping[str, object]) -> _Changes:
    was, now = (str(parts.get("chunks", "")).split("/") for parts in (before, after))
    if len(was) != len(_CHUNK_WORDS) or len(now) != len(_CHUNK_WORDS):
        return []
    changes = zip(was, now, _CHUNK_WORDS, strict=True)
    return [(word(a), word(b)) for a, b, word in changes if a != b]


def _private_changes(before: Mapping[str, object], after: Mapping[str, object]) -> _Changes:
    was, now = before.get(_LEFT_OUT), after.get(_LEFT_OUT)
    if was == now:
        return []
    if was and now:
        return [("other rules for what is private", "")]
    kept, left_out = "private passages in the store", "private passages left out"
    return [(left_out, kept) if was else (kept, left_out)]


_CHUNK_WORDS: tuple[Callable[[str], str], ...] = (
    lambda value: f"chunks of {value} tokens",
    lambda value: f"an overlap of {value} tokens",
    lambda value: f"chunks of {value} characters",
    lambda value: f"code blocks {'left out' if value == 'no-code' else 'kept'}",
)
