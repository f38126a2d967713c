"""The two folders of an installation, as tests write them: the vault and the data folder."""

from collections.abc import Mapping
from pathlib import Path

from obsidian_rag import config


def write_notes(vault: Path, notes: Mapping[str, str | bytes]) -> None:
    """Notes (relative path: text or bytes) below a folder, which is made."""
    vault.mkdir(parents=True, exist_ok=True)
    for path, content in notes.items():
        file = vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


def files_below(root: Path) -> dict[str, bytes]:
    """Every file of a folder by its relative path."""
    return {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }


def write_config(home: Path, vault: Path, settings: Mapping[str, object]) -> None:
    """config.json for a vault, with dotted settings; the hash embedder unless told."""
    tree: dict[str, object] = {"vault_path": str(vault)}
    for key, value in {"embedding.provider": "hash", **settings}.items():
        section, _, name = key.partition(".")
        below = tree.setdefault(section, {})
        assert isinstance(below, dict)
        below[name] = value
    config.save(tree, home / "config.json")
