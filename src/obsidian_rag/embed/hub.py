"""Files of the model hub, fetched on the user's explicit command only."""

import os
from collections.abc import Callable
from pathlib import Path

from obsidian_rag.errors import ProviderFailed

HUB_VARIABLE = "OBSIDIAN_RAG_MODEL_HUB"
_HUB = "https://huggingface.co"
_FILES = {"onnx/model.onnx": "model.onnx", "tokenizer.json": "tokenizer.json"}


def fetch_from_hub(
    repository: str,
    place: Path,
    on_progress: Callable[[str, int, int | None], None] | None,
    hub: str | None,
) -> None:
    """Put model.onnx and tokenizer.json of a repository into `place`.

    Raises:
        ProviderFailed: the hub does not answer, or not with a model.
    """
    base = (hub or os.environ.get(HUB_VARIABLE) or _HUB).rstrip("/")
    for remote, local in _FILES.items():
        url = f"{base}/{repository}/resolve/main/{remote}"
        _download(url, place / local, on_progress)


def _download(
    url: str, file: Path, on_progress: Callable[[str, int, int | None], None] | None
) -> None:
    import httpx

    try:
        with (
            httpx.stream("GET", url, follow_redirects=True, timeout=60) as response,
            file.open("wb") as stream,
        ):
            response.raise_for_status()
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
            done = 0
            for block in response.iter_bytes(1 << 18):
                stream.write(block)
                done += len(block)
                if on_progress is not None:
                    on_progress(file.name, done, total)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ProviderFailed(
            f"Could not download {url} ({error}).",
            f"Check the network, or name a mirror in {HUB_VARIABLE}.",
        ) from error
