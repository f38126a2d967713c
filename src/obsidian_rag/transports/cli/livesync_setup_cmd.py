"""livesync setup and forget: check and store the secrets of a database, and delete them."""

import functools
import getpass
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from obsidian_rag.config import load
from obsidian_rag.errors import InvalidArgument, LivesyncPassphrase
from obsidian_rag.transports.cli.backend import the_daemon
from obsidian_rag.transports.cli.output import JsonFlag, plain, print_data, print_done
from obsidian_rag.transports.cli.streams import say
from obsidian_rag.transports.lazy import livesync

if TYPE_CHECKING:
    from obsidian_rag.config import Config


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


_BY_NAME = inspect.Parameter.KEYWORD_ONLY
_NAMING = {
    "url": UrlOption,
    "db": DbOption,
    "user": UserOption,
    "password_env": PasswordEnvOption,
    "passphrase_env": PassphraseEnvOption,
    "vault": VaultOption,
    "consent": ConsentFlag,
}


def takes_database(command: Callable[..., int]) -> Callable[..., int]:
    """Decorator: adds the options for a database and passes them as the parameter `options`.

    A command with the parameter `configuration` also gets the options for a new database.
    """
    own = inspect.signature(command).parameters
    keeping = _KEEPING if "configuration" in own else {}

    @functools.wraps(command)
    def with_options(**given: Any) -> int:
        taken: dict[str, Any] = {
            "options": _to_options({name: given.pop(name) for name in _NAMING})
        }
        if keeping:
            values = {name: given.pop(name) for name in keeping}
            chosen = {name: value for name, value in values.items() if value is not None}
            taken["configuration"] = Configuration(chosen)
        return command(**given, **taken)

    made = ("options", "configuration")
    kept = [one.replace(kind=_BY_NAME) for name, one in own.items() if name not in made]
    # The order in `--help`: first the database, then options for a new one, `--json` last.
    place = next((at for at, one in enumerate(kept) if one.name == "init"), len(kept) - 1)
    before, after, json_flag = kept[:place], kept[place:-1], kept[-1]
    parameters = [*before, *_new_parameters(_NAMING), *after, *_new_parameters(keeping), json_flag]
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_options


def _new_parameters(options: Mapping[str, Any]) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            name, _BY_NAME, default=False if name == "consent" else None, annotation=option
        )
        for name, option in options.items()
    ]


def _to_options(options: Mapping[str, Any]) -> "livesync.Options":
    return livesync.Options(
        url=options["url"],
        database=options["db"],
        user=options["user"],
        password=from_environment(options["password_env"]),
        passphrase=from_environment(options["passphrase_env"]),
        vault=options["vault"],
        has_consent=options["consent"],
    )


class E2ee(StrEnum):
    """LiveSync's encryption versions."""

    V2 = "v2"
    V1 = "v1"


class HashAlg(StrEnum):
    """LiveSync's hash algorithms for chunk names."""

    XXHASH64 = "xxhash64"
    XXHASH32 = "xxhash32"
    MIXED = "mixed-purejs"
    SHA1 = "sha1"
    LEGACY = "legacy"


InitFlag = Annotated[bool, typer.Option("--init", help="Set up a database that is new or empty")]
_KEEPING = {
    "encrypt": Annotated[
        bool | None,
        typer.Option(
            "--encrypt/--no-encrypt",
            help="Encrypt end to end; this and what follows is for a database that does not say"
            " itself how it keeps notes",
        ),
    ],
    "e2ee": Annotated[E2ee | None, typer.Option("--e2ee", help="How to encrypt")],
    "obfuscate_paths": Annotated[
        bool | None, typer.Option("--obfuscate-paths", help="Hide paths as well")
    ],
    "dynamic_iterations": Annotated[
        bool | None, typer.Option("--dynamic-iterations", help="Of v1: fewer rounds, faster")
    ],
    "compress": Annotated[bool | None, typer.Option("--compress", help="Compress chunks")],
    "case_sensitive": Annotated[
        bool | None, typer.Option("--case-sensitive", help="A.md and a.md are two files")
    ],
    "hash_alg": Annotated[HashAlg | None, typer.Option("--hash-alg", help="How chunks are named")],
    "chunk_size": Annotated[
        int | None, typer.Option("--chunk-size", min=0, help="LiveSync's customChunkSize")
    ],
    "minimum_chunk_size": Annotated[
        int | None, typer.Option("--minimum-chunk-size", min=1, help="LiveSync's minimumChunkSize")
    ],
}


