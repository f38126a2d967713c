"""From a name to a note, and from a note to the link that opens it in Obsidian.

Threat: an agent names a file outside the vault, in a folder the user denied, or a symlink into
one. Both the path as written and the place it leads to must be readable by the rules; a denied
path answers the same whether or not there is a file.
"""

import contextlib
from pathlib import Path
from urllib.parse import quote

from obsidian_rag.engine import (
    Engine,
    Links,
    Manifest,
    NoteFile,
    read_note,
    relative_to_root,
    resolve,
)
from obsidian_rag.errors import IndexerFailed, InvalidArgument, NotFound, SecurityViolation
from obsidian_rag.notes import Note, parse_note

_MOST_NAMED = 10


def obsidian_link(root: Path, path: str) -> str:
    """The `obsidian://` address of a note; `path` is relative to the vault at `root`."""
    name = path[:-3] if path.lower().endswith(".md") else path
    return f"obsidian://open?vault={quote(root.name, safe='')}&file={quote(name, safe='')}"


def find_note(engine: Engine, name: str) -> str:
    """The path of the note called `name`: a path, or a unique end of one, with or without .md.

    Raises:
        NotFound: there is none.
        InvalidArgument: there are several.
        SecurityViolation: the path leaves the vault or is in a denied folder.
    """
    rel = relative_to_root(engine.config.vault_root, name)
    found = next((path for path in (rel, f"{rel}.md") if _is_there(engine, path)), None)
    named = [found] if found else [path for path in _named(engine, rel) if _is_there(engine, path)]
    if len(named) == 1:
        _real_path(engine, named[0])
        return named[0]
    if named:
        some = ", ".join(f"'{path}'" for path in named[:_MOST_NAMED])
        raise InvalidArgument(
            f"Several notes are called '{name}': {some}.", "Name one by its path."
        )
    if not engine.rules.admits_dir(rel.rpartition("/")[0]):
        raise _denied(name)
    raise NotFound(f"There is no note '{name}' in the vault.", "Search for it first.")


def _is_there(engine: Engine, path: str) -> bool:
    if not engine.rules.admits_file(path):
        return False
    with contextlib.suppress(OSError):  # a name may be longer than the disk allows
        return resolve(engine.config.vault_root, path).is_file()
    return False


def _named(engine: Engine, rel: str) -> list[str]:
    """Known notes whose path ends so, in any case, as Obsidian resolves `[[links]]`."""
    link = Links(engine.database).primary()
    known = Manifest(engine.database).known(link.link_id) if link else {}
    return sorted(path for path in known if f"/{_plain(path)}".endswith(f"/{_plain(rel)}"))


def _plain(path: str) -> str:
    return path.casefold().removesuffix(".md")


def _real_path(engine: Engine, path: str) -> str:
    """Where the note really is, which must be as readable as where it seems to be."""
    root = engine.config.vault_root
    real = resolve(root, path).relative_to(root.resolve()).as_posix()
    if not engine.rules.admits_file(real):
        raise _denied(path)
    return real


def _denied(path: str) -> SecurityViolation:
    return SecurityViolation(
        f"The path {path!r} is in a folder that may not be read.",
        "Choose another note, or change indexing.deny_dirs or allow_dirs.",
    )


def open_note(engine: Engine, path: str) -> tuple[Note, str]:
    """The note and the text of its file (a broken Canvas is a note without text)."""
    # By its real path: what was checked is what is opened.
    real = _real_path(engine, path)
    file = read_note(engine.config.vault_root, real, engine.rules.max_file_bytes)
    if isinstance(file, NoteFile):
        return parse_note(path, file.text), file.text
    if file.reason == "missing":
        raise NotFound(f"'{path}' is gone.", "Run `obsidian-rag sync`.")
    raise IndexerFailed(f"'{path}' cannot be read ({file.reason}).", "Open it in Obsidian.")
