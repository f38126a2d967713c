"""Which servers the vault may be synced with.

Threat: a setting, a pasted setup URI or a typo makes private notes leave the machine. So the
address itself decides, without DNS, and a server elsewhere needs the user's word for this server.
"""

from urllib.parse import urlsplit

from obsidian_rag.config import is_loopback
from obsidian_rag.errors import LivesyncRefused
from obsidian_rag.livesync.remote import Remote


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
