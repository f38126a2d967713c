"""LiveSync as an engine offers it: from the settings to a node, one node per database at a time.

The settings name one server. Its password, and the consent to use it, are for that server only:
who names another one on the command line brings both along.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from filelock import FileLock, Timeout

from obsidian_rag.config import Config
from obsidian_rag.errors import Busy, ConfigInvalid, NotFound, ObsidianRagError
from obsidian_rag.livesync import (
    Access,
    Couch,
    Direction,
    Listener,
    Manner,
    Node,
    Plan,
    Remote,
    Secrets,
    SecretStore,
    Stats,
    Tweaks,
    check_consent,
    remote_key,
)
from obsidian_rag.store import Conflict, Database, LivesyncRecords, Quarantined
from obsidian_rag.vault import discard_kept

PASSWORD_VARIABLE = "OBSIDIAN_RAG_LIVESYNC_PASSWORD"
PASSPHRASE_VARIABLE = "OBSIDIAN_RAG_LIVESYNC_PASSPHRASE"
_TRASH = "livesync-trash"
_FROM_ENVIRONMENT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
# Whoever asks whether a node runs holds its lock for a moment.
_PATIENCE_S = 1.0
_SETUP = "Run `obsidian-rag livesync setup`, or name the database with --url and --db."


@dataclass(frozen=True, slots=True)
class Wish:
    """What a command asks for besides the settings; what it leaves out is as they say."""

    url: str | None = field(default=None, repr=False)  # it may hold a user and a password
    database: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    passphrase: str | None = field(default=None, repr=False)
    vault: Path | None = None
    has_consent: bool = False
    tweaks: Tweaks | None = None
    direction: Direction = Direction.BOTH
    is_read_only: bool = False
    is_dry: bool = False
    allows_deletions: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """Where a node works: a database, what opens it, and the folder that is synced with it."""

    remote: Remote
    root: Path
    passphrase: str | None = field(default=None, repr=False)

    @property
    def key(self) -> str:
        """The name under which we remember the database."""
        return remote_key(self.remote)


@dataclass(frozen=True, slots=True)
class OpenNode:
    """A node that nobody else is, with what it works on."""

    node: Node
    couch: Couch
    records: LivesyncRecords
    site: Site


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What one sync did, and what it could not do."""

    stats: Stats
    planned: tuple[str, ...]
    owed: int
    quarantined: tuple[Quarantined, ...]
    conflicts: tuple[Conflict, ...]
    left_out: Mapping[str, str]
    is_stopped: bool

    @property
    def is_complete(self) -> bool:
        """Whether nothing was left behind that should be synced."""
        return not (self.owed or self.quarantined)


def is_configured(config: Config) -> bool:
    """Whether the settings name a database."""
    return bool(config.settings.livesync.couchdbUrl and config.settings.livesync.dbName)


def trash_folder(config: Config) -> Path:
    """Where files that sync removed wait to be restored."""
    return config.home / _TRASH


def place_of(config: Config, wish: Wish | None = None) -> Site:
    """The database and the folder, without what opens the database.

    Raises:
        ConfigInvalid: they are not named, or cannot be used.
    """
    wish = wish or Wish()
    settings = config.settings.livesync
    url, user, _ = split_login(wish.url) if wish.url else (settings.couchdbUrl, None, None)
    database = wish.database or settings.dbName
    if not url or not database:
        raise ConfigInvalid("LiveSync is not set up.", _SETUP)
    if _is_settings_server(config, wish):
        user = wish.user or user or settings.couchdbUser
    else:
        user = wish.user or user
    return Site(Remote(url, database, user), _root(config, wish))


def site_of(
    config: Config, wish: Wish | None = None, environ: Mapping[str, str] = os.environ
) -> Site:
    """The database and the folder, with what opens the database.

    Raises:
        ConfigInvalid: they are not named or cannot be used, or a secret cannot be had.
        LivesyncRefused: the server is outside this machine, and nobody has consented to it.
    """
    wish = wish or Wish()
    place = place_of(config, wish)
    is_ours = _is_settings_server(config, wish)
    check_consent(
        place.remote, wish.has_consent or (is_ours and config.settings.livesync.remote_consent)
    )
    kept = SecretStore(config.home).get(place.key) or Secrets()
    given = wish.password or (split_login(wish.url)[2] if wish.url else None)
    written = _written_password(config, environ) if is_ours and given is None else None
    password = given or written or kept.password or environ.get(PASSWORD_VARIABLE)
    remote = replace(
        place.remote,
        password=password,
        headers=kept.headers,
        # Who brings a password does not mean the token.
        jwt=kept.jwt if given is None and written is None else None,
    )
    passphrase = wish.passphrase or kept.passphrase or environ.get(PASSPHRASE_VARIABLE)
    return Site(remote, place.root, passphrase)


def split_login(url: str) -> tuple[str, str | None, str | None]:
    """An address without the user and password in it, and those two."""
    try:
        parts = urlsplit(url.strip())
        user, password = parts.username, parts.password
    except ValueError:
        return url, None, None  # whoever uses it will say what is wrong, without quoting it
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")
    return bare, unquote(user) if user else None, unquote(password) if password else None


