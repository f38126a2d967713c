"""Every command explains itself, with an example."""

from collections.abc import Iterator

import pytest
import typer
from tests.fixture_types import Cli

from obsidian_rag import __version__
from obsidian_rag.transports.cli.app import app


def commands(group: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in getattr(group, "commands", {}).items():
        if getattr(command, "commands", None):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


ALL = sorted(commands(typer.main.get_command(app)))


def test_all_commands_were_found() -> None:
    assert {("index",), ("sync",), ("reindex",), ("status",), ("config", "set")} <= set(ALL)


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_help_says_what_a_command_does_and_shows_an_example(
    cli: Cli, command: tuple[str, ...]
) -> None:
    done = cli(*command, "--help")
    assert (done.code, done.err) == (0, "")
    lines = [line.strip() for line in done.out.splitlines() if line.strip()]
    assert lines[0].startswith("Usage: obsidian-rag " + " ".join(command))
    assert not lines[1].endswith(".")
    (example,) = (line for line in lines if line.startswith("Example:"))
    assert "obsidian-rag " + " ".join(command) in example
    # What `mcp` prints is the protocol and nothing else.
    assert "--json" in done.out or command == ("mcp",)
    assert cli(*command, "-h").out == done.out


@pytest.mark.parametrize("arguments", [(), ("config",), ("model",)])
def test_a_name_alone_shows_the_help(cli: Cli, arguments: tuple[str, ...]) -> None:
    done = cli(*arguments)
    assert "Usage:" in done.out + done.err
    assert "Traceback" not in done.err


def test_the_version_is_told(cli: Cli) -> None:
    assert cli("--version").out == f"obsidian-rag {__version__}\n"
