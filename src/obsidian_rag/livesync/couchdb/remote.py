"""Where the database is and who we are to it, and how names become parts of an address."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from obsidian_rag.errors import ConfigInvalid
from obsidian_rag.livesync.couchdb.auth import Jwt, check_header

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
    def key(self) -> str:
        """The name under which we remember the database."""
        place = f"{self.url.rstrip('/')}/{self.database}"
        return hashlib.sha256(place.encode()).hexdigest()[:32]

    @property
    def who(self) -> str:
        """Who we are, for messages."""
        name = self.jwt.subject if self.jwt else self.user
        return "a request without a user name" if name is None else f"the user '{name}'"


def escaped(name: str) -> str:
    """A name as one part of a path."""
    # A part of dots alone would be taken for a way up.
    return quote(name, safe="") if name.strip(".") else "%2E" * len(name)


def is_unicode(text: str) -> bool:
    """Whether a text can be sent at all: JSON may hold half a character."""
    return not _HALF_A_CHARACTER.search(text)


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
