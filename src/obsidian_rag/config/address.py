"""Which server an address names, and whether that server is this machine.

Threat: an address that two programs read differently, so that notes go to another server than the
one that was checked and agreed to. A browser, a URL parser and an HTTP library do not agree on a
backslash, a control character, or on characters like the full-width `１` and the ideographic `。`,
which some of them turn into `1` and `.`. So an address with any of these is refused. Whether a
server is this machine is decided by its name alone, never by DNS, whose answer may change.
"""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from obsidian_rag.errors import ConfigInvalid

_AMBIGUOUS = re.compile(r"[\\\s\x00-\x20\x7f]|[^\x00-\x7f]")
_LOOPBACK_V4 = ipaddress.ip_network("127.0.0.0/8")
_LOOPBACK_V6 = ipaddress.IPv6Address("::1")


def check_address(url: str, subject: str, suggestion: str) -> str:
    """Check that this is an unambiguous http(s) address without a login; return its host.

    The messages begin with `subject` and never quote the address: it may hold a password.

    Raises:
        ConfigInvalid: it is not.
    """
    if _AMBIGUOUS.search(url):
        raise ConfigInvalid(f"{subject} has characters that no address has.", suggestion)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        # Drop the cause: it quotes the address.
        raise ConfigInvalid(f"{subject} is not a valid address.", suggestion) from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigInvalid(f"{subject} must begin with http:// or https://.", suggestion)
    if (extra := _extra_part(parts)) is not None:
        raise ConfigInvalid(f"{subject} must not contain {extra}.", suggestion)
    return host


def _extra_part(parts: SplitResult) -> str | None:
    if parts.username is not None or parts.password is not None:
        return "a user name or password"
    return "a query or fragment" if parts.query or parts.fragment else None


def is_on_this_machine(url: str) -> bool:
    """Whether an address names this machine."""
    return is_loopback(urlsplit(url).hostname or "")


def is_loopback(host: str) -> bool:
    """Whether a host name or address literal is this machine by definition."""
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address == _LOOPBACK_V6 or address in _LOOPBACK_V4
