"""Find the vaults that Obsidian knows on this machine, to suggest them at first start.

Obsidian lists them in `obsidian.json` in its settings folder. We only read that file; if it is
missing or damaged there are no suggestions, never an error.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

_FILE = Path("obsidian") / "obsidian.json"


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
            yield Path(appdata) / _FILE
        return
    home_name = environ.get("HOME")
    config_name = environ.get("XDG_CONFIG_HOME")
    if platform != "darwin" and config_name:
        yield Path(config_name) / _FILE
    if not home_name:
        return
    home = Path(home_name)
    if platform == "darwin":
        yield home / "Library" / "Application Support" / _FILE
        return
    if not config_name:
        yield home / ".config" / _FILE
    yield home / ".var" / "app" / "md.obsidian.Obsidian" / "config" / _FILE
    yield home / "snap" / "obsidian" / "current" / ".config" / _FILE


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
