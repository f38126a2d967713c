"""Edits the config file on request, one setting at a time."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from obsidian_rag.config.problems import nearest_setting
from obsidian_rag.config.settings import (
    put_value,
    setting_fields,
    setting_names,
    setting_value,
    validate,
)
from obsidian_rag.errors import InvalidArgument, NotFound

__all__ = [
    "change_values",
    "check_name",
    "existing_folder",
    "set_value",
    "setting_choices",
    "typed_value",
    "unset_value",
]

_FOLDER_SETTINGS = ("vault_path", "livesync.vaultPath")
_PATH_SETTINGS = ("vector_store.path",)


def existing_folder(path: str | Path) -> Path:
    """A folder that the user typed, made absolute from the working folder.

    Raises:
        NotFound: there is no such folder.
    """
    if not str(path):  # as from an unset variable: it must not mean the current folder
        raise NotFound("The path is empty.", "Name the folder that holds your notes.")
    root = _absolute(path)
    if not root.exists():
        raise NotFound(f"There is no folder {root}.", "Name the folder that holds your notes.")
    if not root.is_dir():
        raise NotFound(f"{root} is a file, not a folder.", "Name the folder that holds your notes.")
    return root


def typed_value(key: str, text: str) -> str:
    """The text for a setting; a typed path is relative to the working folder, not to the file.

    Raises:
        InvalidArgument: there is no such setting.
        NotFound: it should be the folder of a vault, and there is no such folder.
    """
    check_name(key)
    value = setting_value(key, text)
    if not isinstance(value, str) or not value.strip() or "://" in value:
        return text
    if key in _FOLDER_SETTINGS:
        return str(existing_folder(value))
    is_path = key in _PATH_SETTINGS or (key == "embedding.model" and value.startswith((".", "~")))
    return str(_absolute(value)) if is_path else text


def _absolute(path: str | Path) -> Path:
    return Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100  (symlinks are kept)


def set_value(tree: dict[str, Any], key: str, text: str) -> None:
    """Set a dotted `key` to the value written as `text` (JSON, or a bare word).

    Raises:
        InvalidArgument: there is no such setting.
        ConfigInvalid: the value is not valid for it.
    """
    check_name(key)
    value = setting_value(key, text)
    trial: dict[str, Any] = {}
    put_value(trial, key, value)
    validate(trial, None)
    put_value(tree, key, value)


def unset_value(tree: dict[str, Any], key: str) -> bool:
    """Remove a setting from the file's tree, so that its default applies; whether it was set."""
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
    """Set values by dotted name in the file's tree; None removes a setting.

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
    """Refuse an unknown setting name.

    Raises:
        InvalidArgument: no setting has this name; the message suggests the nearest one.
    """
    names = list(setting_names())
    if key not in names:
        raise InvalidArgument(
            f"There is no setting '{key}'.{nearest_setting(key, names)}",
            "`obsidian-rag config show` lists them.",
        )


def setting_choices(name: str) -> list[str]:
    """The possible values of a setting that is a choice or a flag; else empty."""
    info = dict(setting_fields()).get(name)
    if info is None:
        return []
    return ["true", "false"] if info.annotation is bool else _literal_values(info.annotation)


def _literal_values(kind: object) -> list[str]:
    if get_origin(kind) is Literal:
        return [str(word) for word in get_args(kind)]
    return [word for inner in get_args(kind) for word in _literal_values(inner)]
