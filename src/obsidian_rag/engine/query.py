"""A question as the outside asks it: the full answer if possible, a degraded one if not."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from obsidian_rag.engine.engine import Engine, index_version
from obsidian_rag.engine.health import Subject, assess
from obsidian_rag.engine.probes import known_facts
from obsidian_rag.errors import (
    EmbeddingMismatch,
    IndexCorrupted,
    IndexNotFound,
    ObsidianRagError,
    OllamaUnreachable,
    ProviderFailed,
)
from obsidian_rag.index import FINGERPRINT, MAINTAINED, check, fingerprint
from obsidian_rag.search import Answer, Meanings, Request, Searcher, Signals
from obsidian_rag.store import (
    FoundRow,
    IndexState,
    Links,
    Manifest,
    Properties,
    has_public_note,
    passages_of,
)
from obsidian_rag.vault import check_relative

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
        answer, trouble = _ask(engine, request)
    except (IndexNotFound, IndexCorrupted) as error:
        if engine.live is not None:
            engine.live.health.note({Subject.STORE: error})
        raise
    if engine.live is not None and engine.live.health.trouble(Subject.STORE) is not None:
        engine.live.health.note({Subject.STORE: None})
    facts = known_facts(engine)
    if isinstance(trouble, EmbeddingMismatch):
        facts = replace(facts, settings=trouble)
    elif trouble is not None:
        facts = replace(facts, embedder=trouble)
    return Asked(answer, assess(facts).error)


def _ask(engine: Engine, request: Request) -> tuple[Answer, ObsidianRagError | None]:
    """The answer, and why it has no vectors if it has none."""
    take_up_changes(engine)
    if IndexState(engine.database).is_empty():
        return Answer((), None, 0), None
    trouble = _known_to_be_down(engine)
    if request.signals is not Signals.WORDS and trouble is None:
        try:
            check(engine.database.get(FINGERPRINT), fingerprint(engine.embedder, engine.limits))
            return _search(engine, request), None
        except _VECTORS_LOST as error:
            trouble = error
            if engine.live is not None and not isinstance(error, EmbeddingMismatch):
                engine.live.health.note({Subject.EMBEDDER: error})
    return _search(engine, replace(request, signals=Signals.WORDS)), trouble


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
        engine.chunks,
        engine.database,
        engine.query_vector,
        engine.embedder.provider,
        _meanings(engine),
    )
    # Folders may have been denied since; the next sync takes their notes out of the index.
    filters = replace(request.filters, admits=engine.rules.admits_file)
    request = replace(request, filters=filters)
    try:
        return searcher.search(request)
    except IndexCorrupted:
        # Another process may have swapped in a new index under our feet: look once more.
        engine.chunks.close()
        return searcher.search(request)


def _meanings(engine: Engine) -> Meanings | None:
    embedder, store = engine.meaning_embedder, engine.meaning_store
    if embedder is None or store is None or store.count() == 0:
        return None
    return Meanings(engine.meaning_vector, store, "multilingual" in embedder.model.lower())


def take_up_changes(engine: Engine) -> None:
    """See what another process has written since the last question.

    Raises:
        IndexNotFound: there is no index, or none any more.
    """
    engine.follow_database()
    if not engine.chunks.exists() or engine.database.get(FINGERPRINT) is None:
        raise IndexNotFound("There is no index yet.", "Run `obsidian-rag index`.")
    # A sweep changes no row, but what the words of the rows count for.
    version = f"{index_version(engine)} {engine.database.get(MAINTAINED)}"
    if engine.seen_version != version:
        engine.chunks.close()
        engine.seen_version = version


def known_folder(engine: Engine, name: str, *, with_private: bool = True) -> str | None:
    """The folder of this name, if there are notes below it; `with_private`, any known file.

    Raises:
        IndexNotFound: there is no index.
        SecurityViolation: it is outside the vault.
    """
    folder = check_relative(name)
    return folder if _has_notes(engine, folder, with_private=with_private) else None


def _has_notes(engine: Engine, folder: str, *, with_private: bool) -> bool:
    if with_private:
        return Manifest(engine.database).has_folder(folder)
    take_up_changes(engine)
    try:
        return has_public_note(engine.chunks, folder)
    except IndexCorrupted:
        engine.chunks.close()  # another process may have swapped in a new index: look once more
        return has_public_note(engine.chunks, folder)


def note_passages(
    engine: Engine, notes: Collection[tuple[str, str]]
) -> dict[tuple[str, str], tuple[list[FoundRow], str]]:
    """The passages and properties of some notes, named by vault and path, where there are any."""
    found: dict[tuple[str, str], tuple[list[FoundRow], str]] = {}
    for link_id in sorted({link_id for link_id, _ in notes}):
        paths = [path for own, path in notes if own == link_id]
        properties = Properties(engine.database).texts(link_id, paths)
        for path, rows in passages_of(engine.chunks, link_id, paths, with_words_only=True).items():
            if rows:
                found[link_id, path] = rows, properties[path]
    return found


def vault_roots(engine: Engine) -> dict[str, Path]:
    """The folder of each vault, by its link."""
    return {link.link_id: link.root_path for link in Links(engine.database).all()}
