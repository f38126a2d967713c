"""The default embedder: the sum of wordllama's 256-wide token vectors. No server, no download.

Only wordllama's data files are used. Its code configures the root logger and imports an HTTP client
on import, may use the network to load, and pads whole batches to embed.
"""

import importlib.util
import re
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.embed.embedder import encodable, file_digest, unit_rows
from obsidian_rag.embed.tensor_file import map_tensor
from obsidian_rag.errors import ProviderFailed

if TYPE_CHECKING:
    from tokenizers import Tokenizer


_SPACE = "\u2581"
_WORD = re.compile(r"\n| *[^ \n]+| +")
_SPECIAL = re.compile(r"<s>|</s>|<unk>")
_MAX_CACHED_WORDS = 60_000
_WORDS_PER_REQUEST = 64
_REVISION = 1
_WIDTH = 256
_TENSOR = "embedding.weight"
_BATCH_TEXTS = 256
# For so few texts the 33 MB of float32 weights are not worth it.
_FEW_TEXTS = 8
_BATCH_TOKENS = 1024
_Weights = NDArray[np.float16] | NDArray[np.float32]


class WordPieces:
    """Tokenizes texts word by word, with a cache; thread-safe."""

    def __init__(self, tokenizer_file: Path) -> None:
        from tokenizers import Tokenizer, normalizers

        self._file = str(tokenizer_file)
        self._words: Tokenizer = Tokenizer.from_file(self._file)
        self._words.no_padding()
        self._words.no_truncation()
        self._words.normalizer = normalizers.Replace(" ", _SPACE)
        self._line_break: int = self._words.encode("\n", add_special_tokens=False).ids[0]
        self._cache = self._new_cache()

    def tokens(self, texts: Sequence[str]) -> Iterator[NDArray[np.int32]]:
        """The token ids of each text."""
        # A full cache is replaced, never cleared: another thread may still be reading it.
        if len(self._cache) > _MAX_CACHED_WORDS:
            self._cache = self._new_cache()
        cache = self._cache
        words = [_WORD.findall(" " + text.replace(_SPACE, " ")) if text else [] for text in texts]
        self._add_to_cache(cache, list(set(chain.from_iterable(words)).difference(cache)))
        for text, parts in zip(texts, words, strict=True):
            if "<" in text and _SPECIAL.search(text):
                yield np.asarray(self.plain_tokens(text), dtype=np.int32)
            else:
                yield np.fromiter(chain.from_iterable(map(cache.__getitem__, parts)), np.int32)

    def plain_tokens(self, text: str) -> list[int]:
        """The token ids from the unmodified tokenizer, which handles its special tokens."""
        ids: list[int] = self._plain.encode(text, add_special_tokens=False).ids
        return ids

    @cached_property
    def _plain(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        plain: Tokenizer = Tokenizer.from_file(self._file)
        plain.no_padding()
        plain.no_truncation()
        return plain

    def _add_to_cache(self, cache: dict[str, list[int]], words: list[str]) -> None:
        groups = [
            words[start : start + _WORDS_PER_REQUEST]
            for start in range(0, len(words), _WORDS_PER_REQUEST)
        ]
        lines = ["\n".join(group) + "\n" for group in groups]
        encodings = self._words.encode_batch_fast(lines, add_special_tokens=False)
        for group, encoding in zip(groups, encodings, strict=True):
            ids, start = encoding.ids, 0
            for word in group:
                end = ids.index(self._line_break, start)
                cache[word] = ids[start:end]
                start = end + 1

    def _new_cache(self) -> dict[str, list[int]]:
        return {"\n": [self._line_break]}


class BuiltinEmbedder:
    """Mean of static token vectors; the weights are loaded on first use."""

    provider = "builtin"
    model = "l2_supercat"
    is_external = False
    max_tokens: int | None = None
    dimensions = _WIDTH

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[WordPieces, NDArray[np.float16]] | None = None
        self._wide: NDArray[np.float32] | None = None

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the weights, the tokenizer and how we use them."""
        weights, tokenizer = _files()
        digests = f"{file_digest(weights)}:{file_digest(tokenizer)}"
        return f"builtin:{self.model}:{_WIDTH}:{digests}:r{_REVISION}"

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text."""
        rows = np.zeros((len(texts), _WIDTH), dtype=np.float32)
        pieces, weights = self._model(is_many=len(texts) > _FEW_TEXTS)
        gathered = np.empty((_BATCH_TOKENS, _WIDTH), dtype=np.float32)
        for start in range(0, len(texts), _BATCH_TEXTS):
            part = [
                "" if text.isspace() else encodable(text) for text in texts[start:][:_BATCH_TEXTS]
            ]
            for row, tokens in zip(rows[start:], pieces.tokens(part), strict=False):
                _add_vectors(row, tokens, weights, gathered)
        return unit_rows(rows)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a question."""
        row: NDArray[np.float32] = self.embed_documents([text])[0]
        return row

    def probe(self) -> None:
        """Check that the weights are there."""
        _files()

    def close(self) -> None:
        """Free the weights."""
        self._loaded = self._wide = None

    def _model(self, *, is_many: bool) -> tuple[WordPieces, _Weights]:
        """The tokenizer, and the weights: fast float32 for many texts, float16 for a few."""
        with self._lock:
            if self._loaded is None:
                weights, tokenizer = _files()
                # Memory-mapped: a process that only embeds questions reads a few rows.
                self._loaded = WordPieces(tokenizer), map_tensor(weights, _TENSOR)
            pieces, halves = self._loaded
            if is_many and self._wide is None:
                self._wide = halves.astype(np.float32)
            return pieces, halves if self._wide is None else self._wide


def _add_vectors(
    row: NDArray[np.float32],
    tokens: NDArray[np.int32],
    weights: _Weights,
    gathered: NDArray[np.float32],
) -> None:
    # A few tokens at a time fit in the CPU cache: gathering a whole batch is 20 times slower.
    # The sum is enough: the row is scaled to length one anyway.
    for start in range(0, len(tokens), _BATCH_TOKENS):
        part = tokens[start : start + _BATCH_TOKENS]
        vectors = gathered[: len(part)]
        if weights.dtype == vectors.dtype:
            np.take(weights, part, axis=0, out=vectors, mode="clip")
        else:
            vectors[:] = weights[part]
        row += np.add.reduce(vectors, axis=0)


def is_installed() -> bool:
    """Whether the model's files are there."""
    try:
        _files()
    except ProviderFailed:
        return False
    return True


def _files() -> tuple[Path, Path]:
    spec = importlib.util.find_spec("wordllama")
    if spec is not None and spec.submodule_search_locations:
        folder = Path(spec.submodule_search_locations[0])
        weights = folder / "weights" / "l2_supercat_256.safetensors"
        tokenizer = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        if weights.is_file() and tokenizer.is_file():
            return weights, tokenizer
    raise ProviderFailed(
        "The built-in model's files are missing.", "Run `pip install --force-reinstall wordllama`."
    )
