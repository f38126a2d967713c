"""The names of indexed notes, for completion and for "did you mean"; only for the owner.

Reads the table of states directly and read-only: a shell waits for it at every Tab, and loading
the engine takes ten times as long.
"""

import contextlib
import difflib
import os
import re
import sqlite3
from collections import Counter
from typing import Annotated

import typer

from obsidian_rag.config import load
from obsidian_rag.errors import ObsidianRagError

_COMPLETING = "_OBSIDIAN_RAG_COMPLETE"
_BASH_SPECIAL = re.compile(r"[ \t'\"\\$`&|;<>()*?\[\]#~!{}]")
_MAX_COMPLETIONS = 100
_MIN_SIMILARITY = 0.6
_MAX_SIMILAR = 3


def complete_vault(incomplete: str) -> list[str]:
    """Names of vaults that start with what was typed."""
    names = _read("SELECT name FROM vault_link ORDER BY is_primary DESC, name")
    typed = incomplete.casefold()
    return _quote([name for name in names if name.casefold().startswith(typed)])


def note_names() -> list[str]:
    """The path of each indexed note, without `.md`; an empty list if that fails or takes long."""
    paths = _read(
        "SELECT rel_path FROM vault_file_index_state"
        " WHERE embedding_status = 'indexed' ORDER BY rel_path"
    )
    return [path.removesuffix(".md") for path in paths]


def _read(query: str) -> list[str]:
    try:
        database = load().database
    except ObsidianRagError:
        return []
    with contextlib.suppress(sqlite3.Error):
        connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=1)
        with contextlib.closing(connection):
            return [str(value) for (value,) in connection.execute(query)]
    return []


def complete_note(incomplete: str) -> list[str]:
    """Paths and unique file names that start with what was typed."""
    names = note_names()
    stems = Counter(name.rpartition("/")[2] for name in names)
    known = dict.fromkeys([*names, *(stem for stem, count in stems.items() if count == 1)])
    return _quote(sorted(name for name in known if name.startswith(incomplete))[:_MAX_COMPLETIONS])


def _quote(found: list[str]) -> list[str]:
    if os.environ.get(_COMPLETING) == "complete_bash":  # other shells quote by themselves
        found = [_BASH_SPECIAL.sub(r"\\\g<0>", name) for name in found]
    return found


def similar_notes(name: str) -> list[str]:
    """Notes with a similar name."""
    wanted = name.removesuffix(".md").casefold()
    paths = {path.casefold(): path for path in note_names()}
    stems = {path.rpartition("/")[2]: path for path in paths}
    by_path = difflib.get_close_matches(wanted, paths, _MAX_SIMILAR, _MIN_SIMILARITY)
    by_stem = difflib.get_close_matches(
        wanted.rpartition("/")[2], stems, _MAX_SIMILAR, _MIN_SIMILARITY
    )
    found = dict.fromkeys([*(stems[stem] for stem in by_stem), *by_path])
    return [paths[path] for path in found][:_MAX_SIMILAR]


_NOTE = typer.Argument(
    help="Path in the vault, or a unique file name", autocompletion=complete_note
)
NoteArgument = Annotated[str, _NOTE]
OptionalNote = Annotated[str | None, _NOTE]
VaultOption = Annotated[
    str | None,
    typer.Option(
        "--vault", help="The vault it is in, by name or link id", autocompletion=complete_vault
    ),
]
VaultsOption = Annotated[
    list[str] | None,
    typer.Option("--vault", help="Only this vault", autocompletion=complete_vault),
]
