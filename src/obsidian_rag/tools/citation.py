"""From a name to a note, and from a note to the link that opens it in Obsidian.

Threat: an agent names a file outside the vault, in a folder the user denied, or a symlink into
one. Both the path as written and the place it leads to must be readable by the rules; a denied
path answers the same whether or not there is a file. A note that says `rag: false` answers an agent
as no note does, and one that says `rag: private` is found by its path only.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from obsidian_rag.engine import Engine, NoteFiles
from obsidian_rag.errors import (
    InvalidArgument,
    NoteChanged,
    NotFound,
    SecurityViolation,
    SensitiveFiltered,
)
from obsidian_rag.notes import (
    RagPolicy,
    exact_paths,
    kind_of,
    notes_ending,
    parse_note,
    without_extension,
)
from obsidian_rag.tools.guard import PRIVATE, Caller

_MOST_NAMED = 10
_NEVER_INDEXED = "rag_false"


def obsidian_link(root: Path, path: str) -> str:
    """The `obsidian://` address of a note; `path` is relative to the vault at `root`."""
    name = without_extension(path)
    return f"obsidian://open?vault={quote(root.name, safe='')}&file={quote(name, safe='')}"


def find_note(engine: Engine, name: str, caller: Caller) -> str:
    """The path of the note called `name`: a path, or a unique end of one, with or without .md.

    Raises:
        NotFound: there is none that the caller may know of.
        InvalidArgument: there are several.
        SecurityViolation: the path leaves the vault or is in a denied folder.
        SensitiveFiltered: it is a private note's path, and the user has not been asked.
    """
    files = NoteFiles(engine)
    rel = files.path_of(name)
    found = next(_at(engine, rel, caller), None)
    named = [found] if found else list(islice(_named(engine, rel, caller), _MOST_NAMED + 1))
    if len(named) == 1:
        files.real_path(named[0])
        return named[0]
    if named:
        some = ", ".join(f"'{path}'" for path in named[:_MOST_NAMED])
        raise InvalidArgument(
            f"Several notes are called '{name}': {some}.", "Name one by its path."
        )
    files.check_folder(rel, name)
    raise NotFound(f"No note '{name}'.", "Search for it first.")


def unconfirmed(path: str, why: str) -> SensitiveFiltered:
    """The answer to an agent that has not asked the user yet."""
    return SensitiveFiltered(
        f"'{path}' is sensitive ({why}); its text is withheld.",
        "Ask the user, then call again with confirm_sensitive: true.",
    )


def policy_of(engine: Engine, path: str) -> RagPolicy:
    """What a note's `rag:` property says now; a file that cannot be read says nothing.

    Raises:
        NoteChanged: somebody keeps writing to it.
    """
    if not kind_of(path).has_frontmatter:
        return RagPolicy.INDEX
    with contextlib.suppress(SecurityViolation):
        file = NoteFiles(engine).read(path)
        # Without the opening line there are no properties.
        if file is not None and file.text.startswith("---"):
            return parse_note(path, file.text).policy
    return RagPolicy.INDEX


def known_paths(engine: Engine, paths: Iterable[str], caller: Caller) -> Iterator[str]:
    """Those of these paths that the caller may know of; not one that is just being written."""
    for path in paths:
        with contextlib.suppress(NoteChanged):
            if caller.knows_of(policy_of(engine, path)):
                yield path


def known_files(
    engine: Engine, entries: Iterable[Mapping[str, Any]], caller: Caller
) -> list[Mapping[str, Any]]:
    """Those of these entries, each about a `file`, that the caller may know of.

    Files that were skipped are not opened: some would first have to be fetched from elsewhere.
    """
    if caller.is_owner:
        return list(entries)
    shown = (entry for entry in entries if entry.get("reason") != _NEVER_INDEXED)
    return [
        _without_quotes(entry)
        for entry in shown
        if entry.get("status") == "skipped" or any(known_paths(engine, [entry["file"]], caller))
    ]


def without_files(data: Mapping[str, object]) -> dict[str, object]:
    """An event for who is not the owner: what happened, and to how many files, but not to which."""
    shown = dict(data)
    if "paths" in shown:
        shown["paths"] = []
    for name in ("errors", "result"):
        found = shown.get(name)
        if isinstance(found, Mapping):
            shown[name] = without_files(found)
        elif isinstance(found, list):
            shown[name] = [{**entry, "file": "", "message": ""} for entry in found]
    return shown


def _without_quotes(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is wrong with a note's properties may quote them after a colon."""
    head, colon, _ = str(entry.get("reason") or "").partition(": ")
    return {**entry, "reason": f"{head}."} if colon else entry


def _at(engine: Engine, rel: str, caller: Caller) -> Iterator[str]:
    """The note at exactly this path."""
    for path in exact_paths(rel):
        if NoteFiles(engine).is_there(path):
            policy = policy_of(engine, path)
            if caller.knows_of(policy):
                yield path
            elif policy is RagPolicy.PRIVATE:
                raise unconfirmed(path, PRIVATE)


def _named(engine: Engine, rel: str, caller: Caller) -> Iterator[str]:
    """Known notes whose path ends so, in any case, as Obsidian resolves `[[links]]`."""
    files = NoteFiles(engine)
    ends = sorted(notes_ending(rel, files.known()))
    return known_paths(engine, (path for path in ends if files.is_there(path)), caller)
