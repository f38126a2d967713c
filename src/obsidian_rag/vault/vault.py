"""One vault as a value: its identity, its folder, and whether it may be changed."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from obsidian_rag.config import Config
from obsidian_rag.errors import ReadOnly
from obsidian_rag.vault.boundary import relative_to_root, resolve
from obsidian_rag.vault.read import NoteFile, read_note
from obsidian_rag.vault.rules import Rules
from obsidian_rag.vault.scan import Scan, scan
from obsidian_rag.vault.walk import SkippedFile


class VaultMode(StrEnum):
    """Whether we may change notes of a vault."""

    READ_WRITE = "read_write"
    READ_ONLY = "read_only"


@dataclass(frozen=True, slots=True)
class Vault:
    """One vault; the link id of the primary one is empty until it has been indexed.

    Every call reads the disk: the value caches nothing that could change.
    """

    root: Path
    rules: Rules
    link_id: str = ""
    name: str = ""
    mode: VaultMode = VaultMode.READ_WRITE
    is_primary: bool = True
    is_paused: bool = False

    @property
    def label(self) -> str:
        """What kind of vault it is, in words."""
        if self.is_primary:
            return "Primary vault"
        return "Linked vault" + (" (read-only)" if self.mode is VaultMode.READ_ONLY else "")

    def must_be_writable(self) -> None:
        """Refuse a read-only vault; every writer calls this first.

        Raises:
            ReadOnly: the vault is linked as read-only.
        """
        if self.mode is not VaultMode.READ_WRITE:
            raise ReadOnly(
                f"'{self.name}' is a linked vault (read-only): nothing was written.",
                "Write into the primary vault instead.",
            )

    @property
    def max_file_bytes(self) -> int:
        """The size limit of a note."""
        return self.rules.max_file_bytes

    def scan(self, stop: Callable[[], bool] | None = None) -> Scan:
        """All notes, and what was left out.

        Raises:
            NotFound: the vault's folder is not there.
        """
        return scan(self.root, self.rules, stop=stop)

    def read(self, path: str) -> NoteFile | SkippedFile:
        """The note at this path.

        Raises:
            NoteChanged: another program keeps writing to it.
            SecurityViolation: the path leaves the vault.
        """
        return read_note(self.root, path, self.max_file_bytes)

    def relative(self, name: str) -> str:
        """A caller's path of a note, made relative to the vault.

        Raises:
            SecurityViolation: it leaves the vault.
        """
        return relative_to_root(self.root, name)

    def has_note(self, path: str) -> bool:
        """Whether the rules admit this path and there is a file at it."""
        if not self.rules.admits_file(path):
            return False
        with contextlib.suppress(OSError):  # a name may be longer than the disk allows
            return resolve(self.root, path).is_file()
        return False

    def real_path(self, path: str) -> str:
        """The path of a note relative to the vault, with symlinks resolved.

        Raises:
            SecurityViolation: it is outside the vault.
        """
        return resolve(self.root, path).relative_to(self.root.resolve()).as_posix()


def configured_vault(config: Config) -> Vault:
    """The vault from the settings, without the link id that an index would add.

    Raises:
        ConfigInvalid: no vault is configured.
    """
    root = config.vault_root
    return Vault(root, Rules.from_settings(config.settings.indexing), name=root.name)
