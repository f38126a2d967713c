"""A file fetched over HTTP, on the user's explicit command only."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

# What is fetched, how many bytes of it are here, and of how many if that is known.
Progress = Callable[[str, int, int | None], None]
TIMEOUT_S = 60
_BLOCK = 1 << 18


def download(
    client: "httpx.Client", address: str, file: Path, name: str, on_progress: Progress | None
) -> None:
    """Write what is at an address into a file; `name` is what progress is told of.

    Raises:
        httpx.HTTPError: it cannot be had.
    """
    with client.stream("GET", address) as response, file.open("wb") as stream:
        response.raise_for_status()
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdigit() else None
        done = 0
        for block in response.iter_bytes(_BLOCK):
            stream.write(block)
            done += len(block)
            if on_progress is not None:
                on_progress(name, done, total)
