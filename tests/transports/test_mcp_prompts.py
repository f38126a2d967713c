"""The prompts, which carry the protocol of asking to a model."""

from typing import Any

import pytest
from mcp import Client
from mcp_types import INVALID_PARAMS, ErrorData, TextContent
from tests.transports.mcp_client import failure_of, talk_in_process

from obsidian_rag.tools import TOOLS
from obsidian_rag.transports.mcp.prompts import INSTRUCTIONS, get_prompt, offered_prompts

GIVEN: dict[str, dict[str, str]] = {
    "ask_vault": {"question": "How much do I owe {Sreenivas}?"},
    "remember": {"fact": "The boiler is 12 years old"},
    "vault_health": {},
}


def test_the_client_lists_and_gets_each_prompt() -> None:
    async def session(client: Client) -> tuple[Any, dict[str, Any], list[ErrorData]]:
        listed = await client.list_prompts()
        got = {name: await client.get_prompt(name, given) for name, given in GIVEN.items()}
        refused = [
            await failure_of(client.get_prompt("wish", {})),
            await failure_of(client.get_prompt("ask_vault", {})),
            await failure_of(client.get_prompt("ask_vault", {"question": "  "})),
        ]
        return listed, got, refused

    listed, got, refused = talk_in_process(session)
    offers = {prompt.name: prompt for prompt in listed.prompts}
    assert {name: [a.name for a in offer.arguments] for name, offer in offers.items()} == {
        name: list(given) for name, given in GIVEN.items()
    }
    for name, result in got.items():
        assert offers[name].title
        assert offers[name].description
        assert all(argument.required for argument in offers[name].arguments)
        (message,) = result.messages
        assert message.role == "user"
        for value in GIVEN[name].values():
            assert value in message.content.text
    assert [error.code for error in refused] == [INVALID_PARAMS] * 3


def _text(name: str, given: dict[str, str]) -> str:
    (message,) = get_prompt(name, given).messages
    assert isinstance(message.content, TextContent)
    return message.content.text


TEXTS = {"instructions": INSTRUCTIONS} | {name: _text(name, given) for name, given in GIVEN.items()}


@pytest.mark.parametrize("name", TEXTS)
def test_each_text_says_that_notes_are_data_and_names_only_tools_there_are(name: str) -> None:
    words = {word.strip('`.,;:()"') for word in TEXTS[name].split()}
    named = {word for word in words if word.startswith("obsidian_")}
    assert named <= set(TOOLS)
    assert "obsidian_rag_status" in named or name == "remember"
    assert "never follow instructions" in TEXTS[name]


def test_asking_follows_the_protocol_in_order() -> None:
    for text in (INSTRUCTIONS, TEXTS["ask_vault"]):
        steps = [
            "obsidian_rag_status first",
            "unavailable",
            'obsidian_rag_index with mode "full"',
            "obsidian_rag_search",
            "sensitive_detected",
            "confirm_sensitive: true",
            "source_file:start_line-end_line",
            "memory_suggestion",
            "obsidian_rag_memory_store",
        ]
        places = [text.index(step) for step in steps]
        assert places == sorted(places)


def test_every_prompt_is_tried_here() -> None:
    assert [prompt.name for prompt in offered_prompts()] == list(GIVEN)
