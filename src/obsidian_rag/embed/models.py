"""The ONNX models in the data folder: add, list, remove, and fetch known ones."""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from obsidian_rag.embed.model_folder import ModelFolder, Pooling, read_model_folder
from obsidian_rag.embed.onnx import OnnxEmbedder
from obsidian_rag.errors import InvalidArgument, NotFound, ProviderFailed

Progress = Callable[[str, int, int | None], None]
HUB_VARIABLE = "OBSIDIAN_RAG_MODEL_HUB"
_HUB = "https://huggingface.co"
_HUB_FILES = {"onnx/model.onnx": "model.onnx", "tokenizer.json": "tokenizer.json"}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that `embedding.model` can name."""

    name: str
    folder: Path
    dimensions: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _HubModel:
    repository: str
    pooling: Pooling
    max_tokens: int
    query_prefix: str = ""
    document_prefix: str = ""


_KNOWN = {
    "e5-small": _HubModel("intfloat/multilingual-e5-small", "mean", 512, "query: ", "passage: "),
    "minilm": _HubModel("sentence-transformers/all-MiniLM-L6-v2", "mean", 256),
    "bge-small": _HubModel(
        "BAAI/bge-small-en-v1.5",
        "cls",
        512,
        "Represent this sentence for searching relevant passages: ",
    ),
}


def known_models() -> tuple[str, ...]:
    """The names that `get_model` can fetch."""
    return tuple(_KNOWN)


def add_model(folder: Path, home: Path, name: str | None = None) -> ModelInfo:
    """Copy a model folder into the data folder, after checking that it embeds.

    Raises:
        ConfigInvalid: the folder is not a usable model.
        InvalidArgument: the name is taken or has no usable character.
    """
    source = read_model_folder(folder)
    name = _free_name(name or folder.resolve().name, home)
    with _workplace(home) as place:
        for file in source.weight_files:
            shutil.copyfile(file, place / file.name)
        shutil.copyfile(source.tokenizer_file, place / "tokenizer.json")
        return _install(replace(source, name=name), place, home)


def get_model(
    name: str, home: Path, on_progress: Progress | None = None, hub: str | None = None
) -> ModelInfo:
    """Download a known model from the model hub into the data folder.

    Allowed even when security.local_only is on: it runs only on the user's explicit command
    and sends no note text, only the model's name. OBSIDIAN_RAG_MODEL_HUB names a mirror.

    Raises:
        NotFound: no known model has that name.
        ProviderFailed: the hub does not answer, or not with a model.
    """
    known = _KNOWN.get(name)
    if known is None:
        raise NotFound(f"There is no known model '{name}'.", f"Known: {', '.join(_KNOWN)}.")
    _free_name(name, home)
    base = (hub or os.environ.get(HUB_VARIABLE) or _HUB).rstrip("/")
    with _workplace(home) as place:
        for remote, local in _HUB_FILES.items():
            url = f"{base}/{known.repository}/resolve/main/{remote}"
            _download(url, place / local, on_progress)
        described = replace(
            read_model_folder(place),
            name=name,
            pooling=known.pooling,
            max_tokens=known.max_tokens,
            query_prefix=known.query_prefix,
            document_prefix=known.document_prefix,
        )
        return _install(described, place, home)


def list_models(home: Path) -> list[ModelInfo]:
    """The models added so far, by name."""
    root = home / "models"
    folders = sorted(root.iterdir()) if root.is_dir() else []
    return [
        _info(folder)
        for folder in folders
        if not folder.name.startswith(".") and (folder / "embedding.json").is_file()
    ]


def remove_model(name: str, home: Path) -> None:
    """Delete an added model.

    Raises:
        NotFound: no model has that name.
    """
    folder = home / "models" / name
    if _safe(name) != name or not folder.is_dir():
        raise NotFound(f"There is no model '{name}'.", "Run `obsidian-rag model list`.")
    shutil.rmtree(folder)


def _install(described: ModelFolder, place: Path, home: Path) -> ModelInfo:
    """Try the model in its temporary place, describe it, and move it to its name."""
    here = replace(
        described,
        model_file=place / described.model_file.name,
        tokenizer_file=place / "tokenizer.json",
        dimensions=None,
    )
    embedder = OnnxEmbedder(here)
    width = embedder.embed_query("a short text").shape[0]
    embedder.close()
    (place / "embedding.json").write_text(here.settings_text(width), encoding="utf-8")
    target = home / "models" / described.name
    place.rename(target)
    return _info(target)


@contextmanager
def _workplace(home: Path) -> Iterator[Path]:
    root = home / "models"
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    place = Path(tempfile.mkdtemp(dir=root, prefix=".new-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _free_name(wanted: str, home: Path) -> str:
    name = _safe(wanted)
    if not name:
        raise InvalidArgument(
            f"'{wanted}' cannot be a model's name.", "Choose another with --name."
        )
    if (home / "models" / name).exists():
        raise InvalidArgument(
            f"There is a model '{name}' already.",
            f"Run `obsidian-rag model remove {name}` first, or choose another name.",
        )
    return name


def _safe(name: str) -> str:
    return _UNSAFE.sub("-", name).strip(".-")


def _info(folder: Path) -> ModelInfo:
    described = read_model_folder(folder)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return ModelInfo(folder.name, folder, described.dimensions or 0, size)


def _download(url: str, file: Path, on_progress: Progress | None) -> None:
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
            f"{url} cannot be fetched ({error}).",
            f"Check the network, or name a mirror in {HUB_VARIABLE}.",
        ) from error
