"""The server, the databases and the keyrings of LiveSync's own tests, here as well."""

from tests.livesync.conftest import far_remote, pouch, proxy, remote
from tests.livesync.keyrings import memory_keyring, no_keyring

__all__ = ["far_remote", "memory_keyring", "no_keyring", "pouch", "proxy", "remote"]
