"""The OpenAI-compatible client against a local server with the published shapes."""

import logging
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import numpy as np
import pytest
from tests.embed.embedding_doubles import Answer, embedders
from tests.embed.provider_doubles import KEY, FakeOpenAI, fake_openai, openai_error

from obsidian_rag.embed.embedder import InputsRejected
from obsidian_rag.embed.openai import BATCHES_OUTSIDE, OpenAIEmbedder
from obsidian_rag.errors import (
    ConfigInvalid,
    EmbeddingMismatch,
    ProviderFailed,
    SecurityViolation,
)

OPEN: dict[str, object] = {"local_only": False}


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with fake_openai() as fake:
        yield fake
        assert fake.violations == []


embedder = embedders(OpenAIEmbedder, "openai", "tiny")


def test_request_has_exactly_the_documented_fields(server: FakeOpenAI) -> None:
    embedder(server.url).embed_documents(["abc", "defg"])
    assert server.requests == [
        {"model": "tiny", "input": ["abc", "defg"], "encoding_format": "float"}
    ]
    assert server.paths == ["/v1/embeddings"]
    assert "authorization" not in server.headers[0]


def test_a_width_is_asked_for_and_checked(server: FakeOpenAI) -> None:
    client = embedder(server.url, dimensions=16)
    assert client.embed_documents(["abc"]).shape == (1, 16)
    assert server.requests[0]["dimensions"] == 16
    server.on_embed = lambda request: server.vectors({**request, "dimensions": 9})
    with pytest.raises(EmbeddingMismatch):
        client.embed_query("abc")


def test_rows_follow_their_index_and_are_of_length_one(server: FakeOpenAI) -> None:
    rows = embedder(server.url).embed_documents(["aaa", "ab", "bbbb"])
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert rows[0, ord("a") % 8] == 1
    assert rows[2, ord("b") % 8] == 1


def test_a_server_that_gives_no_index_is_taken_by_its_order(server: FakeOpenAI) -> None:
    def without_index(request: dict[str, Any]) -> Answer:
        body: Any = server.vectors(request).body
        data = [{"embedding": item["embedding"]} for item in body["data"][::-1]]
        return Answer(body={"data": data})

    server.on_embed = without_index
    rows = embedder(server.url).embed_documents(["aaa", "bbbb"])
    assert rows[0, ord("a") % 8] == rows[1, ord("b") % 8] == 1


def test_local_batches_are_small(server: FakeOpenAI) -> None:
    embedder(server.url).embed_documents([f"text {number}" for number in range(70)])
    assert [len(batch) for batch in server.inputs] == [32, 32, 6]
    server.requests.clear()
    embedder(server.url).embed_documents(["字" * 10_000] * 3)
    assert [len(batch) for batch in server.inputs] == [2, 1]


def test_no_request_outside_holds_more_than_openai_takes() -> None:
    batches = list(BATCHES_OUTSIDE.cut(["字" * 2000] * 3000))
    assert sum(map(len, batches)) == 3000
    assert max(map(len, batches)) <= 2048
    assert max(sum(len(text.encode()) for text in batch) for batch in batches) <= 300_000


@pytest.mark.parametrize(
    ("model", "query", "document", "most"),
    [
        ("text-embedding-nomic-embed-text-v1.5", "search_query: ", "search_document: ", 2048),
        ("nomic-ai/nomic-embed-text-v1.5-GGUF", "search_query: ", "search_document: ", 2048),
        ("text-embedding-3-small", "", "", 8191),
        ("anything-else", "", "", 512),
    ],
)
def test_prefixes_and_length_follow_the_model(
    server: FakeOpenAI, model: str, query: str, document: str, most: int
) -> None:
    client = embedder(server.url, model, dimensions=8)
    client.embed_query("sky")
    client.embed_documents(["sea"])
    assert server.inputs == [[query + "sky"], [document + "sea"]]
    assert client.max_tokens == most


def test_known_width_needs_no_server() -> None:
    client = embedder("http://localhost:1", "text-embedding-3-large")
    assert client.dimensions == 3072
    assert client.fingerprint == "openai:text-embedding-3-large:3072:r1"


