"""A model on loopback that does as it is told: it calls one tool, then says what it got."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ScriptedModel:
    """Answers chat completions as a stream; keeps every request."""

    url: str
    tool: str
    arguments: Mapping[str, object]
    requests: list[dict[str, Any]] = field(default_factory=list)

    @property
    def config(self) -> dict[str, Any]:
        """The part of openclaw.json that makes it the agent's model."""
        model = {
            "id": "m1",
            "name": "m1",
            "contextWindow": 128_000,
            "maxTokens": 4096,
            "input": ["text"],
            "reasoning": False,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }
        provider = {
            "baseUrl": self.url,
            "api": "openai-completions",
            "apiKey": "x",
            "models": [model],
        }
        return {"providers": {"scripted": provider}}

    def results(self) -> list[str]:
        """What the tools answered, as the model got it."""
        messages = [message for request in self.requests for message in request["messages"]]
        return [_text(message) for message in messages if message["role"] == "tool"]

    def offered(self) -> set[str]:
        """The tools that the model can call directly."""
        return {tool["function"]["name"] for tool in self.requests[0].get("tools", [])}

    def system_prompt(self) -> str:
        first = self.requests[0]["messages"]
        return "\n".join(_text(m) for m in first if m["role"] in ("system", "developer"))

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        if any(message["role"] == "tool" for message in request["messages"]):
            return {"content": "Ferns grow behind the shed (Garden.md:1-2)."}
        call = {"name": self.tool, "arguments": json.dumps(self.arguments)}
        return {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": call}]}


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )


@contextmanager
def scripted_model(tool: str, arguments: Mapping[str, object]) -> Iterator[ScriptedModel]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            delta = model.reply(json.loads(body))
            reason = "tool_calls" if "tool_calls" in delta else "stop"
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for part, ended in ((delta, None), ({}, reason)):
                choice = {
                    "index": 0,
                    "delta": {"role": "assistant", **part},
                    "finish_reason": ended,
                }
                chunk = {
                    "id": "1",
                    "object": "chat.completion.chunk",
                    "model": "m1",
                    "choices": [choice],
                }
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model = ScriptedModel(f"http://127.0.0.1:{server.server_port}/v1", tool, arguments)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
