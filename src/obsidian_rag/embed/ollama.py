"""Embedding by a local Ollama server."""

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import EmbeddingSettings, SecuritySettings
from obsidian_rag.embed.embedder import InputsRejected
from obsidian_rag.embed.isolate import InputRefused, Isolation
from obsidian_rag.embed.ollama_http import OllamaServer
from obsidian_rag.embed.ollama_models import DEFAULT_MODEL, known_model, untagged
from obsidian_rag.embed.vectors import unit_rows
from obsidian_rag.errors import EmbeddingMismatch, ProviderFailed

_REVISION = 1
_BATCH_SIZE = 64
_DOCUMENT_TRIES = 4
# A person waits for a question's answer, and word search can give one.
_QUERY_TRIES = 2


class OllamaEmbedder:
    """Vectors of one Ollama model, with the prefixes it was trained with."""

    provider = "ollama"

    def __init__(
        self,
        settings: EmbeddingSettings,
        security: SecuritySettings,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.model = settings.model or DEFAULT_MODEL
        self._known = known_model(self.model)
        self.max_tokens: int | None = self._known.max_tokens
        self._declared_width = self._width = settings.dimensions or self._known.dimensions
        self._server = OllamaServer(settings, security, self.model, wait)
        self.is_external = self._server.is_external
        self._lock = threading.Lock()

    @property
    def dimensions(self) -> int:
        """Width of the vectors, asked from the server if the model is not a known one."""
        if self._width is None:
            try:
                return int(self._send(["width"], _DOCUMENT_TRIES).shape[1])
            except InputRefused as refusal:
                raise ProviderFailed(
                    f"The model '{self.model}' embeds nothing ({refusal.reason}).",
                    "Choose an embedding model, such as mxbai-embed-large.",
                ) from refusal
        return self._width

    @property
    def fingerprint(self) -> str:
        """Names the model, its width if that is known without asking, and our prefixes."""
        return f"ollama:{untagged(self.model)}:{self._declared_width or 'any'}:r{_REVISION}"

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text."""
        return self._embed(texts, self._known.document_prefix, _DOCUMENT_TRIES)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a question."""
        row: NDArray[np.float32] = self._embed([text], self._known.query_prefix, _QUERY_TRIES)[0]
        return row

    def probe(self) -> None:
        """Check that the server answers and has the model, without loading it."""
        self._server.probe()

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    def _embed(self, texts: Sequence[str], prefix: str, tries: int) -> NDArray[np.float32]:
        def send(batch: list[str]) -> NDArray[np.float32]:
            return unit_rows(self._send([prefix + text for text in batch], tries))

        asked = [position for position, text in enumerate(texts) if text.strip()]
        try:
            found = Isolation(send, _BATCH_SIZE).embed([texts[position] for position in asked])
        except InputsRejected as error:
            positions = tuple(asked[position] for position in error.positions)
            raise InputsRejected(error.message, positions) from error
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        if asked:
            rows[asked] = found
        return unit_rows(rows)

    def _send(self, batch: list[str], tries: int) -> NDArray[np.float32]:
        rows = self._server.embed(batch, tries)
        with self._lock:
            expected = self._width = self._width or int(rows.shape[1])
        if rows.shape[1] != expected:
            raise EmbeddingMismatch(
                f"The model '{self.model}' makes vectors of width {rows.shape[1]}, "
                f"but {expected} was expected.",
                "Correct embedding.dimensions or embedding.model, then run `obsidian-rag reindex`.",
            )
        return rows
