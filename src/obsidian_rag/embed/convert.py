"""Convert a sentence-transformers folder of the BERT family to ONNX with int8 weights.

Int8 with a scale per column is a quarter of the size and faster with onnxruntime. It is kept only
if the vectors of a few sample sentences stay close to the original ones.

Weights are named by their role (`layer.0.qkv`), whatever the file calls them. Matrices are
transposed so that a row of states times a matrix is the next row.
"""

import json
import re
import shutil
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.embed.embedder import unit_rows
from obsidian_rag.embed.model_folder import WEIGHTS_FILE, ModelFolder, read_model_folder
from obsidian_rag.embed.tensor_file import Array, Place, read_tensors, write_tensors
from obsidian_rag.embed.transformer import load_model
from obsidian_rag.errors import ConfigInvalid

Floats = NDArray[np.float32]
FLOAT_WEIGHTS = "model.safetensors"
_CONFIG_FILE = "config.json"
_MODEL_FILE = "model.onnx"
# Files that describe how the model's rows become one vector; the last three are optional.
_DESCRIPTIONS = (
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)
# Any other module would change the vector, and we would miss that.
_KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")
_MIN_COSINE = 0.97
_SAMPLES = (
    "The kitchen tap drips again; the plumber comes on Tuesday.",
    "def mean(rows): return sum(rows) / len(rows)",
    "Der Zug nach Hamburg hatte zwanzig Minuten Verspätung.",
    "Quarterly revenue grew, although costs rose faster than anybody had expected in spring.",
)
_FIX = "Use a sentence-transformers model of the BERT family, or a folder with model.onnx."
_FAMILY = ("bert", "roberta", "xlm-roberta")
# These reserve the positions up to and including their padding token's id.
_WITH_RESERVED_POSITIONS = ("roberta", "xlm-roberta")
_PREFIX = re.compile(r"^(?:0\.auto_model\.|model\.|bert\.|roberta\.)+")
_ACTIVATIONS = {
    "gelu": "erf",
    "gelu_new": "tanh",
    "gelu_fast": "tanh",
    "gelu_pytorch_tanh": "tanh",
}
_SCALE = ".scale"
_MATRICES = ("qkv", "attention", "wide", "narrow")
# Of ONNX and its protobuf encoding.
_FLOAT, _INT8, _INT64 = 1, 3, 7
_ONNX_KINDS = {"float32": _FLOAT, "int8": _INT8}
_IR_VERSION = 8
_MICROSOFT = "com.microsoft"
# The oldest operator sets that have everything we use.
_OPERATORS = {"": 17, _MICROSOFT: 1}
_VARINT, _LENGTH, _FIXED = 0, 2, 5
_FLOAT_KIND, _INT_KIND = 1, 2


def is_bert_folder(folder: Path) -> bool:
    """Whether the folder holds safetensors weights rather than an ONNX model."""
    has_onnx = any((folder / place).is_file() for place in ("model.onnx", "onnx/model.onnx"))
    return (folder / FLOAT_WEIGHTS).is_file() and not has_onnx


def convert_bert_folder(source: Path, place: Path) -> ModelFolder:
    """Convert `source` into `place`: model.onnx, with int8 weights if they are accurate enough.

    `max_tokens` is lowered to the number of positions that the network has.

    Raises:
        ConfigInvalid: we cannot run this kind of model exactly.
    """
    _check_modules(source)
    shape = read_shape(source)
    weights = read_float_weights(source / FLOAT_WEIGHTS, shape)
    for name in (_CONFIG_FILE, "tokenizer.json", *_DESCRIPTIONS):
        if (source / name).is_file():
            (place / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source / name, place / name)
    write_graph(weights, shape, place)
    exact = _sample_vectors(place)
    write_graph(quantise(weights), shape, place)
    if np.mean(np.sum(exact * _sample_vectors(place), axis=1)) < _MIN_COSINE:
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
                f"The model has an unknown step '{kind}'.",
                "Use a model of a transformer with pooling, or its ONNX form.",
            )


