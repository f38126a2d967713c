"""livesync run, push and pull: sync once, or until stopped."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from obsidian_rag.config import Config, load
from obsidian_rag.errors import Busy, InvalidArgument
from obsidian_rag.transports.cli import livesync_care_cmd, livesync_setup_cmd
from obsidian_rag.transports.cli.livesync_care_cmd import not_synced_lines, show_log, with_link
from obsidian_rag.transports.cli.livesync_setup_cmd import (
    ConsentFlag,
    DbOption,
    PassphraseEnvOption,
    PasswordEnvOption,
    UrlOption,
    UserOption,
    VaultOption,
    database_options,
)
from obsidian_rag.transports.cli.output import (
    JsonFlag,
    command_group,
    new_bar,
    plain,
    print_data,
    print_done,
    stop_on_signals,
)
from obsidian_rag.transports.cli.streams import put, say
from obsidian_rag.transports.lazy import livesync

if TYPE_CHECKING:
    from rich.progress import Progress

OnStep = Callable[[str, int, int], None]

# No progress is shown for fewer files.
_FEW = 20
_PLANNED = {
    "push": "send",
    "push_revived": "send again",
    "write": "take",
    "soft_delete": "delete there",
    "trash": "delete here",
    "rename_local": "rename here",
    "merge_or_conflict": "merge, or keep both",
    "report_conflict": "leave: changed in two places",
    "fetch": "compare",
}
_COUNTED = (
    ("pulled", "taken"),
    ("pushed", "sent"),
    ("deleted_here", "deleted here"),
    ("deleted_there", "deleted there"),
    ("renamed", "renamed"),
    ("merged", "merged"),
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


OnceFlag = Annotated[bool, typer.Option("--once", help="Sync once and end")]
DryRunFlag = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing, print what would happen")
]
AllowFlag = Annotated[
    bool,
    typer.Option("--allow-deletions", help="Send and take deletions, however many there are"),
]
InitFlag = Annotated[bool, typer.Option("--init", help="Set up a database that is new or empty")]
EncryptFlag = Annotated[
    bool | None,
    typer.Option(
        "--encrypt/--no-encrypt",
        help="Encrypt end to end; this and what follows is for a database that does not say"
        " how it stores notes",
    ),
]
E2eeOption = Annotated[E2ee | None, typer.Option("--e2ee", help="How to encrypt")]
ObfuscateFlag = Annotated[bool | None, typer.Option("--obfuscate-paths", help="Hide paths as well")]
DynamicFlag = Annotated[
    bool | None, typer.Option("--dynamic-iterations", help="For v1: fewer rounds, faster")
]
CompressFlag = Annotated[bool | None, typer.Option("--compress", help="Compress chunks")]
CaseFlag = Annotated[
    bool | None, typer.Option("--case-sensitive", help="A.md and a.md are two files")
]
HashOption = Annotated[HashAlg | None, typer.Option("--hash-alg", help="How chunks are named")]
ChunkOption = Annotated[
    int | None, typer.Option("--chunk-size", min=0, help="LiveSync's customChunkSize")
]
MinimumOption = Annotated[
    int | None, typer.Option("--minimum-chunk-size", min=1, help="LiveSync's minimumChunkSize")
]


@dataclass(frozen=True, slots=True)
class NewDatabase:
    """The given options on how a new database stores notes; the fields are those of `Tweaks`."""

    encrypt: bool | None
    e2ee_algorithm: E2ee | None
    use_path_obfuscation: bool | None
    use_dynamic_iteration_count: bool | None
    enable_compression: bool | None
    handle_filename_case_sensitive: bool | None
    hash_alg: HashAlg | None
    custom_chunk_size: int | None
    minimum_chunk_size: int | None

    @property
    def encrypts(self) -> bool | None:
        """Whether to encrypt; None if the options do not say."""
        is_implied = (
            self.e2ee_algorithm or self.use_path_obfuscation or self.use_dynamic_iteration_count
        )
        return True if self.encrypt is None and is_implied else self.encrypt

    def tweaks(self) -> "livesync.Tweaks | None":
        """The settings for the database; None if no option sets one."""
        given: dict[str, Any] = {
            name: value for name, value in asdict(self).items() if value is not None
        }
        if not given:
            return None
        for name, value in given.items():
            if isinstance(value, StrEnum):
                # LiveSync writes the oldest form of each as an empty text.
                given[name] = "" if value in (E2ee.V1, HashAlg.LEGACY) else value.value
        changed = {**given, "encrypt": bool(self.encrypts)}
        return replace(livesync.Tweaks.for_new_database(), **changed)


_RUN = """Sync the vault and the database, both ways, until Ctrl-C

    First, everything that differs is synced, then changes as they happen. Nothing is lost:
    what another device deletes can be restored, and what was changed in two places is merged
    or kept twice.

    Example:  obsidian-rag livesync run --dry-run
    """
_PUSH = """Send what was changed here; files of the vault stay as they are

    Example:  obsidian-rag livesync push --once
    """
_PULL = """Take what other devices changed; the database stays as it is

    Example:  obsidian-rag livesync pull --once
    """


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
        chunk_size: ChunkOption = None,
        minimum_chunk_size: MinimumOption = None,
        json_output: JsonFlag = False,
    ) -> int:
        if read_only and direction == "push":
            raise InvalidArgument("push and --read-only exclude each other.", "Choose one.")
        new = NewDatabase(
            encrypt=encrypt,
            e2ee_algorithm=e2ee,
            use_path_obfuscation=obfuscate_paths,
            use_dynamic_iteration_count=dynamic_iterations,
            enable_compression=compress,
            handle_filename_case_sensitive=case_sensitive,
            hash_alg=hash_alg,
            custom_chunk_size=chunk_size,
            minimum_chunk_size=minimum_chunk_size,
        )
        options = replace(
            database_options(url, db, user, password_env, passphrase_env, vault, consent),
            is_init=init,
            tweaks=new.tweaks(),
            encrypts=new.encrypts,
            direction=livesync.Direction(direction),
            is_read_only=read_only,
            is_dry=dry_run,
            allows_deletions=allow_deletions,
        )
        if once or dry_run:
            return _once(load(), options, json_output)
        if json_output:
            raise InvalidArgument("--json needs --once or --dry-run.", "Add one of them.")
        return _until_stopped(load(), options)

    sync.__doc__ = text
    return sync


def _once(config: Config, options: "livesync.Options", json_output: bool) -> int:
    stop = stop_on_signals("files")
    try:
        with show_log(config.settings.livesync.logLevel), _show_progress() as show:
            report = livesync.sync_once(config, options, show, stop.is_set)
    except Busy:
        # The daemon syncs and holds deletions; this confirms them.
        is_meant = options.allows_deletions and not options.is_dry
        if not is_meant or not (held := livesync.take_held_deletions(config, options)):
            raise
        now = f"The running sync now carries out {held} deletion{'' if held == 1 else 's'}"
        return print_done({"accepted_deletions": held}, now, json_output)
    if json_output:
        print_data(with_link(config, options, _fields(report)))
    elif options.is_dry:
        _print_plan(report)
    else:
        _print_report(report)
    return 130 if report.is_stopped else 0 if report.is_complete else 1


def _until_stopped(config: Config, options: "livesync.Options") -> int:
    stop = stop_on_signals("files")
    with show_log(config.settings.livesync.logLevel), _show_progress() as show:
        if options.allows_deletions:
            # Only once: later deletions need a new confirmation.
            livesync.sync_once(config, options, show, stop.is_set)
            options = replace(options, allows_deletions=False)
        livesync.run_until_stopped(config, stop, options, show)
    return 0


@contextlib.contextmanager
def _show_progress() -> Iterator[OnStep]:
    """Show the progress of a sync: a bar on a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _as_lines()
        return
    bar = _Bar()
    try:
        yield bar.draw
    finally:
        bar.remove()


