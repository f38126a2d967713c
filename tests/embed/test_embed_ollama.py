"""The Ollama client against a local server with Ollama's shapes."""

import json
import socket
from collections.abc import Iterator

import numpy as np
import pytest
from tests.embed.embedding_doubles import (
    QUEUE_FULL,
    TOO_LONG,
    Answer,
    FakeOllama,
    embedders,
    error,
    fake_ollama,
)
from tests.waiting import PATIENCE_S

from obsidian_rag.embed.embedder import InputsRejected
from obsidian_rag.embed.ollama import OllamaEmbedder, known_model
from obsidian_rag.errors import (
    EmbeddingMismatch,
    OllamaUnreachable,
    ProviderFailed,
    SecurityViolation,
)

PASSAGES = "Represent this sentence for searching relevant passages: "


@pytest.fixture
def ollama() -> Iterator[FakeOllama]:
    with fake_ollama() as fake:
        yield fake


embedder = embedders(OllamaEmbedder, "ollama", "tiny")


def test_request_has_exactly_the_documented_fields(ollama: FakeOllama) -> None:
    embedder(ollama.url).embed_documents(["abc", "defg"])
    assert ollama.requests == [{"model": "tiny", "input": ["abc", "defg"], "truncate": False}]


def test_rows_are_normalised_and_in_order(ollama: FakeOllama) -> None:
    rows = embedder(ollama.url).embed_documents(["aaa", "ab", "bbbb"])
    assert rows.shape == (3, 8)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert rows[0, ord("a") % 8] == 1
    assert rows[2, ord("b") % 8] == 1


def test_documents_go_in_batches_of_64(ollama: FakeOllama) -> None:
    embedder(ollama.url).embed_documents([f"text {number}" for number in range(150)])
    assert [len(batch) for batch in ollama.inputs] == [64, 64, 22]


def test_blank_texts_are_not_sent(ollama: FakeOllama) -> None:
    rows = embedder(ollama.url).embed_documents(["", "abc", " \n"])
    assert ollama.inputs == [["abc"]]
    assert np.array_equal(rows[0], rows[2])


def test_lone_surrogates_are_sent(ollama: FakeOllama) -> None:
    assert embedder(ollama.url).embed_documents(["a\ud800b"]).shape == (1, 8)


@pytest.mark.parametrize(
    ("model", "query_prefix", "document_prefix"),
    [
        (None, PASSAGES, ""),
        ("mxbai-embed-large:latest", PASSAGES, ""),
        ("mxbai-embed-large:335m-v1-fp16", PASSAGES, ""),
        ("snowflake-arctic-embed", PASSAGES, ""),
        ("snowflake-arctic-embed2", "", ""),
        ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
        ("all-minilm", "", ""),
        ("bge-m3", "", ""),
    ],
)
def test_prefixes_follow_the_model(
    ollama: FakeOllama, model: str | None, query_prefix: str, document_prefix: str
) -> None:
    client = embedder(ollama.url, model, dimensions=8)
    client.embed_query("sky")
    client.embed_documents(["sea"])
    assert ollama.inputs == [[query_prefix + "sky"], [document_prefix + "sea"]]


def test_known_width_needs_no_server() -> None:
    client = embedder("http://localhost:1", "mxbai-embed-large:latest")
    assert client.dimensions == 1024
    assert client.fingerprint == embedder("http://localhost:1", None).fingerprint


def test_a_size_tag_makes_the_width_unknown() -> None:
    assert known_model("snowflake-arctic-embed:22m").dimensions is None


def test_unknown_width_is_asked_once(ollama: FakeOllama) -> None:
    client = embedder(ollama.url)
    assert (client.dimensions, client.dimensions, len(ollama.requests)) == (8, 8, 1)


def test_width_other_than_configured_is_a_mismatch(ollama: FakeOllama) -> None:
    with pytest.raises(EmbeddingMismatch):
        embedder(ollama.url, dimensions=16).embed_documents(["abc"])


def test_width_that_changes_is_a_mismatch(ollama: FakeOllama) -> None:
    client = embedder(ollama.url)
    client.embed_documents(["abc"])
    ollama.width = 9
    with pytest.raises(EmbeddingMismatch):
        client.embed_documents(["abc"])


def test_missing_model_says_how_to_get_it(ollama: FakeOllama) -> None:
    ollama.on_embed = lambda request: error(404, f"model '{request['model']}' not found")
    with pytest.raises(ProviderFailed) as caught:
        embedder(ollama.url, "nope").embed_query("abc")
    assert "ollama pull nope" in caught.value.suggestion


def test_busy_server_is_asked_again_with_growing_pauses(
    ollama: FakeOllama, waits: list[float]
) -> None:
    answers = [QUEUE_FULL, error(429, "slow down"), QUEUE_FULL]
    ollama.on_embed = lambda request: answers.pop() if answers else ollama.vectors(request)
    assert embedder(ollama.url, waits=waits).embed_documents(["abc"]).shape == (1, 8)
    assert len(waits) == 3
    assert 0.25 <= waits[0] <= 0.75 <= 1.0 <= waits[2] <= 3.0


