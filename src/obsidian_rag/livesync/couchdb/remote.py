"""The address of a database and our login to it: Basic, JWT, and extra headers.

Messages never quote anything from here: any line of settings may hold a secret.
"""

import base64
import hashlib
import hmac
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from obsidian_rag.config import check_address
from obsidian_rag.errors import ConfigInvalid

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_ADDRESS_FIX = "Set livesync.couchdbUrl to an address like https://couch.example.com:6984."
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_HMAC_DIGESTS = {"HS256": "sha256", "HS512": "sha512"}
# JWT signatures are two numbers as wide as the curve, not DER as libraries produce.
_CURVES = {"ES256": ("secp256r1", 32), "ES512": ("secp521r1", 66)}
_ROLES = ("_admin",)
_LIFETIME_S = 300
_RENEWAL_MARGIN_S = 60.0
_PEM_BORDER = re.compile(r"-----(BEGIN|END)[^-]*-----")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
# These frame or route the request, so only we may set them.
_FRAMING = {"connection", "content-length", "host", "te", "transfer-encoding", "upgrade"}
_JWT_FIX = "Copy the JWT settings from a device that syncs, with `obsidian-rag livesync setup`."
_HEADER_FIX = "Write one header per line, as in `CF-Access-Client-Id: value`."


@dataclass(frozen=True, slots=True)
class Jwt:
    """How to sign JWTs for a server that accepts them."""

    algorithm: str
    key: str = field(repr=False)
    subject: str
    key_id: str | None = None
    lifetime_s: int = _LIFETIME_S


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
        check_address(self.url, "The CouchDB address", _ADDRESS_FIX)
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
        name = f"{self.url.rstrip('/')}/{self.database}"
        return hashlib.sha256(name.encode()).hexdigest()[:32]

    @property
    def login_name(self) -> str:
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


class Bearer:
    """The current token of one key, renewed before it expires."""

    def __init__(self, jwt: Jwt, clock: Callable[[], float] = time.time) -> None:
        self._jwt = jwt
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._renew_at = 0.0

    def authorization(self) -> str:
        """The value of the header."""
        with self._lock:
            now = self._clock()
            # A clock set back would keep a token whose `iat` is in the future.
            if not self._renew_at - self._jwt.lifetime_s <= now < self._renew_at:
                self._token = sign(self._jwt, int(now))
                margin_s = min(_RENEWAL_MARGIN_S, self._jwt.lifetime_s / 2)
                self._renew_at = int(now) + self._jwt.lifetime_s - margin_s
            return f"Bearer {self._token}"


def sign(jwt: Jwt, now_s: int) -> str:
    """A token that is valid from now for the lifetime of `jwt`."""
    header = {"alg": jwt.algorithm, "typ": "JWT"} | ({"kid": jwt.key_id} if jwt.key_id else {})
    payload = {
        "exp": now_s + jwt.lifetime_s,
        "iat": now_s,
        "sub": jwt.subject,
        "_couchdb.roles": list(_ROLES),
    }
    message = f"{_base64url(_json(header))}.{_base64url(_json(payload))}"
    return f"{message}.{_base64url(_signature(jwt, message.encode()))}"


def basic(user: str, password: str) -> str:
    """The value of the header for a name and a password, in UTF-8."""
    if ":" in user or _CONTROL.search(user + password):
        raise ConfigInvalid(
            "The user name of the CouchDB server has a colon, or a control character is in it "
            "or in the password.",
            "Choose others, on the server too.",
        )
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def parse_headers(text: str) -> dict[str, str]:
    """Parse headers from lines `Name: value`."""
    headers = {}
    # Not splitlines(): it also splits at characters that are part of a value.
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if not line.strip():
            continue
        name, colon, value = (part.strip(" \t") for part in line.partition(":"))
        if not colon:
            raise ConfigInvalid(f"Line {number} of the extra headers has no colon.", _HEADER_FIX)
        check_header(name, value, f"Line {number} of the extra headers")
        headers[name] = value
    return headers


def check_header(name: str, value: str, where: str) -> None:
    """Refuse a header that could change the request around it."""
    if not _HEADER_NAME.fullmatch(name) or name.lower() in _FRAMING:
        raise ConfigInvalid(f"{where} has a name that is not allowed.", _HEADER_FIX)
    if _CONTROL.search(value):
        raise ConfigInvalid(f"{where} has a control character.", _HEADER_FIX)


def _signature(jwt: Jwt, message: bytes) -> bytes:
    if digest := _HMAC_DIGESTS.get(jwt.algorithm):
        key = _decode_key(jwt.key)
        if not key:
            raise ConfigInvalid("The JWT key is empty.", _JWT_FIX)
        return hmac.new(key, message, digest).digest()
    if jwt.algorithm not in _CURVES:
        raise ConfigInvalid(
            "The JWT algorithm is not one of HS256, HS512, ES256 and ES512.", _JWT_FIX
        )
    return _elliptic_signature(jwt, message)


def _elliptic_signature(jwt: Jwt, message: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    _, width = _CURVES[jwt.algorithm]
    digest = hashes.SHA256() if jwt.algorithm == "ES256" else hashes.SHA512()
    r, s = decode_dss_signature(_private_key(jwt).sign(message, ECDSA(digest)))
    return r.to_bytes(width, "big") + s.to_bytes(width, "big")


def _private_key(jwt: Jwt) -> "EllipticCurvePrivateKey":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    try:
        # The border lines are optional and the line ends may be lost, as in the plugin.
        key = load_der_private_key(_decode_key(_PEM_BORDER.sub("", jwt.key)), password=None)
    except (TypeError, UnsupportedAlgorithm, ValueError):
        # Drop the cause: it may quote the key.
        raise ConfigInvalid("The JWT key is not a private key in PKCS #8.", _JWT_FIX) from None
    curve, _ = _CURVES[jwt.algorithm]
    if not isinstance(key, EllipticCurvePrivateKey) or key.curve.name != curve:
        raise ConfigInvalid(f"The JWT key is not one for {jwt.algorithm}.", _JWT_FIX)
    return key


def _decode_key(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError:
        raise ConfigInvalid("The JWT key is not base64.", _JWT_FIX) from None


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
