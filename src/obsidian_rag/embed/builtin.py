"""The default embedder: wordllama's 256-wide token vectors, summed. No server, no download.

Only wordllama's data files are used. Its code would configure the root logger and import an
HTTP client on import, may go to the network to load, and pads whole batches to embed.
"""

import importlib.util
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.embed.digest import file_digest
from obsidian_rag.embed.tensor_file import map_tensor
from obsidian_rag.embed.vectors import encodable, unit_rows
from obsidian_rag.embed.wordpieces import WordPieces
from obsidian_rag.errors import ProviderFailed

_REVISION = 1
_WIDTH = 256
_TENSOR = "embedding.weight"
_TEXTS_AT_ONCE = 256
# Up to so many texts are not worth 33 MB of wide numbers.
_FEW_TEXTS = 8
_TOKENS_AT_ONCE = 1024


_Weights = NDArray[np.float16] | NDArray[np.float32]


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
        """Names the weights, the tokenizer and how we use them."""
        weights, tokenizer = _files()
        digests = f"{file_digest(weights)}:{file_digest(tokenizer)}"
        return f"builtin:{self.model}:{_WIDTH}:{digests}:r{_REVISION}"

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text."""
        rows = np.zeros((len(texts), _WIDTH), dtype=np.float32)
        pieces, weights = self._model(is_many=len(texts) > _FEW_TEXTS)
        gathered = np.empty((_TOKENS_AT_ONCE, _WIDTH), dtype=np.float32)
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            part = [
                "" if text.isspace() else encodable(text) for text in texts[start:][:_TEXTS_AT_ONCE]
            ]
            for row, tokens in zip(rows[start:], pieces.tokens(part), strict=False):
                _add_up(row, tokens, weights, gathered)
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
        """The tokenizer, and weights that are quick for many texts or small for a few."""
        with self._lock:
            if self._loaded is None:
                weights, tokenizer = _files()
                # It stays in the file: a process that only asks questions touches a few rows.
                self._loaded = WordPieces(tokenizer), map_tensor(weights, _TENSOR)
            pieces, halves = self._loaded
            if is_many and self._wide is None:
                self._wide = halves.astype(np.float32)
            return pieces, halves if self._wide is None else self._wide


def _add_up(
    row: NDArray[np.float32],
    tokens: NDArray[np.int32],
    weights: _Weights,
    gathered: NDArray[np.float32],
) -> None:
    # Few tokens at a time stay in the processor's cache: gathering a whole batch is 20 times
    # slower. The sum stands for the mean, because the row is scaled to length one anyway.
    for start in range(0, len(tokens), _TOKENS_AT_ONCE):
        part = tokens[start : start + _TOKENS_AT_ONCE]
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
