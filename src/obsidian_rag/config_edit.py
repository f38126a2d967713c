"""Changes of the config file that a person asks for, one setting at a time."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from obsidian_rag.config import (
    put_value,
    setting_fields,
    setting_names,
    setting_value,
    validate,
)
from obsidian_rag.errors import InvalidArgument, NotFound
from obsidian_rag.setting_problems import nearest_setting

__all__ = [
    "change_values",
    "check_name",
    "existing_folder",
    "set_value",
    "setting_choices",
    "typed_value",
    "unset_value",
]

_FOLDERS = ("vault_path", "livesync.vaultPath")
_PATHS = ("vector_store.path",)


def existing_folder(path: str | Path) -> Path:
    """A folder as it was typed, made absolute from the working folder.

    Raises:
        NotFound: there is no such folder.
    """
    root = _absolute(path)
    if not root.exists():
        raise NotFound(f"There is no folder {root}.", "Name the folder that holds your notes.")
    if not root.is_dir():
        raise NotFound(f"{root} is a file, not a folder.", "Name the folder that holds your notes.")
    return root


def typed_value(key: str, text: str) -> str:
    """What was typed for a setting; a path is meant from the working folder, not from the file's.

    Raises:
        InvalidArgument: there is no such setting.
        NotFound: it shall be the folder of a vault, and there is no such folder.
    """
    check_name(key)
    value = setting_value(key, text)
    if not isinstance(value, str) or not value.strip() or "://" in value:
        return text
    if key in _FOLDERS:
        return str(existing_folder(value))
    is_path = key in _PATHS or (key == "embedding.model" and value.startswith((".", "~")))
    return str(_absolute(value)) if is_path else text


def _absolute(path: str | Path) -> Path:
    return Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100  (symlinks are kept)


def set_value(tree: dict[str, Any], key: str, text: str) -> None:
    """Put the value written as `text` (JSON, or a bare word) at a dotted `key`.

    Raises:
        InvalidArgument: there is no such setting.
        ConfigInvalid: the value does not fit it.
    """
    check_name(key)
    value = setting_value(key, text)
    trial: dict[str, Any] = {}
    put_value(trial, key, value)
    validate(trial, None)
    put_value(tree, key, value)


def unset_value(tree: dict[str, Any], key: str) -> bool:
    """Take a setting out of the file's tree, so that its default holds; whether it was there."""
    check_name(key)
    section, _, name = key.rpartition(".")
    below = tree.get(section) if section else tree
    if not isinstance(below, dict) or name not in below:
        return False
    del below[name]
    if section and not below:
        del tree[section]
    return True


def change_values(tree: dict[str, Any], changes: Mapping[str, object]) -> None:
    """Put values at dotted names of the file's tree; None takes a setting out.

    Raises:
        InvalidArgument: there is no such setting.
    """
    for name, value in changes.items():
        if value is None:
            unset_value(tree, name)
        else:
            check_name(name)
            put_value(tree, name, value)


def check_name(key: str) -> None:
    """Refuse a name that no setting has.

    Raises:
        InvalidArgument: the message names the nearest one.
    """
    names = list(setting_names())
    if key not in names:
        raise InvalidArgument(
            f"There is no setting '{key}'.{nearest_setting(key, names)}",
            "`obsidian-rag config show` lists them.",
        )


def setting_choices(name: str) -> list[str]:
    """The words that a setting can be, if they are few."""
    info = dict(setting_fields()).get(name)
    if info is None:
        return []
    return ["true", "false"] if info.annotation is bool else _words(info.annotation)


def _words(kind: object) -> list[str]:
    if get_origin(kind) is Literal:
        return [str(word) for word in get_args(kind)]
    return [word for inner in get_args(kind) for word in _words(inner)]
