"""A BERT network as an ONNX file for onnxruntime, in int8 or in float32.

In int8 every product rounds its rows to 8 bits as they come (dynamic quantisation); weights were
rounded before. The operators are those that onnxruntime itself makes of such a network when it
optimises one, so nothing depends on whether it recognises a pattern. One text at a time: no
padding, so no mask.
"""

from collections.abc import Mapping
from pathlib import Path

from obsidian_rag.embed import onnx_format
from obsidian_rag.embed.bert import SCALE, WEIGHTS_FILE, BertShape
from obsidian_rag.embed.tensor_file import Array, write_tensors

MODEL_FILE = "model.onnx"
_OURS = "com.microsoft"
_KINDS = {"float32": onnx_format.FLOAT, "int8": onnx_format.INT8}


def write_graph(weights: Mapping[str, Array], shape: BertShape, folder: Path) -> None:
    """Write model.onnx and the weights beside it; they are int8 where they have a scale."""
    places = write_tensors(folder / WEIGHTS_FILE, weights)
    entries = [
        onnx_format.outside(name, _KINDS[array.dtype.name], array.shape, WEIGHTS_FILE, places[name])
        for name, array in weights.items()
    ]
    network = _Network(weights, shape)
    network.write()
    entries += [onnx_format.constant("first", [0])]
    entries += [onnx_format.constant("thirds", [shape.width] * 3)]
    file = onnx_format.model(
        network.nodes,
        entries,
        [onnx_format.value("input_ids", onnx_format.INT64, [1, "tokens"])],
        [onnx_format.value("last_hidden_state", onnx_format.FLOAT, [1, "tokens", shape.width])],
    )
    (folder / MODEL_FILE).write_bytes(file)


class _Network:
    """The operations in order; each method adds some and names what they make."""

    def __init__(self, weights: Mapping[str, Array], shape: BertShape) -> None:
        self.nodes: list[bytes] = []
        self._weights = weights
        self._shape = shape

    def write(self) -> None:
        rows = self._embedded()
        for number in range(self._shape.layers):
            is_last = number == self._shape.layers - 1
            rows = self._layer(f"layer.{number}", rows, "last_hidden_state" if is_last else None)

    def _embedded(self) -> str:
        rows = self._add("Gather", ["words", "input_ids"], "words.rows")
        if "words" + SCALE in self._weights:
            wide = self._add("Cast", [rows], "words.wide", to=onnx_format.FLOAT)
            scales = self._add("Gather", ["words" + SCALE, "input_ids"], "words.scales")
            rows = self._add("Mul", [wide, scales], "words.scaled")
        count = self._add("Shape", ["input_ids"], "count", start=1, end=2)
        where = self._add("Slice", ["positions", "first", count, "first"], "positions.rows")
        rows = self._add("Add", [rows, where], "embedded")
        names = [rows, "norm.weight", "norm.bias"]
        return self._add(
            "LayerNormalization", names, "normed", axis=-1, epsilon=self._shape.epsilon
        )

    def _layer(self, layer: str, rows: str, output: str | None) -> str:
        qkv = self._product(rows, f"{layer}.qkv")
        parts = [f"{layer}.{part}" for part in ("query", "key", "value")]
        self.nodes.append(onnx_format.node("Split", [qkv, "thirds"], parts, axis=2))
        attended = self._add(
            "MultiHeadAttention", parts, f"{layer}.mixed", _OURS, num_heads=self._shape.heads
        )
        attended = self._product(attended, f"{layer}.attention")
        rows = self._normed(attended, rows, f"{layer}.norm1")
        wide = self._product(rows, f"{layer}.wide")
        gelu = "Gelu" if self._shape.gelu == "erf" else "FastGelu"
        wide = self._add(gelu, [wide], f"{layer}.gelu", _OURS)
        narrow = self._product(wide, f"{layer}.narrow")
        return self._normed(narrow, rows, f"{layer}.norm2", output)

    def _product(self, rows: str, name: str) -> str:
        output, bias = f"{name}.product", f"{name}.bias"
        if name + SCALE in self._weights:
            names = [rows, name, name + SCALE, "", bias]
            return self._add("DynamicQuantizeMatMul", names, output, _OURS)
        product = self._add("MatMul", [rows, name], f"{name}.plain")
        return self._add("Add", [product, bias], output)

    def _normed(self, rows: str, skipped: str, name: str, output: str | None = None) -> str:
        names = [rows, skipped, f"{name}.weight", f"{name}.bias"]
        return self._add(
            "SkipLayerNormalization",
            names,
            output or f"{name}.rows",
            _OURS,
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
        self.nodes.append(onnx_format.node(operator, inputs, [output], domain, **attributes))
        return output
