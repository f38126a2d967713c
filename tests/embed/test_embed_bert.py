"""BERT-family weights without torch: onnxruntime in int8, and the files they come from."""

import builtins
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from tests.embed.tiny_bert import (
    HEADS,
    LAYERS,
    POSITIONS,
    VOCABULARY,
    WIDTH,
    bert_weights,
    tiny_bert,
)
from tests.waiting import PATIENCE_S

from obsidian_rag.config import Settings
from obsidian_rag.embed import (
    add_model,
    list_models,
    make_meaning_embedder,
    model_use,
    transformer,
)
from obsidian_rag.embed.convert import quantise, read_float_weights, read_shape, write_graph
from obsidian_rag.embed.model_folder import read_model_folder
from obsidian_rag.embed.transformer import BackgroundEmbedder, OnnxEmbedder
from obsidian_rag.errors import ConfigInvalid, ProviderFailed

TEXTS = ["the dog", "money of the bank and the river.", "puppy sleeping", "garden" * 3]


def settings(**sections: object) -> Settings:
    return Settings.model_validate({"meaning": {"model": "tiny"}, **sections})


def installed(home: Path, **how: object) -> BackgroundEmbedder:
    """The tiny model, added to a data folder, as the embedder of meaning vectors."""
    add_model(tiny_bert(home / "source", **how), home, "tiny")  # type: ignore[arg-type] # by name
    made = make_meaning_embedder(settings(), home)
    assert made is not None
    return made


