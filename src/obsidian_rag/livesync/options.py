"""What a command asks for besides the settings."""

from dataclasses import dataclass, field
from pathlib import Path

from obsidian_rag.livesync.case import Direction
from obsidian_rag.livesync.codec import Tweaks


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one LiveSync command; what it leaves out is as the settings say."""

    url: str | None = field(default=None, repr=False)  # it may hold a user and a password
    database: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    passphrase: str | None = field(default=None, repr=False)
    vault: Path | None = None
    has_consent: bool = False
    # How to keep notes in a database that does not say so itself.
    is_init: bool = False
    tweaks: Tweaks | None = None
    encrypts: bool | None = None
    # Of a sync.
    direction: Direction = Direction.BOTH
    is_read_only: bool = False
    is_dry: bool = False
    allows_deletions: bool = False
    # Of the setup: a setup URI names the database instead of an address.
    uri: str | None = field(default=None, repr=False)
    uri_passphrase: str | None = field(default=None, repr=False)
    may_use_keyring: bool = True
    may_reuse: bool = True
    # The database need not be encrypted, whatever passphrase was given or kept.
    may_be_unencrypted: bool = False
