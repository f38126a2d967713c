"""The embedder interface, and the error for texts that cannot be embedded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from obsidian_rag.errors import ProviderFailed

_DIGEST_BYTES = 1 << 20


def unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each row to length one, in place; zero and non-finite rows become a fixed vector.

    Rows are scaled one by one, so the result cannot depend on neighbouring rows.
    """
    for row in rows:
        length = float(np.sqrt(np.dot(row, row)))
        if length > 0 and np.isfinite(length):
            row /= length
        else:
            row[:] = 0
            row[0] = 1
    return rows


def weighted_mean(
    rows: Sequence[NDArray[np.float32]], weights: Sequence[float]
) -> NDArray[np.float32]:
    """The mean of vectors, in double precision."""
    mean = np.average(np.asarray(rows, dtype=np.float64), axis=0, weights=weights)
    return mean.astype(np.float32)


def encodable(text: str) -> str:
    """Replace lone surrogates: they have no UTF-8 form and break tokenizers."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def file_digest(file: Path) -> str:
    """Digest of a file's size, first and last megabyte: fast even for gigabytes of weights."""
    size = file.stat().st_size
    digest = xxhash.xxh3_64(str(size).encode())
    with file.open("rb") as stream:
        digest.update(stream.read(_DIGEST_BYTES))
        stream.seek(max(_DIGEST_BYTES, size - _DIGEST_BYTES))
        digest.update(stream.read(_DIGEST_BYTES))
    return digest.hexdigest()


class Embedder(Protocol):
    """Turns text into unit vectors: the same text always gives the same vector."""

    @property
    def provider(self) -> str:
        """`builtin`, `hash`, `onnx`, `ollama`, `openai` or `gemini`."""
        ...

    @property
    def model(self) -> str:
        """The model's name, for display."""
        ...

    @property
    def is_external(self) -> bool:
        """Whether embedding sends text to another machine."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """How many tokens one vector represents well; None if there is no limit."""
        ...

    @property
    def dimensions(self) -> int:
        """Width of the vectors; the first use may load the model or ask the server."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes if and only if the vectors of the same text would change."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text, in order; all blank texts get the same vector.

        Raises:
            InputsRejected: the provider works but rejects some of the texts.
            ProviderFailed, OllamaUnreachable, EmbeddingMismatch: nothing can be embedded now.
        """
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a question."""
        ...

    def probe(self) -> None:
        """Check cheaply that embedding works.

        Raises:
            OllamaUnreachable, ProviderFailed: it does not.
        """
        ...

    def close(self) -> None:
        """Release connections and weights; a later call reopens them."""
        ...


class InputsRejected(ProviderFailed):
    """The provider works but rejects some texts; `positions` are their indexes."""

    def __init__(self, message: str, positions: tuple[int, ...]) -> None:
        super().__init__(message, "Look at these notes; all other notes can be embedded.")
        self.positions = positions
