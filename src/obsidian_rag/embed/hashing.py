"""Vectors without a model: words and their trigrams, hashed to signed buckets.

They match words and spellings, not meaning. For tests, and for machines where no model may run:
there are no files, and the vectors never change.
"""

import re
from collections.abc import Sequence
from itertools import chain

import numpy as np
import xxhash
from numpy.typing import NDArray

from obsidian_rag.embed.embedder import unit_rows

_REVISION = 1
_SEED = 20260410
_DEFAULT_WIDTH = 256
_MAX_CACHED_WORDS = 60_000
_WORD = re.compile(r"\w+")


class HashEmbedder:
    """Feature hashing; a whole word counts as much as two of its trigrams."""

    provider = "hash"
    model = "words-trigrams"
    is_external = False
    max_tokens: int | None = None

    def __init__(self, dimensions: int | None = None) -> None:
        self.dimensions = dimensions or _DEFAULT_WIDTH
        self.fingerprint = f"hash:{self.model}:{self.dimensions}:r{_REVISION}"
        self._cache: dict[str, list[int]] = {}

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text."""
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = _WORD.findall(text.casefold())
            codes = np.fromiter(chain.from_iterable(map(self._codes, words)), np.int64)
            counts = np.bincount(codes, minlength=2 * self.dimensions)
            row[:] = counts[0::2] - counts[1::2]
        return unit_rows(rows)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a question."""
        row: NDArray[np.float32] = self.embed_documents([text])[0]
        return row

    def probe(self) -> None:
        """Always works."""

    def close(self) -> None:
        """Clear the cache."""
        self._cache = {}

    def _codes(self, word: str) -> list[int]:
        cache = self._cache
        if word not in cache:
            if len(cache) > _MAX_CACHED_WORDS:
                cache = self._cache = {}
            marked = f" {word} "
            trigrams = [marked[at : at + 3] for at in range(len(word))]
            cache[word] = [self._code(feature) for feature in (word, word, *trigrams)]
        return cache[word]

    def _code(self, feature: str) -> int:
        """Bucket and sign in one number: even adds to the bucket, odd subtracts."""
        number = xxhash.xxh64_intdigest(feature.encode("utf-8", "surrogatepass"), seed=_SEED)
        return number % (2 * self.dimensions)
