"""What `doctor` checks, in which order; and of it settings, vaults and the data folder."""

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from obsidian_rag.errors import ReadOnly
from obsidian_rag.index.checks import (
    Finding,
    Verdict,
    check_chunks,
    check_database,
    check_embedder,
    check_files,
    check_fingerprint,
    check_index,
    check_lookup,
    check_meaning,
    check_notes,
    counted,
)
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.store import open_to_others

_LITTLE_SPACE = 500_000_000


Check = Callable[[], Finding]


def checks_of(place: IndexPlace, related: Check, *, deep: bool) -> list[tuple[str, Check]]:
    """Every check by its name, cheap ones first; that of `related` notes has its place in it."""
    checks: list[tuple[str, Callable[[IndexPlace], Finding]]] = [
        ("config", _config),
        ("vault", _vaults),
        ("disk", _disk),
        ("permissions", _permissions),
        ("database", partial(check_database, deep=deep)),
        ("files", partial(check_files, deep=deep)),
        ("index", check_index),
        ("lookup", partial(check_lookup, deep=deep)),
        ("related", lambda _: related()),
        ("embedder", check_embedder),
        ("fingerprint", check_fingerprint),
        ("meaning", partial(check_meaning, deep=deep)),
    ]
    if deep:
        checks += [("chunks", check_chunks), ("notes", check_notes)]
    return [(name, partial(check, place)) for name, check in checks]


def _config(place: IndexPlace) -> Finding:
    """Whether there is a config file."""
    file = place.config.file
    if not file.exists():
        return Finding("config", "warning", f"{file} does not exist.", "Run `obsidian-rag init`.")
    return Finding("config", "ok", str(file))


def _vaults(place: IndexPlace) -> Finding:
    """Whether every folder of the vaults can be read."""
    vaults = list(place.vaults)
    scans = [vault.scan() for vault in vaults]
    notes = sum(len(found.files) for found in scans)
    where = ", ".join(str(vault.root) for vault in vaults)
    what = f"{counted(notes, 'note', 'notes')} in {where}"
    if unreadable := [folder for found in scans for folder in found.unreadable_folders]:
        folders = ", ".join(unreadable[:5])
        return Finding("vault", "warning", f"{what}; cannot read {folders}", "Check permissions.")
    return Finding("vault", "ok", what)


def _disk(place: IndexPlace) -> Finding:
    """Whether the data folder can be written, and has room to grow."""
    home = place.config.home
    existing = next(path for path in (home, *home.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        raise ReadOnly(
            f"{existing} may not be written.", "Searching works. To index, change its permissions."
        )
    free = shutil.disk_usage(existing).free
    verdict: Verdict = "ok" if free >= _LITTLE_SPACE else "warning"
    size = _bytes_below(home) / 1e6
    return Finding("disk", verdict, f"{size:.1f} MB used by {home}, {free / 1e9:.1f} GB free")


def _bytes_below(folder: Path) -> int:
    return sum(
        (Path(where) / name).lstat().st_size
        for where, _, names in os.walk(folder)
        for name in names
    )


def _permissions(place: IndexPlace) -> Finding:
    """Whether the data folder is its owner's alone."""
    shared = open_to_others(place.config.home)
    if shared:
        some = ", ".join(shared[:5])
        return Finding(
            "permissions",
            "warning",
            f"{len(shared)} files or folders of {place.config.home} are not yours alone: {some}",
            "Run `obsidian-rag sync`, which takes the rights of others away.",
        )
    return Finding("permissions", "ok", f"{place.config.home} is yours alone")
