"""The ignore files of a vault, such as `.gitignore`: read for LiveSync's filters, never changed."""

from pathlib import Path

from obsidian_rag.errors import IndexerFailed, SecurityViolation
from obsidian_rag.vault.boundary import NotANote, check_relative, open_inside

_MOST_BYTES = 1 << 20


def read_ignore_file(root: Path, rel: str) -> str | None:
    """The text of an ignore file, which may be hidden; None if there is none.

    Raises:
        IndexerFailed: it is there, but cannot be read.
    """
    try:
        with open_inside(root, check_relative(rel)) as stream:
            data = stream.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (NotANote, SecurityViolation, OSError) as error:
        raise _unreadable(rel) from error
    if len(data) > _MOST_BYTES:
        raise _unreadable(rel)
    return data.decode("utf-8", "replace")


def _unreadable(rel: str) -> IndexerFailed:
    return IndexerFailed(
        f"The ignore file '{rel}' cannot be read.",
        "Make it a plain text file inside the vault that this user can read.",
    )
