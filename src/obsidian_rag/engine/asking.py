"""A question as the outside asks it: the full answer if possible, a degraded one if not."""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from obsidian_rag.engine.changes import changed_files
from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.indexing import index_version, read_result
from obsidian_rag.errors import (
    EmbeddingMismatch,
    IndexCorrupted,
    IndexNotFound,
    IndexStale,
    NotFound,
    ObsidianRagError,
    OllamaUnreachable,
    ProviderFailed,
)
from obsidian_rag.index import FINGERPRINT, check, fingerprint
from obsidian_rag.search import Answer, Request, Searcher, Signals
from obsidian_rag.store import IndexState, Links, Manifest

_STALE_AFTER_S = 3600.0
_LOOK_AGAIN_S = 300.0
_WALK_S = 0.3


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer, and the caveat that goes with it."""

    answer: Answer
    trouble: ObsidianRagError | None


def ask(engine: Engine, request: Request) -> Asked:
    """Answer a question with what works: without vectors when they cannot be had.

    Raises:
        IndexNotFound, IndexCorrupted: there is nothing to answer from.
        InvalidArgument: the question's filters cannot be used.
    """
    _take_up_changes(engine)
    trouble: ObsidianRagError | None = None
    if request.signals is not Signals.WORDS:
        try:
            check(engine.database.get(FINGERPRINT), fingerprint(engine.embedder, engine.limits))
            return Asked(_search(engine, request), _staleness(engine))
        except (EmbeddingMismatch, OllamaUnreachable, ProviderFailed) as error:
            trouble = error
    answer = _search(engine, replace(request, signals=Signals.WORDS))
    return Asked(answer, trouble or _staleness(engine))


def _search(engine: Engine, request: Request) -> Answer:
    searcher = Searcher(
        engine.chunks, engine.database, engine.query_vector, engine.embedder.provider
    )
    try:
        return searcher.search(request)
    except IndexCorrupted:
        # Another process may have swapped in a new index under our feet: look once more.
        engine.chunks.close()
        return searcher.search(request)


def _take_up_changes(engine: Engine) -> None:
    """See what another process has written since the last question."""
    if not engine.chunks.exists() or IndexState(engine.database).is_empty():
        raise IndexNotFound("There is no index yet.", "Run `obsidian-rag index`.")
    version = index_version(engine)
    if engine.seen_version != version:
        engine.chunks.close()
        engine.seen_version = version


def _staleness(engine: Engine) -> IndexStale | None:
    """The index is old and the vault has moved on; looked up now and then, not each time."""
    last = str((read_result(engine) or {}).get("last_sync") or "")
    try:
        age = time.time() - datetime.fromisoformat(last).astimezone(UTC).timestamp()
    except ValueError:
        return None
    if age <= _STALE_AFTER_S:
        return None
    now = time.monotonic()
    if engine.looked_for_changes is None or now - engine.looked_for_changes[0] > _LOOK_AGAIN_S:
        engine.looked_for_changes = now, _has_changed(engine)
    if not engine.looked_for_changes[1]:
        return None
    return IndexStale(
        f"The vault has changed since the last sync {age / 3600:.0f} h ago.",
        "Run `obsidian-rag sync`.",
    )


def _has_changed(engine: Engine) -> bool:
    try:
        return changed_files(engine, _WALK_S)[0] > 0
    except NotFound:
        return False


def folder_exists(engine: Engine, folder: str) -> bool:
    """Whether a vault has notes below this folder."""
    return Manifest(engine.database).has_folder(folder)


def vault_roots(engine: Engine) -> dict[str, Path]:
    """The folder of each vault, by its link."""
    return {link.link_id: link.root_path for link in Links(engine.database).all()}
