"""What the fixtures of `tests/conftest.py` are, for the tests that ask for them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.transports.command_line import Done

from obsidian_rag.engine import Engine

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
Configure = Callable[[Path, Mapping[str, object]], None]
MakeEngine = Callable[..., Engine]
Cli = Callable[..., Done]
