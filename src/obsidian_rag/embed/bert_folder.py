"""A sentence-transformers folder of the BERT family, put in the form that runs best here.

Int8 with a scale for each column is a quarter of the size and, with onnxruntime, quicker; whether
it still makes the vectors of the original is tried on a few sentences before it is kept.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from obsidian_rag.embed.bert import (
    CONFIG_FILE,
    NumpyBert,
    quantised,
    read_float_weights,
    read_shape,
)
from obsidian_rag.embed.bert_graph import write_graph
from obsidian_rag.embed.model_folder import ModelFolder, read_model_folder
from obsidian_rag.embed.runtime import load_model
from obsidian_rag.errors import ConfigInvalid

FLOAT_WEIGHTS = "model.safetensors"
# What says how the model's rows become one vector; the last three may be missing.
DESCRIPTIONS = (
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)
# Every one of them changes the vector in a way that we would leave out.
_KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")
_LEAST_COSINE = 0.97
_SAMPLES = (
    "The kitchen tap drips again; the plumber comes on Tuesday.",
    "def mean(rows): return sum(rows) / len(rows)",
    "Der Zug nach Hamburg hatte zwanzig Minuten Verspätung.",
    "Quarterly revenue grew, although costs rose faster than anybody had expected in spring.",
)


def is_bert_folder(folder: Path) -> bool:
    """Whether the folder holds safetensors weights rather than an ONNX model."""
    has_onnx = any((folder / place).is_file() for place in ("model.onnx", "onnx/model.onnx"))
    return (folder / FLOAT_WEIGHTS).is_file() and not has_onnx


def convert_bert_folder(source: Path, place: Path) -> ModelFolder:
    """Write into `place` what `source` holds, as model.onnx with int8 weights if they are as good.

    A limit beyond the positions that the network knows is lowered to them.

    Raises:
        ConfigInvalid: the folder is not of a kind that we can run exactly.
    """
    _check_modules(source)
    shape = read_shape(source)
    weights = read_float_weights(source / FLOAT_WEIGHTS, shape)
    for name in (CONFIG_FILE, "tokenizer.json", *DESCRIPTIONS):
        if (source / name).is_file():
            (place / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source / name, place / name)
    write_graph(quantised(weights), shape, place)
    if _cosine(place, NumpyBert(weights, shape)) < _LEAST_COSINE:
        write_graph(weights, shape, place)
    described = read_model_folder(place)
    longest = min(described.max_tokens, len(weights["positions"]))
    return replace(described, max_tokens=longest)


def _check_modules(source: Path) -> None:
    file = source / "modules.json"
    try:
        modules: Any = json.loads(file.read_text(encoding="utf-8-sig")) if file.exists() else []
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigInvalid(f"{file} cannot be read.", "Get the model's files again.") from error
    for kind in kinds:
        if kind not in _KNOWN_MODULES:
            raise ConfigInvalid(
                f"The model has a step '{kind}' that is not known here.",
                "Use a model of a transformer with pooling, or its ONNX form.",
            )


def _cosine(place: Path, reference: NumpyBert) -> float:
    """How alike the written model's mean vectors are to those of the original weights."""
    loaded = load_model(read_model_folder(place), 1)
    cosines = []
    for sample in _SAMPLES:
        window = loaded.tokenizer.encode(sample)
        ours = np.asarray(loaded.run(window)).mean(axis=0)
        theirs = reference.states(np.array(window.ids)).mean(axis=0)
        cosines.append(ours @ theirs / (np.linalg.norm(ours) * np.linalg.norm(theirs)))
    return float(np.mean(cosines))
