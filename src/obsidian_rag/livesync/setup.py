"""Set up LiveSync: check the database first, and only then store its address and secrets."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from obsidian_rag.config import (
    CONFIG_VERSION,
    Config,
    existing_folder,
    is_on_this_machine,
    read_file,
    save,
    validate,
)
from obsidian_rag.errors import (
    ConfigInvalid,
    LivesyncLocked,
)
from obsidian_rag.livesync.codec import Tweaks
from obsidian_rag.livesync.codec.entries import FILE_TYPES
from obsidian_rag.livesync.codec.path_ids import CHUNK_PREFIX, LAST, is_file_id
from obsidian_rag.livesync.codec.tweaks import NotEncrypted
from obsidian_rag.livesync.couchdb import Couch, Document, Remote
from obsidian_rag.livesync.filters import FilterSettings, check_filters, present_ignore_files
from obsidian_rag.livesync.membership import rehearse, shared_tweaks
from obsidian_rag.livesync.milestone import MILESTONE_NAME
from obsidian_rag.livesync.secrets import Place, Secrets, SecretStore
from obsidian_rag.livesync.session import keep_tweaks
from obsidian_rag.livesync.setup_uri import Connection, decode_setup_uri
from obsidian_rag.livesync.site import (
    Options,
    Site,
    check_consent,
    filters_of,
    has_consent_for,
    named_remote,
    open_database,
    place_of,
)
from obsidian_rag.store import LivesyncRecords

_MAX_COUNTED = 5000


@dataclass(frozen=True, slots=True)
class Survey:
    """How a database describes itself; `notes` is None if there are too many to count."""

    devices: tuple[str, ...]
    is_encrypted: bool
    hides_paths: bool
    is_locked: bool
    is_empty: bool
    notes: int | None


@dataclass(frozen=True, slots=True)
class SetUp:
    """What was found and stored; `vault` is None if none is chosen yet."""

    server: str
    database: str
    user: str | None
    survey: Survey
    place: Place
    config: Path
    vault: Path | None
    filters: FilterSettings
    ignore_files: tuple[str, ...]  # those that are in the vault's folder now
    # What other devices sync, according to the setup URI, and this one does not.
    has_hidden_files: bool
    has_customization: bool


def needs_consent(config: Config, options: Options) -> str | None:
    """The server that needs the user's consent; None if none does."""
    remote = _connection(config, options).remote
    if is_on_this_machine(remote.url) or has_consent_for(config, options, remote):
        return None
    return remote.url


def needs_password(config: Config, options: Options) -> str | None:
    """The user whose password is missing; None if none is needed."""
    if options.uri is not None:
        return None
    remote = _connection(config, options).remote
    return remote.user if remote.password is None else None


def set_up(config: Config, options: Options) -> SetUp:
    """Check that we could take part, then store the settings; a failed check stores nothing.

    Raises:
        InvalidArgument: the setup URI cannot be used.
        LivesyncRefused: the server is outside this machine without consent, or refuses us.
        LivesyncPassphrase: a passphrase is wrong or missing.
        NotEncrypted: a passphrase was given, and the database is not encrypted.
        LivesyncIncompatible: LiveSync's filters cannot be followed; the setting is named.
        ObsidianRagError: the database cannot be reached or used.
    """
    vault = existing_folder(options.vault) if options.vault is not None else None
    found = _connection(config, options)
    is_agreed = has_consent_for(config, options, found.remote)
    check_consent(found.remote, is_agreed)
    check_filters(found.filters, found.tweaks)
    seen = _survey_found(options, found)
    tree = _config_tree(config, found, vault, is_agreed=is_agreed)
    root = _root(Config(config.home, config.file, validate(tree, config.file)))
    # Opening the database creates the data folder, which the secrets need.
    with contextlib.closing(open_database(config)) as database:
        if options.uri is not None:
            keep_tweaks(LivesyncRecords.at_address(database, found.remote.key), found.tweaks)
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
        ignore_files=present_ignore_files(found.filters, found.tweaks, root),
        has_hidden_files=found.has_hidden_files,
        has_customization=found.has_customization,
    )


