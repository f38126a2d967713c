"""An embedder over an API that providers publish and may want a key for: OpenAI's, Google's."""

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
    """Asks for vectors, and says what is wrong with an answer that has none."""

    # What to do about an answer that nobody understands.
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
        """Where to ask, and what."""

    @abstractmethod
    def _rows(self, response: "httpx.Response") -> list[object]:
        """The vectors of an answer, in the order of the texts."""

    def _check(self, response: "httpx.Response") -> None:
        status = response.status_code
        if status == 200:
            return
        if status in (401, 403):
            raise self._client.no_access(response)
        if status == 404:
            raise self._no_model()
        self._check_more(response)
        raise ProviderFailed(
            f"{self._client.served.name} failed ({reason_of(response)}).", self.hint
        )

    @abstractmethod
    def _no_model(self) -> ProviderFailed:
        """What to say when the server does not have the model."""

    @abstractmethod
    def _check_more(self, response: "httpx.Response") -> None:
        """Raise what only this provider means by its answer."""


def items_of(response: "httpx.Response", field: str) -> list[dict[str, object]] | None:
    """The objects that an answer lists under a name; None if it does not."""
    answer = json_of(response)
    found = answer.get(field) if isinstance(answer, dict) else None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        return None
    return found