@contextlib.contextmanager
def node_lock(config: Config, key: str) -> Iterator[None]:
    """Be the one node of a database for a while.

    Raises:
        Busy: there is one already.
    """
    lock = _lock(config, key)
    try:
        lock.acquire(timeout=_PATIENCE_S)
    except Timeout:
        raise Busy(
            "Another obsidian-rag process syncs with this database already.",
            "Let it do so, or stop it: `obsidian-rag serve --stop` ends the daemon.",
        ) from None
    try:
        yield
    finally:
        lock.release()


def is_node_running(config: Config, key: str) -> bool:
    """Whether some process is the node of a database now."""
    if not config.home.is_dir():
        return False
    try:
        with _lock(config, key).acquire(timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def open_node(config: Config, wish: Wish | None = None) -> Iterator[OpenNode]:
    """A node for the settings and what a command asks for besides.

    Raises:
        Busy: another process is that node.
        NotFound: there is no such folder.
        ObsidianRagError: as for `site_of`.
    """
    wish = wish or Wish()
    site = site_of(config, wish)
    with contextlib.closing(Database(config.database)) as database, node_lock(config, site.key):
        records = LivesyncRecords(database, site.key)
        _require_root(site, records)
        drop_old_trash(config, records)
        with contextlib.closing(Couch(site.remote)) as couch:
            yield OpenNode(Node(_plan(config, site, wish), couch, records), couch, records, site)


def sync_once(
    config: Config,
    wish: Wish | None = None,
    listener: Listener = lambda _what, _done, _total: None,
    stop: Callable[[], bool] = lambda: False,
) -> SyncResult:
    """Make the vault and the database agree once.

    Raises:
        ObsidianRagError: as for `open_node` and `Node.sync_once`.
    """
    with open_node(config, wish) as opened:
        settler = opened.node.sync_once(listener, stop)
        return SyncResult(
            stats=opened.node.stats,
            planned=tuple(sorted(opened.node.stats.planned)),
            owed=len(settler.owed),
            quarantined=tuple(opened.records.quarantined()),
            conflicts=tuple(opened.records.conflicts()),
            left_out=dict(settler.disk.left_out),
            is_stopped=stop(),
        )


def drop_old_trash(config: Config, records: LivesyncRecords) -> None:
    """Remove for good what has been in the trash for longer than the user wants."""
    oldest = datetime.now(UTC) - timedelta(days=config.settings.livesync.trash_days)
    for file in records.trash():
        if datetime.fromisoformat(file.removed_at) < oldest:
            with contextlib.suppress(ObsidianRagError):  # the next time, then
                discard_kept(kept_at(config, file.stored_as))
                records.drop_trash(file.trash_id)


def kept_at(config: Config, stored_as: str) -> Path:
    """Where a file of the trash is, also after the data folder was moved."""
    return trash_folder(config) / Path(stored_as).name


def _plan(config: Config, site: Site, wish: Wish) -> Plan:
    settings = config.settings.livesync
    return Plan(
        root=site.root,
        access=Access(site.remote, site.passphrase, site.root.name, wish.tweaks),
        manner=Manner(
            direction=wish.direction,
            is_dry=wish.is_dry,
            may_merge=settings.merge,
            keeps_conflicts_as_files=settings.conflicts == "file",
            trash=trash_folder(config),
        ),
        max_deleted_percent=100.0 if wish.allows_deletions else settings.max_deleted_percent,
        is_read_only=wish.is_read_only or settings.read_only,
    )


def _lock(config: Config, key: str) -> FileLock:
    return FileLock(config.home / f"livesync-{key[:16]}.lock")


def _is_settings_server(config: Config, wish: Wish) -> bool:
    """Whether a command means the server of the settings."""
    known = config.settings.livesync.couchdbUrl
    return wish.url is None or (known or "").rstrip("/") == split_login(wish.url)[0]


def _written_password(config: Config, environ: Mapping[str, str]) -> str | None:
    written = config.settings.livesync.couchdbPassword
    if written is None:
        return None
    text = written.get_secret_value()
    named = _FROM_ENVIRONMENT.fullmatch(text)
    if named is None:
        return text
    if named[1] not in environ:
        raise ConfigInvalid(
            f"livesync.couchdbPassword names the variable {named[1]}, which is not set.",
            "Set it where this process starts, or run `obsidian-rag livesync setup`.",
        )
    return environ[named[1]]


def _root(config: Config, wish: Wish) -> Path:
    written = config.settings.livesync.vaultPath
    if wish.vault is not None:
        root = Path(os.path.abspath(wish.vault.expanduser()))  # noqa: PTH100  (keeps symlinks)
    elif written is not None:
        from_file = config.file.parent / Path(written).expanduser()
        root = Path(os.path.abspath(from_file))  # noqa: PTH100
    else:
        root = config.vault_root
    if config.home.resolve().is_relative_to(root.resolve()):
        raise ConfigInvalid(
            f"The data folder {config.home} lies inside the folder that is synced.",
            "Keep it elsewhere: set OBSIDIAN_RAG_HOME.",
        )
    return root


def _require_root(site: Site, records: LivesyncRecords) -> None:
    """A folder that never had a file may be a typo; for one that had, there is the brake."""
    if not site.root.is_dir() and not records.count():
        raise NotFound(
            f"There is no folder {site.root}.",
            "Make it, or name another one with --vault or livesync.vaultPath.",
        )
