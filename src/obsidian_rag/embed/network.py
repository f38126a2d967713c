"""Which embedding servers may be asked.

Threat: a setting, a synced config file or a typo makes the private text of notes leave the
machine. So the address itself decides, without DNS (whoever answers DNS could answer
127.0.0.1 now and something else later), and any address that two parsers might read
differently is refused.
"""

import re
from urllib.parse import SplitResult, urlsplit

from obsidian_rag.config import SecuritySettings, is_loopback
from obsidian_rag.errors import ConfigInvalid, SecurityViolation

_AMBIGUOUS = re.compile(r"[\\\s\x00-\x20\x7f]|[^\x00-\x7f]")
_FIX = "Set embedding.base_url to an address like http://localhost:11434."


def check_endpoint(url: str, security: SecuritySettings, consent: bool) -> bool:
    """Whether `url` lies outside this machine, if it may be asked at all.

    Raises:
        ConfigInvalid: not a plain http(s) address, or consent is missing.
        SecurityViolation: an outside address while security.local_only is on.
    """
    host = _host(url)
    if is_loopback(host):
        return False
    if security.local_only:
        raise SecurityViolation(
            f"The embedding server {host} is not on this machine, and security.local_only is on.",
            "Use a server on localhost, or set security.local_only to false.",
        )
    if not consent:
        raise ConfigInvalid(
            f"Note text would be sent to {host}.",
            "If you want that, set embedding.external_consent to true.",
        )
    return True


def _host(url: str) -> str:
    if _AMBIGUOUS.search(url):
        raise ConfigInvalid("embedding.base_url has characters that no address has.", _FIX)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigInvalid("embedding.base_url is not an address.", _FIX) from error
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigInvalid("embedding.base_url must be an http or https address.", _FIX)
    _refuse_extras(parts)
    return host


def _refuse_extras(parts: SplitResult) -> None:
    if parts.username is not None or parts.password is not None:
        raise ConfigInvalid("embedding.base_url must not hold a user name or password.", _FIX)
    if parts.query or parts.fragment:
        raise ConfigInvalid("embedding.base_url must not hold a query or fragment.", _FIX)