class _Bar:
    """A bar that is shown while there is much to do."""

    def __init__(self) -> None:
        self._bars: Progress | None = None

    def draw(self, what: str, done: int, total: int) -> None:
        if what != "files" or (self._bars is None and total <= _FEW):
            return
        if self._bars is None:
            self._bars = new_bar(what)
            self._bars.start()
        self._bars.update(self._bars.task_ids[0], completed=done, total=total)
        if done >= total:
            self.remove()

    def remove(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


def _as_lines() -> OnStep:
    reported = 0

    def report(what: str, done: int, total: int) -> None:
        nonlocal reported
        # A line for each tenth, and none for a few files.
        if what == "files" and total > _FEW and (done - reported) * 10 >= total:
            reported = done
            say(f"[livesync] {done} of {total} {what}")

    return report


def _print_report(report: "livesync.SyncReport") -> None:
    """Print what a sync did."""
    counts = report.state.counts()
    done = [f"{counts[name]} {word}" for name, word in _COUNTED if counts[name]]
    put(", ".join(done) or _nothing(report))
    _print_not_synced(report)
    if report.conflicts:
        say(
            f"{len(report.conflicts)} changed in two places;"
            " `obsidian-rag livesync resolve` lists them."
        )
    if not report.is_complete:
        say(
            f"{max(report.owed, len(report.quarantined))} not synced;"
            " `obsidian-rag livesync check` says why."
        )
    if report.is_stopped:
        say("Stopped early; run it again to go on.")


def _print_plan(report: "livesync.SyncReport") -> None:
    """Print what a sync would do."""
    for line in report.planned:
        action, _, path = line.partition(" ")
        put(f"would {_PLANNED.get(action, action)}: {plain(path)}")
    if not report.planned:
        put(_nothing(report))
    _print_not_synced(report)


def _print_not_synced(report: "livesync.SyncReport") -> None:
    for line in not_synced_lines([one.fields() for one in report.not_synced]):
        put(line)


def _nothing(report: "livesync.SyncReport") -> str:
    """The message for an empty sync: both sides are equal only if nothing was left out."""
    if failed := len(report.quarantined):
        return f"Nothing was synced: {failed} {'file' if failed == 1 else 'files'} could not be"
    missing = sum(one.count for one in report.not_synced if one.kind != "elsewhere")
    if not missing:
        return "Nothing to do: both sides are the same"
    return f"Nothing to do, but {missing} {'file is' if missing == 1 else 'files are'} not synced"


def _fields(report: "livesync.SyncReport") -> dict[str, object]:
    """What a sync did as JSON."""
    return {
        **report.state.counts(),
        "not_synced": [one.fields() for one in report.not_synced],
        "planned": [
            {"action": action, "path": path}
            for action, _, path in (line.partition(" ") for line in report.planned)
        ],
        "quarantined": [one.path or one.doc_id for one in report.quarantined],
        "conflicts": [one.path for one in report.conflicts],
        "left_out": dict(report.left_out),
        "owed": report.owed,
        "interrupted": report.is_stopped,
    }


app = command_group("Sync the vault with other devices through Self-hosted LiveSync")
livesync_setup_cmd.add_to(app)
app.command("run")(_command("both", _RUN))
app.command("push")(_command("push", _PUSH))
app.command("pull")(_command("pull", _PULL))
livesync_care_cmd.add_to(app)
