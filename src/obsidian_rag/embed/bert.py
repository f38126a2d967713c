"""Read the weights of BERT-family sentence encoders into one common form.

Weights are named by their role (`layer.0.qkv`), whatever the file calls them. Matrices are
transposed so that a row of states times a matrix is the next row.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.embed.tensor_file import Array, read_tensors
from obsidian_rag.errors import ConfigInvalid

Floats = NDArray[np.float32]
WEIGHTS_FILE = "weights.safetensors"
CONFIG_FILE = "config.json"
SCALE = ".scale"
MATRICES = ("qkv", "attention", "wide", "narrow")
_FIX = "Use a sentence-transformers model of the BERT family, or a folder with model.onnx."
_FAMILY = ("bert", "roberta", "xlm-roberta")
_PREFIX = re.compile(r"^(?:0\.auto_model\.|model\.|bert\.|roberta\.)+")
# These reserve the positions up to and including their padding token's id.
_WITH_RESERVED_POSITIONS = ("roberta", "xlm-roberta")
_ACTIVATIONS = {
    "gelu": "erf",
    "gelu_new": "tanh",
    "gelu_fast": "tanh",
    "gelu_pytorch_tanh": "tanh",
}


@dataclass(frozen=True, slots=True)
class BertShape:
    """The settings of a network that its weights do not show."""

    layers: int
    heads: int
    width: int
    epsilon: float
    gelu: str
    first_position: int


def read_shape(folder: Path) -> BertShape:
    """Read the network's shape from config.json.

    Raises:
        ConfigInvalid: the file is missing, or the kind of network is not supported.
    """
    file = folder / CONFIG_FILE
    try:
        config = json.loads(file.read_text(encoding="utf-8-sig"))
        kind = config.get("model_type", "bert")
        has_reserved = kind in _WITH_RESERVED_POSITIONS
        shape = BertShape(
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            width=int(config["hidden_size"]),
            epsilon=float(config.get("layer_norm_eps", 1e-12)),
            gelu=_ACTIVATIONS.get(config.get("hidden_act", "gelu"), ""),
            first_position=int(config.get("pad_token_id") or 0) + 1 if has_reserved else 0,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigInvalid(f"{file} does not describe a BERT network.", _FIX) from error
    positions = config.get("position_embedding_type", "absolute")
    is_known = kind in _FAMILY and positions == "absolute" and shape.gelu
    if not is_known or shape.heads < 1 or shape.width % shape.heads:
        raise ConfigInvalid(f"{file}: this kind of network ({kind}) is not known.", _FIX)
    return shape


def read_float_weights(file: Path, shape: BertShape) -> dict[str, Floats]:
    """Read the weights of a sentence-transformers file into our form.

    Raises:
        ConfigInvalid: a weight is missing, or its size does not match config.json.
    """
    named = {_PREFIX.sub("", name): array for name, array in read_tensors(file).items()}
    try:
        return {name: np.ascontiguousarray(array) for name, array in _convert_weights(named, shape)}
    except KeyError as error:
        raise ConfigInvalid(f"{file} has no weight {error.args[0]}.", _FIX) from error
    except ValueError as error:
        raise ConfigInvalid(f"{file} does not fit its config.json.", _FIX) from error


def _convert_weights(named: Mapping[str, Array], shape: BertShape) -> Iterator[tuple[str, Array]]:
    def matrix(*names: str) -> Array:
        return np.concatenate([_floats(named[f"{name}.weight"]).T for name in names], axis=1)

    def bias(*names: str) -> Array:
        return np.concatenate([_floats(named[f"{name}.bias"]) for name in names])

    def norm(name: str, ours: str) -> Iterator[tuple[str, Array]]:
        for kind, older in (("weight", "gamma"), ("bias", "beta")):
            found = named[f"{name}.{kind if f'{name}.{kind}' in named else older}"]
            yield f"{ours}.{kind}", _floats(found)

    yield "words", _floats(named["embeddings.word_embeddings.weight"])
    positions = _floats(named["embeddings.position_embeddings.weight"])[shape.first_position :]
    yield "positions", positions + _floats(named["embeddings.token_type_embeddings.weight"])[:1]
    yield from norm("embeddings.LayerNorm", "norm")
    for number in range(shape.layers):
        theirs, ours = f"encoder.layer.{number}", f"layer.{number}"
        parts = [f"{theirs}.attention.self.{part}" for part in ("query", "key", "value")]
        places = {
            "qkv": parts,
            "attention": [f"{theirs}.attention.output.dense"],
            "wide": [f"{theirs}.intermediate.dense"],
            "narrow": [f"{theirs}.output.dense"],
        }
        for name, found in places.items():
            yield f"{ours}.{name}", matrix(*found)
            yield f"{ours}.{name}.bias", bias(*found)
        yield from norm(f"{theirs}.attention.output.LayerNorm", f"{ours}.norm1")
        yield from norm(f"{theirs}.output.LayerNorm", f"{ours}.norm2")


def _floats(array: Array) -> Floats:
    return np.asarray(array, dtype=np.float32)


def quantised(weights: Mapping[str, Floats]) -> dict[str, Array]:
    """Quantise to int8: matrices with a scale per column, word vectors with one per row."""
    form: dict[str, Array] = {}
    for name, array in weights.items():
        is_matrix = name.rpartition(".")[2] in MATRICES
        if not is_matrix and name != "words":
            form[name] = array
            continue
        along = 0 if is_matrix else 1
        scale = np.abs(array).max(axis=along, keepdims=True) / np.float32(127)
        scale[scale == 0] = 1
        form[name] = np.rint(array / scale).astype(np.int8)
        form[name + SCALE] = scale[0] if is_matrix else scale
    return form
