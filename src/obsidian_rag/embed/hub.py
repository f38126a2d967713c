"""Files of the model hub, fetched on the user's explicit command only."""

import os
from pathlib import Path

from obsidian_rag.embed.download import TIMEOUT_S, Progress, download
from obsidian_rag.errors import ProviderFailed

HUB_VARIABLE = "OBSIDIAN_RAG_MODEL_HUB"
_HUB = "https://huggingface.co"
_FILES = {"onnx/model.onnx": "model.onnx", "tokenizer.json": "tokenizer.json"}


def fetch_from_hub(
    repository: str, place: Path, on_progress: Progress | None, hub: str | None
) -> None:
    """Put model.onnx and tokenizer.json of a repository into `place`.

    Raises:
        ProviderFailed: the hub does not answer, or not with a model.
    """
    import httpx

    base = (hub or os.environ.get(HUB_VARIABLE) or _HUB).rstrip("/")
    with httpx.Client(follow_redirects=True, timeout=TIMEOUT_S) as client:
        for remote, local in _FILES.items():
            url = f"{base}/{repository}/resolve/main/{remote}"
            try:
                download(client, url, place / local, local, on_progress)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise ProviderFailed(
                    f"Could not download {url} ({error}).",
                    f"Check the network, or name a mirror in {HUB_VARIABLE}.",
                ) from error
