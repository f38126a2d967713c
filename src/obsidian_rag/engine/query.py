"""Answers a query from outside: in full if possible, degraded if not."""

from dataclasses import dataclass, replace

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.health import facts_of, health_of
from obsidian_rag.errors import (
    EmbeddingMismatch,
    IndexCorrupted,
    IndexNotFound,
    ObsidianRagError,
    OllamaUnreachable,
    ProviderFailed,
    StoreForeign,
)
from obsidian_rag.health import HealthAnswer, assess
from obsidian_rag.index import Transformer, check_width, embedder_choice, has_fitting_vectors
from obsidian_rag.notes import EVERYTHING, Scope
from obsidian_rag.search import Answer, Filters, Meanings, Request, Searcher, Signals, fits_any
from obsidian_rag.store import IndexFact, IndexState
from obsidian_rag.vault import check_relative

# Errors after which keyword search still works.
_VECTOR_ERRORS = (EmbeddingMismatch, OllamaUnreachable, ProviderFailed)


@dataclass(frozen=True, slots=True)
class AskResult:
    """An answer, and the health at that time."""

    answer: Answer
    health: HealthAnswer
    # Why the vectors came from another embedder than the configured one.
    embedder_notice: str | None = None

    @property
    def trouble(self) -> ObsidianRagError | None:
        """The current error, if any."""
        return self.health.error


def ask(engine: Engine, request: Request) -> AskResult:
    """Answer a query with what works: without vectors if they are unavailable.

    Raises:
        IndexNotFound, IndexCorrupted: there is no usable index.
        InvalidArgument: the filters are invalid.
    """
    try:
        answer, trouble = _ask(engine, request)
    except (IndexNotFound, IndexCorrupted, StoreForeign) as error:
        engine.live.note(store=error)
        raise
    if engine.live.known is not None and engine.live.known.store is not None:
        engine.live.note(store=None)
    if trouble is None:
        health = health_of(engine)
    elif isinstance(trouble, EmbeddingMismatch):
        health = assess(replace(facts_of(engine), settings=trouble))
    else:
        health = assess(replace(facts_of(engine), embedder=trouble))
    return AskResult(answer, health, embedder_choice(engine.config).notice)


def _ask(engine: Engine, request: Request) -> tuple[Answer, ObsidianRagError | None]:
    """The answer, and the reason if vectors were not used."""
    meta = engine.follow_index()
    if IndexState(engine.database).is_empty():
        return Answer((), None, 0), None
    trouble = _known_embedder_error(engine)
    if request.signals is not Signals.WORDS and trouble is None:
        try:
            made = meta.get(IndexFact.FINGERPRINT)
            if has_fitting_vectors(made, engine.parts.fingerprint):
                return _search(engine, request), None
        except _VECTOR_ERRORS as error:
            trouble = error
            if not isinstance(error, EmbeddingMismatch):
                engine.live.note(embedder=error)
    return _search(engine, replace(request, signals=Signals.WORDS)), trouble


def _known_embedder_error(engine: Engine) -> ObsidianRagError | None:
    """The known embedder error, so that no query waits for it; asks for a new probe."""
    if engine.live.known is None:
        return engine.sending.trouble
    trouble = engine.live.known.embedder
    if trouble is not None:
        engine.live.probe_soon()
    return trouble


def _search(engine: Engine, request: Request) -> Answer:
    parts = engine.parts
    searcher = Searcher(
        parts.chunks,
        parts.database,
        lambda text: check_width(parts.embedding.query_vector(text), parts.embedder, parts.chunks),
        parts.embedder.provider,
        _meanings(parts.transformer),
    )
    # Folders may have been denied since; the next sync removes their notes from the index.
    admits = engine.vaults.admission()
    request = replace(request, filters=replace(request.filters, admits=admits))
    return parts.chunks.look_up(lambda: searcher.search(request))


def _meanings(transformer: Transformer) -> Meanings | None:
    embedder, store = transformer.embedder, transformer.store
    if embedder is None or store is None or store.count() == 0:
        return None
    return Meanings(transformer.query_vector, store, "multilingual" in embedder.model.lower())


def known_folder(
    engine: Engine,
    name: str,
    scope: Scope = EVERYTHING,
    *,
    with_private: bool = True,
    without: frozenset[tuple[str, str]] = frozenset(),
) -> str | None:
    """The folder of this name if it contains notes in scope; `with_private`, any known file.

    Raises:
        IndexNotFound: there is no index.
        SecurityViolation: it is outside the vault.
    """
    folder = check_relative(name)
    if with_private and not scope.is_limited and not without:
        return folder if engine.vaults.has_folder(folder) else None
    wanted = Filters((folder,), scope=scope, with_private=with_private, without=without)
    engine.follow_index()
    fits = engine.chunks.look_up(lambda: fits_any(wanted, engine.chunks, engine.database))
    return folder if fits else None