def _sample_vectors(place: Path) -> NDArray[np.float32]:
    """Unit mean vectors of a few sentences, made by the model in this folder."""
    loaded = load_model(read_model_folder(place), 1)
    rows = [loaded.run(loaded.tokenizer.encode(sample)).mean(axis=0) for sample in _SAMPLES]
    return unit_rows(np.array(rows, dtype=np.float32))


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
    file = folder / _CONFIG_FILE
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
        raise ConfigInvalid(f"{file}: unknown kind of network ({kind}).", _FIX)
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


def quantise(weights: Mapping[str, Floats]) -> dict[str, Array]:
    """Quantise to int8: matrices with a scale per column, word vectors with one per row."""
    form: dict[str, Array] = {}
    for name, array in weights.items():
        is_matrix = name.rpartition(".")[2] in _MATRICES
        if not is_matrix and name != "words":
            form[name] = array
            continue
        along = 0 if is_matrix else 1
        scale = np.abs(array).max(axis=along, keepdims=True) / np.float32(127)
        scale[scale == 0] = 1
        form[name] = np.rint(array / scale).astype(np.int8)
        form[name + _SCALE] = scale[0] if is_matrix else scale
    return form


def write_graph(weights: Mapping[str, Array], shape: BertShape, folder: Path) -> None:
    """Write model.onnx and its weights file; weights with a scale are int8."""
    places = write_tensors(folder / WEIGHTS_FILE, weights)
    entries = [
        _outside(name, _ONNX_KINDS[array.dtype.name], array.shape, WEIGHTS_FILE, places[name])
        for name, array in weights.items()
    ]
    network = _Network(weights, shape)
    network.write()
    entries += [_constant("first", [0])]
    entries += [_constant("thirds", [shape.width] * 3)]
    file = _model(
        network.nodes,
        entries,
        [_value("input_ids", _INT64, [1, "tokens"])],
        [_value("last_hidden_state", _FLOAT, [1, "tokens", shape.width])],
    )
    (folder / _MODEL_FILE).write_bytes(file)


class _Network:
    """Builds the list of operations; each method adds some and returns the name of their output."""

    def __init__(self, weights: Mapping[str, Array], shape: BertShape) -> None:
        self.nodes: list[bytes] = []
        self._weights = weights
        self._shape = shape

    def write(self) -> None:
        rows = self._add_embeddings()
        for number in range(self._shape.layers):
            is_last = number == self._shape.layers - 1
            rows = self._add_layer(
                f"layer.{number}", rows, "last_hidden_state" if is_last else None
            )

    def _add_embeddings(self) -> str:
        rows = self._add("Gather", ["words", "input_ids"], "words.rows")
        if "words" + _SCALE in self._weights:
            wide = self._add("Cast", [rows], "words.wide", to=_FLOAT)
            scales = self._add("Gather", ["words" + _SCALE, "input_ids"], "words.scales")
            rows = self._add("Mul", [wide, scales], "words.scaled")
        count = self._add("Shape", ["input_ids"], "count", start=1, end=2)
        where = self._add("Slice", ["positions", "first", count, "first"], "positions.rows")
        rows = self._add("Add", [rows, where], "embedded")
        names = [rows, "norm.weight", "norm.bias"]
        return self._add(
            "LayerNormalization", names, "normed", axis=-1, epsilon=self._shape.epsilon
        )

    def _add_layer(self, layer: str, rows: str, output: str | None) -> str:
        qkv = self._add_product(rows, f"{layer}.qkv")
        parts = [f"{layer}.{part}" for part in ("query", "key", "value")]
        self.nodes.append(_node("Split", [qkv, "thirds"], parts, axis=2))
        attended = self._add(
            "MultiHeadAttention", parts, f"{layer}.mixed", _MICROSOFT, num_heads=self._shape.heads
        )
        attended = self._add_product(attended, f"{layer}.attention")
        rows = self._add_norm(attended, rows, f"{layer}.norm1")
        wide = self._add_product(rows, f"{layer}.wide")
        gelu = "Gelu" if self._shape.gelu == "erf" else "FastGelu"
        wide = self._add(gelu, [wide], f"{layer}.gelu", _MICROSOFT)
        narrow = self._add_product(wide, f"{layer}.narrow")
        return self._add_norm(narrow, rows, f"{layer}.norm2", output)

    def _add_product(self, rows: str, name: str) -> str:
        output, bias = f"{name}.product", f"{name}.bias"
        if name + _SCALE in self._weights:
            names = [rows, name, name + _SCALE, "", bias]
            return self._add("DynamicQuantizeMatMul", names, output, _MICROSOFT)
        product = self._add("MatMul", [rows, name], f"{name}.plain")
        return self._add("Add", [product, bias], output)

    def _add_norm(self, rows: str, skipped: str, name: str, output: str | None = None) -> str:
        names = [rows, skipped, f"{name}.weight", f"{name}.bias"]
        return self._add(
            "SkipLayerNormalization",
            names,
            output or f"{name}.rows",
            _MICROSOFT,
            epsilon=self._shape.epsilon,
        )

    def _add(
        self,
        operator: str,
        inputs: list[str],
        output: str,
        domain: str = "",
        **attributes: int | float,
    ) -> str:
        self.nodes.append(_node(operator, inputs, [output], domain, **attributes))
        return output


