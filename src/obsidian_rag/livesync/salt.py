"""The salt of a database's encryption: read it, and decide when a new one may be made.

Whoever replaces the salt takes everybody's notes from them, and the document that keeps it knows no
conflicts. So a new one is made only where nothing is encrypted yet, and read back before its use.
"""

import base64
import secrets
from collections.abc import Mapping
from enum import StrEnum

from obsidian_rag.errors import LivesyncIncompatible

SYNC_PARAMETERS_NAME = "obsidian_livesync_sync_parameters"

_PROTOCOL = 2
_SALT_BYTES = 32


class SaltVerdict(StrEnum):
    """What to do about the salt of the encryption."""

    USE = "use"
    CREATE = "create"
    WAIT = "wait"  # another device is making one
    REFUSE = "refuse"  # a new one would lock up what is encrypted already


def salt_of(parameters: Mapping[str, object] | None) -> bytes | None:
    """The salt of the encryption; None if there is none yet.

    Raises:
        LivesyncIncompatible: it is malformed, or for an encryption we do not know.
    """
    if parameters is None or not parameters.get("pbkdf2salt"):
        return None
    text, protocol = parameters["pbkdf2salt"], parameters.get("protocolVersion")
    try:
        salt = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        salt = b""
    if len(salt) != _SALT_BYTES or (isinstance(protocol, int | float) and protocol > _PROTOCOL):
        raise LivesyncIncompatible(
            "The database's salt is for an encryption we do not know.",
            "Look for a newer obsidian-rag.",
        )
    return salt


def salt_verdict(parameters: Mapping[str, object] | None, *, has_encrypted: bool) -> SaltVerdict:
    """Whether a salt may be made; a database that has encrypted documents never gets a new one.

    Raises:
        LivesyncIncompatible: there is one that we cannot use.
    """
    if salt_of(parameters) is not None:
        return SaltVerdict.USE
    if has_encrypted:
        return SaltVerdict.REFUSE
    # Devices write these parameters twice, first without a salt.
    return SaltVerdict.CREATE if parameters is None else SaltVerdict.WAIT


def sync_parameters(salt: bytes) -> dict[str, object]:
    """The document that keeps a salt."""
    return {
        "_id": f"_local/{SYNC_PARAMETERS_NAME}",
        "type": "sync-parameters",
        "protocolVersion": _PROTOCOL,
        "pbkdf2salt": base64.b64encode(salt).decode("ascii"),
    }


def make_salt() -> bytes:
    """A salt for a database that has none and nothing encrypted."""
    return secrets.token_bytes(_SALT_BYTES)
