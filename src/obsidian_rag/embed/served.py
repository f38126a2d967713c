"""Base class for embedders that use a server."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.embed.embedder import InputsRejected, unit_rows
from obsidian_rag.embed.isolate import Batches, InputRefused, Isolation
from obsidian_rag.embed.provider_http import ProviderClient
from obsidian_rag.errors import EmbeddingMismatch, ProviderFailed


@dataclass(frozen=True, slots=True)
class KnownModel:
    """Width, context length in tokens, and the prefixes that a model was trained with."""

    dimensions: int | None
    max_tokens: int
    query_prefix: str = ""
    document_prefix: str = ""


class ServedEmbedder(ABC):
    """Vectors of one model on a server; ProviderClient checks which servers are allowed."""

    provider = ""
    # Increased when the prefixes around a text change.
    revision = 1

    def __init__(
        self,
        model: str,
        known: KnownModel,
        dimensions: int | None,
        client: ProviderClient,
        batches: Batches,
    ) -> None:
        self.model = model
        self._known = known
        self.max_tokens: int | None = known.max_tokens
        self._declared_width = self._width = dimensions or known.dimensions
        self._client = client
        self._batches = batches
        self.is_external = client.is_external
        self._lock = threading.Lock()

    @property
    def dimensions(self) -> int:
        """Width of the vectors; requested from the server if the model is not a known one."""
        if self._width is None:
            try:
                return int(self._send(["width"], is_query=False).shape[1])
            except InputRefused as refusal:
                raise ProviderFailed(
                    f"The model '{self.model}' embeds nothing ({refusal.reason}).",
                    "Set embedding.model to an embedding model.",
                ) from refusal
        return self._width

    @property
    def fingerprint(self) -> str:
        """Identifies the model, its width if known without a request, and our prefixes."""
        width = self._declared_width or "any"
        return f"{self.provider}:{self.model_identity}:{width}:r{self.revision}"

    @property
    def model_identity(self) -> str:
        """The model's name, the same for all spellings of one model."""
        return self.model

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text."""
        return self._embed(texts, is_query=False)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a question."""
        row: NDArray[np.float32] = self._embed([text], is_query=True)[0]
        return row

    @abstractmethod
    def probe(self) -> None:
        """Check cheaply that the server can be used."""

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @abstractmethod
    def _ask(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        """One row per text as the server made it, perhaps not of length one.

        Raises:
            InputRefused: the server refuses a text of the batch.
            ObsidianRagError: the server cannot be used.
        """

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> NDArray[np.float32]:
        prefix = self._known.query_prefix if is_query else self._known.document_prefix

        def send(batch: list[str]) -> NDArray[np.float32]:
            return unit_rows(self._send([prefix + text for text in batch], is_query=is_query))

        asked = [position for position, text in enumerate(texts) if text.strip()]
        try:
            found = Isolation(send, self._batches).embed([texts[position] for position in asked])
        except InputsRejected as error:
            positions = tuple(asked[position] for position in error.positions)
            raise InputsRejected(error.message, positions) from error
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        if asked:
            rows[asked] = found
        return unit_rows(rows)

    def _send(self, batch: list[str], *, is_query: bool) -> NDArray[np.float32]:
        rows = self._ask(batch, is_query=is_query)
        with self._lock:
            expected = self._width = self._width or int(rows.shape[1])
        if rows.shape[1] != expected:
            raise EmbeddingMismatch(
                f"The model '{self.model}' makes vectors of width {rows.shape[1]}, "
                f"but {expected} was expected.",
                "Correct embedding.dimensions or embedding.model, then run `obsidian-rag reindex`.",
            )
        return rows


def matrix_of(rows: object, count: int, who: str, hint: str) -> NDArray[np.float32]:
    """Check the vectors of a response, and return them as a matrix.

    Raises:
        ProviderFailed: they are malformed, or not one per text.
        InputRefused: a vector contains a value that is not finite.
    """
    if not isinstance(rows, list) or len(rows) != count:
        raise ProviderFailed(f"{who} answered with the wrong number of vectors.", hint)
    try:
        matrix = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ProviderFailed(f"{who} answered with malformed vectors.", hint) from error
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ProviderFailed(f"{who} answered with malformed vectors.", hint)
    if not np.isfinite(matrix).all():
        raise InputRefused("the model made a vector that is not a number", is_too_long=False)
    return matrix
