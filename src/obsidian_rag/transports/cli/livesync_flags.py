"""The options that name a database, open it, and say how it keeps notes."""

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from obsidian_rag.errors import InvalidArgument
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
    """Give a command the options that name a database; it gets them as the parameter `options`.

    One with the parameter `configuration` also gets those that say how the database keeps notes.
    """
    own = inspect.signature(command).parameters
    keeping = _KEEPING if "configuration" in own else {}

    @functools.wraps(command)
    def with_options(**given: Any) -> int:
        taken: dict[str, Any] = {"options": _named({name: given.pop(name) for name in _NAMING})}
        if keeping:
            told = {name: given.pop(name) for name in keeping}
            known = {name: value for name, value in told.items() if value is not None}
            taken["configuration"] = Configuration(known)
        return command(**given, **taken)

    made = ("options", "configuration")
    kept = [one.replace(kind=_BY_NAME) for name, one in own.items() if name not in made]
    # How `--help` orders them: before what is about a new database, and `--json` is the last.
    place = next((at for at, one in enumerate(kept) if one.name == "init"), len(kept) - 1)
    before, after, json_flag = kept[:place], kept[place:-1], kept[-1]
    parameters = [*before, *_added(_NAMING), *after, *_added(keeping), json_flag]
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_options


def _added(options: Mapping[str, Any]) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            name, _BY_NAME, default=False if name == "consent" else None, annotation=option
        )
        for name, option in options.items()
    ]


def _named(options: Mapping[str, Any]) -> "livesync.Options":
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
    """Ways in which LiveSync encrypts."""

    V2 = "v2"
    V1 = "v1"


class HashAlg(StrEnum):
    """Ways in which LiveSync names chunks."""

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


# The options that are a setting of the database, under its name in `Tweaks`.
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
    """How a database shall keep notes: the options that were given; others are as usual."""

    given: Mapping[str, Any]

    @property
    def encrypts(self) -> bool | None:
        """Whether to encrypt, as far as the options say."""
        is_told = any(map(self.given.get, ("e2ee", "obfuscate_paths", "dynamic_iterations")))
        return True if "encrypt" not in self.given and is_told else self.given.get("encrypt")

    def tweaks(self) -> "livesync.Tweaks | None":
        """The settings for the database; None if no option says anything about them."""
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
