"""Set LiveSync up: look at the database first, and only then keep its address and its secrets."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from obsidian_rag.config import CONFIG_VERSION, Config, read_file, save, validate
from obsidian_rag.errors import (
    ConfigInvalid,
    LivesyncIncompatible,
    LivesyncLocked,
    LivesyncPassphrase,
    NotFound,
)
from obsidian_rag.livesync.codec import Tweaks
from obsidian_rag.livesync.codec.entries import FILE_TYPES
from obsidian_rag.livesync.codec.path_ids import CHUNK_PREFIX, LAST, is_file_id
from obsidian_rag.livesync.codec.tweaks import NotEncrypted
from obsidian_rag.livesync.couchdb import Couch, Document, Remote
from obsidian_rag.livesync.filters import FilterSettings, check_filters
from obsidian_rag.livesync.membership import rehearse
from obsidian_rag.livesync.milestone import MILESTONE_NAME, preferred
from obsidian_rag.livesync.options import Options
from obsidian_rag.livesync.secrets import Place, Secrets, SecretStore
from obsidian_rag.livesync.session import keep_tweaks, open_database
from obsidian_rag.livesync.setup_uri import Connection, decode_setup_uri
from obsidian_rag.livesync.site import (
    Site,
    check_consent,
    filters_of,
    is_on_this_machine,
    named_remote,
    place_of,
)
from obsidian_rag.store import LivesyncRecords

_MOST_READ = 5000


@dataclass(frozen=True, slots=True)
class Survey:
    """What a database says about itself; `notes` is None where that takes too long to count."""

    devices: tuple[str, ...]
    is_encrypted: bool
    hides_paths: bool
    is_locked: bool
    is_empty: bool
    notes: int | None


@dataclass(frozen=True, slots=True)
class SetUp:
    """What was found and kept; `vault` is None if none is chosen yet."""

    server: str
    database: str
    user: str | None
    survey: Survey
    place: Place
    config: Path
    vault: Path | None
    filters: FilterSettings
    # What other devices sync, as far as a setup URI tells, and this one does not.
    has_hidden_files: bool
    has_customization: bool


def needs_consent(config: Config, options: Options) -> str | None:
    """The server that the user must be asked about; None if there is nothing to ask."""
    remote = _connection(config, options).remote
    if is_on_this_machine(remote.url) or _has_consent(config, options, remote):
        return None
    return remote.url


def needs_password(config: Config, options: Options) -> str | None:
    """The user whose password is missing; None if none is needed."""
    if options.uri is not None:
        return None
    remote = _connection(config, options).remote
    return remote.user if remote.password is None else None


def set_up(config: Config, options: Options) -> SetUp:
    """Check that we could take part, then keep how; nothing is kept when that fails.

    Raises:
        InvalidArgument: the setup URI cannot be used.
        LivesyncRefused: the server is outside this machine without consent, or refuses us.
        LivesyncPassphrase: a passphrase is wrong or missing.
        NotEncrypted: a passphrase was given, and the database is not encrypted.
        LivesyncIncompatible: LiveSync's filters cannot be followed; the setting is named.
        ObsidianRagError: the database cannot be reached or used.
    """
    vault = _existing(options.vault) if options.vault is not None else None
    found = _connection(config, options)
    has_consent = _has_consent(config, options, found.remote)
    check_consent(found.remote, has_consent)
    check_filters(found.filters, found.tweaks)
    seen = _surveyed(options, found)
    tree = _tree(config, found, vault, has_consent=has_consent)
    root = _root(Config(config.home, config.file, validate(tree, config.file)))
    # The folder must be there before the secrets are, and a database makes its own.
    with contextlib.closing(open_database(config)) as database:
        if options.uri is not None:
            keep_tweaks(LivesyncRecords(database, found.remote.key), found.tweaks)
    place = SecretStore(config.home).put(
        found.remote.key,
        Secrets(
            found.remote.password,
            found.passphrase if seen.is_encrypted else None,
            found.remote.headers,
            found.remote.jwt,
        ),
        may_use_keyring=options.may_use_keyring,
    )
    save(tree, config.file)
    return SetUp(
        server=found.remote.url,
        database=found.remote.database,
        user=found.remote.user,
        survey=seen,
        place=place,
        config=config.file,
        vault=root,
        filters=found.filters,
        has_hidden_files=found.has_hidden_files,
        has_customization=found.has_customization,
    )


def survey(couch: Couch, site: Site) -> Survey:
    """Check that we could take part, passphrase included, and tell what is there.

    Raises:
        LivesyncIncompatible: the database is none we can work with.
        LivesyncPassphrase: the passphrase does not open it.
        LivesyncUnreachable, LivesyncRefused: the server does not answer, or refuses.
    """
    is_locked = False
    try:
        tweaks = rehearse(couch, site).tweaks
    except LivesyncLocked:
        is_locked = True
        tweaks = _published(couch, site)
    return Survey(
        devices=tuple(_devices(couch.get_local(MILESTONE_NAME) or {})),
        is_encrypted=tweaks.encrypt,
        hides_paths=tweaks.use_path_obfuscation,
        is_locked=is_locked,
        is_empty=not (couch.info() or {}).get("doc_count"),
        notes=_count_notes(couch),
    )


def _published(couch: Couch, site: Site) -> Tweaks:
    milestone = couch.get_local(MILESTONE_NAME)
    tweaks = preferred(milestone) if milestone is not None else site.tweaks
    if tweaks is None:
        raise LivesyncIncompatible(
            "The database does not say how its notes are kept.",
            "Connect LiveSync in Obsidian to it once.",
        )
    tweaks.check_encrypted(site.passphrase)
    if tweaks.encrypt and not site.passphrase:
        raise LivesyncPassphrase(
            "The database is encrypted, and no passphrase is given.",
            "Give the passphrase of your devices.",
        )
    return tweaks


def _devices(milestone: Document) -> Iterator[str]:
    nodes = milestone.get("node_info")
    for name, lines in nodes.items() if isinstance(nodes, Mapping) else ():
        told = lines.get("device_name") if isinstance(lines, Mapping) else None
        yield told if isinstance(told, str) and told else str(name)


def _count_notes(couch: Couch) -> int | None:
    """How many files the database has, less those that are deleted."""
    ids = [
        doc_id
        for start, end in (("", CHUNK_PREFIX), (CHUNK_PREFIX + LAST, LAST))
        for doc_id, _ in couch.list_ids(start=start, end=end, limit=_MOST_READ + 1)
        if is_file_id(doc_id)
    ]
    if len(ids) > _MOST_READ:
        return None
    return sum(
        document.get("type") in FILE_TYPES and document.get("deleted") is not True
        for document in couch.all_docs(ids).values()
    )


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Whose secrets are not kept any more; `place` is where they were, None if none were kept."""

    server: str
    database: str
    place: Place | None


