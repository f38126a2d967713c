"""livesync setup and forget, and the options that name a database for every livesync command."""

import getpass
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from obsidian_rag.config import Config, load
from obsidian_rag.errors import InvalidArgument, LivesyncPassphrase
from obsidian_rag.transports.cli.backend import the_daemon
from obsidian_rag.transports.cli.output import JsonFlag, plain, print_data, print_done
from obsidian_rag.transports.cli.streams import put, say
from obsidian_rag.transports.lazy import livesync

UrlOption = Annotated[
    str | None, typer.Option("--url", help="Address of the CouchDB server", show_default=False)
]
DbOption = Annotated[str | None, typer.Option("--db", help="Name of the database")]
UserOption = Annotated[str | None, typer.Option("--user", help="User of the server")]
PasswordEnvOption = Annotated[
    str | None, typer.Option("--password-env", help="Environment variable with the password")
]
PassphraseEnvOption = Annotated[
    str | None,
    typer.Option("--passphrase-env", help="Environment variable with the passphrase of the notes"),
]
VaultOption = Annotated[Path | None, typer.Option("--vault", help="Folder to sync")]
ConsentFlag = Annotated[
    bool, typer.Option("--consent", help="Notes may go to this server outside this machine")
]

_FROM_STDIN = "-"
_QR = "settingsQR="


def database_options(
    url: str | None,
    db: str | None,
    user: str | None,
    password_env: str | None,
    passphrase_env: str | None,
    vault: Path | None,
    consent: bool,
) -> "livesync.Options":
    """The values of the options that name a database.

    Raises:
        InvalidArgument: a named environment variable is not set.
    """
    return livesync.Options(
        url=url,
        database=db,
        user=user,
        password=_secret_from(password_env),
        passphrase=_secret_from(passphrase_env),
        vault=vault,
        has_consent=consent,
    )


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("setup")(setup)
    app.command("forget")(forget)


def setup(
    uri: Annotated[
        str | None,
        typer.Argument(help="Setup URI or QR address from LiveSync; - reads it from stdin"),
    ] = None,
    passphrase_env: Annotated[
        str | None,
        typer.Option(
            "--passphrase-env",
            help="Environment variable with the passphrase: of the setup URI, or with --url of"
            " the notes",
        ),
    ] = None,
    url: UrlOption = None,
    db: DbOption = None,
    user: UserOption = None,
    password_env: PasswordEnvOption = None,
    vault: Annotated[
        Path | None, typer.Option("--vault", help="Folder to sync; else the vault")
    ] = None,
    consent: ConsentFlag = False,
    no_keyring: Annotated[
        bool, typer.Option("--no-keyring", help="Keep secrets in a file, not in a keyring")
    ] = False,
    no_encrypt: Annotated[
        bool,
        typer.Option("--no-encrypt", help="Accept a database without encryption"),
    ] = False,
    json_output: JsonFlag = False,
) -> int:
    """Connect to a LiveSync database

    Checks address, password and passphrase, then stores them.

    Nothing is written to the database or the vault. Secrets that no variable holds are asked for
    on the terminal. They go to the system's keyring if there is one, else to a file that only you
    can read, and are never printed.

    Example:  obsidian-rag livesync setup "obsidian://setuplivesync?settings=..." --vault ~/Notes
    """
    if uri is not None and (url or db or user or password_env):
        raise InvalidArgument(
            "A setup URI already names the database.",
            "Leave out --url, --db, --user and --password-env.",
        )
    config = load()
    options = livesync.Options(
        url=url,
        database=db,
        user=user,
        vault=vault,
        has_consent=consent,
        may_use_keyring=not no_keyring,
        may_be_unencrypted=no_encrypt,
    )
    if uri is not None:
        options = _with_uri(options, uri, passphrase_env)
    else:
        options = replace(
            options,
            password=_secret_from(password_env) or os.environ.get(livesync.PASSWORD_VARIABLE),
            passphrase=_secret_from(passphrase_env) or os.environ.get(livesync.PASSPHRASE_VARIABLE),
        )
        options = _with_password(config, options)
    done = _set_up(config, _with_consent(config, options))
    if json_output:
        print_data(_fields(done))
    else:
        _print(done)
        the_daemon(load())  # prints a note if a daemon runs with the old settings
    return 0


def forget(json_output: JsonFlag = False) -> int:
    """Remove the stored password and passphrase of the database

    They are removed from the system's keyring, or from the file they are in. The vault, the
    database, the trash and all other settings stay as they are; `livesync setup` stores secrets
    again.

    Example:  obsidian-rag livesync forget
    """
    config = load()
    done = livesync.forget_secrets(config)
    place = done.place.value if done.place else None
    database = f"the database '{plain(done.database)}' at {plain(done.server)}"
    sentence = f"No secrets are stored for {database}"
    if place is not None:
        where = "the system's keyring" if place == "keyring" else "the file"
        sentence = f"Removed the password and passphrase of {database} from {where}"
    notes = []
    if config.settings.livesync.couchdbPassword is not None:
        notes = [
            "The config file has a password too:"
            " `obsidian-rag config unset livesync.couchdbPassword` removes it."
        ]
    fields = {"server": done.server, "database": done.database, "removed_from": place}
    return print_done(fields, sentence, json_output, notes)


def _secret_from(name: str | None) -> str | None:
    """The secret in this environment variable; None if no variable was named."""
    if name is None:
        return None
    secret = os.environ.get(name)
    if not secret:
        raise InvalidArgument(
            f"The environment variable {name} is not set.",
            f"Set it without leaving a trace: `read -rs {name}; export {name}`.",
        )
    return secret


