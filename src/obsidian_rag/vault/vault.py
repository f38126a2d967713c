"""One vault as a value: which it is, where it is, and what may be done with it."""

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
from obsidian_rag.vault.scan import Scan, SkippedFile, scan


class VaultMode(StrEnum):
    """Whether we may change notes of a vault."""

    READ_WRITE = "read_write"
    READ_ONLY = "read_only"


@dataclass(frozen=True, slots=True)
class Vault:
    """One vault; the primary one has a link id once it was indexed, and an empty one until then.

    What stands on the disk is asked for at every call: a value keeps nothing that could change.
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
        """Every writer asks this first.

        Raises:
            ReadOnly: the vault is linked to be read only.
        """
        if self.mode is not VaultMode.READ_WRITE:
            raise ReadOnly(
                f"'{self.name}' is a linked vault (read-only): nothing was written.",
                "Write into the primary vault instead.",
            )

    @property
    def max_file_bytes(self) -> int:
        """How large a note may be."""
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
            NoteChanged: somebody keeps writing to it.
            SecurityViolation: the path leaves the vault.
        """
        return read_note(self.root, path, self.max_file_bytes)

    def relative(self, name: str) -> str:
        """What a caller calls a note, as a path relative to the vault.

        Raises:
            SecurityViolation: it leads out of the vault.
        """
        return relative_to_root(self.root, name)

    def has_note(self, path: str) -> bool:
        """Whether there is a file at this path that the rules admit."""
        if not self.rules.admits_file(path):
            return False
        with contextlib.suppress(OSError):  # a name may be longer than the disk allows
            return resolve(self.root, path).is_file()
        return False

    def real_path(self, path: str) -> str:
        """Where a note really is, relative to the vault, whatever links lead there.

        Raises:
            SecurityViolation: it is outside the vault.
        """
        return resolve(self.root, path).relative_to(self.root.resolve()).as_posix()


def configured_vault(config: Config) -> Vault:
    """The vault that the settings name, without what an index knows of it.

    Raises:
        ConfigInvalid: no vault is configured.
    """
    root = config.vault_root
    return Vault(root, Rules.from_settings(config.settings.indexing), name=root.name)
