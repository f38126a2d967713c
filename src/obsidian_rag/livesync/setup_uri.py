"""Read what LiveSync passes between devices: setup URIs, QR codes, connection strings.

All of them hold passwords: no message quotes them, and no repr shows them.
"""

import json
import re
from collections.abc import Iterator, Mapping
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
from obsidian_rag.livesync.couchdb.remote import parse_headers
from obsidian_rag.livesync.filters import FilterSettings
from obsidian_rag.livesync.filters.filters import IGNORE, ONLY

# The positions of the settings we use.
_POSITIONS = {
    0: "remoteType",
    1: "useCustomRequestHandler",
    2: "couchDB_URI",
    3: "couchDB_USER",
    4: "couchDB_PASSWORD",
    5: "couchDB_DBNAME",
    6: "minimumChunkSize",
    7: "longLineThreshold",
    8: "encrypt",
    9: "passphrase",
    10: "usePathObfuscation",
    12: "batch_size",
    13: "batches_limit",
    21: "customChunkSize",
    22: "readChunksOnline",
    24: "useDynamicIterationCount",
    26: "useTimeouts",
    28: "hashCacheMaxCount",
    29: "hashCacheMaxAmount",
    30: "concurrencyOfReadChunksOnline",
    31: "minimumIntervalOfReadChunksOnline",
    32: "hashAlg",
    33: "enableCompression",
    39: "useEden",
    40: "maxChunksInEden",
    41: "maxTotalLengthInEden",
    42: "maxAgeInEden",
    44: "handleFilenameCaseSensitive",
    48: "useSegmenter",
    66: "syncMaxSizeInMB",
    67: "useIgnoreFiles",
    68: "ignoreFiles",
    69: "syncOnlyRegEx",
    70: "syncIgnoreRegEx",
    80: "syncInternalFiles",
    86: "usePluginSync",
    93: "usePluginSyncV2",
    102: "enableChunkSplitterV2",
    133: "couchDB_CustomHeaders",
    134: "useJWT",
    135: "jwtAlgorithm",
    136: "jwtKey",
    137: "jwtKid",
    138: "jwtSub",
    139: "jwtExpDuration",
    146: "chunkSplitterVersion",
    147: "E2EEAlgorithm",
    157: "remoteConfigurations",
    158: "activeConfigurationId",
}
_CONSTANTS: dict[str, object] = {"u": None, "n": None, "t": True, "f": False}
# Five letters for each kind: the first has one digit of length, the last has five.
_KINDS = {"A": "base 36", "a": "decimal", "V": "text", "v": "structure"}
_LETTERS = {
    chr(ord(first) + digits - 1): (kind, digits)
    for first, kind in _KINDS.items()
    for digits in range(1, 6)
}
_BASE_36 = re.compile(r"-?[0-9a-z]+")
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
_MAX_DEPTH = 8


def decode_settings_qr(encoded: str) -> dict[str, object]:
    """The settings in the part of a QR code's address after `settingsQR=`."""
    try:
        values = list(_values(unquote(encoded, errors="strict"), depth=0))
    except (ValueError, RecursionError):
        raise InvalidArgument(
            "The settings of this QR code cannot be read.",
            "Copy the whole address, or use a setup URI.",
        ) from None
    return {
        key: values[place]
        for place, key in _POSITIONS.items()
        if place < len(values) and values[place] is not None
    }


def _values(encoded: str, *, depth: int) -> Iterator[object]:
    """Every value in turn; lengths count UTF-16 units, two bytes each."""
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    data = encoded.encode("utf-16-le")
    at = 0

    def take(units: int) -> str:
        nonlocal at
        if not 0 <= 2 * units <= len(data) - at:
            raise ValueError("the end is missing")
        part = data[at : at + 2 * units]
        at += 2 * units
        return part.decode("utf-16-le")

    while at < len(data):
        letter = take(1)
        if letter in _CONSTANTS:
            yield _CONSTANTS[letter]
        else:
            kind, digits = _LETTERS.get(letter, ("", 0))
            yield _value(kind, take(_base_36(take(digits))), depth)


def _value(kind: str, text: str, depth: int) -> object:
    match kind:
        case "text":
            return text
        case "base 36":
            return _base_36(text)
        case "decimal" if _DECIMAL.fullmatch(text):
            number = float(text)
            return int(number) if number.is_integer() else number
        case "structure" if text.startswith("_"):
            return list(_values(text[1:], depth=depth + 1))
        case "structure" if text.startswith("^"):
            parts = list(_values(text[1:], depth=depth + 1))
            return dict(zip(map(str, parts[::2]), parts[1::2], strict=True))
        case "structure":
            return json.loads(text)
    raise ValueError("unknown letter")


def _base_36(text: str) -> int:
    if not _BASE_36.fullmatch(text):
        raise ValueError("no number")
    return int(text, 36)


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
# Defaults for settings that we need and LiveSync leaves out of a setup URI.
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
    """A database, its devices' shared settings, and the passphrase of its notes."""

    remote: Remote
    tweaks: Tweaks
    passphrase: str | None = field(default=None, repr=False)
    filters: FilterSettings = FilterSettings()
    has_hidden_files: bool = False
    has_customization: bool = False

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> "Connection":
        """Take what we need from a device's settings."""
        known = _with_active_connection(_complete(settings))
        if _text(known, "remoteType") != _COUCHDB:
            raise _not_couchdb_error()
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
    """The settings in a setup URI or a QR code's address, completed with LiveSync's defaults."""
    address = uri.strip()
    if address.startswith(_QR):
        return _complete(decode_settings_qr(address.removeprefix(_QR)))
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
    return _complete(_decrypt(unquote(address.removeprefix(_URI)), passphrase))


def parse_connection_string(uri: str) -> dict[str, object]:
    """The connection settings in an `sls+https://…` address."""
    head, colon, rest = uri.strip().partition(":")
    scheme = head.removeprefix("sls+")
    if not colon or scheme == head:
        raise InvalidArgument("This is not a LiveSync connection string.", _COPY_AGAIN)
    if scheme not in ("http", "https"):
        raise _not_couchdb_error()
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


_COPY_AGAIN = "Copy it again from LiveSync."


def _decrypt(encrypted: str, passphrase: str) -> dict[str, object]:
    try:
        if encrypted.startswith(OWN_SALT_PREFIX):
            text = decrypt_with_own_salt(encrypted, passphrase)
        else:
            # An old URI does not say which iteration count it was made with: both are tried.
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
        raise InvalidArgument("This setup URI is damaged.", _COPY_AGAIN)
    return settings


def _complete(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings we use, completed with defaults; the rest is dropped."""
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
        _ = address.port  # raises ValueError for an invalid port
    except ValueError:
        is_usable = False
    if not is_usable:
        raise InvalidArgument("The settings name no usable server.", _COPY_AGAIN)
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
    # A device that ignores ignore files does not speak for the others.
    uses_ignore_files = True if settings["useIgnoreFiles"] is True else None
    return FilterSettings(
        only=_text(settings, ONLY),
        ignore=_text(settings, IGNORE),
        uses_ignore_files=uses_ignore_files,
        ignore_files=_text(settings, "ignoreFiles") if uses_ignore_files else None,
    )


def _not_couchdb_error() -> LivesyncIncompatible:
    return LivesyncIncompatible(
        "These settings are not for CouchDB.", "Only databases on a CouchDB server can be used."
    )


def _text(settings: Mapping[str, object], key: str) -> str:
    value = settings[key]
    if not isinstance(value, str):
        raise InvalidArgument(f"The setting '{key}' is not text.", _COPY_AGAIN)
    return value
