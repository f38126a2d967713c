"""Small transformers in a data folder: real ONNX files, one of them slow."""

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tests.embed.embedding_doubles import WORDS, tiny_tokenizer

from obsidian_rag.embed import make_meaning_embedder
from obsidian_rag.engine import Engine
from obsidian_rag.notes import embedding_text

WIDTH = 16
_BIG = 512


def install(home: Path, *, seed: int = 0, work: int = 0, name: str = "minilm") -> Path:
    """Add a transformer whose vectors differ with every text; `work` products of 512 each."""
    folder = home / "models" / name
    folder.mkdir(parents=True, exist_ok=True)
    numbers = np.random.default_rng(seed)
    table = numbers.normal(size=(len(WORDS), WIDTH)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["states"]),
        helper.make_node("Cast", ["input_ids"], ["ids"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["ids"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "tiny"], ["little"]),
        helper.make_node("Add", ["big", "little"], ["product0"]),
    ]
    for number in range(work):
        before, after = f"product{number}", f"product{number + 1}"
        nodes.append(helper.make_node("MatMul", [before, "big"], [after]))
    nodes += [
        helper.make_node("ReduceMean", [f"product{work}"], ["mean"], keepdims=0),
        helper.make_node("Mul", ["mean", "tiny"], ["nothing"]),
        helper.make_node("Add", ["states", "nothing"], ["last_hidden_state"]),
    ]
    shape = ["batch", "sequence"]
    graph = helper.make_graph(
        nodes,
        "small",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, shape)
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, WIDTH])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.full((_BIG, _BIG), 1 / _BIG, dtype=np.float32), "big"),
            numpy_helper.from_array(np.array(1e-12, dtype=np.float32), "tiny"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, folder / "model.onnx")
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "embedding.json").write_text(f'{{"name": "{name}", "dimensions": {WIDTH}}}')
    return folder


def words(number: int) -> str:
    """A text whose vector no other number's text has."""
    kinds = WORDS[6:]
    return " ".join(kinds[int(digit)] for digit in f"{number:o}") + " bank"


def expected(engine: Engine) -> dict[str, NDArray[np.float32]]:
    """What a fresh computation makes of each chunk in the table."""
    embedder = make_meaning_embedder(engine.config.settings, engine.config.home)
    assert embedder is not None
    engine.chunks.close()
    rows = engine.chunks.table.to_arrow().to_pylist()
    texts = [
        embedding_text(row["title"], row["heading_path"] or (), row["chunk_text"]) for row in rows
    ]
    vectors = embedder.embed_documents(texts)
    return {row["chunk_id"]: vector for row, vector in zip(rows, vectors, strict=True)}


def assert_complete(engine: Engine) -> None:
    """Each chunk has exactly one vector, the one that a fresh computation gives."""
    store = engine.meaning_store
    assert store is not None
    wanted = expected(engine)
    found = store.vectors(wanted)
    assert found.keys() == wanted.keys()
    assert store.count() == len(wanted)
    assert store.damaged() == 0
    for chunk_id, vector in wanted.items():
        assert float(found[chunk_id] @ vector) > 0.999
