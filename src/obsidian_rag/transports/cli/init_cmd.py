"""init: choose the vault and write the config file."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from obsidian_rag import config
from obsidian_rag.errors import InvalidArgument, NotFound
from obsidian_rag.transports.cli.output import JsonFlag, print_envelope


def init(
    vault: Annotated[Path | None, typer.Option("--vault", help="Folder of the vault")] = None,
    json_output: JsonFlag = False,
) -> int:
    """Choose the vault and write the config file; other settings are kept

    Example:  obsidian-rag init --vault ~/Notes
    """
    from obsidian_rag.tools import success

    root = _existing(vault) if vault is not None else _chosen()
    file = config.config_file()
    tree = config.read_file(file)
    tree.setdefault("version", config.CONFIG_VERSION)
    tree["vault_path"] = str(root)
    config.Config(config.data_home(), file, config.validate(tree, file))
    config.save(tree, file)
    if json_output:
        print_envelope(success({"config": str(file), "vault_path": str(root)}))
    else:
        print(f"vault   {root}\nconfig  {file}")
        print("\nNext: `obsidian-rag index` makes it searchable.", file=sys.stderr)
    return 0


def _existing(vault: Path) -> Path:
    root = vault.expanduser().absolute()
    if not root.is_dir():
        raise NotFound(f"There is no folder {root}.", "Name the folder that holds your notes.")
    return root


def _chosen() -> Path:
    from obsidian_rag.engine import obsidian_vaults

    known = obsidian_vaults(os.environ, sys.platform)
    if not sys.stdin.isatty():
        listed = "".join(
            f"\n  obsidian-rag init --vault {shlex.quote(str(path))}" for path in known
        )
        raise InvalidArgument(
            "No vault was named.", listed or "Run `obsidian-rag init --vault /path/to/vault`."
        )
    for number, path in enumerate(known, start=1):
        print(f"  {number}  {path}", file=sys.stderr)
    hint = "number or folder" if known else "folder"
    answer = str(typer.prompt(f"Vault ({hint})", default="1" if known else None, err=True))
    if answer.isdigit() and 1 <= int(answer) <= len(known):
        return known[int(answer) - 1]
    return _existing(Path(answer))
