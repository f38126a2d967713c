"""Where a passage stands: a link that opens the note in Obsidian."""

from pathlib import Path
from urllib.parse import quote


def obsidian_link(root: Path, path: str) -> str:
    """The `obsidian://` address of a note; `path` is relative to the vault at `root`."""
    name = path[:-3] if path.lower().endswith(".md") else path
    return f"obsidian://open?vault={quote(root.name, safe='')}&file={quote(name, safe='')}"
