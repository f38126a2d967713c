"""Setup URIs and QR addresses as LiveSync makes them, for any settings."""

import base64
import json
import os
from collections.abc import Mapping
from urllib.parse import quote

from tests.livesync.vectors import VECTORS

from obsidian_rag.livesync.codec.encryption import PREFIX, encrypt, master_key
from obsidian_rag.livesync.couchdb.remote import Remote


def settings_of(remote: Remote, **others: object) -> dict[str, object]:
    """The settings of a device that syncs with a database."""
    return {
        "couchDB_URI": remote.url,
        "couchDB_USER": remote.user or "",
        "couchDB_PASSWORD": remote.password or "",
        "couchDB_DBNAME": remote.database,
        **others,
    }


def setup_uri(settings: Mapping[str, object], passphrase: str) -> str:
    """A setup URI that opens with the passphrase."""
    salt, iv, own = os.urandom(32), os.urandom(12), os.urandom(32)
    sealed = encrypt(json.dumps(dict(settings)), master_key(passphrase, salt), iv=iv, salt=own)
    data = base64.b64encode(salt + base64.b64decode(sealed.removeprefix(PREFIX))).decode()
    return f"obsidian://setuplivesync?settings={quote('%$' + data, safe='')} "


def qr_address(settings: Mapping[str, object]) -> str:
    """The address in a QR code, which is not encrypted."""
    places: dict[str, int] = VECTORS["settingsQR"]["keyIndex"]
    values = ["u"] * (max(places[key] for key in settings) + 1)
    for key, value in settings.items():
        values[places[key]] = _encoded(value)
    return f"obsidian://setuplivesync?settingsQR={quote(''.join(values), safe='')}"


def _encoded(value: object) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    assert isinstance(value, str)
    length = _base_36(len(value.encode("utf-16-le")) // 2)
    return f"{'VWXYZ'[len(length) - 1]}{length}{value}"


def _base_36(number: int) -> str:
    digits = ""
    while True:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
        if not number:
            return digits
