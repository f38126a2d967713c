"""Where the data folder and the config file are, and how the file is read and replaced.

`config` validates the content. This module is separate because commands that a daemon answers need
it and must not load pydantic.
"""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from obsidian_rag.errors import ConfigInvalid

__all__ = [
    "DAEMON_FILE",
    "DAEMON_LOCK",
    "ENV_PREFIX",
    "config_file",
    "data_home",
    "parse_file",
    "read_file",
    "write_atomically",
]

ENV_PREFIX = "OBSIDIAN_RAG_"
# In the data folder: how to reach the running daemon, and the lock that it holds.
DAEMON_FILE = "daemon.json"
DAEMON_LOCK = "daemon.lock"


def data_home(environ: Mapping[str, str] = os.environ) -> Path:
    """The data folder: OBSIDIAN_RAG_HOME, or the platform's usual place."""
    if chosen := environ.get(ENV_PREFIX + "HOME"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32" and (appdata := environ.get("APPDATA")):
        return Path(appdata) / "obsidian-rag"
    return Path("~/.obsidian-rag").expanduser()


def config_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The config file: OBSIDIAN_RAG_CONFIG, or config.json in the data folder."""
    if chosen := environ.get(ENV_PREFIX + "CONFIG"):
        return Path(chosen).expanduser().absolute()
    return data_home(environ) / "config.json"


def read_file(file: Path) -> dict[str, Any]:
    """The settings as written in `file`; empty if it does not exist."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigInvalid(f"{file} cannot be read: {error}.", "Check the file.") from error
    return parse_file(content, file)


def parse_file(content: bytes, file: Path) -> dict[str, Any]:
    """Parse the content of a settings file; `file` is named in errors.

    Raises:
        ConfigInvalid: it is not a JSON object in UTF-8.
    """
    try:
        tree = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigInvalid(f"{file} cannot be read: {error}.", "Check the file.") from error
    except json.JSONDecodeError as error:
        raise ConfigInvalid(
            f"{file} is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg}).",
            "Fix the file, or move it away and run `obsidian-rag init`.",
        ) from error
    if not isinstance(tree, dict):
        raise ConfigInvalid(f"{file} must hold one JSON object.", "Run `obsidian-rag init`.")
    return tree


def write_atomically(file: Path, text: str) -> None:
    """Replace one of our own files; readers see the old or the new version, never a part."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
