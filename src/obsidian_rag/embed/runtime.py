"""What runs a transformer: onnxruntime, or numpy for the models we wrote ourselves.

Threat: since 1.29 onnxruntime reports its use over the network and writes a device id on disk,
unless a variable is there before its first import. Nothing else in the program imports it.
"""

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.embed.bert import load_numpy_bert
from obsidian_rag.embed.model_folder import ModelFolder
from obsidian_rag.errors import ConfigInvalid, ProviderFailed

_TELEMETRY_OFF = {"ORT_DISABLE_TELEMETRY": "1"}
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class Window(Protocol):
    """One piece of a text, as the tokenizer cut it."""

    ids: list[int]
    attention_mask: list[int]
    type_ids: list[int]


class LoadedModel(Protocol):
    """A network in memory, with its tokenizer."""

    @property
    def tokenizer(self) -> Any:
        """Cuts at the model's limit and pads nothing."""
        ...

    def run(self, window: Window) -> NDArray[np.float32]:
        """A row for each token; or one row alone, if the network pools them itself."""
        ...


@dataclass(frozen=True, slots=True)
class _OnnxModel:
    tokenizer: Any
    session: Any
    inputs: dict[str, type[np.int32] | type[np.int64]]
    output: str

    def run(self, window: Window) -> NDArray[np.float32]:
        columns = {
            "input_ids": window.ids,
            "attention_mask": window.attention_mask,
            "token_type_ids": window.type_ids,
        }
        feed = {name: np.array([columns[name]], kind) for name, kind in self.inputs.items()}
        rows: NDArray[np.float32] = self.session.run([self.output], feed)[0][0]
        return rows


@dataclass(frozen=True, slots=True)
class _NumpyModel:
    tokenizer: Any
    network: Any

    def run(self, window: Window) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = self.network.states(np.array(window.ids))
        return rows


def import_onnxruntime() -> Any:
    """The library, without its telemetry.

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


def can_run(folder: ModelFolder) -> None:
    """Check that something can run the model.

    Raises:
        ProviderFailed: only onnxruntime could, and it is not there.
    """
    try:
        import_onnxruntime()
    except ProviderFailed:
        if not folder.has_numpy_form:
            raise


@cache
def _has_exact_int8() -> bool:
    """Whether the processor adds int8 products exactly by itself, as far as can be known.

    One without VNNI cuts off large sums: vectors would depend on the machine, and be worse. To be
    exact there takes a fifth more time; with VNNI it takes twice the time for the same vectors.
    """
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return re.search(r"^flags\s*:.*\bavx(?:512)?_vnni\b", flags, re.MULTILINE) is not None


def load_model(folder: ModelFolder, threads: int | None) -> LoadedModel:
    """The network and its tokenizer, in memory.

    Raises:
        ConfigInvalid: a file of the model cannot be used.
        ProviderFailed: only onnxruntime could run it, and it is not there.
    """
    try:
        onnxruntime = import_onnxruntime()
    except ProviderFailed:
        if not folder.has_numpy_form:
            raise
        return _NumpyModel(_tokenizer(folder), load_numpy_bert(folder.model_file.parent))
    tokenizer = _tokenizer(folder)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or os.cpu_count() or 1
    options.log_severity_level = 3
    # Threads that spin while waiting took twice the time on a busy machine, and all its cores.
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
    return _OnnxModel(tokenizer, session, _inputs(session, folder), _output(session, folder))


def _tokenizer(folder: ModelFolder) -> Any:
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
            f"{folder.model_file} wants the input '{unknown[0]}'.", "Use a text embedding model."
        )
    return {name: np.int32 if "int32" in kind else np.int64 for name, kind in wanted.items()}


def _output(session: Any, folder: ModelFolder) -> str:
    """The pooled vector if the network makes it, else the rows of the tokens."""
    outputs = [(str(entry.name), len(entry.shape)) for entry in session.get_outputs()]
    if ("sentence_embedding", 2) in outputs:
        return "sentence_embedding"
    for rank in (3, 2):
        for name, dimensions in outputs:
            if dimensions == rank:
                return name
    raise ConfigInvalid(f"{folder.model_file} makes no vectors.", "Use a sentence-embedding model.")
