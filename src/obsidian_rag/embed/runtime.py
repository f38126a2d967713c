"""Run a transformer with onnxruntime.

Threat: since 1.29 onnxruntime sends usage reports over the network and writes a device id to disk,
unless a variable is set before its first import. Nothing else in the program imports it.
"""

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.embed.model_folder import ModelFolder
from obsidian_rag.errors import ConfigInvalid, ProviderFailed

_TELEMETRY_OFF = {"ORT_DISABLE_TELEMETRY": "1"}
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class Window(Protocol):
    """One part of a text, as cut by the tokenizer."""

    ids: list[int]
    attention_mask: list[int]
    type_ids: list[int]


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A loaded network and its tokenizer, which cuts at the model's limit and does not pad."""

    tokenizer: Any
    session: Any
    inputs: dict[str, type[np.int32] | type[np.int64]]
    output: str

    def run(self, window: Window) -> NDArray[np.float32]:
        """One row per token, or a single row if the network pools them itself."""
        columns = {
            "input_ids": window.ids,
            "attention_mask": window.attention_mask,
            "token_type_ids": window.type_ids,
        }
        feed = {name: np.array([columns[name]], kind) for name, kind in self.inputs.items()}
        rows: NDArray[np.float32] = self.session.run([self.output], feed)[0][0]
        return rows


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
    """The name of the pooled output if there is one, else of the output per token."""
    outputs = [(str(entry.name), len(entry.shape)) for entry in session.get_outputs()]
    if ("sentence_embedding", 2) in outputs:
        return "sentence_embedding"
    for rank in (3, 2):
        for name, dimensions in outputs:
            if dimensions == rank:
                return name
    raise ConfigInvalid(f"{folder.model_file} makes no vectors.", "Use a sentence-embedding model.")
