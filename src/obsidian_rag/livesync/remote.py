"""Where the database is, who we are to it, and whether notes may go there.

Threat: a setting, a pasted setup URI or a typo makes private notes leave the machine. So the
address itself decides, without DNS, and a server elsewhere needs the user's word for this server.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from obsidian_rag.config import is_loopback
from obsidian_rag.errors import ConfigInvalid, LivesyncRefused
from obsidian_rag.livesync.couch_auth import Jwt, check_header
from obsidian_rag.livesync.tweaks import Tweaks

_NOT_IN_AN_ADDRESS = re.compile(r"[\\\s\x00-\x20\x7f\ud800-\udfff]")
_HALF_A_CHARACTER = re.compile(r"[\ud800-\udfff]")
_FIX = "Set livesync.couchdbUrl to an address like https://couch.example.com:6984."


@dataclass(frozen=True, slots=True)
class Remote:
    """A database on a CouchDB server, and who we are to it.

    Raises:
        ConfigInvalid: the address, the name or a header cannot be used.
    """

    url: str
    database: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    jwt: Jwt | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _check_address(self.url)
        if not self.database or not is_unicode(self.database):
            raise ConfigInvalid("The CouchDB database has no name.", "Set livesync.dbName.")
        for name, value in self.headers.items():
            check_header(name, value, "An extra header")

    @property
    def address(self) -> str:
        """Where the database is, without a slash at the end."""
        return f"{self.url.rstrip('/')}/{escaped(self.database)}"

    @property
    def who(self) -> str:
        """Who we are, for messages."""
        name = self.jwt.subject if self.jwt else self.user
        return "a request without a user name" if name is None else f"the user '{name}'"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a node works: a database, what opens it, and the folder that is synced with it.

    `tweaks` say how to keep notes in a database that does not say so itself.
    """

    remote: Remote
    root: Path
    passphrase: str | None = field(default=None, repr=False)
    tweaks: Tweaks | None = None

    @property
    def key(self) -> str:
        """The name under which we remember the database."""
        return remote_key(self.remote)


def remote_key(remote: Remote) -> str:
    """The name under which we remember a database."""
    return hashlib.sha256(f"{remote.url.rstrip('/')}/{remote.database}".encode()).hexdigest()[:32]


def escaped(name: str) -> str:
    """A name as one part of a path."""
    # A part of dots alone would be taken for a way up.
    return quote(name, safe="") if name.strip(".") else "%2E" * len(name)


def is_unicode(text: str) -> bool:
    """Whether a text can be sent at all: JSON may hold half a character."""
    return not _HALF_A_CHARACTER.search(text)


def check_consent(remote: Remote, has_consent: bool) -> None:
    """Refuse a server outside this machine that nobody has consented to.

    Raises:
        LivesyncRefused: it is one.
    """
    if not has_consent and not is_on_this_machine(remote.url):
        raise LivesyncRefused(
            f"The CouchDB server {urlsplit(remote.url).hostname} is not on this machine.",
            "If your notes may go there, say so with `--consent`, or set"
            " livesync.remote_consent to true.",
        )


def is_on_this_machine(url: str) -> bool:
    """Whether an address is this machine by definition."""
    return is_loopback(urlsplit(url).hostname or "")


def _check_address(url: str) -> None:
    if _NOT_IN_AN_ADDRESS.search(url):
        raise ConfigInvalid("The CouchDB address has characters no address has.", _FIX)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        # Without the cause: it quotes the address, which may hold a password.
        raise ConfigInvalid("The CouchDB address is not an address.", _FIX) from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigInvalid("The CouchDB address must begin with http or https.", _FIX)
    if parts.username is not None or parts.password is not None:
        raise ConfigInvalid("The CouchDB address must not hold a user name or password.", _FIX)
    if parts.query or parts.fragment:
        raise ConfigInvalid("The CouchDB address must not hold a query or fragment.", _FIX)
