"""A stand-in for Ollama (a real local HTTP server with its shapes) and tiny ONNX models."""

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from obsidian_rag.config import EmbeddingSettings, SecuritySettings


@dataclass
class Answer:
    """What the stand-in says to one request."""

    status: int = 200
    body: object = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None


Reply = Callable[[dict[str, Any]], Answer]


class FakeProvider(ABC):
    """What all stand-ins have: what was asked is kept, and `on_embed` decides what is answered."""

    def __init__(self, url: str) -> None:
        self.address = self.url = url
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.violations: list[str] = []
        self.key: str | None = None
        self.on_embed: Reply = self.vectors
        self.width = 8
        self.release = threading.Event()
        self.is_down = False

    def stop(self) -> None:
        """From now on every connection is closed without a word."""
        self.is_down = True

    def start(self) -> None:
        """Answer again."""
        self.is_down = False

    @property
    def inputs(self) -> list[list[str]]:
        return [request["input"] for request in self.requests]

    @abstractmethod
    def vectors(self, request: dict[str, Any]) -> Answer: ...

    @abstractmethod
    def answer(self, path: str, request: dict[str, Any]) -> Answer: ...


class FakeOllama(FakeProvider):
    """Answers like Ollama; `on_embed` decides about /api/embed."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.models = ["mxbai-embed-large:latest", "tiny:latest"]
        self.version = Answer(body={"version": "0.12.0"})

    def vectors(self, request: dict[str, Any]) -> Answer:
        rows = [letter_counts(text, self.width) for text in request["input"]]
        return Answer(body={"model": request["model"], "embeddings": rows, "total_duration": 1})

    def answer(self, path: str, request: dict[str, Any]) -> Answer:
        if path == "/api/version":
            return self.version
        if path == "/api/tags":
            return Answer(body={"models": [{"name": name, "model": name} for name in self.models]})
        if path != "/api/embed":
            return Answer(404, raw=b"404 page not found")
        self.requests.append(request)
        return self.on_embed(request)


def letter_counts(text: str, width: int) -> list[float]:
    """A vector in the place of a model's: how often letters of each kind occur."""
    row = [0.0] * width
    for character in text:
        row[ord(character) % width] += 1.0
    return row


def error(status: int, message: str) -> Answer:
    return Answer(status, {"error": message})


TOO_LONG = error(400, "the input length exceeds the context length")
QUEUE_FULL = error(503, "server busy, please try again.  maximum pending requests exceeded")


D = TypeVar("D", bound=FakeProvider)
E = TypeVar("E")


def embedders(make: Callable[..., E], provider: str, usual_model: str) -> Callable[..., E]:
    """How tests make an embedder: by its address, and by what is not usual; pauses are kept."""

    def embedder(
        url: str,
        model: str | None = usual_model,
        waits: list[float] | None = None,
        security: dict[str, object] | None = None,
        **settings: object,
    ) -> E:
        chosen = {"provider": provider, "base_url": url, "model": model, **settings}
        return make(
            EmbeddingSettings.model_validate(chosen),
            SecuritySettings.model_validate(security or {}),
            wait=(waits if waits is not None else []).append,
        )

    return embedder


@contextmanager
def fake_ollama() -> Iterator[FakeOllama]:
    """A server on a free port of this machine."""
    with serve(FakeOllama) as fake:
        yield fake


@contextmanager
def serve(make: Callable[[str], D]) -> Iterator[D]:
    """A stand-in, made with its address, behind a real HTTP server; its headers are kept."""

    class Handler(BaseHTTPRequestHandler):
        def parse_request(self) -> bool:
            return not fake.is_down and super().parse_request()

        def do_GET(self) -> None:
            self._send({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._send(json.loads(body))

        def _send(self, request: dict[str, Any]) -> None:
            fake.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer = fake.answer(self.path, request)
            raw = answer.raw if answer.raw is not None else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that lost patience is part of the tests."""

    server = Server(("127.0.0.1", 0), Handler)
    fake = make(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        fake.release.set()
        server.shutdown()
        thread.join()
        server.server_close()


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "query", "passage", "dog", "puppy"]
WORDS += ["bank", "money", "river", "the", "of", "and"]


def tiny_tokenizer(words: Sequence[str] = WORDS, is_marked: bool = True) -> Tokenizer:
    """One token per word; `is_marked` puts [CLS] and [SEP] around them."""
    vocabulary = {word: position for position, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if is_marked:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            special_tokens=[(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")],
        )
    return tokenizer


def tiny_model(
    folder: Path,
    width: int = 8,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    output: str = "last_hidden_state",
    place: str = "model.onnx",
    seed: int = 0,
    **settings: object,
) -> Path:
    """A model folder whose network looks up one fixed random vector per token.

    With the output `sentence_embedding` it also takes the mean itself.
    """
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    table = np.random.default_rng(seed).normal(size=(len(WORDS), width)).astype(np.float32)
    states = "states" if output == "sentence_embedding" else output
    nodes = [helper.make_node("Gather", ["table", "input_ids"], [states])]
    shape: list[str | int] = ["batch", "sequence", width]
    if states != output:
        nodes.append(helper.make_node("ReduceMean", [states, "axes"], [output], keepdims=0))
        shape = ["batch", width]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "sequence"])
            for n in inputs
        ],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([1], dtype=np.int64), "axes"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, folder / place)
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    if settings:
        (folder / "embedding.json").write_text(json.dumps(settings))
    return folder