def test_busy_server_is_given_up_after_four_tries(ollama: FakeOllama, waits: list[float]) -> None:
    ollama.on_embed = lambda request: QUEUE_FULL
    with pytest.raises(ProviderFailed):
        embedder(ollama.url, waits=waits).embed_documents(["abc"])
    assert (len(ollama.requests), len(waits)) == (4, 3)


@pytest.mark.parametrize(("asked", "waited"), [("3", 3.0), ("9000", 8.0)])
def test_a_server_that_says_how_long_to_wait_is_given_that_time_within_reason(
    ollama: FakeOllama, waits: list[float], asked: str, waited: float
) -> None:
    answers = [Answer(429, {"error": "slow down"}, {"Retry-After": asked})]
    ollama.on_embed = lambda request: answers.pop() if answers else ollama.vectors(request)
    embedder(ollama.url, waits=waits).embed_documents(["abc"])
    assert waits == [waited]


def test_a_question_is_retried_only_once(ollama: FakeOllama, waits: list[float]) -> None:
    ollama.on_embed = lambda request: QUEUE_FULL
    with pytest.raises(ProviderFailed):
        embedder(ollama.url, waits=waits).embed_query("abc")
    assert len(ollama.requests) == 2


def test_refused_connection_is_unreachable(waits: list[float]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        client = embedder(f"http://127.0.0.1:{unused.getsockname()[1]}", waits=waits)
        with pytest.raises(OllamaUnreachable) as caught:
            client.embed_documents(["abc"])
        with pytest.raises(OllamaUnreachable):
            client.probe()
    assert "ollama serve" in caught.value.suggestion
    assert len(waits) == 3


def test_only_a_warm_server_is_held_to_the_timeout(ollama: FakeOllama, waits: list[float]) -> None:
    client = embedder(ollama.url, waits=waits, timeout_s=0.05)
    first_load_s = iter([0.2])

    def load_then_answer(request: dict[str, object]) -> Answer:
        ollama.release.wait(next(first_load_s, PATIENCE_S))
        return ollama.vectors(request)

    ollama.on_embed = load_then_answer
    assert client.embed_query("abc").shape == (8,)
    with pytest.raises(OllamaUnreachable):
        client.embed_query("abc")


def test_one_bad_input_fails_alone(ollama: FakeOllama) -> None:
    def refuse_poison(request: dict[str, list[str]]) -> Answer:
        if any("poison" in text or "ison" in text for text in request["input"]):
            return error(400, "failed to encode response: json: unsupported value: NaN")
        return ollama.vectors(request)

    ollama.on_embed = refuse_poison
    texts = [f"text {number}" for number in range(70)]
    texts[0], texts[3], texts[65] = "", "poisonpoison", "isonison"
    with pytest.raises(InputsRejected) as caught:
        embedder(ollama.url).embed_documents(texts)
    assert caught.value.positions == (3, 65)
    assert caught.value.code == "PROVIDER_FAILED"


def test_bad_input_is_saved_by_removing_control_characters(ollama: FakeOllama) -> None:
    def refuse_controls(request: dict[str, list[str]]) -> Answer:
        is_bad = any("\x07" in text for text in request["input"])
        return error(400, "NaN") if is_bad else ollama.vectors(request)

    ollama.on_embed = refuse_controls
    client = embedder(ollama.url)
    rows = client.embed_documents(["good", "be\x07ep", "fine"])
    assert np.array_equal(rows, client.embed_documents(["good", "beep", "fine"]))


def test_bad_input_is_saved_by_its_good_half(ollama: FakeOllama) -> None:
    def refuse_poison(request: dict[str, list[str]]) -> Answer:
        is_bad = any("poison" in text for text in request["input"])
        return error(400, "NaN") if is_bad else ollama.vectors(request)

    ollama.on_embed = refuse_poison
    client = embedder(ollama.url)
    assert np.array_equal(
        client.embed_documents(["poison harmless"])[0], client.embed_documents([" harmless"])[0]
    )


def test_vectors_that_are_not_numbers_are_refused_input(ollama: FakeOllama) -> None:
    def nan_for_poison(request: dict[str, list[str]]) -> Answer:
        answer = ollama.vectors(request)
        rows = [[None] * 8 if "p" in text else [1.0] * 8 for text in request["input"]]
        return Answer(body={**dict(answer.body or {}), "embeddings": rows})  # type: ignore[call-overload] # it is a dict

    ollama.on_embed = nan_for_poison
    with pytest.raises(InputsRejected) as caught:
        embedder(ollama.url).embed_documents(["abc", "pp", "def"])
    assert caught.value.positions == (1,)


def test_a_model_that_refuses_all_is_found_out_quickly(ollama: FakeOllama) -> None:
    ollama.on_embed = lambda request: error(400, "this model does not support embeddings")
    client = embedder(ollama.url)
    with pytest.raises(ProviderFailed) as caught:
        client.embed_documents(["some text"] * 64)
    assert not isinstance(caught.value, InputsRejected)
    assert len(ollama.requests) < 10
    with pytest.raises(ProviderFailed):
        _ = client.dimensions


def test_long_text_is_embedded_in_pieces_without_loss(ollama: FakeOllama) -> None:
    def at_most_20_characters(request: dict[str, list[str]]) -> Answer:
        is_long = any(len(text) > 20 for text in request["input"])
        return TOO_LONG if is_long else ollama.vectors(request)

    ollama.on_embed = at_most_20_characters
    text = "one two three four five six seven eight nine ten"
    rows = embedder(ollama.url).embed_documents(["short", text])
    pieces = [batch[0] for batch in ollama.inputs if len(batch[0]) <= 20]
    answered = [p for batch in ollama.inputs for p in batch if all(len(t) <= 20 for t in batch)]
    words = [word for piece in answered for word in piece.split()]
    assert pieces
    assert [word for word in words if word not in ("short", "ok")] == text.split()
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)