def survey(couch: Couch, site: Site) -> Survey:
    """Check that we could take part, passphrase included, and describe the database."""
    is_locked = False
    try:
        tweaks = rehearse(couch, site).tweaks
    except LivesyncLocked:
        is_locked = True
        tweaks = shared_tweaks(couch.get_local(MILESTONE_NAME), site)
        tweaks.check_encrypted(site.passphrase)
        tweaks.check_supported(site.passphrase)
    return Survey(
        devices=tuple(_devices(couch.get_local(MILESTONE_NAME) or {})),
        is_encrypted=tweaks.encrypt,
        hides_paths=tweaks.use_path_obfuscation,
        is_locked=is_locked,
        is_empty=not (couch.info() or {}).get("doc_count"),
        notes=_count_notes(couch),
    )


def _devices(milestone: Document) -> Iterator[str]:
    nodes = milestone.get("node_info")
    for name, lines in nodes.items() if isinstance(nodes, Mapping) else ():
        device = lines.get("device_name") if isinstance(lines, Mapping) else None
        yield device if isinstance(device, str) and device else str(name)


def _count_notes(couch: Couch) -> int | None:
    """How many files the database has, without deleted ones."""
    ids = [
        doc_id
        for start, end in (("", CHUNK_PREFIX), (CHUNK_PREFIX + LAST, LAST))
        for doc_id, _ in couch.list_ids(start=start, end=end, limit=_MAX_COUNTED + 1)
        if is_file_id(doc_id)
    ]
    if len(ids) > _MAX_COUNTED:
        return None
    return sum(
        document.get("type") in FILE_TYPES and document.get("deleted") is not True
        for document in couch.all_docs(ids).values()
    )


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The database whose secrets were removed; `place` is where they were, None if nowhere."""

    server: str
    database: str
    place: Place | None


def forget_secrets(config: Config) -> Forgotten:
    """Remove the password and the passphrase that the setup stored; all else stays.

    Raises:
        ConfigInvalid: LiveSync is not set up, or the keyring cannot be changed.
    """
    remote = named_remote(config, Options())
    if remote is None:
        raise ConfigInvalid("LiveSync is not set up.", "`obsidian-rag livesync setup` does that.")
    place = SecretStore(config.home).forget(remote.key)
    return Forgotten(remote.url, remote.database, place)


def _survey_found(options: Options, found: Connection) -> Survey:
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
        found = Connection.from_settings(decode_setup_uri(options.uri, options.uri_passphrase))
        return replace(found, filters=_merge_filters(filters_of(config), found.filters))
    remote = named_remote(config, options)
    if remote is None:
        raise ConfigInvalid(
            "No database was named.",
            "Give a setup URI from LiveSync in Obsidian, or --url and --db.",
        )
    # A second setup of the same database keeps what is not given again.
    kept = _stored_secrets(config, remote) or Secrets()
    given = remote.password or (kept.password if options.may_reuse else None)
    remote = replace(remote, password=given, headers=kept.headers, jwt=kept.jwt)
    passphrase = options.passphrase or kept.passphrase
    return Connection(remote, Tweaks(), passphrase, filters_of(config))


def _merge_filters(ours: FilterSettings, theirs: FilterSettings) -> FilterSettings:
    """The device's filters, and ours where it has none."""
    return FilterSettings(
        only=theirs.only or ours.only,
        ignore=theirs.ignore or ours.ignore,
        uses_ignore_files=theirs.uses_ignore_files or ours.uses_ignore_files,
        ignore_files=theirs.ignore_files or ours.ignore_files,
    )


def _stored_secrets(config: Config, remote: Remote) -> Secrets | None:
    try:
        return SecretStore(config.home).get(remote.key)
    except ConfigInvalid:
        return None  # locked or damaged secrets are about to be replaced


def _config_tree(
    config: Config, found: Connection, vault: Path | None, *, is_agreed: bool
) -> dict[str, Any]:
    """The config file with the database and its filters, without any earlier password."""
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
    # Consent is for one server: a new one needs its own.
    section["remote_consent"] = is_agreed and not is_on_this_machine(remote.url)
    if vault is not None:
        if not tree.get("vault_path"):
            tree["vault_path"] = str(vault)
        section.pop("vaultPath", None)
        if tree["vault_path"] != str(vault):
            section["vaultPath"] = str(vault)
    return tree


def _root(config: Config) -> Path | None:
    """The folder to sync, if one is chosen; refused if it contains our data folder."""
    is_chosen = config.has_vault or config.settings.livesync.vaultPath is not None
    return place_of(config).root if is_chosen else None
