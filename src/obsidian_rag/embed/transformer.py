"""Embedding by a transformer in this process, run by onnxruntime.

Texts are run one by one: dynamic int8 models scale over the whole batch, so that a text's vector
would depend on the others.

Threat: since 1.29 onnxruntime sends usage reports over the network and writes a device id to disk,
unless a variable is set before its first import. Nothing else in the program imports it.
"""

import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.config import EmbeddingSettings
from obsidian_rag.embed.embedder import encodable, file_digest, unit_rows, weighted_mean
from obsidian_rag.embed.model_folder import ModelFolder, read_model_folder
from obsidian_rag.errors import ConfigInvalid, EmbeddingMismatch, ProviderFailed

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_REVISION = 1
# In the background: further windows of a text add little, and each costs as much as the first.
_DEFAULT_MAX_WINDOWS = 2
_MAX_THREADS = 2
_TELEMETRY_OFF = {"ORT_DISABLE_TELEMETRY": "1"}
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A loaded network and its tokenizer, which cuts at the model's limit and does not pad."""

    tokenizer: "Tokenizer"
    session: Any
    inputs: dict[str, type[np.int32] | type[np.int64]]
    output: str

    def run(self, window: "Encoding") -> NDArray[np.float32]:
        """One row per token, or a single row if the network pools them itself."""
        columns = {
            "input_ids": window.ids,
            "attention_mask": window.attention_mask,
            "token_type_ids": window.type_ids,
        }
        feed = {name: np.array([columns[name]], kind) for name, kind in self.inputs.items()}
        rows: NDArray[np.float32] = self.session.run([self.output], feed)[0][0]
        return rows


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
                f"The files of the model '{self.model}' are missing.",
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

    def _run(self, loaded: LoadedModel, window: "Encoding") -> NDArray[np.float32]:
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


class BackgroundEmbedder(OnnxEmbedder):
    """A transformer that adds meaning vectors to an index of static ones.

    It takes few windows of a text and few threads; the process that uses it runs at low priority.
    """

    provider = "transformer"

    def __init__(self, folder: ModelFolder) -> None:
        windows = folder.max_windows or _DEFAULT_MAX_WINDOWS
        threads = min(_MAX_THREADS, os.cpu_count() or 1)
        super().__init__(replace(folder, max_windows=windows), threads=threads)


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


def import_onnxruntime() -> Any:
    """Import onnxruntime with its telemetry disabled.

    Raises:
        ProviderFailed: it is not installed, or does not work on this machine.
    """
    os.environ.update(_TELEMETRY_OFF)
    try:
        import onnxruntime
    except (ImportError, OSError) as error:
        raise ProviderFailed(
            "The ONNX embedder needs onnxruntime.", "Run `pip install onnxruntime`."
        ) from error
    return onnxruntime


@cache
def _has_exact_int8() -> bool:
    """Whether the processor is known to add int8 products exactly.

    Without VNNI large sums saturate: vectors would be worse and depend on the machine. Exact sums
    cost a fifth more time there; with VNNI the option would double the time for the same vectors.
    """
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return re.search(r"^flags\s*:.*\bavx(?:512)?_vnni\b", flags, re.MULTILINE) is not None


def load_model(folder: ModelFolder, threads: int | None) -> LoadedModel:
    """Load the network and its tokenizer.

    Raises:
        ConfigInvalid: a file of the model cannot be used.
        ProviderFailed: onnxruntime is not installed, or does not work on this machine.
    """
    onnxruntime = import_onnxruntime()
    tokenizer = _tokenizer(folder)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or os.cpu_count() or 1
    options.log_severity_level = 3
    # On a busy machine, spinning threads took twice the time and all cores.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not _has_exact_int8():
        options.add_session_config_entry("session.x64quantprecision", "1")
    file = folder.model_file
    try:
        session = onnxruntime.InferenceSession(
            str(file), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the library raises plain Exception for a bad file
        raise ConfigInvalid(f"{file} cannot be loaded.", "Replace the file.") from error
    return LoadedModel(tokenizer, session, _inputs(session, folder), _output(session, folder))


def _tokenizer(folder: ModelFolder) -> "Tokenizer":
    from tokenizers import Tokenizer

    file = folder.tokenizer_file
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises plain Exception for a bad file
        raise ConfigInvalid(f"{file} cannot be loaded.", "Replace the file.") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(folder.max_tokens, stride=0)
    return tokenizer


def _inputs(session: Any, folder: ModelFolder) -> dict[str, type[np.int32] | type[np.int64]]:
    wanted = {entry.name: entry.type for entry in session.get_inputs()}
    if unknown := sorted(set(wanted) - _INPUTS):
        raise ConfigInvalid(
            f"{folder.model_file} needs the unknown input '{unknown[0]}'.",
            "Use a text embedding model.",
        )
    return {name: np.int32 if "int32" in kind else np.int64 for name, kind in wanted.items()}


def _output(session: Any, folder: ModelFolder) -> str:
    """The name of the pooled output if there is one, else of the output per token."""
    outputs = [(str(entry.name), len(entry.shape)) for entry in session.get_outputs()]
    if ("sentence_embedding", 2) in outputs:
        return "sentence_embedding"
    for rank in (3, 2):
        for name, dimensions in outputs:
            if dimensions == rank:
                return name
    raise ConfigInvalid(f"{folder.model_file} makes no vectors.", "Use a sentence-embedding model.")
