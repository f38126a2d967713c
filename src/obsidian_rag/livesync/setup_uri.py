"""Read what LiveSync hands from device to device: setup URIs, QR codes, connection strings.

All of them hold passwords: nothing here quotes them, and no value shows them when printed.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from obsidian_rag.errors import (
    InvalidArgument,
    LivesyncIncompatible,
    LivesyncPassphrase,
    LivesyncUnreadable,
)
from obsidian_rag.livesync.codec import Tweaks
from obsidian_rag.livesync.codec.encryption import OWN_SALT_PREFIX, decrypt_with_own_salt
from obsidian_rag.livesync.codec.legacy_encryption import LegacyCipher
from obsidian_rag.livesync.couchdb import Jwt, Remote
from obsidian_rag.livesync.couchdb.auth import parse_headers
from obsidian_rag.livesync.filters import FilterSettings
from obsidian_rag.livesync.filters.filters import IGNORE, ONLY
from obsidian_rag.livesync.setup_qr import decode_settings_qr

_URI = "obsidian://setuplivesync?settings="
_QR = "obsidian://setuplivesync?settingsQR="
_COUCHDB = ""
_CONNECTION: dict[str, object] = {
    "couchDB_URI": "",
    "couchDB_USER": "",
    "couchDB_PASSWORD": "",
    "couchDB_DBNAME": "",
    "couchDB_CustomHeaders": "",
    "useJWT": False,
    "jwtAlgorithm": "",
    "jwtKey": "",
    "jwtKid": "",
    "jwtSub": "",
    "jwtExpDuration": 5,
}
# What LiveSync leaves out of a setup URI, where we need it.
DEFAULTS: Mapping[str, object] = MappingProxyType(
    Tweaks().to_settings()
    | _CONNECTION
    | {
        "remoteType": _COUCHDB,
        "passphrase": "",
        ONLY: "",
        IGNORE: "",
        "syncInternalFiles": False,
        "usePluginSync": False,
        "remoteConfigurations": {},
        "activeConfigurationId": "",
        "idDerivationVersion": 0,
    }
)


@dataclass(frozen=True, slots=True)
class Connection:
    """A database, how its devices write, and the passphrase of its notes."""

    remote: Remote
    tweaks: Tweaks
    passphrase: str | None = field(default=None, repr=False)
    filters: FilterSettings = FilterSettings()
    has_hidden_files: bool = False
    has_customization: bool = False

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> "Connection":
        """Take what we need from a device's settings.

        Raises:
            ConfigInvalid: they name no server or no database.
            InvalidArgument: a value is of the wrong kind.
            LivesyncIncompatible: they are for a kind of server or database that we do not know.
        """
        known = _with_active_connection(_completed(settings))
        if _text(known, "remoteType") != _COUCHDB:
            raise _not_couchdb()
        address = _address(_text(known, "couchDB_URI"))
        remote = Remote(
            url=_without_login(address),
            database=_text(known, "couchDB_DBNAME"),
            user=_text(known, "couchDB_USER") or unquote(address.username or "") or None,
            password=_text(known, "couchDB_PASSWORD") or unquote(address.password or "") or None,
            headers=MappingProxyType(parse_headers(_text(known, "couchDB_CustomHeaders"))),
            jwt=_jwt(known),
        )
        return cls(
            remote,
            Tweaks.from_settings(known),
            _text(known, "passphrase") or None,
            _filters(known),
            has_hidden_files=known["syncInternalFiles"] is True,
            has_customization=known["usePluginSync"] is True,
        )


def decode_setup_uri(uri: str, passphrase: str | None) -> dict[str, object]:
    """The settings in a setup URI or a QR code's address, completed with LiveSync's defaults.

    Raises:
        InvalidArgument: it is neither.
        LivesyncPassphrase: the setup passphrase is missing or wrong.
    """
    address = uri.strip()
    if address.startswith(_QR):
        return _completed(decode_settings_qr(address.removeprefix(_QR)))
    if not address.startswith(_URI):
        raise InvalidArgument(
            "This is not a LiveSync setup URI.",
            "In LiveSync: 'Copy settings as a new Setup URI', then paste all of it.",
        )
    if not passphrase:
        raise LivesyncPassphrase(
            "A setup URI opens only with its passphrase.",
            "Give the passphrase that was chosen when the URI was made.",
        )
    return _completed(_decrypted(unquote(address.removeprefix(_URI)), passphrase))


def parse_connection_string(uri: str) -> dict[str, object]:
    """The connection settings in an `sls+https://…` address.

    Raises:
        InvalidArgument: it is no such address.
        LivesyncIncompatible: it leads to something else than CouchDB.
    """
    head, colon, rest = uri.strip().partition(":")
    scheme = head.removeprefix("sls+")
    if not colon or scheme == head:
        raise InvalidArgument("This is not a LiveSync connection string.", _AGAIN)
    if scheme not in ("http", "https"):
        raise _not_couchdb()
    address = _address(f"{scheme}:{rest}")
    asked = {key: values[0] for key, values in parse_qs(address.query).items()}
    lifetime = asked.get("jwtExp", "5")
    return {
        "couchDB_URI": _without_login(address),
        "couchDB_USER": unquote(address.username or ""),
        "couchDB_PASSWORD": unquote(address.password or ""),
        "couchDB_DBNAME": asked.get("db", ""),
        "couchDB_CustomHeaders": asked.get("headers", ""),
        "useJWT": asked.get("useJWT") == "true",
        "jwtAlgorithm": asked.get("jwtAlg", ""),
        "jwtKey": asked.get("jwtKey", ""),
        "jwtKid": asked.get("jwtKid", ""),
        "jwtSub": asked.get("jwtSub", ""),
        "jwtExpDuration": int(lifetime) if re.fullmatch("[0-9]{1,9}", lifetime) else 5,
    }


_AGAIN = "Copy it again from LiveSync."


def _decrypted(encrypted: str, passphrase: str) -> dict[str, object]:
    try:
        if encrypted.startswith(OWN_SALT_PREFIX):
            text = decrypt_with_own_salt(encrypted, passphrase)
        else:
            # Which count an old URI was made with it does not say: both are tried.
            text = LegacyCipher(passphrase, is_dynamic=True).decrypt(encrypted)
        settings = json.loads(text)
    except LivesyncPassphrase:
        raise LivesyncPassphrase(
            "The passphrase does not open this setup URI.",
            "Use the passphrase of the URI, not the one of the notes; a URI may also have expired.",
        ) from None
    except (LivesyncUnreadable, ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise InvalidArgument("This setup URI is damaged.", _AGAIN)
    return settings


def _completed(settings: Mapping[str, object]) -> dict[str, object]:
    """Only what we use: the rest of a device's settings is none of our business."""
    found = {key: settings.get(key) for key in DEFAULTS}
    return {key: DEFAULTS[key] if value is None else value for key, value in found.items()}


