"""The page's static files, which contain nothing private.

Every file is served below `/s/HASH/`, with one hash for all files, so browsers may keep them for
ever: a new version has new addresses, and imports between modules stay relative.
"""

import hashlib
import os
from pathlib import Path

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

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
_FILES = "s"
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
_PAGE_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_FOR_EVER = "public, max-age=31536000, immutable"


class PageFiles(StaticFiles):
    """The files below `/s/HASH/`."""

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """A file, or that the browser has it already."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        # Some systems have other types for these; browsers run scripts of the right type only.
        response.headers["Content-Type"] = _TYPES.get(Path(full_path).suffix, "text/plain")
        response.headers.update({**_PAGE_HEADERS, "Cache-Control": _FOR_EVER})
        return response


def page_routes() -> list[BaseRoute]:
    """The routes of the HTML document and its files; the browser decides which view it shows."""
    version = _hash_files()
    document = (ROOT / "index.html").read_text("utf-8").replace("{base}", f"/{_FILES}/{version}")
    headers = {**_PAGE_HEADERS, "ETag": f'"{version}"', "Cache-Control": "no-cache"}

    async def document_or_unchanged(request: Request) -> Response:
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(document, headers=headers, media_type="text/html")

    return [
        Mount(f"/{_FILES}/{version}", GZipMiddleware(PageFiles(directory=ROOT))),
        *(Route(f"/{view}", document_or_unchanged) for view in sorted(VIEWS)),
        Route("/note/{path:path}", document_or_unchanged),
    ]


def is_page_path(path: str) -> bool:
    """Whether a path is of the page's own files, which contain nothing private."""
    first = path.removeprefix("/").partition("/")[0]
    return path == "/" or (bool(first) and (first == _FILES or first in VIEWS))


def _hash_files() -> str:
    found = hashlib.sha256()
    for file in sorted(ROOT.rglob("*")):
        if file.is_file():
            content = file.read_bytes()
            found.update(f"{file.relative_to(ROOT).as_posix()} {len(content)} ".encode() + content)
    return found.hexdigest()[:16]
