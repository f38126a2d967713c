"""Embedding by a transformer in this process, run by onnxruntime.

Texts are run one by one: dynamic int8 models scale over the whole batch, so that a text's vector
would depend on the others.
"""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import EmbeddingSettings
from obsidian_rag.embed.embedder import encodable, file_digest, unit_rows, weighted_mean
from obsidian_rag.embed.model_folder import ModelFolder, read_model_folder
from obsidian_rag.embed.runtime import LoadedModel, Window, import_onnxruntime, load_model
from obsidian_rag.errors import ConfigInvalid, EmbeddingMismatch, ProviderFailed

_REVISION = 1


class OnnxEmbedder:
    """Any sentence-embedding model folder; the model is loaded on first use.

    `threads` is the number of threads for one text; None uses all cores.
    """

    provider = "onnx"
    is_external = False

    def __init__(
        self,
        folder: ModelFolder,
        expected_dimensions: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.model = folder.name
        self.max_tokens: int | None = folder.max_tokens
        self._folder = folder
        self._expected = expected_dimensions
        self._threads = threads
        self._width = folder.dimensions
        self._lock = threading.Lock()
        self._loaded: LoadedModel | None = None

    @property
    def dimensions(self) -> int:
        """Width of the vectors; found by embedding one word if the folder does not declare it."""
        return self._width or len(self._vector("width"))

    @property
    def fingerprint(self) -> str:
        """Identifies the weights, the tokenizer and how vectors are made from the output."""
        folder = self._folder
        files = [*folder.weight_files, folder.tokenizer_file]
        digests = ":".join(file_digest(file) for file in files)
        prefixes = f"{folder.query_prefix!r}:{folder.document_prefix!r}"
        windows = f":w{folder.max_windows}" if folder.max_windows else ""
        how = f"{folder.pooling}:{folder.max_tokens}:{folder.normalize}:{prefixes}{windows}"
        return f"{self.provider}:{folder.name}:{self.dimensions}:{digests}:{how}:r{_REVISION}"

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
        """Check that the model's files and onnxruntime are there."""
        import_onnxruntime()
        if not (self._folder.model_file.is_file() and self._folder.tokenizer_file.is_file()):
            raise ProviderFailed(
                f"The files of the model '{self.model}' are gone.",
                "Run `obsidian-rag model add FOLDER` or `obsidian-rag model get NAME` again.",
            )

    def close(self) -> None:
        """Free the model."""
        self._loaded = None

    def _vector(self, text: str) -> NDArray[np.float32]:
        """The mean over windows of `max_tokens`, weighted by their length.

        The whole text counts, unless the folder limits the number of windows.
        """
        loaded = self._load()
        first = loaded.tokenizer.encode(encodable(text))
        windows = [window for window in (first, *first.overflowing) if window.ids]
        windows = windows[: self._folder.max_windows]
        if not windows:
            return np.zeros(self.dimensions, dtype=np.float32)
        vectors = np.asarray([self._run(loaded, window) for window in windows], dtype=np.float32)
        if self._folder.normalize:
            unit_rows(vectors)
        vector = weighted_mean(list(vectors), [len(window.ids) for window in windows])
        return self._check_width(vector)

    def _run(self, loaded: LoadedModel, window: Window) -> NDArray[np.float32]:
        try:
            states: NDArray[np.float32] = np.asarray(loaded.run(window), dtype=np.float32)
        except Exception as error:  # onnxruntime's errors have no common base class
            raise ProviderFailed(
                f"The model '{self.model}' failed on a text.", "Check the model's files."
            ) from error
        if states.ndim == 1:
            return states
        match self._folder.pooling:
            case "cls":
                states = states[0]
            case "last":
                states = states[-1]
            case "mean":
                states = np.add.reduce(states, axis=0) / np.float32(len(states))
        return states

    def _check_width(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
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

    def _load(self) -> LoadedModel:
        with self._lock:
            if self._loaded is None:
                self._loaded = load_model(self._folder, self._threads)
            return self._loaded


def make_onnx_embedder(settings: EmbeddingSettings, home: Path) -> OnnxEmbedder:
    """The embedder for an installed model or for a model folder."""
    if settings.model is None:
        raise ConfigInvalid(
            "embedding.model must name the ONNX model.",
            "Run `obsidian-rag model add FOLDER` and set embedding.model to its name.",
        )
    added = home / "models" / settings.model
    folder = added if added.is_dir() else home / Path(settings.model).expanduser()
    return OnnxEmbedder(read_model_folder(folder), settings.dimensions)