def forget_secrets(config: Config) -> Forgotten:
    """Remove the password and the passphrase that the setup kept; all else stays.

    Raises:
        ConfigInvalid: LiveSync is not set up, or the keyring cannot be changed.
    """
    remote = named_remote(config, Options())
    if remote is None:
        raise ConfigInvalid("LiveSync is not set up.", "`obsidian-rag livesync setup` does that.")
    place = SecretStore(config.home).forget(remote.key)
    return Forgotten(remote.url, remote.database, place)


def _surveyed(options: Options, found: Connection) -> Survey:
    tweaks = found.tweaks if options.uri else None
    site = Site(found.remote, Path("vault"), found.passphrase, tweaks)
    # A setup URI may hold a passphrase that its device does not use.
    is_unused = tweaks is not None and not tweaks.encrypt
    with contextlib.closing(Couch(found.remote)) as couch:
        try:
            return survey(couch, site)
        except NotEncrypted:
            if not (options.may_be_unencrypted or is_unused):
                raise
            return survey(couch, replace(site, passphrase=None))


def _connection(config: Config, options: Options) -> Connection:
    if options.uri is not None:
        told = Connection.from_settings(decode_setup_uri(options.uri, options.uri_passphrase))
        return replace(told, filters=_both(filters_of(config), told.filters))
    remote = named_remote(config, options)
    if remote is None:
        raise ConfigInvalid(
            "No database was named.",
            "Give a setup URI from LiveSync in Obsidian, or --url and --db.",
        )
    # A second setup of the same database keeps what is not given anew.
    kept = _kept(config, remote) or Secrets()
    given = remote.password or (kept.password if options.may_reuse else None)
    remote = replace(remote, password=given, headers=kept.headers, jwt=kept.jwt)
    passphrase = options.passphrase or kept.passphrase
    return Connection(remote, Tweaks(), passphrase, filters_of(config))


def _both(ours: FilterSettings, told: FilterSettings) -> FilterSettings:
    """What a device tells; where it has no filter, one that we have stays."""
    return FilterSettings(
        only=told.only or ours.only,
        ignore=told.ignore or ours.ignore,
        uses_ignore_files=told.uses_ignore_files or ours.uses_ignore_files,
        ignore_files=told.ignore_files or ours.ignore_files,
    )


def _kept(config: Config, remote: Remote) -> Secrets | None:
    try:
        return SecretStore(config.home).get(remote.key)
    except ConfigInvalid:
        return None  # what is locked or damaged is about to be replaced


def _has_consent(config: Config, options: Options, remote: Remote) -> bool:
    """Consent given now, or before for the same server."""
    settings = config.settings.livesync
    return options.has_consent or (settings.remote_consent and settings.couchdbUrl == remote.url)


def _tree(
    config: Config, found: Connection, vault: Path | None, *, has_consent: bool
) -> dict[str, Any]:
    """The config file with the database and its filters, and without a password from before."""
    remote = found.remote
    tree = read_file(config.file)
    tree.setdefault("version", CONFIG_VERSION)
    section = tree.setdefault("livesync", {})
    if not isinstance(section, dict):
        raise ConfigInvalid("'livesync' must hold an object.", "Fix the config file.")
    section.pop("couchdbPassword", None)
    section["couchdbUrl"] = remote.url
    section.pop("couchdbUser", None)
    if remote.user is not None:
        section["couchdbUser"] = remote.user
    section["dbName"] = remote.database
    for name, value in found.filters.fields().items():
        section.pop(name, None)
        if value not in (None, ""):
            section[name] = value
    # Consent is for one server: a new one needs it anew.
    section["remote_consent"] = has_consent and not is_on_this_machine(remote.url)
    if vault is not None:
        if not tree.get("vault_path"):
            tree["vault_path"] = str(vault)
        section.pop("vaultPath", None)
        if tree["vault_path"] != str(vault):
            section["vaultPath"] = str(vault)
    return tree


def _existing(vault: Path) -> Path:
    root = Path(os.path.abspath(vault.expanduser()))  # noqa: PTH100  (keeps symlinks)
    if not root.is_dir():
        raise NotFound(f"There is no folder {root}.", "Make it, or name another one.")
    return root


def _root(config: Config) -> Path | None:
    """The folder that will be synced, if one is chosen; refused if it holds our own files."""
    is_chosen = config.has_vault or config.settings.livesync.vaultPath is not None
    return place_of(config).root if is_chosen else None