def _node(
    operator: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    domain: str = "",
    **attributes: int | float,
) -> bytes:
    """One operation; an omitted input has an empty name."""
    message = b"".join(_text(1, name) for name in inputs)
    message += b"".join(_text(2, name) for name in outputs)
    message += _text(3, outputs[0]) + _text(4, operator)
    message += b"".join(_part(5, _attribute(name, value)) for name, value in attributes.items())
    return message + (_text(7, domain) if domain else b"")


def _constant(name: str, values: Sequence[int]) -> bytes:
    """A small list of integers stored in the model file."""
    raw = struct.pack(f"<{len(values)}q", *values)
    return _number(1, len(values)) + _number(2, _INT64) + _text(8, name) + _part(9, raw)


def _outside(name: str, kind: int, shape: Sequence[int], file: str, place: Place) -> bytes:
    """An array stored in another file next to the model."""
    message = b"".join(_number(1, size) for size in shape)
    message += _number(2, kind) + _text(8, name)
    location = {"location": file, "offset": str(place.start), "length": str(place.length)}
    for key, value in location.items():
        message += _part(13, _text(1, key) + _text(2, value))
    return message + _number(14, 1)


def _value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    """An input or output of the network; a named size is variable."""
    sizes = b"".join(
        _part(1, _number(1, size) if isinstance(size, int) else _text(2, size)) for size in shape
    )
    return _text(1, name) + _part(2, _part(1, _number(1, kind) + _part(2, sizes)))


def _model(
    nodes: Sequence[bytes],
    weights: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
) -> bytes:
    """The whole model file."""
    graph = b"".join(_part(1, message) for message in nodes) + _text(2, "network")
    for field, messages in ((5, weights), (11, inputs), (12, outputs)):
        graph += b"".join(_part(field, message) for message in messages)
    file = _number(1, _IR_VERSION) + _text(2, "obsidian-rag") + _part(7, graph)
    for domain, version in _OPERATORS.items():
        file += _part(8, _text(1, domain) + _number(2, version))
    return file


def _attribute(name: str, value: int | float) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, _INT_KIND)
    number = _key(2, _FIXED) + struct.pack("<f", value)
    return _text(1, name) + number + _number(20, _FLOAT_KIND)


def _text(field: int, text: str) -> bytes:
    return _part(field, text.encode())


def _part(field: int, message: bytes) -> bytes:
    return _key(field, _LENGTH) + _varint(len(message)) + message


def _number(field: int, number: int) -> bytes:
    return _key(field, _VARINT) + _varint(number)


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])
