"""Which servers the vault may be synced with.

Threat: a setting, a pasted setup URI or a typo makes private notes leave the machine. So the
address itself decides, without DNS, and a server elsewhere needs the user's word for this server.
"""

import ipaddress
from urllib.parse import urlsplit

from obsidian_rag.errors import LivesyncRefused
from obsidian_rag.livesync.remote import Remote

_LOOPBACK_V4 = ipaddress.ip_network("127.0.0.0/8")
_LOOPBACK_V6 = ipaddress.IPv6Address("::1")


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
    name = (urlsplit(url).hostname or "").lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address == _LOOPBACK_V6 or address in _LOOPBACK_V4
