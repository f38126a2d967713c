"""What all embedders that use a server have in common: batches, prefixes, widths and checks.

A subclass says how its provider is asked and what its answers mean; `provider_http` carries the
requests and decides which servers are allowed.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.embed.embedder import InputsRejected, unit_rows
from obsidian_rag.embed.isolate import Batches, InputRefused, Isolation
from obsidian_rag.embed.provider_http import ProviderClient, json_of, reason_of
from obsidian_rag.errors import EmbeddingMismatch, ProviderFailed

if TYPE_CHECKING:
    import httpx

PROBE_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class KnownModel:
    """Width, context length in tokens, and the prefixes that a model was trained with."""

    dimensions: int | None
    max_tokens: int
    query_prefix: str = ""
    document_prefix: str = ""


class Patience(NamedTuple):
    """How often a request is tried, and the longest pause in between."""

    tries: int
    longest_pause_s: float


class ServedEmbedder(ABC):
    """Vectors of one model on a server."""

    provider = ""
    # Increased when the prefixes around a text change.
    revision = 1
    # The suggestion for an answer that makes no sense.
    hint = ""
    takes_key = True
    patience = Patience(6, 30.0)
    # The user is waiting, and word search can still answer.
    query_patience = Patience(2, 4.0)

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
                    f"The model '{self.model}' cannot embed texts ({refusal.reason}).",
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
    def _request(self, texts: list[str], *, is_query: bool) -> tuple[str, dict[str, object]]:
        """The path and body of the request for some texts."""

    @abstractmethod
    def _rows(self, response: "httpx.Response") -> object:
        """The vectors of a response, in the order of the texts."""

    @abstractmethod
    def _missing_model(self) -> ProviderFailed:
        """The error for a model that the server does not have."""

    @abstractmethod
    def _check_provider(self, response: "httpx.Response") -> None:
        """Raise the error that only this provider gives for a failed response."""

    def _timeout_s(self) -> float:
        return self._client.timeout_s

    def _check(self, response: "httpx.Response") -> None:
        """Raise the error for a failed response."""
        status = response.status_code
        if status == 200:
            return
        if status in (401, 403) and self.takes_key:
            raise self._client.no_access(response)
        if status == 404:
            raise self._missing_model()
        self._check_provider(response)
        raise ProviderFailed(
            f"{self._client.server.name} failed ({reason_of(response)}).", self.hint
        )

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
        """One row per text as the server made it, perhaps not of length one.

        Raises:
            InputRefused: the server refuses a text of the batch.
            ObsidianRagError: the server cannot be used.
        """
        path, body = self._request(batch, is_query=is_query)
        patience = self.query_patience if is_query else self.patience
        response = self._client.post(
            path,
            body,
            timeout_s=self._timeout_s,
            tries=patience.tries,
            longest_pause_s=patience.longest_pause_s,
        )
        self._check(response)
        rows = self._to_matrix(self._rows(response), len(batch))
        with self._lock:
            expected = self._width = self._width or int(rows.shape[1])
        if rows.shape[1] != expected:
            raise EmbeddingMismatch(
                f"The model '{self.model}' makes vectors of width {rows.shape[1]}, "
                f"but {expected} was expected.",
                "Correct embedding.dimensions or embedding.model, then run `obsidian-rag reindex`.",
            )
        return rows

    def _to_matrix(self, rows: object, count: int) -> NDArray[np.float32]:
        name = self._client.server.name
        if not isinstance(rows, list) or len(rows) != count:
            raise ProviderFailed(f"{name} answered with the wrong number of vectors.", self.hint)
        malformed = ProviderFailed(f"{name} answered with malformed vectors.", self.hint)
        try:
            matrix = np.asarray(rows, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise malformed from error
        if matrix.ndim != 2 or matrix.shape[1] == 0:
            raise malformed
        if not np.isfinite(matrix).all():
            raise InputRefused("the model made a vector that is not a number", is_too_long=False)
        return matrix


def items_of(response: "httpx.Response", field: str) -> list[dict[str, object]] | None:
    """The list of objects in a field of a response; None if it is something else."""
    answer = json_of(response)
    found = answer.get(field) if isinstance(answer, dict) else None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        return None
    return found
