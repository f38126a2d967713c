"""Whether an address is this machine, which decides what private text may be sent where.

Threat: a DNS server could answer 127.0.0.1 now and something else later. So the name or the
address itself decides, without DNS.
"""

import ipaddress

__all__ = ["is_loopback"]

_LOOPBACK_V4 = ipaddress.ip_network("127.0.0.0/8")
_LOOPBACK_V6 = ipaddress.IPv6Address("::1")


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
