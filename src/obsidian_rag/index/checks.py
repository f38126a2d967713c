"""The checks of `doctor`, in order: settings, vaults, the data folder, and the index.

SQLite detects damage to its own structure, not to a value in it. So values that answers use are
computed again and compared.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from obsidian_rag.errors import IndexCorrupted, IndexIncomplete, ObsidianRagError, ReadOnly
from obsidian_rag.index.embedding import embedder_choice
from obsidian_rag.index.fingerprint import check, fingerprint_of
from obsidian_rag.index.health import HealthAnswer
from obsidian_rag.index.meaning import meaning_state
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.prepare import chunk_hash
from obsidian_rag.index.probes import compare_rows
from obsidian_rag.index.report import file_notices
from obsidian_rag.index.run import FINGERPRINT
from obsidian_rag.index.transformer import Transformer
from obsidian_rag.notes import RagPolicy, parse_note, property_values
from obsidian_rag.store import IndexState, Properties, open_to_others, probe_indexes, stored_vectors
from obsidian_rag.vault import NoteFile, content_hash

_ADD_MODEL = "Run `obsidian-rag model get` or `model add` again; search goes on without."
_LOW_SPACE_BYTES = 500_000_000
# Stored vectors have length one, within this tolerance.
_UNIT_TOLERANCE = 0.001
Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    # The name of the check, filled in by `found_by`.
    check: str = field(default="", kw_only=True)
    verdict: Verdict
    message: str
    suggestion: str = ""
    error: ObsidianRagError | None = None


Check = Callable[[], Finding]


def checks_of(place: IndexPlace, related: Check, *, deep: bool) -> list[tuple[str, Check]]:
    """All checks with their names, cheap ones first; `related` checks the related notes."""
    checks: list[tuple[str, Callable[[IndexPlace], Finding]]] = [
        ("config", _config),
        ("vault", _vaults),
        ("disk", _disk),
        ("permissions", _permissions),
        ("database", partial(_database, deep=deep)),
        ("files", partial(_files, deep=deep)),
        ("index", _index),
        ("lookup", partial(_lookup, deep=deep)),
        ("related", lambda _: related()),
        ("embedder", _embedder),
        ("fingerprint", _fingerprint),
        ("meaning", partial(_meaning, deep=deep)),
    ]
    if deep:
        checks += [("chunks", _chunks), ("notes", _notes)]
    return [(name, partial(check, place)) for name, check in checks]


def found_by(checks: Iterable[tuple[str, Check]]) -> Iterator[Finding]:
    """Run the checks one by one; an error they raise becomes a problem."""
    for name, check_it in checks:
        try:
            yield replace(check_it(), check=name)
        except ObsidianRagError as error:
            message = f"{error.code}: {error.message}"
            yield Finding("problem", message, error.suggestion, error, check=name)


def verify_table(place: IndexPlace) -> None:
    """Verify a table that has no checksums from its own rows.

    Raises:
        IndexCorrupted: it is damaged.
    """
    place.chunks.close()  # read from disk, not from memory
    _lookup(place, deep=True)
    _chunks(place)


def health_finding(place: IndexPlace, answer: HealthAnswer) -> Finding:
    """The health as every interface reports it; the other checks go deeper."""
    if answer.error is None:
        left_out = sum(one.is_left_out for one in file_notices(place))
        rest = f": all that can be read; {_plural(left_out, 'file', 'files')} left out"
        return Finding("ok", f"healthy{rest if left_out else ''}")
    verdict: Verdict = "problem" if answer.state == "unavailable" else "warning"
    message = f"{answer.error.code}: {answer.error.message}"
    return Finding(verdict, message, answer.error.suggestion, answer.error)


def _config(place: IndexPlace) -> Finding:
    file = place.config.file
    if not file.exists():
        return Finding("warning", f"{file} does not exist.", "Run `obsidian-rag init`.")
    return Finding("ok", str(file))


def _vaults(place: IndexPlace) -> Finding:
    vaults = list(place.vaults)
    scans = [vault.scan() for vault in vaults]
    notes = sum(len(found.files) for found in scans)
    where = ", ".join(str(vault.root) for vault in vaults)
    what = f"{_plural(notes, 'note', 'notes')} in {where}"
    if unreadable := [folder for found in scans for folder in found.unreadable_folders]:
        folders = ", ".join(unreadable[:5])
        return Finding("warning", f"{what}; cannot read {folders}", "Check permissions.")
    return Finding("ok", what)


def _disk(place: IndexPlace) -> Finding:
    home = place.config.home
    existing = next(path for path in (home, *home.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        raise ReadOnly(
            f"{existing} may not be written.", "Searching works. To index, change its permissions."
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


def _permissions(place: IndexPlace) -> Finding:
    shared = open_to_others(place.config.home)
    if shared:
        some = ", ".join(shared[:5])
        return Finding(
            "warning",
            f"{len(shared)} files or folders of {place.config.home} are not yours alone: {some}",
            "Run `obsidian-rag sync`, which takes the rights of others away.",
        )
    return Finding("ok", f"{place.config.home} is yours alone")


def _database(place: IndexPlace, *, deep: bool) -> Finding:
    if (damage := place.database.check(is_deep=deep)) is not None:
        raise IndexCorrupted(f"state.db is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    return Finding("ok", str(place.config.database))


def _files(place: IndexPlace, *, deep: bool) -> Finding:
    """Check the chunk table's files: existence and size; deep: also content."""
    place.chunks.must_exist()
    if (damage := place.chunks.damage(is_deep=deep)) is not None:
        raise IndexCorrupted(f"The index is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    if not place.chunks.is_recorded():
        return Finding(
            "warning",
            "no checksums were recorded, so damage may go unseen",
            "Run `obsidian-rag sync`, which verifies the index and records them.",
        )
    what = "their content is what was written" if deep else "all there, each of its size"
    return Finding("ok", what)


def _lookup(place: IndexPlace, *, deep: bool) -> Finding:
    """Query each search index for rows known to be in the table."""
    asked, wrong = probe_indexes(place.chunks, is_deep=deep)
    if wrong is not None:
        raise IndexCorrupted(
            f"The search index of {wrong} misses rows that the table has.",
            "Run `obsidian-rag reindex`.",
        )
    return Finding("ok", f"{asked} questions with known answers were answered right")


def _index(place: IndexPlace) -> Finding:
    files, chunks = IndexState(place.database).totals()
    place.chunks.check_owner()
    if (difference := compare_rows(place)) is not None:
        raise IndexCorrupted(difference, "Run `obsidian-rag reindex`.")
    return Finding("ok", f"{_plural(files, 'note', 'notes')}, {_plural(chunks, 'chunk', 'chunks')}")


def _embedder(place: IndexPlace) -> Finding:
    place.embedder.probe()
    vector = place.embedder.embed_query("ready?")
    what = f"{place.embedder.provider}:{place.embedder.model}, {len(vector)} dimensions"
    if (notice := embedder_choice(place.config).notice) is not None:
        step = "Set embedding.provider, or model.provider to openai, gemini or ollama."
        return Finding("warning", f"{what}. {notice}", step)
    return Finding("ok", what)


def _fingerprint(place: IndexPlace) -> Finding:
    try:
        check(
            place.database.get(FINGERPRINT),
            fingerprint_of(place),
        )
    except IndexIncomplete as error:
        return Finding("warning", error.message, error.suggestion, error)
    return Finding("ok", "the index was built with these settings")


def _meaning(place: IndexPlace, *, deep: bool) -> Finding:
    """Check the transformer and its vectors; only warnings, as search works without them."""
    state, store = meaning_state(place), place.transformer.store
    if state is None:
        count = stored_vectors(place.config.home / "meaning")
        settings = place.config.settings.meaning
        if count and settings.enabled:
            message = f"{count:,} meaning vectors are not used: no model '{settings.model}'"
            return Finding("warning", message, _ADD_MODEL)
        return Finding("ok", "no transformer, so search uses static vectors alone")
    share = f"{state.done:,} of {state.total:,}"
    trouble = state.trouble or _transformer_trouble(place.transformer)
    if trouble is not None:
        message = f"meaning vectors stop at {share}: {trouble}"
        return Finding("warning", message, _ADD_MODEL)
    if deep and store is not None and (damaged := store.damaged()):
        message = f"{damaged:,} meaning vectors are damaged"
        return Finding("warning", message, "Run `obsidian-rag sync --deep-vectors`.")
    rest = "" if state.done == state.total else "; `obsidian-rag sync --deep-vectors` adds the rest"
    return Finding("ok", f"{share} chunks have a vector of {state.model}{rest}")


def _transformer_trouble(transformer: Transformer) -> str | None:
    embedder = transformer.embedder
    try:
        if embedder is not None:
            embedder.probe()
            embedder.embed_query("ready?")
            embedder.close()
    except ObsidianRagError as error:
        return error.message
    return None


def _chunks(place: IndexPlace) -> Finding:
    count = 0
    for path, text, words_only, expected, length in place.chunks.texts():
        count += 1
        is_unit = abs(length - 1) < _UNIT_TOLERANCE
        if chunk_hash(text, words_only) != expected or not is_unit:
            raise IndexCorrupted(
                f"A chunk of {path} is not what was written.", "Run `obsidian-rag reindex`."
            )
    return Finding(
        "ok", f"{_plural(count, 'chunk is as it was', 'chunks are as they were')} written"
    )


def _notes(place: IndexPlace) -> Finding:
    count, changed, differing = _differing_notes(place)
    if differing:
        raise IndexCorrupted(
            f"The properties that are remembered of {len(differing)} notes are not theirs.",
            "Run `obsidian-rag reindex`.",
        )
    if changed:
        some = ", ".join(changed[:5])
        return Finding(
            "warning",
            f"{_plural(len(changed), 'note differs', 'notes differ')} from the index: {some}",
            "`obsidian-rag index` rereads every file.",
        )
    return Finding("ok", f"{_plural(count, 'note is as it was', 'notes are as they were')} indexed")


def _differing_notes(place: IndexPlace) -> tuple[int, list[str], list[str]]:
    """Number of files read, the changed ones, and those whose stored properties differ."""
    read, changed, differing = 0, list[str](), list[str]()
    for vault in place.vaults:
        indexed = IndexState(place.database).hashes(vault.link_id)
        known = Properties(place.database).all(vault.link_id)
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
