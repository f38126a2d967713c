"""A node of a LiveSync network: keeps a vault and a CouchDB database the same, both ways."""

from obsidian_rag.livesync.case import Direction, Manner
from obsidian_rag.livesync.consent import check_consent, is_on_this_machine
from obsidian_rag.livesync.couch import Couch, Remote
from obsidian_rag.livesync.deletions import MOVED, Answer, answer_held, held_deletions
from obsidian_rag.livesync.disk import Disk
from obsidian_rag.livesync.documents import Codec
from obsidian_rag.livesync.filters import Filters, FilterSettings, check_filters
from obsidian_rag.livesync.joining import Access, Membership, remote_key, unlock
from obsidian_rag.livesync.left_out import LeftOut
from obsidian_rag.livesync.node import Listener, Node, Plan
from obsidian_rag.livesync.path_ids import warns
from obsidian_rag.livesync.resolving import Bench, Keep, Resolved
from obsidian_rag.livesync.secrets import SECRETS_FILE, Place, Secrets, SecretStore
from obsidian_rag.livesync.settling import Settler
from obsidian_rag.livesync.setup_uri import Connection, decode_setup_uri
from obsidian_rag.livesync.stats import Stats
from obsidian_rag.livesync.survey import Survey, rehearse, survey
from obsidian_rag.livesync.tweaks import NotEncrypted, Tweaks

__all__ = [
    "MOVED",
    "SECRETS_FILE",
    "Access",
    "Answer",
    "Bench",
    "Codec",
    "Connection",
    "Couch",
    "Direction",
    "Disk",
    "FilterSettings",
    "Filters",
    "Keep",
    "LeftOut",
    "Listener",
    "Manner",
    "Membership",
    "Node",
    "NotEncrypted",
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
    "answer_held",
    "check_consent",
    "check_filters",
    "decode_setup_uri",
    "held_deletions",
    "is_on_this_machine",
    "rehearse",
    "remote_key",
    "survey",
    "unlock",
    "warns",
]