def _with_active_connection(settings: dict[str, object]) -> dict[str, object]:
    """Newer devices keep several connections; the plain settings repeat the active one."""
    connections = settings["remoteConfigurations"]
    active = (
        connections.get(settings["activeConfigurationId"])
        if isinstance(connections, Mapping) and isinstance(settings["activeConfigurationId"], str)
        else None
    )
    uri = active.get("uri") if isinstance(active, Mapping) else None
    if settings["couchDB_URI"] or not isinstance(uri, str):
        return settings
    return settings | parse_connection_string(uri)


def _address(url: str) -> SplitResult:
    try:
        address = urlsplit(url.strip())
        is_usable = address.scheme in ("http", "https") and bool(address.hostname)
        _ = address.port  # a port that is no number is noticed only now
    except ValueError:
        is_usable = False
    if not is_usable:
        raise InvalidArgument("The settings name no usable server.", _AGAIN)
    return address


def _without_login(address: SplitResult) -> str:
    host = address.netloc.rpartition("@")[2].lower()
    return f"{address.scheme}://{host}{address.path.rstrip('/')}"


def _jwt(settings: Mapping[str, object]) -> Jwt | None:
    if settings["useJWT"] is not True:
        return None
    minutes = settings["jwtExpDuration"]
    return Jwt(
        algorithm=_text(settings, "jwtAlgorithm"),
        key=_text(settings, "jwtKey"),
        subject=_text(settings, "jwtSub"),
        key_id=_text(settings, "jwtKid") or None,
        lifetime_s=60 * (minutes if isinstance(minutes, int) and 0 < minutes <= 60 * 24 else 5),
    )


def _filters(settings: Mapping[str, object]) -> FilterSettings:
    # A device that does not obey ignore files says nothing about what the others agreed on.
    uses_ignore_files = True if settings["useIgnoreFiles"] is True else None
    return FilterSettings(
        only=_text(settings, ONLY),
        ignore=_text(settings, IGNORE),
        uses_ignore_files=uses_ignore_files,
        ignore_files=_text(settings, "ignoreFiles") if uses_ignore_files else None,
    )


def _not_couchdb() -> LivesyncIncompatible:
    return LivesyncIncompatible(
        "These settings are not for CouchDB.", "Only databases on a CouchDB server can be used."
    )


def _text(settings: Mapping[str, object], key: str) -> str:
    value = settings[key]
    if not isinstance(value, str):
        raise InvalidArgument(f"The setting '{key}' is no text.", _AGAIN)
    return value
