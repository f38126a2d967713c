"""Stand-ins for OpenAI-compatible servers and for Gemini: real local HTTP servers.

Each request is held against a JSON schema written from the published reference (OpenAI's
`POST /embeddings`, Google's `models.batchEmbedContents`), limits included; one that does not fit is
answered as the provider would, and kept in `violations`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jsonschema_rs
from tests.embed.embedding_doubles import Answer, FakeProvider, letter_counts, serve

KEY = "sk-very-secret-0123456789"

OPENAI_REQUEST = {
    "type": "object",
    "additionalProperties": False,
    "required": ["input", "model"],
    "properties": {
        "input": {
            "oneOf": [
                {"type": "string", "minLength": 1},
                {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 2048,
                    "items": {"type": "string", "minLength": 1},
                },
            ]
        },
        "model": {"type": "string", "minLength": 1},
        "encoding_format": {"enum": ["float", "base64"]},
        "dimensions": {"type": "integer", "minimum": 1},
        "user": {"type": "string"},
    },
}
OPENAI_TOKENS_PER_REQUEST = 300_000

GEMINI_REQUEST = {
    "type": "object",
    "additionalProperties": False,
    "required": ["requests"],
    "properties": {
        "requests": {
            "type": "array",
            "minItems": 1,
            "maxItems": 100,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["model", "content"],
                "properties": {
                    "model": {"type": "string", "pattern": "^models/[^/]+$"},
                    "content": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["parts"],
                        "properties": {
                            "role": {"type": "string"},
                            "parts": {
                                "type": "array",
                                "minItems": 1,
                                "items": {
                                    "type": "object",
                                    "additionalProperties": False,
                                    "required": ["text"],
                                    "properties": {"text": {"type": "string", "minLength": 1}},
                                },
                            },
                        },
                    },
                    "taskType": {
                        "enum": [
                            "TASK_TYPE_UNSPECIFIED",
                            "RETRIEVAL_QUERY",
                            "RETRIEVAL_DOCUMENT",
                            "SEMANTIC_SIMILARITY",
                            "CLASSIFICATION",
                            "CLUSTERING",
                            "QUESTION_ANSWERING",
                            "FACT_VERIFICATION",
                            "CODE_RETRIEVAL_QUERY",
                        ]
                    },
                    "title": {"type": "string"},
                    "outputDimensionality": {"type": "integer", "minimum": 1, "maximum": 3072},
                },
            },
        }
    },
}


class _CheckedProvider(FakeProvider):
    """Holds what it is asked against a schema."""

    def _is_valid(self, request: dict[str, Any], schema: dict[str, Any]) -> bool:
        try:
            jsonschema_rs.validate(schema, request)
        except jsonschema_rs.ValidationError as problem:
            self.violations.append(problem.message[:200])
            return False
        return True


class FakeOpenAI(_CheckedProvider):
    """Answers like OpenAI and those who speak its API; `on_embed` decides about /embeddings."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = f"{url}/v1"

    def vectors(self, request: dict[str, Any]) -> Answer:
        width = request.get("dimensions", self.width)
        data = [
            {"object": "embedding", "index": place, "embedding": letter_counts(text, width)}
            for place, text in enumerate(request["input"])
        ]
        usage = {"prompt_tokens": 8, "total_tokens": 8}
        # The order is not promised; `index` is.
        return Answer(
            body={"object": "list", "data": data[::-1], "model": request["model"], "usage": usage}
        )

    def answer(self, path: str, request: dict[str, Any]) -> Answer:
        self.paths.append(path)
        if self.key and self.headers[-1].get("authorization") != f"Bearer {self.key}":
            return openai_error(401, "Incorrect API key provided: sk-very****.", "invalid_api_key")
        if path == "/v1/models":
            return Answer(body={"object": "list", "data": [{"id": "tiny", "object": "model"}]})
        if path != "/v1/embeddings":
            return openai_error(404, f"Invalid URL (POST {path})", None)
        self.requests.append(request)
        if not self._is_valid(request, OPENAI_REQUEST):
            return openai_error(400, "'$.input' is invalid.", "invalid_value")
        if sum(len(text.encode("utf-8", "replace")) for text in request["input"]) > (
            OPENAI_TOKENS_PER_REQUEST
        ):
            self.violations.append("too many tokens")
            return openai_error(
                400, "Requested 309209 tokens, max 300000 tokens per request", "max_tokens"
            )
        return self.on_embed(request)


class FakeGemini(_CheckedProvider):
    """Answers like the Gemini API; `on_embed` decides about batchEmbedContents."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = f"{url}/v1beta"
        self.models = ["gemini-embedding-2", "gemini-embedding-001"]

    @property
    def inputs(self) -> list[list[str]]:
        return [
            [one["content"]["parts"][0]["text"] for one in request["requests"]]
            for request in self.requests
        ]

    def vectors(self, request: dict[str, Any]) -> Answer:
        # Not of length one, as the first model's are below 3,072 numbers.
        rows = [
            letter_counts(one["content"]["parts"][0]["text"], one["outputDimensionality"])
            for one in request["requests"]
        ]
        return Answer(body={"embeddings": [{"values": row} for row in rows]})

    def answer(self, path: str, request: dict[str, Any]) -> Answer:
        self.paths.append(path)
        if self.key and self.headers[-1].get("x-goog-api-key") != self.key:
            return WRONG_GEMINI_KEY
        model, _, method = path.removeprefix("/v1beta/models/").partition(":")
        if model not in self.models:
            return google_error(404, "NOT_FOUND", f"models/{model} is not found")
        if not method:
            return Answer(body={"name": f"models/{model}"})
        if method != "batchEmbedContents":
            return google_error(404, "NOT_FOUND", "not found")
        self.requests.append(request)
        if not self._is_valid(request, GEMINI_REQUEST):
            return google_error(400, "INVALID_ARGUMENT", "at most 100 requests can be in one batch")
        if model == "gemini-embedding-2" and any("taskType" in r for r in request["requests"]):
            self.violations.append("taskType is not for this model")
        return self.on_embed(request)


def openai_error(
    status: int, message: str, code: str | None, headers: dict[str, str] | None = None
) -> Answer:
    kind = "insufficient_quota" if code == "insufficient_quota" else "invalid_request_error"
    error = {"message": message, "type": kind, "param": None, "code": code}
    return Answer(status, {"error": error}, headers or {})


def google_error(
    status: int, name: str, message: str, details: list[dict[str, Any]] | None = None
) -> Answer:
    error = {"code": status, "message": message, "status": name, "details": details or []}
    return Answer(status, {"error": error})


WRONG_GEMINI_KEY = google_error(
    400,
    "INVALID_ARGUMENT",
    "API key not valid. Please pass a valid API key.",
    [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "API_KEY_INVALID",
            "domain": "googleapis.com",
        }
    ],
)


@contextmanager
def fake_openai() -> Iterator[FakeOpenAI]:
    """An OpenAI-compatible server on a free port of this machine."""
    with serve(FakeOpenAI) as fake:
        yield fake


@contextmanager
def fake_gemini() -> Iterator[FakeGemini]:
    """A Gemini API on a free port of this machine."""
    with serve(FakeGemini) as fake:
        yield fake
