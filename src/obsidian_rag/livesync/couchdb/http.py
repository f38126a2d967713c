"""HTTP to a CouchDB server: connections, timeouts and size limits.

Threat: every request carries the password. So it goes only to the given address: redirects are
not followed, and proxies and netrc files of the environment are not used. The server may be
hostile, so the size of an answer is limited.
"""

import ssl
import threading
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from obsidian_rag.errors import LivesyncRefused, LivesyncUnreachable
from obsidian_rag.livesync.couchdb.answers import (
    Answer,
    AnswerTooLarge,
    Silence,
    refusal,
    unexpected_answer,
)
from obsidian_rag.livesync.couchdb.remote import Bearer, Remote, basic

if TYPE_CHECKING:
    import httpx

Trace = Callable[[str, Mapping[str, object]], None]

MAX_ANSWER_BYTES = 64 * 1024 * 1024
_CONNECT_TIMEOUT_S = 10.0
# Node.js closes idle connections after five seconds; ours must close before.
_KEEP_ALIVE_S = 4.0
_MAX_CONNECTIONS = 16
_STRANGE_FIX = "Look for documents that LiveSync did not write."
_SERVER_FIX = "Check that the server runs and that this machine can reach it."


class CouchServer:
    """One database of one server; connections are opened on first use."""

    def __init__(self, remote: Remote, timeout_s: float) -> None:
        self.remote = remote
        self.is_closed = False
        self._timeout_s = timeout_s
        self._bearer = Bearer(remote.jwt) if remote.jwt else None
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._context: ssl.SSLContext | None = None

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        also: Container[int] = (),
        is_reading: bool = False,
    ) -> Answer:
        """The answer, if it is a success or its status is in `also`.

        Raises:
            LivesyncUnreachable: no answer, or one that asks to retry later.
            LivesyncRefused: the server refuses, or is not CouchDB.
        """
        import httpx

        url = self._url(path, query)
        with self._domain_errors():
            try:
                answer = self._send(method, url, body)
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                # The server may have closed a kept-alive connection just as we reused it.
                if not is_reading and method != "GET":
                    raise
                answer = self._send(method, url, body)
        if answer.is_success or answer.status in also:
            return answer
        raise refusal(self.remote, answer)

    @contextmanager
    def stream(
        self, path: str, query: Mapping[str, str], silence_s: float, trace: Trace
    ) -> Iterator[Iterator[bytes]]:
        """A long answer in pieces, on its own connection, whose events go to `trace`."""
        import httpx

        timeout = httpx.Timeout(self._timeout_s, connect=_CONNECT_TIMEOUT_S, read=silence_s)
        # With compression, a change would wait until a block is full.
        headers = self._headers({"Accept-Encoding": "identity"})
        with (
            self._domain_errors(),
            self._new_client() as client,
            client.stream(
                "GET",
                self._url(path, query),
                headers=headers,
                timeout=timeout,
                extensions={"trace": trace},
            ) as response,
        ):
            if not _to_answer(response, b"").is_success:
                raise refusal(self.remote, _to_answer(response, self._read(response)))
            yield response.iter_bytes()

    def close(self) -> None:
        """Close the connections; a feed ends at its next check."""
        with self._lock:
            self.is_closed = True
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _send(self, method: str, url: str, body: bytes | None) -> Answer:
        headers = self._headers({} if body is None else {"Content-Type": "application/json"})
        with self._open().stream(method, url, content=body, headers=headers) as response:
            return _to_answer(response, self._read(response))

    def _read(self, response: "httpx.Response") -> bytes:
        pieces, size = [], 0
        for piece in response.iter_bytes():
            size += len(piece)
            if size > MAX_ANSWER_BYTES:
                raise AnswerTooLarge(
                    f"CouchDB at {self.remote.url} answers with too much at once.",
                    _STRANGE_FIX,
                )
            pieces.append(piece)
        return b"".join(pieces)

    @contextmanager
    def _domain_errors(self) -> Iterator[None]:
        import httpx

        url = self.remote.url
        try:
            yield
        except httpx.InvalidURL as error:
            raise LivesyncRefused(
                "A revision has a name that no address can contain.", _STRANGE_FIX
            ) from error
        except httpx.DecodingError as error:
            raise unexpected_answer(self.remote) from error
        except httpx.ReadTimeout as error:
            raise Silence(f"CouchDB at {url} does not answer in time.", _SERVER_FIX) from error
        except httpx.HTTPError as error:
            if _is_caused_by(error, ssl.SSLCertVerificationError):
                raise LivesyncUnreachable(
                    f"The certificate of the CouchDB server at {url} is not trusted.",
                    "Let this machine trust the authority that signed it.",
                ) from error
            raise LivesyncUnreachable(f"CouchDB does not answer at {url}.", _SERVER_FIX) from error

    def _open(self) -> "httpx.Client":
        with self._lock:
            if self.is_closed:
                raise LivesyncUnreachable("The connection to CouchDB was closed.", "Try again.")
            if self._client is None:
                self._client = self._new_client()
            return self._client

    def _new_client(self) -> "httpx.Client":
        import httpx

        if self._context is None:
            self._context = _ssl_context(self.remote.url)
        return httpx.Client(
            verify=self._context,
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(self._timeout_s, connect=_CONNECT_TIMEOUT_S),
            limits=httpx.Limits(max_connections=_MAX_CONNECTIONS, keepalive_expiry=_KEEP_ALIVE_S),
        )

    def _headers(self, ours: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        remote = self.remote
        headers: dict[str, str] = {}
        if self._bearer:
            headers["Authorization"] = self._bearer.authorization()
        elif remote.user is not None:
            headers["Authorization"] = basic(remote.user, remote.password or "")
        headers |= {name.title(): value for name, value in remote.headers.items()}
        headers |= {"Accept": "application/json", "Accept-Encoding": "gzip", **ours}
        return [(name.encode(), value.encode()) for name, value in headers.items()]

    def _url(self, path: str, query: Mapping[str, str] | None) -> str:
        return f"{self.remote.address}{path}" + (f"?{urlencode(query)}" if query else "")


def _ssl_context(url: str) -> ssl.SSLContext:
    import httpx

    if url.startswith("http:"):
        # Plain HTTP needs no certificates, and loading them takes 0.15 s.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = httpx.create_ssl_context()
    # Home servers often use an authority that only this machine trusts.
    context.load_default_certs()
    return context


def _to_answer(response: "httpx.Response", body: bytes) -> Answer:
    return Answer(
        status=response.status_code,
        body=body,
        is_page="html" in response.headers.get("content-type", "").lower(),
        location=response.headers.get("location", "") if response.is_redirect else "",
    )


def _is_caused_by(error: BaseException, kind: type[BaseException]) -> bool:
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, kind):
        seen = seen.__cause__ or seen.__context__
    return seen is not None