def plain_states(words: list[str]) -> NDArray[np.float64]:
    """The network once more, in double precision: what all others must agree with."""
    weights = {name: array.astype(np.float64) for name, array in bert_weights().items()}

    def dense(rows: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        product: NDArray[np.float64] = rows @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        return product

    def norm(rows: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        rows = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-12)
        scaled: NDArray[np.float64] = rows * weights[f"{name}.weight"] + weights[f"{name}.bias"]
        return scaled

    ids = [VOCABULARY.index(word) for word in words]
    rows = weights["embeddings.word_embeddings.weight"][ids]
    rows = rows + weights["embeddings.position_embeddings.weight"][: len(ids)]
    rows = norm(
        rows + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm"
    )
    size = WIDTH // HEADS
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        query, key, value = (
            dense(rows, f"{layer}.attention.self.{part}") for part in ("query", "key", "value")
        )
        mixed = np.zeros_like(rows)
        for start in range(0, WIDTH, size):
            part = slice(start, start + size)
            scores = np.exp(query[:, part] @ key[:, part].T / math.sqrt(size))
            mixed[:, part] = scores / scores.sum(-1, keepdims=True) @ value[:, part]
        attended = dense(mixed, f"{layer}.attention.output.dense")
        rows = norm(attended + rows, f"{layer}.attention.output.LayerNorm")
        wide = dense(rows, f"{layer}.intermediate.dense")
        wide = wide * (1 + np.vectorize(math.erf)(wide / math.sqrt(2))) / 2
        rows = norm(dense(wide, f"{layer}.output.dense") + rows, f"{layer}.output.LayerNorm")
    return rows


def unit(row: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = row / np.linalg.norm(row)
    return scaled


def cosines(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = np.einsum("ij,ij->i", one, other)
    return found


def hide_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is installed here; only a patched import can miss it."""
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "onnxruntime":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type] # passed through

    monkeypatch.setattr(builtins, "__import__", without)


def float_form(tmp_path: Path) -> OnnxEmbedder:
    """The same model with float32 weights."""
    source = tiny_bert(tmp_path / "float-source")
    shape = read_shape(source)
    write_graph(read_float_weights(source / "model.safetensors", shape), shape, source)
    return OnnxEmbedder(read_model_folder(source))


def test_float_weights_give_the_vector_that_the_network_defines(tmp_path: Path) -> None:
    rows = plain_states(["[CLS]", "the", "pup", "##py", "[SEP]"])
    vector = float_form(tmp_path).embed_query("The puppy")
    assert np.allclose(vector, unit(rows.mean(axis=0)), atol=1e-5)


def test_int8_agrees_with_float_and_is_what_is_kept(tmp_path: Path) -> None:
    made = installed(tmp_path)
    assert (made.provider, made.model, made.dimensions) == ("transformer", "tiny", WIDTH)
    found = cosines(made.embed_documents(TEXTS), float_form(tmp_path).embed_documents(TEXTS))
    assert found.min() > 0.98
    assert found.max() < 0.9999999, "these are not the float weights"


def test_without_onnxruntime_the_user_reads_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = installed(tmp_path)
    made.close()
    hide_onnxruntime(monkeypatch)
    with pytest.raises(ProviderFailed) as caught:
        made.probe()
    assert "pip install onnxruntime" in caught.value.suggestion


@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("prefix", ["bert.", "0.auto_model."])
def test_half_precision_and_prefixes_are_understood(tmp_path: Path, kind: str, prefix: str) -> None:
    expected = installed(tmp_path / "a").embed_documents(TEXTS)
    found = installed(tmp_path / "b", kind=kind, prefix=prefix).embed_documents(TEXTS)
    assert cosines(found, expected).min() > 0.99


def test_pooling_by_the_first_token(tmp_path: Path) -> None:
    made = installed(tmp_path, pooling="pooling_mode_cls_token")
    expected = unit(plain_states(["[CLS]", "the", "dog", "[SEP]"])[0])
    assert made.embed_query("the dog") @ expected > 0.98


def test_at_most_two_windows_count(tmp_path: Path) -> None:
    made = installed(tmp_path, max_tokens=5)
    assert made.max_tokens == 5
    two = made.embed_query("the dog river bank money garden")
    assert np.array_equal(made.embed_query("the dog river bank money garden sleep pup"), two)
    assert not np.allclose(made.embed_query("the dog river"), two)


def test_a_limit_beyond_the_positions_is_the_number_of_positions(tmp_path: Path) -> None:
    made = installed(tmp_path, max_tokens=512)
    assert made.max_tokens == POSITIONS
    assert made.embed_query("dog " * 200).shape == (WIDTH,)


def test_a_text_has_the_same_vector_alone_and_among_others(tmp_path: Path) -> None:
    made = installed(tmp_path)
    together = made.embed_documents(TEXTS)
    for text, row in zip(TEXTS, together, strict=True):
        assert np.array_equal(made.embed_documents([text])[0], row)


def test_the_written_file_passes_the_checker_of_onnx(tmp_path: Path) -> None:
    source = tiny_bert(tmp_path)
    shape = read_shape(source)
    weights = read_float_weights(source / "model.safetensors", shape)
    for form in (weights, quantise(weights)):
        write_graph(form, shape, source)
        onnx.checker.check_model(source / "model.onnx", full_check=True)


def test_the_fingerprint_follows_weights_pooling_and_length(tmp_path: Path) -> None:
    prints = [
        installed(tmp_path / "1").fingerprint,
        installed(tmp_path / "2", seed=1).fingerprint,
        installed(tmp_path / "3", pooling="pooling_mode_cls_token").fingerprint,
        installed(tmp_path / "4", max_tokens=8).fingerprint,
    ]
    assert len(set(prints)) == 4
    assert installed(tmp_path / "5").fingerprint == prints[0]


@pytest.mark.parametrize(
    "how",
    [
        {"model_type": "distilbert"},
        {"position_embedding_type": "relative_key"},
        {"hidden_act": "relu"},
        {"num_attention_heads": 5},
        {"num_hidden_layers": LAYERS + 1},
        {"hidden_size": "wide"},
        {"pooling": "pooling_mode_max_tokens"},
    ],
)
def test_a_network_of_another_kind_is_refused(tmp_path: Path, how: dict[str, object]) -> None:
    with pytest.raises(ConfigInvalid):
        installed(tmp_path, **how)
    assert list_models(tmp_path) == []


def test_an_unknown_step_is_refused(tmp_path: Path) -> None:
    source = tiny_bert(tmp_path / "source")
    (source / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.Dense"}]))
    with pytest.raises(ConfigInvalid) as caught:
        add_model(source, tmp_path, "tiny")
    assert "Dense" in caught.value.message


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_weights_that_were_cut_off_are_refused(tmp_path: Path, keep: int) -> None:
    source = tiny_bert(tmp_path / "source")
    file = source / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ConfigInvalid) as caught:
        add_model(source, tmp_path, "tiny")
    assert "model.safetensors" in caught.value.message


def test_there_is_no_meaning_embedder_unless_it_is_wanted_and_there(tmp_path: Path) -> None:
    assert make_meaning_embedder(settings(), tmp_path) is None
    installed(tmp_path)
    assert model_use(settings(), "tiny") == "meaning"
    for chosen in (
        settings(meaning={"model": "tiny", "enabled": False}),
        settings(meaning={"model": "other"}),
        settings(embedding={"provider": "ollama"}),
        settings(embedding={"provider": "onnx", "model": "other"}),
    ):
        assert make_meaning_embedder(chosen, tmp_path) is None
        assert model_use(chosen, "tiny") is None
    used = settings(embedding={"provider": "onnx", "model": "tiny"})
    assert model_use(used, "tiny") == "embedding"


def test_making_the_embedder_loads_nothing_and_telemetry_is_off_when_it_is_used(
    tmp_path: Path,
) -> None:
    installed(tmp_path)
    script = """
import os, sys
from pathlib import Path

def hook(event, arguments):
    if event == "import" and arguments[0] == "onnxruntime":
        print("import", os.environ.get("ORT_DISABLE_TELEMETRY"))

sys.addaudithook(hook)
from obsidian_rag.config import Settings
from obsidian_rag.embed import make_meaning_embedder
chosen = Settings.model_validate({"meaning": {"model": "tiny"}})
made = make_meaning_embedder(chosen, Path(sys.argv[1]))
made.fingerprint, made.dimensions
print({"onnxruntime", "tokenizers"} & set(sys.modules))
os.environ.pop("ORT_DISABLE_TELEMETRY")
made.embed_query("the dog")
"""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ORT_")}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout.splitlines() == ["set()", "import 1"], done.stderr


def test_the_quicker_sums_of_int8_are_taken_only_where_they_are_exact(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a processor can do cannot be had otherwise: both answers are tried on this one.
    made = []
    for is_exact in {False, transformer._has_exact_int8()}:
        monkeypatch.setattr(transformer, "_has_exact_int8", lambda is_exact=is_exact: is_exact)
        made.append(installed(home / str(is_exact)).embed_documents(TEXTS))
    assert all(np.array_equal(made[0], vectors) for vectors in made)