def _with_uri(
    options: "livesync.Options", uri: str, passphrase_env: str | None
) -> "livesync.Options":
    if uri == _FROM_STDIN:
        # Hidden, because the URI in a QR code is not encrypted.
        is_asked = sys.stdin.isatty()
        uri = _ask_secret("Setup URI", "-") if is_asked else sys.stdin.readline().strip()
    passphrase = _secret_from(passphrase_env)
    if passphrase is None and _QR not in uri:
        passphrase = _ask_secret("Passphrase of the setup URI", "--passphrase-env")
    return replace(options, uri=uri, uri_passphrase=passphrase)


def _with_password(config: Config, options: "livesync.Options") -> "livesync.Options":
    """Ask for the password of a user; at a terminal, also to change the stored one."""
    user = livesync.needs_password(config, replace(options, may_reuse=not sys.stdin.isatty()))
    if user is None:
        return options
    return replace(options, password=_ask_secret(f"Password of {user}", "--password-env"))


def _with_consent(config: Config, options: "livesync.Options") -> "livesync.Options":
    server = livesync.needs_consent(config, options)
    if server is None or not sys.stdin.isatty():
        return options
    question = f"{server} is not on this machine. May your notes go there?"
    return replace(options, has_consent=typer.confirm(question, err=True))


def _set_up(config: Config, options: "livesync.Options") -> "livesync.SetUp":
    try:
        return livesync.set_up(config, options)
    except livesync.NotEncrypted as error:
        question = f"{error.message} Go on without encryption?"
        if not sys.stdin.isatty() or not typer.confirm(question, err=True):
            raise
        return livesync.set_up(config, replace(options, may_be_unencrypted=True))
    except LivesyncPassphrase:
        if options.uri is not None or options.passphrase is not None or not sys.stdin.isatty():
            raise
    passphrase = _ask_secret(
        "The database is encrypted. Passphrase of your notes", "--passphrase-env"
    )
    return livesync.set_up(config, replace(options, passphrase=passphrase))


def _ask_secret(what: str, option: str) -> str:
    if not sys.stdin.isatty():
        raise InvalidArgument(
            f"{what}: there is no terminal to ask for it.",
            f"Put it into an environment variable, and name the variable with {option}.",
        )
    try:
        # Not typer's prompt: it prints the question before it turns the echo off.
        return getpass.getpass(f"{what}: ")
    except EOFError:
        raise typer.Abort from None


def _fields(done: "livesync.SetUp") -> dict[str, Any]:
    found = done.survey
    return {
        "server": done.server,
        "database": done.database,
        "user": done.user,
        "devices": list(found.devices),
        "encrypted": found.is_encrypted,
        "paths_hidden": found.hides_paths,
        "locked": found.is_locked,
        "empty": found.is_empty,
        "notes": found.notes,
        "secrets": done.place.value,
        "config": str(done.config),
        "vault": str(done.vault) if done.vault else None,
        "filters": done.filters.fields(),
    }


def _print(done: "livesync.SetUp") -> None:
    found = done.survey
    encrypted = "end to end, paths too" if found.hides_paths else "end to end"
    for name, value in (
        ("server", done.server),
        ("database", done.database),
        ("devices", ", ".join(map(plain, found.devices)) or "none yet"),
        ("encrypted", encrypted if found.is_encrypted else "no"),
        ("notes", "more than 5000" if found.notes is None else found.notes),
        ("vault", done.vault or "not chosen yet"),
        ("filters", _filters(done)),
        ("left out", "hidden files and folders, customization sync"),
        ("secrets", "in the system's keyring" if done.place.value == "keyring" else "in a file"),
        ("config", done.config),
    ):
        put(f"{name:<10} {value}")
    for line in (*_notes(done), *_next_steps(done)):
        say(line)


def _filters(done: "livesync.SetUp") -> str:
    filters = done.filters
    names = [
        name
        for name, value in (("syncOnlyRegEx", filters.only), ("syncIgnoreRegEx", filters.ignore))
        if value
    ]
    return plain(", ".join([*names, *done.ignore_files])) or "none"


def _notes(done: "livesync.SetUp") -> list[str]:
    """Remarks on what a user may not expect."""
    notes = []
    others = [
        word
        for word, is_on in (
            ("hidden files", done.has_hidden_files),
            ("customization (plugins, themes, settings)", done.has_customization),
        )
        if is_on
    ]
    if others:
        notes.append(
            f"\nYour devices also sync {' and '.join(others)}, which is not synced here:"
            " none of it is written to this vault or changed on the server."
        )
    if " " in done.filters.only + done.filters.ignore:
        notes.append(
            "\nLiveSync removes spaces from its regular expressions, and so does obsidian-rag:"
            " write \\s to match a space."
        )
    return notes


def _next_steps(done: "livesync.SetUp") -> list[str]:
    if done.vault is None:
        return ["\nNext: `obsidian-rag init --vault FOLDER` chooses what to sync."]
    if done.survey.is_locked:
        return [
            "\nThe database is locked: another device rebuilt it.",
            "If that was you: `obsidian-rag livesync unlock`, then `obsidian-rag livesync run`.",
        ]
    if done.survey.is_empty:
        return ["\nThe database is empty. Next: `obsidian-rag livesync push --init --once`."]
    return [
        "\nNext: `obsidian-rag livesync run --dry-run` shows what would happen,",
        "`obsidian-rag livesync run` syncs, and `obsidian-rag config set livesync.enabled true`",
        "lets the daemon do it.",
    ]