def test_every_piece_of_a_long_text_has_the_prefix(ollama: FakeOllama) -> None:
    def at_most_40_characters(request: dict[str, list[str]]) -> Answer:
        is_long = any(len(text) > 40 for text in request["input"])
        return TOO_LONG if is_long else ollama.vectors(request)

    ollama.on_embed = at_most_40_characters
    embedder(ollama.url, "nomic-embed-text", dimensions=8).embed_documents(["word " * 10])
    assert all(text.startswith("search_document: ") for batch in ollama.inputs for text in batch)


def test_long_text_without_spaces_is_cut_in_the_middle(ollama: FakeOllama) -> None:
    def at_most_10_characters(request: dict[str, list[str]]) -> Answer:
        is_long = any(len(text) > 10 for text in request["input"])
        return TOO_LONG if is_long else ollama.vectors(request)

    ollama.on_embed = at_most_10_characters
    assert embedder(ollama.url).embed_documents(["字" * 64]).shape == (1, 8)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body={"embeddings": []}),
        Answer(body={"embeddings": [[1.0], [2.0]]}),
        Answer(body={"embeddings": [1.0]}),
        Answer(body={"embeddings": [[]]}),
        Answer(body={"embeddings": [["a", "b"]]}),
        Answer(body={"embeddings": [[1.0, [2.0]]]}),
        Answer(body={"embedding": [1.0]}),
        Answer(body=[1, 2]),
        Answer(raw=b"<html>not Ollama</html>"),
        Answer(401, {"error": "unauthorized"}),
        Answer(405, raw=b""),
    ],
    ids=lambda answer: str(answer.body or answer.status),
)
def test_wrong_answers_are_provider_failures(ollama: FakeOllama, answer: Answer) -> None:
    ollama.on_embed = lambda request: answer
    with pytest.raises(ProviderFailed):
        embedder(ollama.url).embed_documents(["abc"])
    assert len(ollama.requests) == 1


def test_redirects_are_not_followed(ollama: FakeOllama) -> None:
    with fake_ollama() as elsewhere:
        target = {"Location": f"{elsewhere.url}/api/embed"}
        ollama.on_embed = lambda request: Answer(307, {}, headers=target)
        with pytest.raises(ProviderFailed):
            embedder(ollama.url).embed_documents(["private"])
        assert elsewhere.requests == []


def test_proxies_of_the_environment_are_not_used(
    ollama: FakeOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the environment can name a proxy; monkeypatch puts it back.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert embedder(ollama.url).embed_documents(["abc"]).shape == (1, 8)


def test_error_text_never_holds_the_note(ollama: FakeOllama) -> None:
    ollama.on_embed = lambda request: error(400, "NaN")
    with pytest.raises(ProviderFailed) as caught:
        embedder(ollama.url).embed_documents(["my secret"])
    assert "secret" not in json.dumps([caught.value.message, caught.value.suggestion])


def test_probe_accepts_a_server_that_has_the_model(ollama: FakeOllama) -> None:
    embedder(ollama.url, "tiny").probe()
    embedder(ollama.url, "tiny:latest").probe()
    assert ollama.requests == []


def test_probe_names_a_missing_model(ollama: FakeOllama) -> None:
    with pytest.raises(ProviderFailed) as caught:
        embedder(ollama.url, "tiny:other").probe()
    assert "ollama pull tiny:other" in caught.value.suggestion


@pytest.mark.parametrize("answer", [Answer(500, {"error": "x"}), Answer(404, raw=b"no")])
def test_probe_fails_on_a_server_that_is_not_ollama(ollama: FakeOllama, answer: Answer) -> None:
    ollama.version = answer
    with pytest.raises(ProviderFailed):
        embedder(ollama.url).probe()


def test_an_outside_server_is_refused_before_any_connection() -> None:
    with pytest.raises(SecurityViolation):
        embedder("http://192.168.1.5:11434")


def test_closed_client_can_be_used_again(ollama: FakeOllama) -> None:
    client = embedder(ollama.url)
    client.close()
    client.embed_query("abc")
    client.close()
    assert client.embed_query("abc").shape == (8,)
    client.close()
