"""BERT-family sentence encoders: their weights put in one form, and run by numpy.

The form names what a weight does (`layer.0.qkv`), whatever the file called it; matrices are
turned so that a row of states times a matrix is the next row. numpy is for machines that have no
onnxruntime: slower, the same vectors but for rounding.
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
# They leave positions free in front of the first one: their padding token and those before.
_WITH_FREE_POSITIONS = ("roberta", "xlm-roberta")
_ACTIVATIONS = {
    "gelu": "erf",
    "gelu_new": "tanh",
    "gelu_fast": "tanh",
    "gelu_pytorch_tanh": "tanh",
}


@dataclass(frozen=True, slots=True)
class BertShape:
    """What the weights alone do not say."""

    layers: int
    heads: int
    width: int
    epsilon: float
    gelu: str
    first_position: int

    @property
    def head_width(self) -> int:
        """Numbers per attention head."""
        return self.width // self.heads


def read_shape(folder: Path) -> BertShape:
    """The network's shape by config.json.

    Raises:
        ConfigInvalid: the file is missing, or the network is of another kind.
    """
    file = folder / CONFIG_FILE
    try:
        said = json.loads(file.read_text(encoding="utf-8-sig"))
        kind = said.get("model_type", "bert")
        has_free = kind in _WITH_FREE_POSITIONS
        shape = BertShape(
            layers=int(said["num_hidden_layers"]),
            heads=int(said["num_attention_heads"]),
            width=int(said["hidden_size"]),
            epsilon=float(said.get("layer_norm_eps", 1e-12)),
            gelu=_ACTIVATIONS.get(said.get("hidden_act", "gelu"), ""),
            first_position=int(said.get("pad_token_id") or 0) + 1 if has_free else 0,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigInvalid(f"{file} does not describe a BERT network.", _FIX) from error
    positions = said.get("position_embedding_type", "absolute")
    is_known = kind in _FAMILY and positions == "absolute" and shape.gelu
    if not is_known or shape.heads < 1 or shape.width % shape.heads:
        raise ConfigInvalid(f"{file}: this kind of network ({kind}) is not known.", _FIX)
    return shape


def read_float_weights(file: Path, shape: BertShape) -> dict[str, Floats]:
    """The weights of a sentence-transformers file in our form.

    Raises:
        ConfigInvalid: a weight is missing or has another size than config.json says.
    """
    named = {_PREFIX.sub("", name): array for name, array in read_tensors(file).items()}
    try:
        return {name: np.ascontiguousarray(array) for name, array in _put_in_form(named, shape)}
    except KeyError as error:
        raise ConfigInvalid(f"{file} has no weight {error.args[0]}.", _FIX) from error
    except ValueError as error:
        raise ConfigInvalid(f"{file} does not fit its config.json.", _FIX) from error


def _put_in_form(named: Mapping[str, Array], shape: BertShape) -> Iterator[tuple[str, Array]]:
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
    """Matrices as int8 with a scale for each column, words with one for each row."""
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


def widened(form: Mapping[str, Array]) -> dict[str, Floats]:
    """Float weights again; the words stay as they are, since a text needs few of them."""
    return {
        name: _floats(array) * form[name + SCALE]
        if name + SCALE in form and name != "words"
        else array
        for name, array in form.items()
        if not name.endswith(SCALE) or name == "words" + SCALE
    }


class NumpyBert:
    """The network in plain numpy, one text at a time."""

    def __init__(self, weights: Mapping[str, Array], shape: BertShape) -> None:
        self._weights = weights
        self._shape = shape

    def states(self, ids: NDArray[np.int64]) -> Floats:
        """The last layer's row of each token."""
        weights, shape = self._weights, self._shape
        rows = _floats(weights["words"][ids])
        if "words" + SCALE in weights:
            rows = rows * weights["words" + SCALE][ids]
        rows = self._normed(rows + weights["positions"][: len(ids)], "norm")
        for number in range(shape.layers):
            layer = f"layer.{number}"
            attended = self._attended(self._product(rows, f"{layer}.qkv"))
            attended = self._product(attended, f"{layer}.attention")
            rows = self._normed(attended + rows, f"{layer}.norm1")
            wide = _gelu(self._product(rows, f"{layer}.wide"))
            rows = self._normed(self._product(wide, f"{layer}.narrow") + rows, f"{layer}.norm2")
        return rows

    def _product(self, rows: Floats, name: str) -> Floats:
        product: Floats = rows @ self._weights[name]
        product += self._weights[f"{name}.bias"]
        return product

    def _attended(self, qkv: Floats) -> Floats:
        shape = self._shape
        parts = qkv.reshape(len(qkv), 3, shape.heads, shape.head_width).transpose(1, 2, 0, 3)
        query, key, value = parts
        scores = query @ key.transpose(0, 2, 1)
        scores *= np.float32(shape.head_width**-0.5)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = (scores @ value).transpose(1, 0, 2).reshape(len(qkv), shape.width)
        return np.asarray(mixed, dtype=np.float32)

    def _normed(self, rows: Floats, name: str) -> Floats:
        rows = np.subtract(rows, rows.mean(axis=-1, keepdims=True), dtype=np.float32)
        spread: Floats = np.einsum("ij,ij->i", rows, rows) / np.float32(rows.shape[1])
        rows /= np.sqrt(spread + np.float32(self._shape.epsilon))[:, None]
        rows *= self._weights[f"{name}.weight"]
        rows += self._weights[f"{name}.bias"]
        return rows


def _gelu(rows: Floats) -> Floats:
    """The tanh form; numpy has no error function, and vectors agree to six digits."""
    inner = rows * rows
    inner *= np.float32(0.044715)
    inner += np.float32(1)
    inner *= rows
    inner *= np.float32((2 / np.pi) ** 0.5)
    np.tanh(inner, out=inner)
    inner += np.float32(1)
    inner *= rows
    inner *= np.float32(0.5)
    return inner


def load_numpy_bert(folder: Path) -> NumpyBert:
    """The network of a model folder of ours."""
    shape = read_shape(folder)
    return NumpyBert(widened(read_tensors(folder / WEIGHTS_FILE)), shape)
