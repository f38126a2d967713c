"""The address of a database, our login to it, and escaping of names in addresses."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from obsidian_rag.errors import ConfigInvalid
from obsidian_rag.livesync.couchdb.auth import Jwt, check_header

_INVALID_IN_ADDRESS = re.compile(r"[\\\s\x00-\x20\x7f\ud800-\udfff]")
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ADDRESS_FIX = "Set livesync.couchdbUrl to an address like https://couch.example.com:6984."


@dataclass(frozen=True, slots=True)
class Remote:
    """A database on a CouchDB server, and our login.

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
        """The URL of the database, without a trailing slash."""
        return f"{self.url.rstrip('/')}/{escaped(self.database)}"

    @property
    def key(self) -> str:
        """A key for this address, under which its records and secrets are stored."""
        place = f"{self.url.rstrip('/')}/{self.database}"
        return hashlib.sha256(place.encode()).hexdigest()[:32]

    @property
    def who(self) -> str:
        """Our user name, for messages."""
        name = self.jwt.subject if self.jwt else self.user
        return "a request without a user name" if name is None else f"the user '{name}'"


def escaped(name: str) -> str:
    """A name, escaped as one part of a path."""
    # A part of only dots would be resolved as a relative path.
    return quote(name, safe="") if name.strip(".") else "%2E" * len(name)


def is_unicode(text: str) -> bool:
    """Whether a text can be encoded: JSON may contain lone surrogates."""
    return not _LONE_SURROGATE.search(text)


def _check_address(url: str) -> None:
    if _INVALID_IN_ADDRESS.search(url):
        raise ConfigInvalid("The CouchDB address has characters no address has.", _ADDRESS_FIX)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        # Drop the cause: it quotes the address, which may hold a password.
        raise ConfigInvalid("The CouchDB address is not an address.", _ADDRESS_FIX) from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigInvalid("The CouchDB address must begin with http or https.", _ADDRESS_FIX)
    if parts.username is not None or parts.password is not None:
        raise ConfigInvalid(
            "The CouchDB address must not hold a user name or password.", _ADDRESS_FIX
        )
    if parts.query or parts.fragment:
        raise ConfigInvalid("The CouchDB address must not hold a query or fragment.", _ADDRESS_FIX)
