"""MCP over HTTP: the official client at the daemon's door, with the rules of the door."""

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import TextResourceContents
from tests.integration.living import QUICK, Living, living_below
from tests.transports.mcp_client import Mode, envelope_of, failure_of
from tests.waiting import PATIENCE_S

from obsidian_rag.engine import Tokens
from obsidian_rag.tools import TOOLS, Scope

T = TypeVar("T")
NOTES = {
    "Work/Roses.md": "# Roses\n\nThe roses of the office need water.\n",
    "Home/Debts.md": "# Debts\n\nI owe Sreenivas 40 dollars.\n",
    "Home/Diary.md": "---\nrag: private\n---\nNobody reads this diary.\n",
}
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPTED = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    root = tmp_path_factory.mktemp("mcp_http")
    with living_below(root, NOTES, QUICK) as one:
        one.index()
        yield one


def speak(
    daemon: Living,
    session: Callable[[Client], Awaitable[T]],
    *,
    token: str | None = None,
    mode: Mode = "legacy",
) -> T:
    headers = {"Authorization": f"Bearer {token or daemon.door.token}"}

    async def main() -> T:
        with anyio.fail_after(PATIENCE_S):
            async with (
                create_mcp_http_client(headers) as http,
                Client(
                    streamable_http_client(url_of(daemon), http_client=http),
                    mode=mode,
                    read_timeout_seconds=PATIENCE_S,
                ) as client,
            ):
                return await session(client)

    return anyio.run(main)


def url_of(daemon: Living) -> str:
    return f"http://127.0.0.1:{daemon.door.port}/mcp"


def limited(home: Path, name: str, **limits: Any) -> str:
    scope = Scope(folders=limits.pop("folders", None))
    return Tokens(home).create(name, scope, is_read_only=limits.pop("is_read_only", False))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_tools_answer_as_over_plain_http(daemon: Living, mode: Mode) -> None:
    async def session(client: Client) -> tuple[list[str], Any]:
        names = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("obsidian_rag_search", {"query": "roses"})
        return names, envelope_of(found)

    names, envelope = speak(daemon, session, mode=mode)
    assert names == list(TOOLS)
    plain = daemon.call("search", query="roses")
    assert envelope["data"] == plain["data"]
    assert envelope["data"]["results"][0]["source_file"] == "Work/Roses.md"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_notes_are_listed_and_read_as_agents_may(daemon: Living, mode: Mode) -> None:
    async def session(client: Client) -> tuple[list[str], str, int]:
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        (content,) = (await client.read_resource(listed[0])).contents
        assert isinstance(content, TextResourceContents)
        refused = await failure_of(client.read_resource("obsidian-rag://note/Home/Diary.md"))
        return listed, content.text, refused.code

    listed, text, code = speak(daemon, session, mode=mode)
    assert [uri.rpartition("/")[2] for uri in listed] == ["Debts.md", "Roses.md"]
    assert "Sreenivas" in text
    assert code < 0


def test_the_owners_token_is_an_agent_here(daemon: Living) -> None:
    headers = {"Authorization": f"Bearer {daemon.door.token}", "X-Obsidian-Rag-Caller": "owner"}
    asked = {
        **PING,
        "method": "tools/call",
        "params": {"name": "obsidian_rag_search", "arguments": {"query": "diary"}},
    }
    answer = httpx.post(url_of(daemon), json=asked, headers={**headers, **ACCEPTED})
    assert answer.status_code == 200
    assert "Nobody reads" not in answer.text


def test_a_token_of_an_agent_sees_what_it_is_limited_to(daemon: Living) -> None:
    token = limited(daemon.home, "office", folders=("Work",), is_read_only=True)

    async def session(client: Client) -> tuple[list[str], Any, Any]:
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        found = await client.call_tool("obsidian_rag_search", {"query": "Sreenivas roses"})
        index = await client.call_tool("obsidian_rag_index", {"mode": "sync"})
        return listed, envelope_of(found), envelope_of(index)

    listed, found, index = speak(daemon, session, token=token)
    assert listed == ["obsidian-rag://note/Work/Roses.md"]
    assert "Sreenivas" not in json.dumps(found["data"])
    assert index["data"] is None


def test_who_has_no_token_is_refused_before_anything_is_read(daemon: Living) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        answer = httpx.post(url_of(daemon), json=PING, headers={**headers, **ACCEPTED})
        assert answer.status_code == 401
    good = {"Authorization": f"Bearer {daemon.door.token}", **ACCEPTED}
    for bad, status in (({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403)):
        answer = httpx.post(url_of(daemon), json=PING, headers={**good, **bad})
        assert answer.status_code == status


def test_it_is_one_request_and_one_answer_within_the_limits_of_the_door(daemon: Living) -> None:
    headers = {"Authorization": f"Bearer {daemon.door.token}", **ACCEPTED}
    for method in ("GET", "DELETE"):
        assert httpx.request(method, url_of(daemon), headers=headers).status_code == 405
    large = {**PING, "params": {"x": "y" * 300_000}}
    assert httpx.post(url_of(daemon), json=large, headers=headers).status_code == 413
    answer = httpx.post(url_of(daemon), json=PING, headers=headers)
    assert len(answer.json()["result"]["tools"]) == len(TOOLS)
    assert "mcp-session-id" not in answer.headers
