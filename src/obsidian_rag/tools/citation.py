"""Finds a note by its name, and makes the link that opens it in Obsidian.

Threat: an agent names a file outside the vault, in a folder the user denied, or a symlink into
one. The rules must allow both the path as written and its target; a denied path gives the same
answer whether or not a file exists. For an agent, a note that says `rag: false` does not exist, and
one that says `rag: private` is found by its path only.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import Field, StringConstraints

from obsidian_rag.engine import Engine
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
from obsidian_rag.tools.note_files import note_files
from obsidian_rag.vault import Vault

NoteName = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
VaultName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
WHICH_VAULT: Any = Field(
    None,
    description="Name or link id of its vault",
)
CONFIRM_SENSITIVE: Any = Field(False, description="True once the user agreed to show private text")
VaultNames = Annotated[tuple[VaultName, ...], Field(max_length=50)]
_MAX_NAMED = 10
_NEVER_INDEXED = "rag_false"


def vault_fields(vault: Vault) -> dict[str, str]:
    """The fields of every answer that say which vault something is from."""
    return {"link_id": vault.link_id, "vault": vault.name, "vault_label": vault.label}


def obsidian_link(root: Path, path: str) -> str:
    """The `obsidian://` address of a note; `path` is relative to the vault at `root`."""
    name = without_extension(path)
    return f"obsidian://open?vault={quote(root.name, safe='')}&file={quote(name, safe='')}"


def find_note(
    engine: Engine, name: str, caller: Caller, vault: str | None = None
) -> tuple[Vault, str]:
    """Find a note by its path or a unique end of one, with or without .md: its vault and path.

    `vault` is a name or link id; without one, the primary vault is searched first, then the others.

    Raises:
        NotFound: there is no such note that the caller may know of, or no such vault.
        InvalidArgument: several notes match.
        SecurityViolation: the path leaves the vault or is in a denied folder.
        SensitiveFiltered: it is a private note's path, and the user has not been asked.
    """
    if not caller.is_limited:
        return _find_note(engine, name, caller, vault)
    # A limited caller gets the same answer for every path it may not know: a different one for
    # paths outside the vault, or accepting absolute paths, would reveal where the vault is.
    if not Path(name).is_absolute():
        with contextlib.suppress(SecurityViolation):
            return _find_note(engine, name, caller, vault)
    raise _no_note(name)


def _find_note(engine: Engine, name: str, caller: Caller, vault: str | None) -> tuple[Vault, str]:
    asked = engine.vaults.one(vault, caller.scope)
    files = note_files(engine, asked.link_id, caller.scope)
    rel = files.path_of(name)
    named: list[tuple[Vault, str]] = [
        (asked, path) for path in _paths_called(engine, asked, rel, caller)
    ]
    if not named and vault is None:
        linked = [one for one in engine.vaults.within(caller.scope) if one.link_id != asked.link_id]
        named = [(one, path) for one in linked for path in _paths_called(engine, one, rel, caller)]
    if len(named) == 1:
        found, path = named[0]
        note_files(engine, found.link_id, caller.scope).real_path(path)
        return found, path
    if named:
        raise InvalidArgument(
            f"Several notes are called '{name}': {_join_paths(named)}.", "Name one by its path."
        )
    files.check_folder(rel, name)
    raise _no_note(name)


def _no_note(name: str) -> NotFound:
    return NotFound(f"No note '{name}'.", "Search for it first.")


def _paths_called(engine: Engine, vault: Vault, rel: str, caller: Caller) -> list[str]:
    found = next(_find_at(engine, vault, rel, caller), None)
    return (
        [found] if found else list(islice(_find_by_end(engine, vault, rel, caller), _MAX_NAMED + 1))
    )


def _join_paths(named: Sequence[tuple[Vault, str]]) -> str:
    is_one = len({vault.link_id for vault, _ in named}) == 1
    some = named[:_MAX_NAMED]
    return ", ".join(f"'{path}'" + ("" if is_one else f" in {of.name}") for of, path in some)


def withheld_error(message: str, again: str = "call") -> SensitiveFiltered:
    """The error for text that is missing from an answer to an agent, and how to get it."""
    step = f"Ask the user; if they agree, {again} again with confirm_sensitive: true."
    return SensitiveFiltered(message, step)


def unconfirmed_error(path: str, why: str) -> SensitiveFiltered:
    """The error for an agent that has not asked the user yet."""
    return SensitiveFiltered(
        f"'{path}' is sensitive ({why}); its text is withheld.",
        "Ask the user, then call again with confirm_sensitive: true.",
    )


def policy_of(engine: Engine, vault: Vault, path: str) -> RagPolicy:
    """The `rag:` policy in a note's file now; the default if the file cannot be read.

    Raises:
        NoteChanged: the file keeps changing.
    """
    if not kind_of(path).has_frontmatter:
        return RagPolicy.INDEX
    with contextlib.suppress(SecurityViolation):
        file = note_files(engine, vault.link_id).read(path)
        # Without the opening line there are no properties.
        if file is not None and file.text.startswith("---"):
            return parse_note(path, file.text).policy
    return RagPolicy.INDEX


def known_paths(
    engine: Engine, vault: Vault, paths: Iterable[str], caller: Caller
) -> Iterator[str]:
    """Those of these paths that the caller may know of, without files being written right now."""
    for path in paths:
        with contextlib.suppress(NoteChanged):
            if caller.knows_of(policy_of(engine, vault, path)):
                yield path


def known_files(
    engine: Engine, entries: Iterable[Mapping[str, Any]], caller: Caller
) -> list[Mapping[str, Any]]:
    """Those of these entries, each with a `file`, that the caller may know of.

    No file is opened: the policies come from the index. A file that could not be read is left out,
    because its policy is unknown. A skipped file stays: a rule of the user excluded it.
    """
    if caller.is_owner:
        return [_without_quotes(one) for one in entries] if caller.is_screened else list(entries)
    primary = engine.vaults.primary.link_id
    known = {vault.link_id for vault in engine.vaults}
    listed = [(entry, _link_of(entry, known, primary)) for entry in entries]
    shown = [
        (entry, link_id)
        for entry, link_id in listed
        if entry.get("reason") != _NEVER_INDEXED and caller.scope.admits(link_id, entry["file"])
    ]
    public = {
        link_id: note_files(engine, link_id).public(
            entry["file"] for entry, own in shown if own == link_id
        )
        for link_id in {link_id for _, link_id in shown}
    }
    return [
        _without_quotes(entry)
        for entry, link_id in shown
        if entry.get("status") == "skipped" or entry["file"] in public[link_id]
    ]


def _link_of(entry: Mapping[str, Any], known: set[str], primary: str) -> str:
    link_id = str(entry.get("link_id") or "")
    return link_id if link_id in known else primary


def without_files(data: Mapping[str, object]) -> dict[str, object]:
    """Remove file names from an event, for an agent; the number of files stays."""
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
    """Cut a reason at its colon: what follows may quote the note's properties."""
    head, colon, _ = str(entry.get("reason") or "").partition(": ")
    return {**entry, "reason": f"{head}."} if colon else entry


def _find_at(engine: Engine, vault: Vault, rel: str, caller: Caller) -> Iterator[str]:
    """The note at exactly this path."""
    for path in exact_paths(rel):
        if note_files(engine, vault.link_id, caller.scope).is_there(path):
            policy = policy_of(engine, vault, path)
            if caller.knows_of(policy):
                yield path
            elif policy is RagPolicy.PRIVATE:
                raise unconfirmed_error(path, PRIVATE)


def _find_by_end(engine: Engine, vault: Vault, rel: str, caller: Caller) -> Iterator[str]:
    """Known notes whose path ends like this, ignoring case, as Obsidian resolves `[[links]]`."""
    files = note_files(engine, vault.link_id, caller.scope)
    ends = sorted(notes_ending(rel, files.known()))
    return known_paths(engine, vault, (path for path in ends if files.is_there(path)), caller)
