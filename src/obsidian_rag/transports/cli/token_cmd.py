"""token create, list and revoke: tokens for agents that use HTTP."""

from datetime import timedelta
from typing import Annotated, Any

import typer

from obsidian_rag.config import load
from obsidian_rag.transports.cli.backend import open_engine
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    command_group,
    local_time,
    print_data,
    print_done,
)
from obsidian_rag.transports.cli.streams import paint, say, style
from obsidian_rag.transports.lazy import engine

_NAME_HELP = "Its name, such as that of the agent"
app = command_group("Let agents ask over HTTP")


@app.command("create")
def create(
    name: Annotated[str, typer.Option("--name", help=_NAME_HELP)],
    vaults: Annotated[
        str | None, typer.Option(help="Only these vaults, by name, separated by commas")
    ] = None,
    folders: Annotated[
        str | None, typer.Option(help="Only notes in these folders, separated by commas")
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse every tool that changes something")
    ] = False,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=3650, help="Days until it expires; by default it never does"),
    ] = None,
    json_output: JsonFlag = False,
) -> int:
    """Create a token for one agent; it is shown once and works at once

    The agent sees nothing outside its vaults and folders.

    Example:  obsidian-rag token create --name writer --folders Projects/A,Inbox --read-only
    """
    with open_engine() as opened:
        scope = opened.vaults.scope_of(_list(vaults), _list(folders))
        names = {vault.link_id: vault.name for vault in opened.vaults}
    tokens = engine.Tokens(load().home)
    valid_for = None if days is None else timedelta(days=days)
    token = tokens.create(name, scope, is_read_only=read_only, valid_for=valid_for)
    made = next(one for one in tokens.all() if one.name == name.strip())
    if json_output:
        print_data({**_fields(made, names), "token": token})
        return 0
    print(token)
    say(f"{paint('note', 'yellow')}  This is the only time it is shown.")
    say(f"      {_allows(made, names)}")
    return 0


@app.command("list")
def list_(json_output: JsonFlag = False) -> int:
    """List every token, and what it allows

    Example:  obsidian-rag token list
    """
    with open_engine() as opened:
        names = {vault.link_id: vault.name for vault in opened.vaults}
    found = engine.Tokens(load().home).all()
    if json_output:
        print_data({"tokens": [_fields(one, names) for one in found]})
        return 0
    for one in found:
        print(f"{style(one.name, bold=True)}  {local_time(one.created_at)[:10]}")
        print(f"  {_allows(one, names)}")
    if not found:
        say("No tokens. `obsidian-rag token create --name …` makes one.")
    return 0


@app.command("revoke")
def revoke(
    name: Annotated[str, typer.Argument(help="The token's name")], json_output: JsonFlag = False
) -> int:
    """Make a token invalid at once

    Example:  obsidian-rag token revoke writer
    """
    engine.Tokens(load().home).revoke(name)
    return print_done({"revoked": True, "name": name}, f"Revoked {name}", json_output)


def _list(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _fields(one: Any, names: dict[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = one.model_dump(mode="json", by_alias=True, exclude={"sha256"})
    if fields["vaults"] is not None:
        fields["vaults"] = [names.get(link_id, link_id) for link_id in fields["vaults"]]
    return fields


def _allows(one: Any, names: dict[str, str]) -> str:
    """What a token allows, in words."""
    fields = _fields(one, names)
    where = "in every vault"
    if fields["vaults"] is not None:
        where = f"in {' and '.join(fields['vaults'])}"
    if fields["folders"] is not None:
        where += f", below {' and '.join(fields['folders'])}"
    until = f" Valid until {local_time(one.expires_at)}." if one.expires_at else ""
    verb = "Reads" if one.is_read_only else "Reads and writes"
    return f"{verb} notes {where}.{until}"
