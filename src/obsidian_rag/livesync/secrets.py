"""Passwords and passphrases of databases: in the system's keyring if there is one, else a file.

Threat: a secret that other users can read, or that is printed or logged. So none appears in a
message or a repr, only its owner can read the file, and a keyring is used only if it returns what
was stored.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from obsidian_rag.config import write_atomically
from obsidian_rag.errors import ConfigInvalid
from obsidian_rag.livesync.couchdb import Jwt

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SECRETS_FILE = "livesync-secrets.json"
_SERVICE = "obsidian-rag livesync"
# Lower priorities are for tests, or store passwords in a file no better than ours.
_MIN_PRIORITY = 1
_SETUP_AGAIN = "Run `obsidian-rag livesync setup` again."


class Place(StrEnum):
    """Where secrets are stored."""

    KEYRING = "keyring"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets of one database; those not needed are None or empty."""

    password: str | None = field(default=None, repr=False)
    passphrase: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    jwt: Jwt | None = field(default=None, repr=False)


class SecretStore:
    """The secrets of one data folder, each under the key of its database."""

    def __init__(self, home: Path) -> None:
        self._file = home / SECRETS_FILE

    def get(self, remote: str) -> Secrets | None:
        """The secrets of a database, None if none are stored; asks the keyring only if needed."""
        stored = self._read().get(remote)
        if stored is None:
            return None
        if stored == Place.KEYRING:
            stored = _parse_json(_read_from_keyring(remote))
        try:
            return _parse_secrets(stored)
        except (KeyError, TypeError, ValueError):
            raise ConfigInvalid(
                "The stored password of the database is damaged.", _SETUP_AGAIN
            ) from None

    def put(self, remote: str, secrets: Secrets, *, may_use_keyring: bool = True) -> Place:
        """Store the secrets of a database and return where; the data folder must exist."""
        known = self._read()
        place = Place.FILE
        if may_use_keyring and _store_in_keyring(remote, json.dumps(_fields(secrets))):
            place = Place.KEYRING
        elif known.get(remote) == Place.KEYRING:
            _remove_from_keyring(remote)
        known[remote] = place.value if place is Place.KEYRING else _fields(secrets)
        write_atomically(self._file, json.dumps(known, indent=2) + "\n")
        return place

    def forget(self, remote: str) -> Place | None:
        """Remove the secrets of a database; return where they were, None if nowhere."""
        known = self._read()
        kept = known.pop(remote, None)
        if kept is None:
            return None
        if kept == Place.KEYRING and not _remove_from_keyring(remote):
            raise ConfigInvalid(
                "The password of the database is in the system's keyring, which cannot be changed"
                " now.",
                "Unlock the keyring and try again.",
            )
        write_atomically(self._file, json.dumps(known, indent=2) + "\n")
        return Place.KEYRING if kept == Place.KEYRING else Place.FILE

    def _read(self) -> dict[str, object]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigInvalid(
                f"{self._file} cannot be read ({error.strerror}).", "Check its permissions."
            ) from None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ConfigInvalid(f"{self._file} is damaged.", f"Remove it. {_SETUP_AGAIN}") from None
        return found


def _fields(secrets: Secrets) -> dict[str, object]:
    return {
        "password": secrets.password,
        "passphrase": secrets.passphrase,
        "headers": dict(secrets.headers),
        "jwt": asdict(secrets.jwt) if secrets.jwt else None,
    }


def _parse_secrets(stored: object) -> Secrets:
    if not isinstance(stored, dict):
        raise TypeError
    headers, jwt = stored["headers"], stored["jwt"]
    if not isinstance(headers, dict):
        raise TypeError
    return Secrets(
        password=_text(stored["password"]),
        passphrase=_text(stored["passphrase"]),
        headers=MappingProxyType({str(name): str(value) for name, value in headers.items()}),
        jwt=Jwt(**jwt) if isinstance(jwt, dict) else None,
    )


def _text(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError
    return value


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _keyring() -> "KeyringBackend | None":
    """The system's keyring, if it is a secure one."""
    # Imported here: it is slow, and many machines have no keyring.
    import keyring  # noqa: PLC0415

    try:
        found = keyring.get_keyring()
        return found if found.priority >= _MIN_PRIORITY else None
    except Exception:  # noqa: BLE001  (a foreign backend may raise anything; then the file is used)
        return None


def _store_in_keyring(remote: str, text: str) -> bool:
    backend = _keyring()
    if backend is None:
        return False
    try:
        backend.set_password(_SERVICE, remote, text)
        return backend.get_password(_SERVICE, remote) == text
    except Exception:  # noqa: BLE001  (as above: locked, full, or refused by its user)
        return False


def _read_from_keyring(remote: str) -> str:
    backend = _keyring()
    text: str | None = None
    if backend is not None:
        try:
            text = backend.get_password(_SERVICE, remote)
        except Exception:  # noqa: BLE001  (as above)
            text = None
    if text is None:
        raise ConfigInvalid(
            "The password of the database is in the system's keyring, which does not return it.",
            "Unlock the keyring, or keep the password in a file: run"
            " `obsidian-rag livesync setup --no-keyring` again.",
        )
    return text


def _remove_from_keyring(remote: str) -> bool:
    """Remove a secret from the keyring; return whether it is gone."""
    backend = _keyring()
    if backend is None:
        return False
    try:
        if backend.get_password(_SERVICE, remote) is not None:
            backend.delete_password(_SERVICE, remote)
    except Exception:  # noqa: BLE001  (as above)
        return False
    return True
