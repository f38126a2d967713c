"""What `doctor` checks of an index: its files, its rows, and whether they are what was written.

SQLite notices damage to its own structure, not to a value in it. So values that answers are made
from are made once more and compared.
"""

from dataclasses import dataclass
from typing import Literal

from obsidian_rag.errors import IndexCorrupted, IndexIncomplete, IndexNotFound, ObsidianRagError
from obsidian_rag.index.embedding import embedder_choice
from obsidian_rag.index.fingerprint import check, fingerprint
from obsidian_rag.index.meaning import meaning_state
from obsidian_rag.index.place import IndexPlace
from obsidian_rag.index.prepare import chunk_hash
from obsidian_rag.index.run import FINGERPRINT
from obsidian_rag.index.transformer import Transformer
from obsidian_rag.notes import RagPolicy, parse_note, property_values
from obsidian_rag.store import (
    IndexState,
    Properties,
    probe_indexes,
    stored_vectors,
)
from obsidian_rag.vault import NoteFile, content_hash

_ADD_MODEL = "Run `obsidian-rag model get` or `model add` again; search goes on without."
Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    check: str
    verdict: Verdict
    message: str
    suggestion: str = ""
    error: ObsidianRagError | None = None


def check_database(place: IndexPlace, *, deep: bool) -> Finding:
    if (damage := place.database.check(is_deep=deep)) is not None:
        raise IndexCorrupted(f"state.db is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    return Finding("database", "ok", str(place.config.database))


def check_files(place: IndexPlace, *, deep: bool) -> Finding:
    """The files of the chunk table: present and of their size; deep: of their content."""
    if not place.chunks.exists():
        raise IndexNotFound("There is no index yet.", "Run `obsidian-rag index`.")
    if (damage := place.chunks.damage(is_deep=deep)) is not None:
        raise IndexCorrupted(f"The index is damaged: {damage}.", "Run `obsidian-rag reindex`.")
    if not place.chunks.is_recorded():
        return Finding(
            "files",
            "warning",
            "no checksums were recorded, so damage may go unseen",
            "Run `obsidian-rag reindex`, which records them.",
        )
    what = "their content is what was written" if deep else "all there, each of its size"
    return Finding("files", "ok", what)


def check_lookup(place: IndexPlace, *, deep: bool) -> Finding:
    """Ask each search index for rows that are known to be there."""
    asked, wrong = probe_indexes(place.chunks, is_deep=deep)
    if wrong is not None:
        raise IndexCorrupted(
            f"The search index of {wrong} misses rows that the table has.",
            "Run `obsidian-rag reindex`.",
        )
    return Finding("lookup", "ok", f"{asked} questions with known answers were answered right")


def check_index(place: IndexPlace) -> Finding:
    files, chunks = IndexState(place.database).totals()
    stored = place.chunks.count()
    if stored != chunks:
        raise IndexCorrupted(
            f"The index holds {stored} chunks, but {chunks} were written.",
            "Run `obsidian-rag reindex`.",
        )
    return Finding(
        "index", "ok", f"{counted(files, 'note', 'notes')}, {counted(chunks, 'chunk', 'chunks')}"
    )


def check_embedder(place: IndexPlace) -> Finding:
    place.embedder.probe()
    vector = place.embedder.embed_query("ready?")
    what = f"{place.embedder.provider}:{place.embedder.model}, {len(vector)} dimensions"
    if (notice := embedder_choice(place.config).notice) is not None:
        step = "Set embedding.provider, or model.provider to openai, gemini or ollama."
        return Finding("embedder", "warning", f"{what}. {notice}", step)
    return Finding("embedder", "ok", what)


def check_fingerprint(place: IndexPlace) -> Finding:
    try:
        check(place.database.get(FINGERPRINT), fingerprint(place.embedder, place.limits))
    except IndexIncomplete as error:
        return Finding("fingerprint", "warning", error.message, error.suggestion, error)
    return Finding("fingerprint", "ok", "the index was built with these settings")


def check_meaning(place: IndexPlace, *, deep: bool) -> Finding:
    """The transformer and its vectors; whatever is wrong with them, search goes on without."""
    state, store = meaning_state(place), place.transformer.store
    if state is None:
        count = stored_vectors(place.config.home / "meaning")
        settings = place.config.settings.meaning
        if count and settings.enabled:
            message = f"{count:,} meaning vectors are not used: no model '{settings.model}'"
            return Finding("meaning", "warning", message, _ADD_MODEL)
        return Finding("meaning", "ok", "no transformer, so search uses static vectors alone")
    share = f"{state.done:,} of {state.total:,}"
    trouble = state.trouble or _transformer_trouble(place.transformer)
    if trouble is not None:
        message = f"meaning vectors stop at {share}: {trouble}"
        return Finding("meaning", "warning", message, _ADD_MODEL)
    if deep and store is not None and (damaged := store.damaged()):
        message = f"{damaged:,} meaning vectors are damaged"
        return Finding("meaning", "warning", message, "Run `obsidian-rag sync --deep-vectors`.")
    rest = "" if state.done == state.total else "; `obsidian-rag sync --deep-vectors` adds the rest"
    return Finding("meaning", "ok", f"{share} chunks have a vector of {state.model}{rest}")


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


def check_chunks(place: IndexPlace) -> Finding:
    count = 0
    for path, text, words_only, expected in place.chunks.texts():
        count += 1
        if chunk_hash(text, words_only) != expected:
            raise IndexCorrupted(
                f"A chunk of {path} is not what was written.", "Run `obsidian-rag reindex`."
            )
    return Finding(
        "chunks",
        "ok",
        f"{counted(count, 'chunk is as it was', 'chunks are as they were')} written",
    )


def check_notes(place: IndexPlace) -> Finding:
    count, changed, differing = _differing_notes(place)
    if differing:
        raise IndexCorrupted(
            f"The properties that are remembered of {len(differing)} notes are not theirs.",
            "Run `obsidian-rag reindex`.",
        )
    if changed:
        some = ", ".join(changed[:5])
        return Finding(
            "notes",
            "warning",
            f"{counted(len(changed), 'note differs', 'notes differ')} from the index: {some}",
            "`obsidian-rag index` rereads every file.",
        )
    return Finding(
        "notes", "ok", f"{counted(count, 'note is as it was', 'notes are as they were')} indexed"
    )


def _differing_notes(place: IndexPlace) -> tuple[int, list[str], list[str]]:
    """How many files were read; those that changed since, and those whose properties differ."""
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


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
