"""A question as the outside asks it: the full answer if possible, a degraded one if not."""

from dataclasses import dataclass, replace

from obsidian_rag.engine.engine import Engine
from obsidian_rag.engine.health import facts_of
from obsidian_rag.errors import (
    EmbeddingMismatch,
    IndexCorrupted,
    IndexIncomplete,
    IndexNotFound,
    ObsidianRagError,
    OllamaUnreachable,
    ProviderFailed,
)
from obsidian_rag.index import (
    FINGERPRINT,
    HealthAnswer,
    ListedNote,
    assess,
    embedder_choice,
    fingerprint,
    fitting,
    has_fitting_vectors,
    take_up_changes,
)
from obsidian_rag.notes import EVERYTHING, Scope
from obsidian_rag.search import Answer, Filters, Meanings, Request, Searcher, Signals, fits_any
from obsidian_rag.store import IndexState
from obsidian_rag.vault import check_relative

# What word search can do without.
_VECTORS_LOST = (EmbeddingMismatch, OllamaUnreachable, ProviderFailed)


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer, and the health that it was given with."""

    answer: Answer
    health: HealthAnswer
    # Why another embedder than the wanted one made the vectors.
    embedder_notice: str | None = None

    @property
    def trouble(self) -> ObsidianRagError | None:
        """What is wrong, if anything."""
        return self.health.error


def ask(engine: Engine, request: Request) -> Asked:
    """Answer a question with what works: without vectors when they cannot be had.

    Raises:
        IndexNotFound, IndexCorrupted: there is nothing to answer from.
        InvalidArgument: the question's filters cannot be used.
    """
    try:
        answer, trouble = _ask(engine, request)
    except (IndexNotFound, IndexCorrupted) as error:
        if engine.live is not None:
            engine.live.health.note(store=error)
        raise
    if engine.live is not None and engine.live.health.facts.store is not None:
        engine.live.health.note(store=None)
    facts = facts_of(engine)
    if isinstance(trouble, EmbeddingMismatch):
        facts = replace(facts, settings=trouble)
    elif trouble is not None:
        facts = replace(facts, embedder=trouble)
    return Asked(answer, assess(facts), embedder_choice(engine.config).notice)


def _ask(engine: Engine, request: Request) -> tuple[Answer, ObsidianRagError | None]:
    """The answer, and why it has no vectors if it has none."""
    take_up_changes(engine)
    if IndexState(engine.database).is_empty():
        return Answer((), None, 0), None
    trouble = _known_to_be_down(engine)
    if request.signals is not Signals.WORDS and trouble is None:
        try:
            wanted = fingerprint(engine.embedder, engine.limits)
            if has_fitting_vectors(engine.database.get(FINGERPRINT), wanted):
                return _search(engine, request), None
        except _VECTORS_LOST as error:
            trouble = error
            if engine.live is not None and not isinstance(error, EmbeddingMismatch):
                engine.live.health.note(embedder=error)
    return _search(engine, replace(request, signals=Signals.WORDS)), trouble


def _known_to_be_down(engine: Engine) -> ObsidianRagError | None:
    """No question waits for an embedder that is known not to answer; a look is asked for."""
    if engine.live is None:
        return engine.sending.trouble
    trouble = engine.live.health.facts.embedder
    if trouble is not None:
        engine.live.look_soon()
    return trouble


def _search(engine: Engine, request: Request) -> Answer:
    searcher = Searcher(
        engine.chunks,
        engine.database,
        lambda question: fitting(engine.query_vector(question), engine.embedder, engine.chunks),
        engine.embedder.provider,
        _meanings(engine),
    )
    # Folders may have been denied since; the next sync takes their notes out of the index.
    admits = engine.vaults.admission()
    request = replace(request, filters=replace(request.filters, admits=admits))
    try:
        return engine.chunks.look_up(lambda: searcher.search(request))
    except IndexIncomplete:
        # An index of an older program knows no days: a day in the question counts as words.
        return searcher.search(replace(request, use_dates=False))


def _meanings(engine: Engine) -> Meanings | None:
    embedder, store = engine.transformer.embedder, engine.meaning_store
    if embedder is None or store is None or store.count() == 0:
        return None
    return Meanings(engine.meaning_vector, store, "multilingual" in embedder.model.lower())


def known_folder(
    engine: Engine, name: str, scope: Scope = EVERYTHING, *, with_private: bool = True
) -> str | None:
    """The folder of this name, if notes in scope are below it; `with_private`, any known file.

    Raises:
        IndexNotFound: there is no index.
        SecurityViolation: it is outside the vault.
    """
    folder = check_relative(name)
    if with_private and not scope.is_limited:
        return folder if engine.vaults.has_folder(folder) else None
    wanted = Filters(directories=(folder,), scope=scope, with_private=with_private)
    take_up_changes(engine)
    fits = engine.chunks.look_up(lambda: fits_any(wanted, engine.chunks, engine.database))
    return folder if fits else None


def list_notes(
    engine: Engine,
    after: str,
    limit: int,
    scope: Scope = EVERYTHING,
    vault: str | None = None,
) -> tuple[ListedNote, ...]:
    """The next notes of a vault whose paths follow `after`, without private ones.

    Empty without an index. Without a name or link id of a `vault`, those of the first in scope.

    Raises:
        IndexCorrupted: the index cannot be read.
    """
    try:
        take_up_changes(engine)
    except IndexNotFound:
        return ()
    files = engine.vaults.files(vault, scope)
    return engine.chunks.look_up(lambda: files.listed(after, limit))
