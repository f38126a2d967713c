"""The Gemini client against a local server with the published shapes."""

from collections.abc import Iterator

import numpy as np
import pytest
from tests.embed.embedding_doubles import Answer, embedders
from tests.embed.provider_doubles import KEY, FakeGemini, fake_gemini, google_error

from obsidian_rag.embed.embedder import InputsRejected
from obsidian_rag.embed.gemini import GeminiEmbedder
from obsidian_rag.errors import ConfigInvalid, ProviderFailed, SecurityViolation


@pytest.fixture
def server() -> Iterator[FakeGemini]:
    with fake_gemini() as fake:
        yield fake
        assert fake.violations == []


embedder = embedders(GeminiEmbedder, "gemini", "gemini-embedding-2")


def test_the_second_model_has_its_task_as_a_prefix(server: FakeGemini) -> None:
    client = embedder(server.url)
    client.embed_documents(["sea"])
    client.embed_query("sky")
    assert server.paths[0] == "/v1beta/models/gemini-embedding-2:batchEmbedContents"
    assert server.requests[0] == {
        "requests": [
            {
                "model": "models/gemini-embedding-2",
                "content": {"parts": [{"text": "title: none | text: sea"}]},
                "outputDimensionality": 768,
            }
        ]
    }
    assert server.inputs[1] == ["task: search result | query: sky"]
    assert client.max_tokens == 8192


def test_other_models_have_it_as_a_field(server: FakeGemini) -> None:
    client = embedder(server.url, "models/gemini-embedding-001", dimensions=256)
    client.embed_documents(["sea"])
    client.embed_query("sky")
    first, second = (request["requests"][0] for request in server.requests)
    assert (first["taskType"], second["taskType"]) == ("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY")
    assert server.inputs == [["sea"], ["sky"]]
    assert (client.dimensions, client.max_tokens) == (256, 2048)
    assert client.fingerprint == "gemini:gemini-embedding-001:256:r1"


def test_vectors_of_any_length_become_unit_vectors(server: FakeGemini) -> None:
    rows = embedder(server.url, "gemini-embedding-001").embed_documents(["aaa", "ab", "bbbb"])
    assert rows.shape == (3, 768)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert rows[0, ord("a")] == rows[2, ord("b")] == 1


def test_no_request_holds_more_than_google_takes(server: FakeGemini) -> None:
    client = embedder(server.url, dimensions=8)
    client.embed_documents([f"text {number}" for number in range(250)])
    assert [len(batch) for batch in server.inputs] == [100, 100, 50]
    server.requests.clear()
    client.embed_documents(["word " * 400] * 60)
    assert max(sum(map(len, batch)) for batch in server.inputs) <= 82_000


def test_the_key_goes_into_a_header_and_not_into_the_address(
    server: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    server.key = KEY
    client = embedder(server.url, api_key_env="MY_KEY")
    client.embed_query("abc")
    client.probe()
    assert all(KEY not in path for path in server.paths)
    server.key = "another"
    for call in (client.probe, lambda: client.embed_query("abc")):
        with pytest.raises(ProviderFailed) as caught:
            call()
        assert "MY_KEY" in caught.value.message
        assert KEY not in caught.value.message
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(ProviderFailed) as caught:
        client.probe()
    assert "not set" in caught.value.message


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (google_error(403, "PERMISSION_DENIED", "no"), "api_key_env"),
        (google_error(404, "NOT_FOUND", "models/x is not found"), "embedding.model"),
        (google_error(405, "UNIMPLEMENTED", "no"), "base_url"),
        (Answer(200, {"embeddings": [{"values": [1.0]}, {"values": [1.0]}]}), "base_url"),
        (Answer(200, {"embedding": {"values": [1.0]}}), "base_url"),
        (Answer(200, {"embeddings": [{}]}), "base_url"),
        (Answer(200, raw=b"<html>"), "base_url"),
    ],
)
def test_what_cannot_get_better_is_asked_once_and_says_what_to_do(
    server: FakeGemini, waits: list[float], answer: Answer, said: str
) -> None:
    server.on_embed = lambda request: answer
    with pytest.raises(ProviderFailed) as caught:
        embedder(server.url, waits=waits).embed_documents(["my private words"])
    assert said in caught.value.suggestion
    assert (len(server.requests), waits) == (1, [])


def test_a_model_that_is_not_there_is_told_by_probe(server: FakeGemini) -> None:
    with pytest.raises(ProviderFailed) as caught:
        embedder(server.url, "text-embedding-004").probe()
    assert "text-embedding-004" in caught.value.message


def test_googles_own_word_for_a_pause_is_kept(server: FakeGemini, waits: list[float]) -> None:
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12.5s"}
    answers = [
        google_error(503, "UNAVAILABLE", "overloaded"),
        google_error(429, "RESOURCE_EXHAUSTED", "quota", [detail]),
    ]
    server.on_embed = lambda request: answers.pop() if answers else server.vectors(request)
    assert embedder(server.url, waits=waits).embed_documents(["abc"]).shape == (1, 768)
    assert waits[0] == 12.5
    assert 0.5 <= waits[1] <= 1.5


def test_one_bad_input_fails_alone(server: FakeGemini) -> None:
    def refuse(request: dict[str, list[dict[str, dict[str, list[dict[str, str]]]]]]) -> Answer:
        texts = [one["content"]["parts"][0]["text"] for one in request["requests"]]
        if any("poison" in text or "ison" in text for text in texts):
            return google_error(400, "INVALID_ARGUMENT", f"bad: {texts}")
        return server.vectors(request)

    server.on_embed = refuse
    with pytest.raises(InputsRejected) as caught:
        embedder(server.url, dimensions=8).embed_documents(["good", "poisonpoison", "fine"])
    assert caught.value.positions == (1,)
    assert "poison" not in caught.value.message


def test_a_model_name_cannot_leave_its_place_in_the_address() -> None:
    for name in ("../secrets", "a/b", "a:b", "", "a?key=x"):
        with pytest.raises(ConfigInvalid):
            embedder("http://localhost:1", name)


def test_google_is_refused_while_only_this_machine_is_allowed() -> None:
    with pytest.raises(SecurityViolation):
        embedder("https://generativelanguage.googleapis.com/v1beta", external_consent=True)
