"""Measures search on the user's notes, with questions whose answers are known.

Not a tool for agents: `obsidian-rag eval` and the benchmarks use it.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from obsidian_rag.engine import Engine, ask
from obsidian_rag.errors import InvalidArgument, NoteChanged, NotFound, ObsidianRagError
from obsidian_rag.notes import Note, parse_note
from obsidian_rag.relations import LinksFound, links_found
from obsidian_rag.search import (
    PARTS,
    Answer,
    EvalOptions,
    Golden,
    Half,
    Question,
    Report,
    Request,
    evaluate_search,
    half_of,
    questions_from,
    read_golden,
)
from obsidian_rag.tools.note_files import note_files

_DEFAULT_QUESTIONS = 100
_DEFAULT_OPTIONS = EvalOptions()
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Measurement:
    """Which questions to ask: those of a golden file, or generated from the vault.

    `limit` is the maximum number of questions from the file, or of each kind; `without` names
    signals to leave out; `vault`, a name or link id, limits the search to one vault.
    """

    golden: Path | None = None
    limit: int | None = None
    half: str = Half.ALL
    without: frozenset[str] = frozenset()
    vault: str | None = None


def measure_search(
    engine: Engine, wanted: Measurement, on_progress: OnProgress
) -> tuple[Report, tuple[str, ...]]:
    """Measure search; returns the report, and notes in the golden file that are not indexed.

    Raises:
        InvalidArgument: unknown signal, no question in that half, or the file is malformed.
        NotFound: there is no such file, or the vault yields no questions.
        IndexNotFound, IndexCorrupted: there is no usable index.
    """
    if unknown_parts := sorted(wanted.without - set(PARTS)):
        raise InvalidArgument(
            f"No signal is called '{unknown_parts[0]}'.", f"The signals are: {', '.join(PARTS)}."
        )
    questions, unknown = _questions(engine, wanted)
    chosen = half_of(questions, Half(wanted.half))
    chosen = chosen[: wanted.limit] if wanted.golden is not None else chosen
    if not chosen:
        raise InvalidArgument("There is no question in that half.", "Leave out --half.")
    options = EvalOptions(leave_out=wanted.without)
    return evaluate(engine, chosen, options, on_progress, wanted.vault), unknown


def measure_links(engine: Engine, limit: int, on_progress: OnProgress) -> LinksFound:
    """How often `related` suggests the target of an author's own link once the link is gone.

    Raises:
        IndexNotFound: nothing is indexed yet.
    """
    return links_found(engine.relations, limit, on_progress)


def _questions(engine: Engine, wanted: Measurement) -> tuple[Sequence[Question], tuple[str, ...]]:
    if wanted.golden is not None:
        loaded = load_golden(engine, wanted.golden, wanted.vault)
        return loaded.questions, loaded.unknown
    made = own_questions(engine, wanted.limit or _DEFAULT_QUESTIONS, vault=wanted.vault)
    if not made:
        raise NotFound(
            "No question can be made from this vault: it has no title of two words or more,"
            " no alias and no link within a sentence.",
            "Write a golden file: see docs/guides/eval.md.",
        )
    return made, ()


def load_golden(engine: Engine, file: Path, vault: str | None = None) -> Golden:
    """Load the questions of a golden file; see `read_golden`.

    Raises:
        IndexNotFound: there is no index yet.
    """
    return read_golden(file, note_files(engine, vault).indexed())


def own_questions(
    engine: Engine, limit: int, seed: int = 0, vault: str | None = None
) -> list[Question]:
    """Generate questions from the vault; see `questions_from`.

    Raises:
        IndexNotFound: there is no index yet.
    """

    files = note_files(engine, vault)

    def notes_at(paths: Iterable[str]) -> Iterator[Note]:
        for path in paths:
            with contextlib.suppress(NoteChanged):
                file = files.read(path)
                if file is not None:
                    yield parse_note(path, file.text)

    return questions_from(files.indexed(), notes_at, limit, seed)


def evaluate(
    engine: Engine,
    questions: Sequence[Question],
    options: EvalOptions = _DEFAULT_OPTIONS,
    on_progress: OnProgress = lambda done, total: None,
    vault: str | None = None,
) -> Report:
    """Ask the engine every question, and count its meaning vectors.

    With `vault`, only that one is searched.

    Raises:
        IndexNotFound, IndexCorrupted: there is no usable index.
    """

    vaults = ((vault,),) if vault is not None else ()

    def answer(request: Request) -> tuple[Answer, ObsidianRagError | None]:
        asked = ask(engine, replace(request, filters=replace(request.filters, vaults=vaults)))
        return asked.answer, asked.trouble

    report = evaluate_search(answer, questions, options, on_progress)
    store = engine.meaning_store
    return replace(
        report,
        meaning_vectors=None if store is None else store.count(),
        chunks=engine.chunks.count(),
    )
