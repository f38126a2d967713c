"""Where a node works: its database, folder, records and lock, from the settings and options.

The settings name one server. Its password, and the consent to use it, are for that server only:
another one on the command line needs its own.

Threat: a setting, a pasted setup URI or a typo sends private notes off the machine. So the
address itself decides, without DNS, and a server elsewhere needs the user's consent for it.
"""

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote, urlsplit

from filelock import FileLock, Timeout

from obsidian_rag.config import Config, is_on_this_machine
from obsidian_rag.errors import Busy, ConfigInvalid, IndexerFailed, LivesyncRefused, ReadOnly
from obsidian_rag.livesync.codec import Tweaks
from obsidian_rag.livesync.couchdb import Remote
from obsidian_rag.livesync.filters import FilterSettings
from obsidian_rag.livesync.secrets import Secrets, SecretStore
from obsidian_rag.store import Database, Links, LivesyncRecords
from obsidian_rag.vault import VaultMode, configured_vault


class Direction(StrEnum):
    """Which way changes go."""

    BOTH = "both"
    PULL = "pull"
    PUSH = "push"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one LiveSync command; the settings fill in the rest."""

    url: str | None = field(default=None, repr=False)  # it may hold a user and a password
    database: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    passphrase: str | None = field(default=None, repr=False)
    vault: Path | None = None
    has_consent: bool = False
    # For a database that has no settings of its own.
    is_init: bool = False
    tweaks: Tweaks | None = None
    encrypts: bool | None = None
    # For a sync.
    direction: Direction = Direction.BOTH
    is_read_only: bool = False
    is_dry: bool = False
    allows_deletions: bool = False
    # For the setup: a setup URI replaces the address.
    uri: str | None = field(default=None, repr=False)
    uri_passphrase: str | None = field(default=None, repr=False)
    may_use_keyring: bool = True
    may_reuse: bool = True
    # The database need not be encrypted, even if there is a passphrase.
    may_be_unencrypted: bool = False


PASSWORD_VARIABLE = "OBSIDIAN_RAG_LIVESYNC_PASSWORD"
PASSPHRASE_VARIABLE = "OBSIDIAN_RAG_LIVESYNC_PASSPHRASE"
_VARIABLE_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TRASH = "livesync-trash"
# `is_node_running` holds the lock for a moment.
_LOCK_TIMEOUT_S = 1.0
_REOPEN_DELAY_S = 0.5
_SETUP_HINT = "Run `obsidian-rag livesync setup`, or name the database with --url and --db."


@dataclass(frozen=True, slots=True)
class Site:
    """Where a node works: a database, its secrets, and the folder that is synced with it.

    `tweaks` are for a database that has no settings of its own.
    """

    remote: Remote
    root: Path
    passphrase: str | None = field(default=None, repr=False)
    tweaks: Tweaks | None = None

    @property
    def key(self) -> str:
        """The key of the database's address, under which its records are stored."""
        return self.remote.key


def filters_of(config: Config) -> FilterSettings:
    """LiveSync's filters from our settings."""
    settings = config.settings.livesync
    return FilterSettings(
        settings.syncOnlyRegEx,
        settings.syncIgnoreRegEx,
        settings.useIgnoreFiles,
        settings.ignoreFiles,
    )


def is_configured(config: Config) -> bool:
    """Whether the settings name a database."""
    return bool(config.settings.livesync.couchdbUrl and config.settings.livesync.dbName)


def synced_root(config: Config) -> Path | None:
    """The folder that is synced; None if LiveSync is not set up, or wrongly."""
    try:
        return place_of(config).root
    except ConfigInvalid:
        return None


def shares_vault(config: Config) -> bool:
    """Whether the vault's watcher can also serve the sync.

    With `allow_dirs` an index may reach a folder only through a link, and knows its files by that
    path; a watcher of all files would report another one.
    """
    settings = config.settings
    is_alike = settings.livesync.enabled and not settings.indexing.allow_dirs
    return is_alike and synced_root(config) == configured_vault(config).root


def settings_for_syncing(config: Config) -> tuple[object, ...]:
    """The settings that a running node depends on."""
    return configured_vault(config).root, config.settings.livesync, shares_vault(config)


def place_of(config: Config, options: Options | None = None) -> Site:
    """The database and the folder, without secrets.

    Raises:
        ConfigInvalid: they are not named, or cannot be used.
    """
    options = options or Options()
    remote = named_remote(config, options)
    if remote is None:
        raise ConfigInvalid("LiveSync is not set up.", _SETUP_HINT)
    return Site(replace(remote, password=None), _root(config, options))


def named_remote(config: Config, options: Options) -> Remote | None:
    """The database that the settings and a command name, with a password given now."""
    settings = config.settings.livesync
    url, user, password = (
        split_login(options.url) if options.url else (settings.couchdbUrl, None, None)
    )
    database = options.database or settings.dbName
    if not url or not database:
        return None
    known = settings.couchdbUser if _is_settings_server(config, options) else None
    return Remote(url, database, options.user or user or known, options.password or password)


