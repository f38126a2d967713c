"""Embedding by a transformer in this process, run by onnxruntime.

Texts run one by one: dynamic int8 models scale their numbers over the whole batch, so a text's
vector would depend on its neighbours.
"""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import EmbeddingSettings
from obsidian_rag.embed.digest import file_digest
from obsidian_rag.embed.model_folder import ModelFolder, read_model_folder
from obsidian_rag.embed.vectors import encodable, unit_rows, weighted_mean
from obsidian_rag.errors import ConfigInvalid, EmbeddingMismatch, ProviderFailed

_REVISION = 1
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


@dataclass(frozen=True, slots=True)
class _Loaded:
    tokenizer: Any
    session: Any
    inputs: dict[str, type[np.int32] | type[np.int64]]
    output: str
    is_pooled: bool


class OnnxEmbedder:
    """Any sentence-embedding model folder; the model is loaded on first use."""

    provider = "onnx"
    is_external = False

    def __init__(self, folder: ModelFolder, expected_dimensions: int | None = None) -> None:
        self.model = folder.name
        self.max_tokens: int | None = folder.max_tokens
        self._folder = folder
        self._expected = expected_dimensions
        self._width = folder.dimensions
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def dimensions(self) -> int:
        """Width of the vectors, found by embedding one word if the folder does not say it."""
        return self._width or len(self._vector("width"))

    @property
    def fingerprint(self) -> str:
        """Names the weights, the tokenizer and how vectors are made of the model's output."""
        folder = self._folder
        files = [*folder.weight_files, folder.tokenizer_file]
        digests = ":".join(file_digest(file) for file in files)
        prefixes = f"{folder.query_prefix!r}:{folder.document_prefix!r}"
        how = f"{folder.pooling}:{folder.max_tokens}:{folder.normalize}:{prefixes}"
        return f"onnx:{folder.name}:{self.dimensions}:{digests}:{how}:r{_REVISION}"

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text."""
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            if text.strip():
                row[:] = self._vector(self._folder.document_prefix + text)
        return unit_rows(rows)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a question."""
        rows = np.zeros((1, self.dimensions), dtype=np.float32)
        if text.strip():
            rows[0] = self._vector(self._folder.query_prefix + text)
        row: NDArray[np.float32] = unit_rows(rows)[0]
        return row

    def probe(self) -> None:
        """Check that onnxruntime and the model's files are there."""
        _import_onnxruntime()
        if not (self._folder.model_file.is_file() and self._folder.tokenizer_file.is_file()):
            raise ProviderFailed(
                f"The files of the model '{self.model}' are gone.",
                "Run `obsidian-rag model add FOLDER` again.",
            )

    def close(self) -> None:
        """Free the model."""
        self._loaded = None

    def _vector(self, text: str) -> NDArray[np.float32]:
        """The mean over windows of `max_tokens`, weighted by their length: nothing is cut off."""
        loaded = self._load()
        first = loaded.tokenizer.encode(encodable(text))
        windows = [window for window in (first, *first.overflowing) if window.ids]
        if not windows:
            return np.zeros(self.dimensions, dtype=np.float32)
        vectors = np.asarray([self._run(loaded, window) for window in windows], dtype=np.float32)
        if self._folder.normalize:
            unit_rows(vectors)
        vector = weighted_mean(list(vectors), [len(window.ids) for window in windows])
        return self._checked(vector)

    def _run(self, loaded: _Loaded, window: Any) -> NDArray[np.float32]:
        columns = {
            "input_ids": window.ids,
            "attention_mask": window.attention_mask,
            "token_type_ids": window.type_ids,
        }
        feed = {name: np.array([columns[name]], kind) for name, kind in loaded.inputs.items()}
        try:
            output = loaded.session.run([loaded.output], feed)[0][0]
        except Exception as error:  # onnxruntime's own errors have no common class
            raise ProviderFailed(
                f"The model '{self.model}' failed on a text.", "Check the model's files."
            ) from error
        if loaded.is_pooled:
            return np.asarray(output, dtype=np.float32)
        states: NDArray[np.float32] = np.asarray(output, dtype=np.float32)
        match self._folder.pooling:
            case "cls":
                states = states[0]
            case "last":
                states = states[-1]
            case "mean":
                states = np.add.reduce(states, axis=0) / np.float32(len(states))
        return states

    def _checked(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        width = len(vector)
        for expected in (self._expected, self._width):
            if expected not in (None, width):
                raise EmbeddingMismatch(
                    f"The model '{self.model}' makes vectors of width {width}, "
                    f"but {expected} was expected.",
                    "Correct embedding.dimensions, then run `obsidian-rag reindex`.",
                )
        self._width = width
        return vector

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._folder)
            return self._loaded


def make_onnx_embedder(settings: EmbeddingSettings, home: Path) -> OnnxEmbedder:
    """The embedder of a folder, or of a model added under `home`."""
    if settings.model is None:
        raise ConfigInvalid(
            "embedding.model must name the ONNX model.",
            "Run `obsidian-rag model add FOLDER` and set embedding.model to its name.",
        )
    added = home / "models" / settings.model
    folder = added if added.is_dir() else home / Path(settings.model).expanduser()
    return OnnxEmbedder(read_model_folder(folder), settings.dimensions)


def _import_onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ProviderFailed(
            "The ONNX embedder needs onnxruntime.", "Run `pip install 'obsidian-rag[onnx]'`."
        ) from error
    return onnxruntime


def _load(folder: ModelFolder) -> _Loaded:
    onnxruntime = _import_onnxruntime()
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count() or 1
    options.log_severity_level = 3
    # Threads that spin while waiting took twice the time on a busy machine, and all its cores.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    file = folder.tokenizer_file
    try:
        tokenizer = Tokenizer.from_file(str(file))
        file = folder.model_file
        session = onnxruntime.InferenceSession(
            str(file), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # both libraries raise plain Exception for a bad file
        raise ConfigInvalid(f"{file} cannot be loaded.", "Replace the file.") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(folder.max_tokens, stride=0)
    output, is_pooled = _output(session, folder)
    return _Loaded(tokenizer, session, _inputs(session, folder), output, is_pooled)


def _inputs(session: Any, folder: ModelFolder) -> dict[str, type[np.int32] | type[np.int64]]:
    wanted = {entry.name: entry.type for entry in session.get_inputs()}
    if unknown := sorted(set(wanted) - _INPUTS):
        raise ConfigInvalid(
            f"{folder.model_file} wants the input '{unknown[0]}'.", "Use a text embedding model."
        )
    return {name: np.int32 if "int32" in kind else np.int64 for name, kind in wanted.items()}


def _output(session: Any, folder: ModelFolder) -> tuple[str, bool]:
    outputs = [(entry.name, len(entry.shape)) for entry in session.get_outputs()]
    if ("sentence_embedding", 2) in outputs:
        return "sentence_embedding", True
    for rank, is_pooled in ((3, False), (2, True)):
        for name, dimensions in outputs:
            if dimensions == rank:
                return name, is_pooled
    raise ConfigInvalid(f"{folder.model_file} makes no vectors.", "Use a sentence-embedding model.")
