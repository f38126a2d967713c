"""A question as the outside asks it: the full answer if possible, a degraded one if not."""

from dataclasses import dataclass, replace
from pathlib import Path

from obsidian_rag.engine.changes import staleness
from obsidian_rag.engine.engine import Engine, index_version
from obsidian_rag.engine.health import ANSWERING, Subject
from obsidian_rag.errors import (
    EmbeddingMismatch,
    IndexCorrupted,
    IndexNotFound,
    ObsidianRagError,
    OllamaUnreachable,
    ProviderFailed,
)
from obsidian_rag.index import FINGERPRINT, check, fingerprint
from obsidian_rag.search import Answer, Request, Searcher, Signals
from obsidian_rag.store import IndexState, Links, Manifest

# What word search can do without.
_VECTORS_LOST = (EmbeddingMismatch, OllamaUnreachable, ProviderFailed)


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
    try:
        asked = _ask(engine, request)
    except (IndexNotFound, IndexCorrupted) as error:
        if engine.live is not None:
            engine.live.health.note({Subject.STORE: error})
        raise
    if engine.live is None:
        return asked
    if engine.live.health.trouble(Subject.STORE) is not None:
        engine.live.health.note({Subject.STORE: None})
    return replace(asked, trouble=asked.trouble or engine.live.health.trouble(*ANSWERING))


def _ask(engine: Engine, request: Request) -> Asked:
    take_up_changes(engine)
    trouble = _known_to_be_down(engine)
    if request.signals is not Signals.WORDS and trouble is None:
        try:
            check(engine.database.get(FINGERPRINT), fingerprint(engine.embedder, engine.limits))
            return Asked(_search(engine, request), staleness(engine))
        except _VECTORS_LOST as error:
            trouble = error
            if engine.live is not None and not isinstance(error, EmbeddingMismatch):
                engine.live.health.note({Subject.EMBEDDER: error})
    answer = _search(engine, replace(request, signals=Signals.WORDS))
    return Asked(answer, trouble or staleness(engine))


def _known_to_be_down(engine: Engine) -> ObsidianRagError | None:
    """No question waits for an embedder that is known not to answer; a look is asked for."""
    if engine.live is None:
        return None
    trouble = engine.live.health.trouble(Subject.EMBEDDER)
    if trouble is not None:
        engine.live.look_soon()
    return trouble


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


def take_up_changes(engine: Engine) -> None:
    """See what another process has written since the last question.

    Raises:
        IndexNotFound: there is no index, or none any more.
    """
    engine.follow_database()
    if not engine.chunks.exists() or IndexState(engine.database).is_empty():
        raise IndexNotFound("There is no index yet.", "Run `obsidian-rag index`.")
    version = index_version(engine)
    if engine.seen_version != version:
        engine.chunks.close()
        engine.seen_version = version


def folder_exists(engine: Engine, folder: str) -> bool:
    """Whether a vault has notes below this folder."""
    return Manifest(engine.database).has_folder(folder)


def vault_roots(engine: Engine) -> dict[str, Path]:
    """The folder of each vault, by its link."""
    return {link.link_id: link.root_path for link in Links(engine.database).all()}