def site_of(
    config: Config, options: Options | None = None, environ: Mapping[str, str] = os.environ
) -> Site:
    """The database and the folder, with the secrets that open the database."""
    options = options or Options()
    place = place_of(config, options)
    is_ours = _is_settings_server(config, options)
    check_consent(place.remote, has_consent_for(config, options, place.remote))
    kept = SecretStore(config.home).get(place.key) or Secrets()
    given = options.password or (split_login(options.url)[2] if options.url else None)
    written = _password_from_settings(config, environ) if is_ours and given is None else None
    password = given or written or kept.password or environ.get(PASSWORD_VARIABLE)
    remote = replace(
        place.remote,
        password=password,
        headers=kept.headers,
        # A password that is given replaces the token.
        jwt=kept.jwt if given is None and written is None else None,
    )
    passphrase = options.passphrase or kept.passphrase or environ.get(PASSPHRASE_VARIABLE)
    if options.encrypts is False:
        passphrase = None
    return Site(remote, place.root, passphrase)


def has_consent_for(config: Config, options: Options, remote: Remote) -> bool:
    """Whether consent is given now, or was given before for the same server."""
    settings = config.settings.livesync
    is_known = remote.url.rstrip("/") == (settings.couchdbUrl or "").rstrip("/")
    return options.has_consent or (settings.remote_consent and is_known)


def check_consent(remote: Remote, has_consent: bool) -> None:
    """Refuse a server outside this machine without the user's consent.

    Raises:
        LivesyncRefused: the server is outside, and has no consent.
    """
    if not has_consent and not is_on_this_machine(remote.url):
        raise LivesyncRefused(
            f"The CouchDB server {urlsplit(remote.url).hostname} is not on this machine.",
            "If your notes may go there, add `--consent`, or set livesync.remote_consent to true.",
        )


def split_login(url: str) -> tuple[str, str | None, str | None]:
    """An address without its login, the user, and the password."""
    try:
        parts = urlsplit(url.strip())
        user, password = parts.username, parts.password
    except ValueError:
        return url, None, None  # the first request reports the error, without quoting the address
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")
    return bare, unquote(user) if user else None, unquote(password) if password else None


def trash_folder(config: Config) -> Path:
    """Where files that sync removed are kept for restoring."""
    return config.home / _TRASH


@contextlib.contextmanager
def node_lock(config: Config, remote: str) -> Iterator[None]:
    """Hold the lock of a database's one node; `remote` is the name of its records.

    Raises:
        Busy: another process holds it.
    """
    lock = _lock(config, remote)
    try:
        lock.acquire(timeout=_LOCK_TIMEOUT_S)
    except Timeout:
        raise Busy(
            "Another obsidian-rag process syncs with this database already.",
            "Let it do so, or stop it: `obsidian-rag serve --stop` ends the daemon.",
        ) from None
    try:
        yield
    finally:
        lock.release()


def is_node_running(config: Config, remote: str) -> bool:
    """Whether any process runs the database's node; `remote` is as for `node_lock`."""
    if not config.home.is_dir():
        return False
    try:
        with _lock(config, remote).acquire(timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


def open_database(config: Config) -> Database:
    """Open the SQLite file on a new connection."""
    try:
        return Database(config.database)
    except IndexerFailed:
        # Two processes may create the file at once: the second finds it half made, then complete.
        time.sleep(_REOPEN_DELAY_S)
        return Database(config.database)


@contextlib.contextmanager
def open_records(
    config: Config, options: Options | None = None
) -> Iterator[tuple[Site, LivesyncRecords]]:
    """The records of the database in the settings, whether or not a node is running."""
    site = place_of(config, options)
    with contextlib.closing(open_database(config)) as database:
        refuse_read_only(database, site.root)
        yield site, LivesyncRecords.at_address(database, site.key)


def refuse_read_only(database: Database, root: Path) -> None:
    """Refuse a folder that overlaps a read-only linked vault."""
    real = root.resolve()
    for link in Links(database).all():
        linked = link.root_path.resolve()
        overlaps = real.is_relative_to(linked) or linked.is_relative_to(real)
        if overlaps and not link.is_primary and link.mode == VaultMode.READ_ONLY:
            raise ReadOnly(
                f"LiveSync would write into '{link.name}', a linked vault (read-only).",
                "Set livesync.vaultPath to another folder.",
            )


def _is_settings_server(config: Config, options: Options) -> bool:
    """Whether a command uses the server of the settings."""
    known = config.settings.livesync.couchdbUrl
    return options.url is None or (known or "").rstrip("/") == split_login(options.url)[0]


def _password_from_settings(config: Config, environ: Mapping[str, str]) -> str | None:
    written = config.settings.livesync.couchdbPassword
    if written is None:
        return None
    text = written.get_secret_value()
    named = _VARIABLE_REFERENCE.fullmatch(text)
    if named is None:
        return text
    if named[1] not in environ:
        raise ConfigInvalid(
            f"livesync.couchdbPassword names the variable {named[1]}, which is not set.",
            "Set it where this process starts, or run `obsidian-rag livesync setup`.",
        )
    return environ[named[1]]


def _root(config: Config, options: Options) -> Path:
    written = config.settings.livesync.vaultPath
    if options.vault is not None:
        root = options.vault.expanduser()
    elif written is not None:
        root = config.file.parent / Path(written).expanduser()
    else:
        root = configured_vault(config).root
    root = Path(os.path.abspath(root))  # noqa: PTH100  (keeps symlinks)
    if config.home.resolve().is_relative_to(root.resolve()):
        raise ConfigInvalid(
            f"The data folder {config.home} lies inside the folder that is synced.",
            "Keep it elsewhere: set OBSIDIAN_RAG_HOME.",
        )
    return root


def _lock(config: Config, remote: str) -> FileLock:
    digest, _, made = remote.partition("-")
    return FileLock(config.home / f"livesync-{digest[:16]}{made}.lock")