def test_the_key_goes_into_its_header_and_nowhere_else(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_KEY", KEY)
    server.key = KEY
    client = embedder(server.url, api_key_env="MY_KEY")
    client.embed_documents(["abc"])
    client.probe()
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    server.key = "another"
    with pytest.raises(ProviderFailed) as caught:
        client.embed_documents(["abc"])
    told = f"{caught.value.body} {client!r} {vars(client)} {caplog.text}"
    assert "MY_KEY" in caught.value.message
    assert KEY not in told
    assert "sk-very" not in told


def test_a_key_that_is_not_there_is_told_before_anything_is_sent(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    client = embedder(server.url, api_key_env="MY_KEY")
    for call in (client.probe, lambda: client.embed_query("abc")):
        with pytest.raises(ProviderFailed) as caught:
            call()
        assert "MY_KEY" in caught.value.suggestion
    monkeypatch.setenv("MY_KEY", "two\nlines")
    with pytest.raises(ProviderFailed):
        client.embed_query("abc")
    assert server.headers == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (openai_error(401, f"Incorrect API key provided: {KEY}", "invalid_api_key"), "api_key_env"),
        (openai_error(403, "You are not allowed", "forbidden"), "api_key_env"),
        (openai_error(404, "The model 'tiny' does not exist", "model_not_found"), "model"),
        (Answer(404, {"error": {"code": 404, "message": "File Not Found"}}), "base_url"),
        (openai_error(429, "You exceeded your quota", "insufficient_quota"), "plan"),
        (Answer(405, raw=b""), "base_url"),
        (Answer(307, {}, {"Location": "http://192.0.2.1/"}), "base_url"),
        (Answer(200, {"error": "Unexpected endpoint or method."}), "/v1"),
        (Answer(200, raw=b"<html>"), "/v1"),
        (Answer(200, {"data": []}), "base_url"),
        (Answer(200, {"data": [{"index": 1, "embedding": [1.0]}]}), "base_url"),
        (Answer(200, {"data": [{"index": 0, "embedding": "AAAA"}]}), "base_url"),
        (Answer(200, {"data": [{"index": 0}]}), "base_url"),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Answer) else None,
)
def test_what_cannot_get_better_is_asked_once_and_says_what_to_do(
    server: FakeOpenAI, waits: list[float], answer: Answer, said: str
) -> None:
    server.on_embed = lambda request: answer
    with pytest.raises(ProviderFailed) as caught:
        embedder(server.url, waits=waits).embed_documents(["my private words"])
    assert said in caught.value.suggestion
    assert (len(server.requests), waits) == (1, [])
    assert "private" not in f"{caught.value.message} {caught.value.suggestion}"
    assert KEY not in caught.value.message


def test_a_width_that_the_model_does_not_have_is_told(server: FakeOpenAI) -> None:
    said = 'Model "tiny" does not support matryoshka representation, changing output dimensions'
    server.on_embed = lambda request: openai_error(400, said, None)
    with pytest.raises(ProviderFailed) as caught:
        embedder(server.url, dimensions=64).embed_documents(["a", "b"])
    assert "unset embedding.dimensions" in caught.value.suggestion
    assert len(server.requests) == 1


def test_a_busy_or_failing_server_is_asked_again_with_growing_pauses(
    server: FakeOpenAI, waits: list[float]
) -> None:
    answers = [openai_error(status, "later", "server_error") for status in (503, 502, 500, 429)]
    server.on_embed = lambda request: answers.pop() if answers else server.vectors(request)
    assert embedder(server.url, waits=waits).embed_documents(["abc"]).shape == (1, 8)
    assert len(waits) == 4
    assert 0.25 <= waits[0] <= 0.75 <= 2.0 <= waits[3] <= 6.0


