"""memory store, recall, list and forget."""

import sys
from typing import Annotated, Any

import typer

from obsidian_rag.transports.cli.backend import ask_tool, open_engine
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    command_group,
    local_time,
    plain,
    print_answer,
    print_trouble,
)
from obsidian_rag.transports.cli.streams import say, style
from obsidian_rag.transports.lazy import tools

_FLAGS = {
    "query": "the question",
    "key": "the key",
    "value": "the fact",
    "source": "--source",
    "limit": "--limit",
}
app = command_group("Remember facts from notes")


@app.command("store")
def store(
    key: Annotated[str, typer.Argument(help="Short name of the fact")],
    value: Annotated[str, typer.Argument(help="The fact")],
    source: Annotated[str, typer.Option(help="The note that says so, as a path in the vault")],
    json_output: JsonFlag = False,
) -> int:
    """Remember a fact, replacing what was stored under the same key

    Example:  obsidian-rag memory store dentist "Dr Ash, Tuesdays" --source Health/Dentist.md
    """
    envelope = ask_tool(
        "obsidian_rag_memory_store", {"key": key, "value": value, "source": source}, _FLAGS
    )
    return print_answer(envelope, json_output, lambda _: print(f"Remembered as {key.strip()}"))


@app.command("recall")
def recall(
    query: Annotated[str, typer.Argument(help="What the fact is about, or its key")],
    limit: Annotated[int, typer.Option(help="Show at most this many facts")] = 5,
    json_output: JsonFlag = False,
) -> int:
    """Find remembered facts by key or by meaning

    Example:  obsidian-rag memory recall "what do I owe"
    """
    arguments = {"query": query, "limit": limit}
    if len(query) <= 200:
        arguments["key"] = query
    envelope = ask_tool("obsidian_rag_memory_recall", arguments, _FLAGS)
    code = print_answer(envelope, json_output, _show_facts)
    if envelope["error"] and not json_output:
        print_trouble(envelope["error"], sys.stderr)
    return code


@app.command("list")
def list_(json_output: JsonFlag = False) -> int:
    """Show every remembered fact, the latest first

    Example:  obsidian-rag memory list
    """
    with open_engine() as engine:
        envelope = tools.memory_list(engine)
    return print_answer(envelope, json_output, _show_facts)


@app.command("forget")
def forget(
    key: Annotated[str, typer.Argument(help="The key of the fact")],
    json_output: JsonFlag = False,
) -> int:
    """Remove one remembered fact

    Example:  obsidian-rag memory forget debt_to_sreenivas
    """
    with open_engine() as engine:
        envelope = tools.memory_forget(engine, key)
    return print_answer(envelope, json_output, lambda _: print(f"Forgot {key}"))


def _show_facts(data: Any) -> None:
    for fact in data["facts"]:
        print(f"{style(plain(fact['key']), bold=True)}: {fact['value']}")
        print(f"  {style(plain(fact['source']), fg='cyan')}, {local_time(fact['stored_at'])[:10]}")
    if not data["facts"]:
        say("No facts found.")
