"""livesync run, push and pull: be a node, for a moment or until told to stop."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import typer

from obsidian_rag.config import Config, load
from obsidian_rag.errors import Busy, InvalidArgument
from obsidian_rag.transports.cli import (
    livesync_care_cmd,
    livesync_setup_cmd,
    livesync_status_cmd,
)
from obsidian_rag.transports.cli.interrupts import stop_on_signals
from obsidian_rag.transports.cli.livesync_flags import (
    CaseFlag,
    ChunkSizeOption,
    CompressFlag,
    Configuration,
    ConsentFlag,
    DbOption,
    DynamicFlag,
    E2eeOption,
    EncryptFlag,
    HashOption,
    InitFlag,
    MinimumSizeOption,
    ObfuscateFlag,
    PassphraseEnvOption,
    PasswordEnvOption,
    UrlOption,
    UserOption,
    VaultOption,
    from_environment,
)
from obsidian_rag.transports.cli.livesync_show import (
    first_sync,
    print_plan,
    print_result,
    result_fields,
    said,
)
from obsidian_rag.transports.cli.output import JsonFlag, print_envelope
from obsidian_rag.transports.lazy import engine, tools

if TYPE_CHECKING:
    from pathlib import Path

    from obsidian_rag.engine import Wish

app = typer.Typer(
    no_args_is_help=True,
    help="Sync the vault with other devices through Self-hosted LiveSync",
    rich_markup_mode=None,
)
OnceFlag = Annotated[bool, typer.Option("--once", help="Sync once and end")]
DryRunFlag = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing, print what would happen")
]
AllowFlag = Annotated[
    bool,
    typer.Option("--allow-deletions", help="Send and take deletions, however many files are gone"),
]

_RUN = """Sync the vault and the database, both ways, until Ctrl-C

    Everything that differs is brought together first; then changes go over as they happen.
    Nothing is lost: what another device deletes can be restored, what was changed in two
    places is merged or kept twice.

    Example:  obsidian-rag livesync run --dry-run
    """
_PUSH = """Send what was changed here; files of the vault stay as they are

    Example:  obsidian-rag livesync push --once
    """
_PULL = """Take what other devices changed; the database stays as it is

    Example:  obsidian-rag livesync pull --once
    """


@dataclass(frozen=True, slots=True)
class _Asked:
    """The options of one command."""

    direction: str
    url: str | None = field(repr=False)
    database: str | None
    user: str | None
    password_env: str | None
    passphrase_env: str | None
    vault: "Path | None"
    consent: bool
    is_init: bool
    is_once: bool
    is_read_only: bool
    is_dry: bool
    allows_deletions: bool
    configuration: Configuration

    def wish(self) -> "Wish":
        return engine.Wish(
            url=self.url,
            database=self.database,
            user=self.user,
            password=from_environment(self.password_env),
            passphrase=from_environment(self.passphrase_env),
            vault=self.vault,
            has_consent=self.consent,
            is_init=self.is_init,
            tweaks=self.configuration.tweaks(),
            encrypts=self.configuration.encrypts,
            direction=engine.Direction(self.direction),
            is_read_only=self.is_read_only,
            is_dry=self.is_dry,
            allows_deletions=self.allows_deletions,
        )


def _command(direction: str, text: str) -> Callable[..., int]:
    """One command for each direction; their options are the same."""

    def sync(
        once: OnceFlag = False,
        dry_run: DryRunFlag = False,
        read_only: Annotated[
            bool,
            typer.Option("--read-only", help="Take changes, send none", hidden=direction != "both"),
        ] = False,
        allow_deletions: AllowFlag = False,
        url: UrlOption = None,
        db: DbOption = None,
        user: UserOption = None,
        password_env: PasswordEnvOption = None,
        passphrase_env: PassphraseEnvOption = None,
        vault: VaultOption = None,
        consent: ConsentFlag = False,
        init: InitFlag = False,
        encrypt: EncryptFlag = None,
        e2ee: E2eeOption = None,
        obfuscate_paths: ObfuscateFlag = None,
        dynamic_iterations: DynamicFlag = None,
        compress: CompressFlag = None,
        case_sensitive: CaseFlag = None,
        hash_alg: HashOption = None,
        chunk_size: ChunkSizeOption = None,
        minimum_chunk_size: MinimumSizeOption = None,
        json_output: JsonFlag = False,
    ) -> int:
        configuration = Configuration(
            encrypt,
            e2ee,
            obfuscate_paths,
            dynamic_iterations,
            compress,
            case_sensitive,
            hash_alg,
            chunk_size,
            minimum_chunk_size,
        )
        asked = _Asked(
            direction,
            url,
            db,
            user,
            password_env,
            passphrase_env,
            vault,
            consent,
            init,
            once,
            read_only,
            dry_run,
            allow_deletions,
            configuration,
        )
        return _sync(asked, json_output)

    sync.__doc__ = text
    return sync


def _sync(asked: _Asked, json_output: bool) -> int:
    if asked.is_read_only and asked.direction == "push":
        raise InvalidArgument("push and --read-only exclude each other.", "Choose one.")
    config = load()
    if asked.is_once or asked.is_dry:
        return _once(config, asked, json_output)
    if json_output:
        raise InvalidArgument("--json needs --once or --dry-run.", "Add one of them.")
    return _until_stopped(config, asked)


def _once(config: Config, asked: _Asked, json_output: bool) -> int:
    stop = stop_on_signals("files")
    try:
        with said(config.settings.livesync.logLevel), first_sync() as show:
            result = engine.sync_once(config, asked.wish(), show, stop.is_set)
    except Busy:
        # The daemon syncs, and holds deletions: it can be told that they are meant.
        is_meant = asked.allows_deletions and not asked.is_dry
        if not is_meant or not (held := engine.take_held_deletions(config, asked.wish())):
            raise
        if json_output:
            print_envelope(tools.success({"accepted_deletions": held}))
        else:
            print(f"The running sync now carries out {held} deletion{'' if held == 1 else 's'}")
        return 0
    if json_output:
        print_envelope(tools.success(result_fields(result)))
    elif asked.is_dry:
        print_plan(result)
    else:
        print_result(result)
    return 130 if result.is_stopped else 0 if result.is_complete else 1


def _until_stopped(config: Config, asked: _Asked) -> int:
    stop = stop_on_signals("files")
    wish = asked.wish()
    with said(config.settings.livesync.logLevel), first_sync() as show:
        if wish.allows_deletions:
            # Once: what goes missing later is asked about again.
            engine.sync_once(config, wish, show, stop.is_set)
            wish = replace(wish, allows_deletions=False)
        engine.run_livesync(config, stop, wish, show)
    return 0


livesync_setup_cmd.add_to(app)
app.command("run")(_command("both", _RUN))
app.command("push")(_command("push", _PUSH))
app.command("pull")(_command("pull", _PULL))
livesync_status_cmd.add_to(app)
livesync_care_cmd.add_to(app)
