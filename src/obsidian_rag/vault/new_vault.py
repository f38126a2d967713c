"""Which folders can become a vault: those that Obsidian lists, and those that may be linked.

Obsidian lists its vaults in `obsidian.json` in its settings folder. We only read that file; if it
is missing or damaged there are no suggestions, never an error.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from obsidian_rag.errors import (
    InvalidArgument,
    NotFound,
    ReadOnly,
    SecurityViolation,
    VaultAway,
)
from obsidian_rag.vault.boundary import check_relative, has_control_characters
from obsidian_rag.vault.vault import Vault, VaultMode

_OBSIDIAN_FILE = Path("obsidian") / "obsidian.json"
# How long a new folder is searched for links that leave it; `status` reports the rest.
_SCAN_LIMIT_S = 0.5
_MAX_WARNINGS = 20
# Virtual files of the kernel: endless, changing with every read, and never notes.
_SYSTEM_FOLDERS = ("/proc", "/sys", "/dev")
# Ordinary files in memory, though below /dev.
_MEMORY_FOLDER = "/dev/shm"
_WARNINGS = {
    "outside_vault": "leads out of the vault and is not read",
    "symlink_loop": "is a loop of symlinks and is not followed",
}


def obsidian_vaults(environ: Mapping[str, str], platform: str) -> list[Path]:
    """The vault folders that exist: open ones first, then the most recently used.

    `platform` is `sys.platform`.
    """
    known: dict[Path, tuple[bool, float]] = {}
    for file in _settings_files(environ, platform):
        for path, rank in _read_vaults(file):
            known[path] = max(rank, known.get(path, rank))
    return sorted(known, key=lambda path: known[path], reverse=True)


def _settings_files(environ: Mapping[str, str], platform: str) -> Iterator[Path]:
    if platform == "win32":
        if appdata := environ.get("APPDATA"):
            yield Path(appdata) / _OBSIDIAN_FILE
        return
    home_name = environ.get("HOME")
    config_name = environ.get("XDG_CONFIG_HOME")
    if platform != "darwin" and config_name:
        yield Path(config_name) / _OBSIDIAN_FILE
    if not home_name:
        return
    home = Path(home_name)
    if platform == "darwin":
        yield home / "Library" / "Application Support" / _OBSIDIAN_FILE
        return
    if not config_name:
        yield home / ".config" / _OBSIDIAN_FILE
    yield home / ".var" / "app" / "md.obsidian.Obsidian" / "config" / _OBSIDIAN_FILE
    yield home / "snap" / "obsidian" / "current" / ".config" / _OBSIDIAN_FILE


def _read_vaults(file: Path) -> Iterator[tuple[Path, tuple[bool, float]]]:
    try:
        tree = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return
    vaults = tree.get("vaults") if isinstance(tree, dict) else None
    for vault in vaults.values() if isinstance(vaults, dict) else ():
        if not isinstance(vault, dict) or not isinstance(vault.get("path"), str):
            continue
        path = Path(vault["path"])
        if path.is_absolute() and _is_folder(path):
            when = vault.get("ts")
            used = float(when) if isinstance(when, int | float) else 0.0
            yield path, (vault.get("open") is True, used)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def check_link_mode(mode: str) -> None:
    """Refuse any mode but read-only.

    Raises:
        InvalidArgument: the mode is unknown.
        ReadOnly: the mode is read_write.
    """
    if mode not in tuple(VaultMode):
        raise InvalidArgument(
            f"Unknown mode '{mode}'.", "Use read_only: linked vaults are never written to."
        )
    if mode == VaultMode.READ_WRITE:
        raise ReadOnly(
            "Linked vaults are read_only.",
            "Leave the mode out, or make it the primary vault with `obsidian-rag init --vault …`.",
        )


def check_link_texts(include: Sequence[str], exclude: Sequence[str], name: str | None) -> None:
    """Check the folders to include and exclude, and the name.

    Raises:
        SecurityViolation: a folder could be outside the vault.
        InvalidArgument: the name has control characters.
    """
    for parameter, folders in (("include", include), ("exclude", exclude)):
        for folder in folders:
            try:
                check_relative(folder.strip("/"))
            except SecurityViolation:
                raise SecurityViolation(
                    f"{folder!r} in {parameter} is not a folder of the vault.",
                    "Give folders by their paths inside the vault, such as 'Journal/2024'.",
                ) from None
    if name is not None and has_control_characters(name):
        raise InvalidArgument(
            f"The name {name!r} has control characters.", "Use letters, digits and spaces."
        )


def resolve_link_root(
    root_path: str, vaults: Iterable[Vault], home: Path, synced: Path | None
) -> Path:
    """The folder to link, if it overlaps no vault, and neither the data folder nor LiveSync's.

    Raises:
        InvalidArgument: it cannot be a linked vault.
    """
    if has_control_characters(root_path):
        raise InvalidArgument(
            f"The path {root_path!r} has control characters.", "Give the path of a folder."
        )
    given = Path(os.path.expanduser(root_path))  # noqa: PTH111  (the text may be anything)
    if not given.is_absolute():
        raise InvalidArgument(f"'{root_path}' is not an absolute path.", "Give the whole path.")
    try:
        root = given.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or "it is a loop of symlinks"
        raise InvalidArgument(
            f"'{root_path}' cannot be opened: {why}.", "Check the path and that its disk is there."
        ) from None
    if not root.is_dir():
        raise InvalidArgument(f"'{root}' is not a folder.", "Name the vault's folder.")
    if not os.access(root, os.R_OK | os.X_OK):
        raise InvalidArgument(f"'{root}' cannot be read.", "Give your user permission to read it.")
    if _is_system(root):
        raise InvalidArgument(
            f"'{root}' belongs to the system and has no notes.", "Name the vault's folder."
        )
    for vault in vaults:
        _refuse_overlap(root, vault)
    if _overlap(root, home.resolve()):
        raise InvalidArgument(
            f"'{root}' overlaps the data folder ({home.resolve()}).", "Link another folder."
        )
    if synced is not None and _overlap(root, synced.resolve()):
        raise InvalidArgument(
            f"LiveSync writes into '{synced}', and a linked vault is only read.",
            "Link another folder, or set livesync.vaultPath to another one.",
        )
    return root


def _is_system(root: Path) -> bool:
    is_below = any(root.is_relative_to(folder) for folder in _SYSTEM_FOLDERS)
    return is_below and not root.is_relative_to(_MEMORY_FOLDER)


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
            f"'{root}' overlaps the vault '{vault.name}' ({other}).",
            "Link a folder that shares no files with another vault; include and exclude"
            " narrow one down.",
        )


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def link_warnings(vault: Vault) -> tuple[str, ...]:
    """Links that leave a vault or form a loop, as far as half a second of scanning finds them."""
    until = time.monotonic() + _SCAN_LIMIT_S
    with contextlib.suppress(NotFound, VaultAway):
        found = vault.scan(lambda: time.monotonic() > until)
        odd = [item for item in found.skipped if item.reason in _WARNINGS]
        warnings = [f"{item.rel_path} {_WARNINGS[item.reason]}" for item in odd[:_MAX_WARNINGS]]
        more = len(odd) - len(warnings)
        return (*warnings, f"and {more} more") if more else tuple(warnings)
    return ()
