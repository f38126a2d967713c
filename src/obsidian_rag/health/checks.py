"""Checks of `doctor` on the settings, the vaults, the data folder and the index.

SQLite detects damage to its own structure, not to a value in it. So values that answers use are
computed again and compared.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from obsidian_rag.config import Config
from obsidian_rag.errors import IndexCorrupted, ObsidianRagError, ReadOnly
from obsidian_rag.health.assess import HealthAnswer
from obsidian_rag.health.facts import compare_rows
from obsidian_rag.health.report import file_notices
from obsidian_rag.notes import RagPolicy, parse_note, property_values
from obsidian_rag.store import (
    ChunkStore,
    Database,
    IndexState,
    Properties,
    open_to_others,
    probe_indexes,
    verify_texts,
)
from obsidian_rag.vault import NoteFile, Vault, content_hash

_LOW_SPACE_BYTES = 500_000_000
_MAX_NAMED = 5
Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    # The name of the check, filled in by `run_checks`.
    check: str = field(default="", kw_only=True)
    verdict: Verdict
    message: str
    suggestion: str = ""
    error: ObsidianRagError | None = None


Check = Callable[[], Finding]


def run_checks(checks: Iterable[tuple[str, Check]]) -> Iterator[Finding]:
    """Run named checks one by one; an error they raise becomes a problem."""
    for name, check in checks:
        try:
            yield replace(check(), check=name)
        except ObsidianRagError as error:
            message = f"{error.code}: {error.message}"
            yield Finding("problem", message, error.suggestion, error, check=name)


def check_health(answer: HealthAnswer, vaults: Iterable[Vault], database: Database) -> Finding:
    """The health as every interface reports it; the other checks go deeper."""
    if answer.error is None:
        left_out = sum(one.is_left_out for one in file_notices(vaults, database))
        rest = f": all that can be read; {_plural(left_out, 'file', 'files')} left out"
        return Finding("ok", f"healthy{rest if left_out else ''}")
    verdict: Verdict = "problem" if answer.state == "unavailable" else "warning"
    message = f"{answer.error.code}: {answer.error.message}"
    return Finding(verdict, message, answer.error.suggestion, answer.error)


def check_config(config: Config) -> Finding:
    """Whether the config file exists."""
    if not config.file.exists():
        return Finding("warning", f"{config.file} does not exist.", "Run `obsidian-rag init`.")
    return Finding("ok", str(config.file))


def check_vaults(vaults: Iterable[Vault]) -> Finding:
    """Whether every folder of the vaults can be listed."""
    listed = list(vaults)
    scans = [vault.scan() for vault in listed]
    notes = sum(len(found.files) for found in scans)
    where = ", ".join(str(vault.root) for vault in listed)
    what = f"{_plural(notes, 'note', 'notes')} in {where}"
    if unreadable := [folder for found in scans for folder in found.unreadable_folders]:
        folders = ", ".join(unreadable[:_MAX_NAMED])
        return Finding("warning", f"{what}; cannot read {folders}", "Check permissions.")
    return Finding("ok", what)


def check_disk(home: Path) -> Finding:
    """Whether the data folder is writable and there is space left."""
    existing = next(path for path in (home, *home.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        raise ReadOnly(
            f"{existing} is not writable.", "Searching works. To index, change its permissions."
        )
    free = shutil.disk_usage(existing).free
    verdict: Verdict = "ok" if free >= _LOW_SPACE_BYTES else "warning"
    size = _bytes_below(home) / 1e6
    return Finding(verdict, f"{size:.1f} MB used by {home}, {free / 1e9:.1f} GB free")


def _bytes_below(folder: Path) -> int:
    return sum(
        (Path(where) / name).lstat().st_size
        for where, _, names in os.walk(folder)
        for name in names
    )


def check_permissions(home: Path) -> Finding:
    """Whether other users can read or write the data folder."""
    shared = open_to_others(home)
    if shared:
        some = ", ".join(shared[:_MAX_NAMED])
        return Finding(
            "warning",
            "other users have access to"
            f" {_plural(len(shared), 'file or folder', 'files or folders')} in {home}: {some}",
            "Run `obsidian-rag sync`, which removes their access.",
        )
    return Finding("ok", f"only you have access to {home}")


def check_database(database: Database, *, deep: bool) -> Finding:
    """Whether SQLite finds damage in state.db."""
    if (damage := database.check(is_deep=deep)) is not None:
        raise IndexCorrupted(f"state.db is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    return Finding("ok", str(database.path))


def check_files(chunks: ChunkStore, *, deep: bool) -> Finding:
    """Whether the chunk table's files exist and have their size; `deep`: and their content."""
    chunks.must_exist()
    if (damage := chunks.damage(is_deep=deep)) is not None:
        raise IndexCorrupted(f"The index is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    if not chunks.is_recorded():
        return Finding(
            "warning",
            "no checksums were recorded, so damage may go undetected",
            "Run `obsidian-rag sync`, which verifies the index and records them.",
        )
    what = "their content is unchanged" if deep else "all there, with the recorded sizes"
    return Finding("ok", what)


def check_index(database: Database, chunks: ChunkStore, vaults: Iterable[Vault]) -> Finding:
    """Whether the chunk table is ours, and has as many rows as were written."""
    files, rows = IndexState(database).totals()
    chunks.check_owner()
    if (difference := compare_rows(database, chunks, vaults)) is not None:
        raise IndexCorrupted(difference, "Run `obsidian-rag reindex`.")
    return Finding("ok", f"{_plural(files, 'note', 'notes')}, {_plural(rows, 'chunk', 'chunks')}")


def check_lookup(chunks: ChunkStore, *, deep: bool) -> Finding:
    """Whether each search index finds rows known to be in the table."""
    asked = probe_indexes(chunks, is_deep=deep)
    return Finding("ok", f"{_plural(asked, 'test query', 'test queries')} found what they should")


def check_chunks(chunks: ChunkStore) -> Finding:
    """Whether every chunk is what was written."""
    count = verify_texts(chunks)
    return Finding("ok", f"{_plural(count, 'chunk is', 'chunks are')} as written")


def check_notes(database: Database, vaults: Iterable[Vault]) -> Finding:
    """Whether the files, and the properties stored for them, are those that were indexed."""
    count, changed, differing = _differing_notes(database, vaults)
    if differing:
        raise IndexCorrupted(
            f"The stored properties of {_plural(len(differing), 'note', 'notes')} are wrong.",
            "Run `obsidian-rag reindex`.",
        )
    if changed:
        some = ", ".join(changed[:_MAX_NAMED])
        return Finding(
            "warning",
            f"{_plural(len(changed), 'note differs', 'notes differ')} from the index: {some}",
            "`obsidian-rag index` rereads every file.",
        )
    return Finding("ok", f"{_plural(count, 'note is', 'notes are')} as indexed")


def _differing_notes(
    database: Database, vaults: Iterable[Vault]
) -> tuple[int, list[str], list[str]]:
    """Number of files read, the changed ones, and those whose stored properties differ."""
    read, changed, differing = 0, list[str](), list[str]()
    for vault in vaults:
        indexed = IndexState(database).hashes(vault.link_id)
        known = Properties(database).all(vault.link_id)
        read += len(indexed)
        for path, expected in indexed.items():
            if not expected:
                continue
            file = vault.read(path)
            if not isinstance(file, NoteFile) or content_hash(file.data) != expected:
                changed.append(path)
            elif _properties(path, file) != known.get(path, set()):
                differing.append(path)
        differing += sorted(known.keys() - indexed.keys())
    return read, changed, differing


def _properties(path: str, file: NoteFile) -> set[tuple[str, str]]:
    note = parse_note(path, file.text)
    return set() if note.policy is RagPolicy.NEVER else set(property_values(note.frontmatter))


def _plural(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
