"""A node of a LiveSync network: keeps a vault and a CouchDB database the same, both ways."""

from obsidian_rag.livesync.consent import check_consent, is_on_this_machine
from obsidian_rag.livesync.couch import Couch, Remote
from obsidian_rag.livesync.disk import Disk
from obsidian_rag.livesync.documents import Codec
from obsidian_rag.livesync.joining import Access, Membership, remote_key, unlock
from obsidian_rag.livesync.node import Listener, Node, Plan
from obsidian_rag.livesync.path_ids import warns
from obsidian_rag.livesync.resolving import Bench, Keep, Resolved
from obsidian_rag.livesync.secrets import SECRETS_FILE, Place, Secrets, SecretStore
from obsidian_rag.livesync.settling import Direction, Manner, Settler
from obsidian_rag.livesync.setup_uri import Connection, decode_setup_uri
from obsidian_rag.livesync.stats import Stats
from obsidian_rag.livesync.survey import Survey, rehearse, survey
from obsidian_rag.livesync.tweaks import Tweaks

__all__ = [
    "SECRETS_FILE",
    "Access",
    "Bench",
    "Codec",
    "Connection",
    "Couch",
    "Direction",
    "Disk",
    "Keep",
    "Listener",
    "Manner",
    "Membership",
    "Node",
    "Place",
    "Plan",
    "Remote",
    "Resolved",
    "SecretStore",
    "Secrets",
    "Settler",
    "Stats",
    "Survey",
    "Tweaks",
    "check_consent",
    "decode_setup_uri",
    "is_on_this_machine",
    "rehearse",
    "remote_key",
    "survey",
    "unlock",
    "warns",
]