def test_it_is_given_up_after_six_tries_and_a_question_after_two(
    server: FakeOpenAI, waits: list[float]
) -> None:
    server.on_embed = lambda request: openai_error(429, "slow down", "rate_limit_exceeded")
    client = embedder(server.url, waits=waits)
    with pytest.raises(ProviderFailed):
        client.embed_documents(["abc"])
    assert len(server.requests) == 6
    server.requests.clear()
    with pytest.raises(ProviderFailed):
        client.embed_query("abc")
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("3", 3.0, 3.0),
        ("9000", 30.0, 30.0),
        (formatdate(time.time() + 3600, usegmt=True), 30.0, 30.0),
        ("soon", 0.25, 0.75),
    ],
    ids=["seconds", "too long", "a date", "no time"],
)
def test_retry_after_is_kept_within_reason(
    server: FakeOpenAI, waits: list[float], header: str, least: float, most: float
) -> None:
    answers = [openai_error(429, "slow down", "rate_limit_exceeded", {"Retry-After": header})]
    server.on_embed = lambda request: answers.pop() if answers else server.vectors(request)
    embedder(server.url, waits=waits).embed_documents(["abc"])
    assert least <= waits[0] <= most


def test_a_question_does_not_wait_long(server: FakeOpenAI, waits: list[float]) -> None:
    answers = [openai_error(429, "slow down", None, {"Retry-After": "60"})]
    server.on_embed = lambda request: answers.pop() if answers else server.vectors(request)
    embedder(server.url, waits=waits).embed_query("abc")
    assert waits == [4.0]


def test_a_connection_that_breaks_is_made_again(server: FakeOpenAI, waits: list[float]) -> None:
    client = embedder(server.url, waits=waits)
    client.embed_query("abc")
    server.stop()
    with pytest.raises(ProviderFailed) as caught:
        client.embed_documents(["abc"])
    assert "base_url" in caught.value.suggestion
    assert len(waits) == 5
    server.start()
    assert client.embed_documents(["abc"]).shape == (1, 8)


@pytest.mark.parametrize(
    "refusal",
    [
        openai_error(400, "This model's maximum context length is 20 tokens", None),
        Answer(
            500,
            {
                "error": {
                    "code": 500,
                    "message": "input is too large to process. increase the physical batch size",
                    "type": "server_error",
                }
            },
        ),
        Answer(400, {"error": {"message": "exceeds the available context size", "code": 400}}),
    ],
    ids=["openai", "llama.cpp", "llama.cpp-context"],
)
def test_a_long_text_is_embedded_in_pieces_without_loss(
    server: FakeOpenAI, waits: list[float], refusal: Answer
) -> None:
    def at_most_20_characters(request: dict[str, list[str]]) -> Answer:
        is_long = any(len(text) > 20 for text in request["input"])
        return refusal if is_long else server.vectors(request)

    server.on_embed = at_most_20_characters
    text = "one two three four five six seven eight nine ten"
    rows = embedder(server.url, waits=waits).embed_documents(["short", text])
    answered = [p for batch in server.inputs for p in batch if all(len(t) <= 20 for t in batch)]
    words = [word for piece in answered for word in piece.split()]
    assert [word for word in words if word not in ("short", "ok")] == text.split()
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert waits == []


def test_one_bad_input_fails_alone_and_its_text_is_not_told(server: FakeOpenAI) -> None:
    def refuse_poison(request: dict[str, list[str]]) -> Answer:
        if any("poison" in text or "ison" in text for text in request["input"]):
            return openai_error(422, f"bad input: {request['input']}", "poisonpoison bad")
        return server.vectors(request)

    server.on_embed = refuse_poison
    texts = [f"text {number}" for number in range(40)]
    texts[3], texts[39] = "poisonpoison", "isonison"
    with pytest.raises(InputsRejected) as caught:
        embedder(server.url).embed_documents(texts)
    assert caught.value.positions == (3, 39)
    assert "poison" not in caught.value.message


def test_probe_asks_a_server_on_this_machine(server: FakeOpenAI) -> None:
    client = embedder(server.url)
    client.probe()
    assert server.paths == ["/v1/models"]
    server.stop()
    with pytest.raises(ProviderFailed):
        client.probe()


def test_probe_of_a_server_outside_sends_nothing() -> None:
    client = embedder("http://192.0.2.1/v1", security=OPEN, external_consent=True, timeout_s=0.1)
    assert client.is_external
    client.probe()


def test_an_outside_server_is_refused_before_any_connection() -> None:
    with pytest.raises(SecurityViolation):
        embedder("https://api.openai.com/v1", external_consent=True)
    with pytest.raises(ConfigInvalid):
        embedder("https://api.openai.com/v1", security=OPEN)
