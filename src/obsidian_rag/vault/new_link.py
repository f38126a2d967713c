"""Which folders may be linked as a vault, and what is odd about one that may."""

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

from obsidian_rag.errors import InvalidArgument, NotFound, ReadOnly, VaultAway
from obsidian_rag.vault.vault import Vault, VaultMode

# How long a new folder is looked through for links that lead out of it; status tells the rest.
_LOOK_S = 0.5
_MOST_WARNINGS = 20
_ODD = {
    "outside_vault": "leads out of the vault and is not read",
    "symlink_loop": "leads in a circle and is not followed",
}


def check_link_mode(mode: str) -> None:
    """Linked vaults are only read.

    Raises:
        InvalidArgument: there is no such mode.
        ReadOnly: it asks for writing.
    """
    if mode not in tuple(VaultMode):
        raise InvalidArgument(
            f"'{mode}' is no mode.", "Use read_only: linked vaults are never written to."
        )
    if mode == VaultMode.READ_WRITE:
        raise ReadOnly(
            "Linked vaults are read_only: how two programs' edits would be joined is not decided.",
            "Leave the mode out, or make it the primary vault with `obsidian-rag init --vault …`.",
        )


def linkable_root(root_path: str, vaults: Iterable[Vault], home: Path) -> Path:
    """The folder that a user means, as one that lies apart from all vaults and the data folder.

    Raises:
        InvalidArgument: it cannot be a linked vault.
    """
    given = Path(os.path.expanduser(root_path))  # noqa: PTH111  (the text may be anything)
    if not given.is_absolute():
        raise InvalidArgument(f"'{root_path}' is not an absolute path.", "Give the whole path.")
    try:
        root = given.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "it leads in a circle"
        raise InvalidArgument(
            f"'{root_path}' cannot be opened: {why}.", "Check the path and that its disk is there."
        ) from None
    if not root.is_dir():
        raise InvalidArgument(f"'{root}' is not a folder.", "Name the vault's folder.")
    if not os.access(root, os.R_OK | os.X_OK):
        raise InvalidArgument(f"'{root}' may not be read.", "Give yourself the right to read it.")
    for vault in vaults:
        _refuse_overlap(root, vault)
    if _overlap(root, home.resolve()):
        raise InvalidArgument(
            f"'{root}' and the data folder ({home.resolve()}) lie in each other.",
            "Link another folder.",
        )
    return root


def _refuse_overlap(root: Path, vault: Vault) -> None:
    other = vault.root.resolve()
    if root == other:
        raise InvalidArgument(
            f"'{root}' is linked already, as '{vault.name}' (link id"
            f" {vault.link_id or 'none yet'}).",
            "`obsidian-rag link list` shows all of them.",
        )
    if _overlap(root, other):
        raise InvalidArgument(
            f"'{root}' and the vault '{vault.name}' ({other}) lie in each other.",
            "Link a folder that shares no files with another vault; include and exclude"
            " narrow one down.",
        )


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def oddities(vault: Vault) -> tuple[str, ...]:
    """Links that lead out of a vault or in circles, as far as half a second tells."""
    until = time.monotonic() + _LOOK_S
    with contextlib.suppress(NotFound, VaultAway):
        found = vault.scan(lambda: time.monotonic() > until)
        odd = [item for item in found.skipped if item.reason in _ODD]
        told = [f"{item.rel_path} {_ODD[item.reason]}" for item in odd[:_MOST_WARNINGS]]
        more = len(odd) - len(told)
        return (*told, f"and {more} more") if more else tuple(told)
    return ()
