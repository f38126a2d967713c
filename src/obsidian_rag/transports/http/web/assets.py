"""The page's static files: read once, compressed once, cached for ever by their hash.

Every file is served below `/s/HASH/`, with one hash for all files: a new version has new addresses,
and imports between modules stay relative.
"""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from obsidian_rag.transports.http.answers import Refusal

ROOT = Path(__file__).parents[1] / "page"
# Paths that a person may see in the address bar; the page's script decides what to show.
VIEWS = frozenset(
    {
        "",
        "health",
        "livesync",
        "map",
        "memory",
        "note",
        "search",
        "settings",
        "signin",
        "vaults",
        "welcome",
    }
)
ASSETS = "s"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "media-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types app",
    )
)
PAGE_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_FOR_EVER = "public, max-age=31536000, immutable"
_MIN_COMPRESSED_BYTES = 512


@dataclass(frozen=True, slots=True)
class Asset:
    """A file, ready to be sent."""

    content: bytes
    compressed: bytes | None
    media_type: str

    @classmethod
    def of(cls, content: bytes, suffix: str) -> "Asset":
        """Create an asset, compressed if it is large enough."""
        small = gzip.compress(content, 9, mtime=0) if len(content) > _MIN_COMPRESSED_BYTES else None
        return cls(content, small, _TYPES[suffix])

    def response(self, headers: Headers, caching: dict[str, str]) -> Response:
        """The response, compressed if the client accepts it."""
        sent = {**PAGE_HEADERS, **caching, "Vary": "Accept-Encoding"}
        if self.compressed is not None and "gzip" in headers.get("accept-encoding", ""):
            sent["Content-Encoding"] = "gzip"
            return Response(self.compressed, headers=sent, media_type=self.media_type)
        return Response(self.content, headers=sent, media_type=self.media_type)


class Assets:
    """All files of the page, by their path below it."""

    @cached_property
    def _contents(self) -> dict[str, bytes]:
        return {
            file.relative_to(ROOT).as_posix(): file.read_bytes()
            for file in sorted(ROOT.rglob("*"))
            if file.suffix in _TYPES
        }

    @cached_property
    def version(self) -> str:
        """A hash of all files."""
        found = hashlib.sha256()
        for name, content in self._contents.items():
            found.update(f"{name} {len(content)} ".encode() + content)
        return found.hexdigest()[:16]

    @cached_property
    def _assets(self) -> dict[str, Asset]:
        return {
            name: Asset.of(content, Path(name).suffix) for name, content in self._contents.items()
        }

    @cached_property
    def _shell(self) -> Asset:
        base = f"/{ASSETS}/{self.version}"
        text = self._contents["index.html"].decode().replace("{base}", base)
        return Asset.of(text.encode(), ".html")

    async def shell(self, request: Request) -> Response:
        """The HTML document; the browser decides which view it shows."""
        tag = f'"{self.version}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={**PAGE_HEADERS, "ETag": tag})
        return self._shell.response(request.headers, {"ETag": tag, "Cache-Control": "no-cache"})

    async def file(self, request: Request) -> Response:
        """One of the page's files."""
        asset = self._assets.get(request.path_params["name"])
        if asset is None or request.path_params["version"] != self.version:
            raise Refusal(404, "There is no such file of the page.", "Reload the page.")
        return asset.response(request.headers, {"Cache-Control": _FOR_EVER})


def is_page_path(path: str) -> bool:
    """Whether a path is of the page's own files, which hold nothing private."""
    first = path.removeprefix("/").partition("/")[0]
    return path == "/" or (bool(first) and (first == ASSETS or first in VIEWS))
