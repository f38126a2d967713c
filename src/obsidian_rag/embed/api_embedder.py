"""Base class for embedders over a public API that may need a key: OpenAI's, Google's."""

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.embed.provider_http import json_of, reason_of
from obsidian_rag.embed.served import ServedEmbedder, matrix_of
from obsidian_rag.errors import ProviderFailed

if TYPE_CHECKING:
    import httpx

PROBE_TIMEOUT_S = 3.0
_DOCUMENT_TRIES = 6
_DOCUMENT_PAUSE_S = 30.0
_QUERY_TRIES = 2
_QUERY_PAUSE_S = 4.0


class ApiEmbedder(ServedEmbedder):
    """Requests vectors, and turns failed responses into errors."""

    # The suggestion for a response that makes no sense.
    hint = ""

    def _ask(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        path, body = self._request(texts, is_query=is_query)
        response = self._client.post(
            path,
            body,
            timeout_s=lambda: self._client.timeout_s,
            tries=_QUERY_TRIES if is_query else _DOCUMENT_TRIES,
            longest_pause_s=_QUERY_PAUSE_S if is_query else _DOCUMENT_PAUSE_S,
        )
        self._check(response)
        return matrix_of(self._rows(response), len(texts), self._client.served.name, self.hint)

    @abstractmethod
    def _request(self, texts: list[str], *, is_query: bool) -> tuple[str, dict[str, object]]:
        """The path and body of the request."""

    @abstractmethod
    def _rows(self, response: "httpx.Response") -> list[object]:
        """The vectors of a response, in the order of the texts."""

    def _check(self, response: "httpx.Response") -> None:
        status = response.status_code
        if status == 200:
            return
        if status in (401, 403):
            raise self._client.no_access(response)
        if status == 404:
            raise self._missing_model()
        self._check_provider(response)
        raise ProviderFailed(
            f"{self._client.served.name} failed ({reason_of(response)}).", self.hint
        )

    @abstractmethod
    def _missing_model(self) -> ProviderFailed:
        """The error for a model that the server does not have."""

    @abstractmethod
    def _check_provider(self, response: "httpx.Response") -> None:
        """Raise the errors that are specific to this provider."""


def items_of(response: "httpx.Response", field: str) -> list[dict[str, object]] | None:
    """The list of objects in a field of a response; None if it is something else."""
    answer = json_of(response)
    found = answer.get(field) if isinstance(answer, dict) else None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        return None
    return found
