"""The settings on the page: read with their help texts, tried, and saved.

GET  /page/settings                     every setting by section
POST /page/settings {changes, save}     {name: value, or null for its default}; without `save`
                                        only what the changes would mean
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import SecretStr

from obsidian_rag import config
from obsidian_rag.config_edit import change_values, check_name, setting_choices
from obsidian_rag.engine import Engine
from obsidian_rag.errors import ConfigInvalid, InvalidArgument
from obsidian_rag.tools import Envelope, success

# Chosen elsewhere on the page, or not for people at all.
_NOT_HERE = {"version", "vector_store.type"}


def read_settings(engine: Engine, _: Mapping[str, str]) -> Envelope:
    """Every setting with its value, default and help, in the order of the file."""
    sections: dict[str, dict[str, Any]] = {}
    fields = config.Settings.model_fields
    for name, info in config.setting_fields():
        if name in _NOT_HERE:
            continue
        section = name.rpartition(".")[0]
        if section not in sections:
            kind = fields[section].annotation if section else None
            told = {"name": section or "vault", "help": (kind.__doc__ or "") if kind else ""}
            sections[section] = {**told, "settings": []}
        sections[section]["settings"].append(_setting(engine, name, info.description or ""))
    file = str(engine.config.file)
    return success({"sections": list(sections.values()), "file": file})


def change_settings(engine: Engine, asked: Mapping[str, object]) -> Envelope:
    """Try changes together, say what they mean, and save them if that is asked.

    Raises:
        InvalidArgument: there is no such setting, it cannot be changed here, or a value does not
            fit; nothing is changed.
    """
    changes = asked.get("changes")
    if not isinstance(changes, Mapping):
        raise InvalidArgument("'changes' must be an object.", "Send {name: value}.")
    after = _tried(engine.config, changes)
    changed = [name for name in changes if after.value(name) != engine.config.value(name)]
    notes = list(_consequences(engine, after, changed))
    if asked.get("save") is True:
        engine.settings_file.change(changes)
        engine.follow_settings()
    return success({"changed": changed, "notes": notes, "saved": asked.get("save") is True})


def _tried(now: config.Config, changes: Mapping[str, object]) -> config.Config:
    tree = config.read_file(now.file)
    try:
        for name in changes:
            _check_changeable(name)
        change_values(tree, changes)
        return now.renewed(tree)
    except ConfigInvalid as error:
        raise InvalidArgument(error.message, error.suggestion) from error


def _check_changeable(name: str) -> None:
    check_name(name)
    if name in _NOT_HERE or _is_secret(name):
        raise InvalidArgument(f"'{name}' is not changed here.", "Use `obsidian-rag config set`.")


def _consequences(engine: Engine, after: config.Config, changed: list[str]) -> Iterator[str]:
    """What is to be known before saving."""
    if reindex := [name for name in changed if name in config.NEEDS_REINDEX]:
        yield (
            f"{', '.join(reindex)}: the index was built with the old value and must be rebuilt"
            " (Health, Rebuild). Until then, search uses words only."
        )
    if restart := [name for name in changed if name in config.NEEDS_RESTART]:
        yield f"{', '.join(restart)}: in effect after the daemon restarts."
    if hidden := [name for name in changed if name in engine.config.overrides]:
        yield f"{', '.join(hidden)}: the environment of the daemon wins over the file."
    if "vault_path" in changed and after.has_vault:
        roots = ", ".join(str(root) for root in after.vault_roots)
        yield f"vault_path: the index will be made of {roots}."


def _setting(engine: Engine, name: str, told: str) -> dict[str, Any]:
    value, default = engine.config.value(name), _default(name)
    needs = "reindex" if name in config.NEEDS_REINDEX else None
    return {
        "name": name,
        "help": told,
        "value": None if _is_secret(name) else value,
        "default": default,
        "choices": [word for word in setting_choices(name) if word not in ("true", "false")],
        "kind": "secret" if _is_secret(name) else _kind(name),
        "needs": "restart" if name in config.NEEDS_RESTART else needs,
        "is_overridden": name in engine.config.overrides,
    }


def _kind(name: str) -> str:
    told = str(dict(config.setting_fields())[name].annotation)
    if "bool" in told:
        return "flag"
    if "tuple" in told and "dict" not in told:
        return "list"
    if "dict" in told:
        return "json"
    return "number" if "int" in told or "float" in told else "text"


def _default(name: str) -> Any:
    found: Any = config.Settings().model_dump(mode="json")
    for part in name.split("."):
        found = found[part]
    return found


def _is_secret(name: str) -> bool:
    return SecretStr.__name__ in str(dict(config.setting_fields())[name].annotation)
