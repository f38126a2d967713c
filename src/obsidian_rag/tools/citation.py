"""From a name to a note, and from a note to the link that opens it in Obsidian.

Threat: an agent names a file outside the vault, in a folder the user denied, or a symlink into
one. Both the path as written and the place it leads to must be readable by the rules; a denied
path answers the same whether or not there is a file. A note that says `rag: false` answers an agent
as no note does, and one that says `rag: private` is found by its path only.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Protocol
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

NoteName = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
VaultName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
WHICH_VAULT: Any = Field(
    None,
    description="Name or link id of its vault",
)
CONFIRM_SENSITIVE: Any = Field(False, description="True once the user agreed to show private text")
VaultNames = Annotated[tuple[VaultName, ...], Field(max_length=50)]
_MOST_NAMED = 10
_NEVER_INDEXED = "rag_false"


class CitedVault(Protocol):
    """What is told of a vault, and by what it is known."""

    @property
    def link_id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def root(self) -> Path: ...
    @property
    def is_primary(self) -> bool: ...


def vault_fields(vault: CitedVault) -> dict[str, str]:
    """Which vault something is from, as every answer tells it."""
    return {"link_id": vault.link_id, "vault": vault.name, "vault_label": vault.label}


def obsidian_link(root: Path, path: str) -> str:
    """The `obsidian://` address of a note; `path` is relative to the vault at `root`."""
    name = without_extension(path)
    return f"obsidian://open?vault={quote(root.name, safe='')}&file={quote(name, safe='')}"


def find_note(
    engine: Engine, name: str, caller: Caller, vault: str | None = None
) -> tuple[CitedVault, str]:
    """Vault and path of the note called `name`: a path, or a unique end of one, .md or not.

    `vault` is a name or link id; without one, the primary vault is asked first, then the others.

    Raises:
        NotFound: there is none that the caller may know of, or no such vault.
        InvalidArgument: there are several.
        SecurityViolation: the path leaves the vault or is in a denied folder.
        SensitiveFiltered: it is a private note's path, and the user has not been asked.
    """
    asked = engine.vaults.one(vault, caller.scope)
    files = engine.vaults.files(asked.link_id, caller.scope)
    rel = files.path_of(name)
    named: list[tuple[CitedVault, str]] = [
        (asked, path) for path in _called(engine, asked, rel, caller)
    ]
    if not named and vault is None:
        linked = [one for one in engine.vaults.within(caller.scope) if one.link_id != asked.link_id]
        named = [(one, path) for one in linked for path in _called(engine, one, rel, caller)]
    if len(named) == 1:
        found, path = named[0]
        engine.vaults.files(found.link_id, caller.scope).real_path(path)
        return found, path
    if named:
        raise InvalidArgument(
            f"Several notes are called '{name}': {_listed(named)}.", "Name one by its path."
        )
    files.check_folder(rel, name)
    raise NotFound(f"No note '{name}'.", "Search for it first.")


def _called(engine: Engine, vault: CitedVault, rel: str, caller: Caller) -> list[str]:
    found = next(_at(engine, vault, rel, caller), None)
    return [found] if found else list(islice(_named(engine, vault, rel, caller), _MOST_NAMED + 1))


def _listed(named: Sequence[tuple[CitedVault, str]]) -> str:
    is_one = len({vault.link_id for vault, _ in named}) == 1
    some = named[:_MOST_NAMED]
    return ", ".join(f"'{path}'" + ("" if is_one else f" in {of.name}") for of, path in some)


def withheld(told: str, again: str = "call") -> SensitiveFiltered:
    """What is missing from an answer to an agent, and how to get it."""
    step = f"Ask the user; if they agree, {again} again with confirm_sensitive: true."
    return SensitiveFiltered(told, step)


def unconfirmed(path: str, why: str) -> SensitiveFiltered:
    """The answer to an agent that has not asked the user yet."""
    return SensitiveFiltered(
        f"'{path}' is sensitive ({why}); its text is withheld.",
        "Ask the user, then call again with confirm_sensitive: true.",
    )


def policy_of(engine: Engine, vault: CitedVault, path: str) -> RagPolicy:
    """What a note's `rag:` property says now; a file that cannot be read says nothing.

    Raises:
        NoteChanged: somebody keeps writing to it.
    """
    if not kind_of(path).has_frontmatter:
        return RagPolicy.INDEX
    with contextlib.suppress(SecurityViolation):
        file = engine.vaults.files(vault.link_id).read(path)
        # Without the opening line there are no properties.
        if file is not None and file.text.startswith("---"):
            return parse_note(path, file.text).policy
    return RagPolicy.INDEX


def known_paths(
    engine: Engine, vault: CitedVault, paths: Iterable[str], caller: Caller
) -> Iterator[str]:
    """Those paths of a vault that the caller may know of; not one that is just being written."""
    for path in paths:
        with contextlib.suppress(NoteChanged):
            if caller.knows_of(policy_of(engine, vault, path)):
                yield path


def known_files(
    engine: Engine, entries: Iterable[Mapping[str, Any]], caller: Caller
) -> list[Mapping[str, Any]]:
    """Those of these entries, each about a `file`, that the caller may know of.

    Files that were skipped are not opened: some would first have to be fetched from elsewhere.
    """
    if caller.is_owner:
        return list(entries)
    vaults = {vault.link_id: vault for vault in engine.vaults}
    primary = engine.vaults.primary
    shown = (
        entry
        for entry in entries
        if entry.get("reason") != _NEVER_INDEXED
        and caller.scope.admits(entry.get("link_id") or primary.link_id, entry["file"])
    )
    return [
        _without_quotes(entry)
        for entry in shown
        if entry.get("status") == "skipped"
        or any(
            known_paths(
                engine, vaults.get(entry.get("link_id", ""), primary), [entry["file"]], caller
            )
        )
    ]


def without_files(data: Mapping[str, object]) -> dict[str, object]:
    """An event for an agent: what happened, and to how many files, but not to which."""
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


def _at(engine: Engine, vault: CitedVault, rel: str, caller: Caller) -> Iterator[str]:
    """The note at exactly this path."""
    for path in exact_paths(rel):
        if engine.vaults.files(vault.link_id, caller.scope).is_there(path):
            policy = policy_of(engine, vault, path)
            if caller.knows_of(policy):
                yield path
            elif policy is RagPolicy.PRIVATE:
                raise unconfirmed(path, PRIVATE)


def _named(engine: Engine, vault: CitedVault, rel: str, caller: Caller) -> Iterator[str]:
    """Known notes whose path ends so, in any case, as Obsidian resolves `[[links]]`."""
    files = engine.vaults.files(vault.link_id, caller.scope)
    ends = sorted(notes_ending(rel, files.known()))
    return known_paths(engine, vault, (path for path in ends if files.is_there(path)), caller)
