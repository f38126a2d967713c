"""The config file as it lies on disk: where, read it, replace it; `config` judges its content."""

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
    "ENV_PREFIX",
    "config_file",
    "data_home",
    "parse_file",
    "read_file",
    "write_atomically",
]

ENV_PREFIX = "OBSIDIAN_RAG_"


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
    """The settings as written in `file`; empty if there is none."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigInvalid(f"{file} cannot be read: {error}.", "Check the file.") from error
    return parse_file(content, file)


def parse_file(content: bytes, file: Path) -> dict[str, Any]:
    """The settings that `file` holds, from its content.

    Raises:
        ConfigInvalid: it is no JSON object in UTF-8.
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
    """Replace one of our own files so that a reader sees the old or the new, never a part."""
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
