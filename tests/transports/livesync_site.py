"""A database, another device of its network, and a command line that knows the password."""

import base64
import hashlib
from pathlib import Path

from tests.livesync.nodes import TestNode

from obsidian_rag.livesync import Tweaks
from obsidian_rag.livesync.couchdb.remote import Remote

PASSPHRASE = "nötig-geheim"
URI_PASSPHRASE = "setup-päss"


def options_of(remote: Remote, vault: Path) -> list[str]:
    """The options that name a database and a folder."""
    return [
        *("--url", remote.url, "--db", remote.database, "--user", remote.user or ""),
        *("--password-env", "COUCH_PASSWORD", "--vault", str(vault)),
    ]


def device_of(
    folder: Path, remote: Remote, tweaks: Tweaks | None = None, passphrase: str | None = None
) -> TestNode:
    """Another device, which has set the database up."""
    node = TestNode(folder, remote, tweaks=tweaks, passphrase=passphrase)
    node.sync()
    return node


def forms_of(secret: str) -> set[str]:
    """How a secret may look where it does not belong."""
    data = secret.encode()
    return {
        secret,
        repr(secret)[1:-1],
        ascii(secret)[1:-1],
        base64.b64encode(data).decode(),
        hashlib.sha256(data).hexdigest(),
    }
