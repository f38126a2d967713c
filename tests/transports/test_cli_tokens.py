"""token create, list and revoke, and the limits of `mcp`: what is typed is what an agent gets."""

import json
import stat
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.fixture_types import Cli

from obsidian_rag.config import data_home, load
from obsidian_rag.engine import Engine, Tokens
from obsidian_rag.notes import EVERYTHING, Scope

NOTES = {"Projects/A/Plan.md": "peas", "Inbox/Later.md": "beans", "Top.md": "rain"}

pytestmark = pytest.mark.usefixtures("vault")


def test_a_token_is_shown_once_listed_and_revoked(cli: Cli) -> None:
    made = cli("token", "create", "--name", "writer", "--folders", "Projects/A/, Inbox")
    (token,) = made.out.split()
    assert "only time" in made.err
    found = Tokens(data_home()).find(token)
    assert found is not None
    with closing(Engine(load())) as engine:
        primary = engine.vaults.primary.link_id
    expected = Scope((primary,), ("Projects/A", "Inbox"))
    assert (found.scope, found.is_read_only) == (expected, False)
    listed = cli("token", "list").out
    assert "writer" in listed
    assert "Reads and writes notes in vault, below Projects/A and Inbox." in listed
    assert token not in listed + cli("token", "list", "--json").out
    assert cli("token", "revoke", "writer").out == "Revoked writer\n"
    assert Tokens(data_home()).find(token) is None
    assert (
        cli("token", "list").err == "No tokens. `obsidian-rag token create --name …` makes one.\n"
    )


def test_a_token_can_expire(cli: Cli) -> None:
    made = cli("token", "create", "--name", "guest", "--days", "7")
    assert " Valid until 20" in made.err
    (token,) = made.out.split()
    assert Tokens(data_home()).find(token) is not None
    (listed,) = cli("token", "list", "--json").json["data"]["tokens"]
    lasts = datetime.fromisoformat(listed["expires_at"]) - datetime.fromisoformat(
        listed["created_at"]
    )
    assert timedelta(days=7) <= lasts < timedelta(days=7, minutes=1)
    old = Tokens(data_home()).create(
        "old", EVERYTHING, is_read_only=True, valid_for=timedelta(seconds=0)
    )
    assert Tokens(data_home()).find(old) is None
    assert cli("token", "create", "--name", "never").code == 0
    assert [one.expires_at is None for one in Tokens(data_home()).all()] == [False, False, True]


def test_the_file_has_no_token_and_only_its_owner_reads_it(cli: Cli) -> None:
    token = cli("token", "create", "--name", "reader", "--read-only", "--json").json["data"][
        "token"
    ]
    file = data_home() / "tokens.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text(encoding="utf-8")
    assert token not in text
    assert json.loads(text)["tokens"][0]["name"] == "reader"
    found = Tokens(data_home()).find(token)
    assert found is not None
    assert (found.scope, found.is_read_only) == (EVERYTHING, True)


def test_a_vault_is_kept_by_its_link_id_and_shown_by_its_name(cli: Cli, vault: Path) -> None:
    made = cli("token", "create", "--name", "one", "--vaults", vault.name.upper(), "--json").json
    assert made["data"]["vaults"] == [vault.name]
    link_id = cli("status", "--json").json["data"]["link_id"]
    assert [one.scope.vaults for one in Tokens(data_home()).all()] == [(link_id,)]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("create", "--name", "x", "--folders", "Projcts"), "NOT_FOUND"),
        (("create", "--name", "x", "--folders", "../elsewhere"), "SECURITY_VIOLATION"),
        (("create", "--name", "x", "--vaults", "Nowhere"), "NOT_FOUND"),
        (("create", "--name", "x", "--vaults", ","), "INVALID_ARGUMENT"),
        (("create", "--name", " "), "INVALID_ARGUMENT"),
        (("create", "--name", "x" * 61), "INVALID_ARGUMENT"),
        (("create", "--name", "taken"), "INVALID_ARGUMENT"),
        (("revoke", "unknown"), "NOT_FOUND"),
    ],
)
def test_what_cannot_be_is_refused_and_no_token_is_made(
    cli: Cli, arguments: tuple[str, ...], code: str
) -> None:
    cli("token", "create", "--name", "taken")
    done = cli("token", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error {code}: ")
    assert [one.name for one in Tokens(data_home()).all()] == ["taken"]


def test_a_damaged_file_is_told_and_not_overwritten(cli: Cli) -> None:
    file = data_home() / "tokens.json"
    file.write_text('{"tokens": [{"name": "writer"}]}', encoding="utf-8")
    before = file.read_bytes()
    for arguments in (("list",), ("create", "--name", "x"), ("revoke", "writer")):
        assert cli("token", *arguments).err.startswith("error CONFIG_INVALID: ")
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "flags", [("--folder", "Projcts"), ("--vault", "Nowhere"), ("--folder", "..")]
)
def test_an_mcp_server_does_not_start_with_limits_that_mean_nothing(
    cli: Cli, flags: tuple[str, ...]
) -> None:
    done = cli("mcp", "--no-daemon", *flags)
    assert (done.code, done.out) == (2, "")
    assert flags[1] in done.err
