"""config show, get, set, unset and path."""

import os
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from obsidian_rag import config
from obsidian_rag.errors import ConfigInvalid
from obsidian_rag.transports.cli.backend import the_daemon
from obsidian_rag.transports.cli.output import JsonFlag, command_group, json_text, print_done
from obsidian_rag.transports.lazy import embed

_STATIC = ("builtin", "hash", "same_as_model")
app = command_group("Show and change settings")


def _names(incomplete: str) -> list[tuple[str, str]]:
    """Names of settings with their help, for shell completion."""
    return [
        (name, field.description or "")
        for name, field in config.setting_fields()
        if name.startswith(incomplete)
    ]


def _values(context: typer.Context, incomplete: str) -> list[str]:
    """The values of a setting with a fixed set of them, for shell completion."""
    words = config.setting_choices(context.params.get("key") or "")
    return [word for word in words if word.startswith(incomplete)]


Key = Annotated[
    str,
    typer.Argument(help="Dotted name, for example embedding.provider", autocompletion=_names),
]


@app.command("show")
def show(json_output: JsonFlag = False) -> int:
    """Print every setting with its current value

    Example:  obsidian-rag config show
    """
    settings = config.load().settings.model_dump(mode="json", by_alias=True)
    return print_done(settings, json_text(settings), json_output)


@app.command("get")
def get(key: Key, json_output: JsonFlag = False) -> int:
    """Print one setting, or one section of them

    Example:  obsidian-rag config get embedding.provider
    """
    if key not in {name.partition(".")[0] for name in config.setting_names()}:
        config.check_name(key)
    value = config.load().value(key)
    text = value if isinstance(value, str) else json_text(value)
    return print_done({"key": key, "value": value}, text, json_output)


@app.command("set")
def set_(
    key: Key,
    value: Annotated[str, typer.Argument(help="JSON, or a bare word", autocompletion=_values)],
    json_output: JsonFlag = False,
) -> int:
    """Change one setting in the config file

    A running daemon uses it at once. Relative paths start in the current folder.

    Example:  obsidian-rag config set embedding.provider ollama
    """
    file = config.config_file()
    tree = config.read_file(file)
    before = _settings_in(tree)
    config.set_value(tree, key, config.typed_value(key, value))
    return _save(key, tree, before, json_output, f"{key} is set in {file}")


@app.command("unset")
def unset(key: Key, json_output: JsonFlag = False) -> int:
    """Reset one setting to its default

    Example:  obsidian-rag config unset indexing.chunk_size
    """
    file = config.config_file()
    tree = config.read_file(file)
    before = _settings_in(tree)
    is_there = config.unset_value(tree, key)
    sentence = f"{key} is no longer set in {file}" if is_there else f"{key} was not set in {file}"
    return _save(key, tree, before, json_output, sentence)


@app.command("path")
def path(json_output: JsonFlag = False) -> int:
    """Print where the config file is

    Example:  $EDITOR "$(obsidian-rag config path)"
    """
    file = str(config.config_file())
    return print_done({"config": file}, file, json_output)


def _settings_in(tree: dict[str, Any]) -> config.Config | None:
    """The settings in the file before the change; None if they were invalid."""
    try:
        file = config.config_file()
        return config.Config(config.data_home(), file, config.validate(tree, file))
    except ConfigInvalid:
        return None


def _save(
    key: str, tree: dict[str, Any], before: config.Config | None, json_output: bool, sentence: str
) -> int:
    file = config.config_file()
    after = config.Config(config.data_home(), file, config.validate(tree, file))
    config.save(tree, file)
    is_changed = before is None or before.value(key) != after.value(key)
    notes = list(_consequences(key, after, is_changed=is_changed))
    done = {"key": key, "config": str(file), "notes": notes}
    return print_done(done, sentence, json_output, notes)


def _consequences(key: str, after: config.Config, *, is_changed: bool) -> Iterator[str]:
    """What changes for the user, and what they should do for the change to take effect."""
    variable = config.ENV_PREFIX + key.upper().replace(".", "__")
    if variable in os.environ:
        yield f"In this shell {variable} overrides the file."
    try:
        now = config.load()
    except ConfigInvalid as error:
        yield f"{error.message} {error.suggestion}"
        return
    if is_changed and key in config.NEEDS_REINDEX and after.database.exists():
        yield (
            "The index was built with the old value. Run `obsidian-rag reindex`;"
            " until then, search uses words only."
        )
    if is_changed:
        yield from _meaning_consequences(key, after)
    daemon = the_daemon(now)
    if daemon is None:
        return
    if key in now.restart_needed(daemon.started_with):
        yield f"{key} takes effect after `obsidian-rag serve --detach`."
    elif is_changed:
        yield "The running daemon uses it from now on."


def _meaning_consequences(key: str, after: config.Config) -> Iterator[str]:
    """What a change means for the vectors that a transformer adds."""
    meaning = after.settings.meaning
    if key == "embedding.provider" and after.settings.embedding.provider not in _STATIC:
        yield "Meaning vectors are not used with this provider: it makes its own vectors."
    if key == "meaning.model" and embed.installed_model(meaning.model, after.home) is None:
        yield f"The model {meaning.model} is not installed; see `obsidian-rag model --help`."
    elif key == "meaning.model":
        yield (
            "Its meaning vectors are added in the background and take the place of the old"
            " model's; nothing has to be reindexed."
        )
    if key == "meaning.enabled":
        yield "Nothing has to be reindexed; static vectors are always there."