# The options that set a field of `Tweaks`, by its name.
_TWEAKS = {
    "e2ee": "e2ee_algorithm",
    "obfuscate_paths": "use_path_obfuscation",
    "dynamic_iterations": "use_dynamic_iteration_count",
    "compress": "enable_compression",
    "case_sensitive": "handle_filename_case_sensitive",
    "hash_alg": "hash_alg",
    "chunk_size": "custom_chunk_size",
    "minimum_chunk_size": "minimum_chunk_size",
}
_OLD_FORM = ""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The given options on how a new database stores notes; the others have their defaults."""

    given: Mapping[str, Any]

    @property
    def encrypts(self) -> bool | None:
        """Whether to encrypt; None if the options do not say."""
        is_implied = any(map(self.given.get, ("e2ee", "obfuscate_paths", "dynamic_iterations")))
        return True if "encrypt" not in self.given and is_implied else self.given.get("encrypt")

    def tweaks(self) -> "livesync.Tweaks | None":
        """The settings for the database; None if no option sets one."""
        if not self.given:
            return None
        changed: dict[str, Any] = {"encrypt": bool(self.encrypts)}
        for name, value in self.given.items():
            if value in (E2ee.V1, HashAlg.LEGACY):
                changed[_TWEAKS[name]] = _OLD_FORM
            elif name in _TWEAKS:
                changed[_TWEAKS[name]] = value.value if isinstance(value, StrEnum) else value
        return replace(livesync.Tweaks.for_new_database(), **changed)


def from_environment(name: str | None) -> str | None:
    """The secret in an environment variable; None if no variable was named.

    Raises:
        InvalidArgument: there is no such variable, or it is empty.
    """
    if name is None:
        return None
    secret = os.environ.get(name)
    if not secret:
        raise InvalidArgument(
            f"The environment variable {name} is not set.",
            f"Set it without leaving a trace: `read -rs {name}; export {name}`.",
        )
    return secret


_FROM_STDIN = "-"
_QR = "settingsQR="


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
        bool, typer.Option("--no-keyring", help="Keep secrets in a file, for a machine alone")
    ] = False,
    no_encrypt: Annotated[
        bool,
        typer.Option("--no-encrypt", help="The database is not encrypted, and need not be"),
    ] = False,
    json_output: JsonFlag = False,
) -> int:
    """Connect to a LiveSync database

    Checks address, password and passphrase, then keeps them.

    Nothing is written to the database or the vault. What is not given by a variable is asked
    on the terminal. Secrets go to the system's keyring if there is one, else to a file that only
    you can read; they are never printed.

    Example:  obsidian-rag livesync setup "obsidian://setuplivesync?settings=..." --vault ~/Notes
    """
    if uri is not None and (url or db or user or password_env):
        raise InvalidArgument(
            "A setup URI names the database itself.", "Leave out --url, --db, --user and the like."
        )
    config = load()
    given = livesync.Options(
        vault=vault,
        has_consent=consent,
        may_use_keyring=not no_keyring,
        may_be_unencrypted=no_encrypt,
    )
    if uri is not None:
        options = _by_uri(given, uri, passphrase_env)
    else:
        options = replace(
            given,
            url=url,
            database=db,
            user=user,
            password=from_environment(password_env) or os.environ.get(livesync.PASSWORD_VARIABLE),
            passphrase=from_environment(passphrase_env)
            or os.environ.get(livesync.PASSPHRASE_VARIABLE),
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
    """Remove the kept password and passphrase of the database

    They go from the system's keyring or from the file they are in. The vault, the database, the
    trash and all other settings stay as they are; `livesync setup` takes the secrets again.

    Example:  obsidian-rag livesync forget
    """
    config = load()
    done = livesync.forget_secrets(config)
    place = done.place.value if done.place else None
    database = f"the database '{plain(done.database)}' at {plain(done.server)}"
    sentence = f"Nothing is kept of {database}"
    if place is not None:
        where = "from the system's keyring" if place == "keyring" else "from the file"
        sentence = f"The password and passphrase of {database} are removed {where}"
    notes = []
    if config.settings.livesync.couchdbPassword is not None:
        notes = [
            "The config file has one too: `obsidian-rag config unset livesync.couchdbPassword`"
        ]
    fields = {"server": done.server, "database": done.database, "removed_from": place}
    return print_done(fields, sentence, json_output, notes)


def _by_uri(
    options: "livesync.Options", uri: str, passphrase_env: str | None
) -> "livesync.Options":
    if uri == _FROM_STDIN:
        # Hidden, because the URI in a QR code is not encrypted.
        is_asked = sys.stdin.isatty()
        uri = _ask_secret("Setup URI", "-") if is_asked else sys.stdin.readline().strip()
    passphrase = from_environment(passphrase_env)
    if passphrase is None and _QR not in uri:
        passphrase = _ask_secret("Passphrase of the setup URI", "--passphrase-env")
    return replace(options, uri=uri, uri_passphrase=passphrase)


def _with_password(config: "Config", options: "livesync.Options") -> "livesync.Options":
    """Ask for the password of a user; at a terminal, also to change the stored one."""
    user = livesync.needs_password(config, replace(options, may_reuse=not sys.stdin.isatty()))
    if user is None:
        return options
    return replace(options, password=_ask_secret(f"Password of {user}", "--password-env"))


def _with_consent(config: "Config", options: "livesync.Options") -> "livesync.Options":
    server = livesync.needs_consent(config, options)
    if server is None or not sys.stdin.isatty():
        return options
    question = f"{server} is outside this machine. May your notes go there?"
    return replace(options, has_consent=typer.confirm(question, err=True))


def _set_up(config: "Config", options: "livesync.Options") -> "livesync.SetUp":
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
            f"{what}: there is no terminal to ask on.",
            f"Put it into an environment variable, and name that with {option}.",
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
        print(f"{name:<10} {value}")
    for line in (*_notes(done), *_next_steps(done)):
        say(line)


def _filters(done: "livesync.SetUp") -> str:
    filters = done.filters
    told = [
        name
        for name, value in (("syncOnlyRegEx", filters.only), ("syncIgnoreRegEx", filters.ignore))
        if value
    ]
    told += done.ignore_files
    return plain(", ".join(told)) or "none"


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
            f"\nYour devices sync {' and '.join(others)} as well. That takes no part here:"
            " it is neither written to this vault nor changed on the server."
        )
    if " " in done.filters.only + done.filters.ignore:
        notes.append(
            "\nLiveSync takes spaces out of its regular expressions, and so do we:"
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
