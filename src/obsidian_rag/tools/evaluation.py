"""How well search does on the user's notes, by questions whose answers are known.

No tool for agents: `obsidian-rag eval` and the benchmarks ask for it.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from obsidian_rag.engine import Engine, ask
from obsidian_rag.errors import InvalidArgument, NoteChanged, NotFound, ObsidianRagError
from obsidian_rag.notes import Note, parse_note
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

_OWN_QUESTIONS = 100
_AS_USUAL = EvalOptions()
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Measurement:
    """Which questions are asked: those of a golden file, or some made from the vault itself.

    `limit` is the most questions of the file, or of each kind; `without` names signals to leave
    out; `vault`, a name or link id, is the vault that is asked, by default all are.
    """

    golden: Path | None = None
    limit: int | None = None
    half: str = Half.ALL
    without: frozenset[str] = frozenset()
    vault: str | None = None


def measure_search(
    engine: Engine, wanted: Measurement, on_progress: OnProgress
) -> tuple[Report, tuple[str, ...]]:
    """What came of the questions, and notes that a golden file names and the index has not.

    Raises:
        InvalidArgument: there is no such signal, no question in that half, or the file is wrong.
        NotFound: there is no such file, or the vault makes no question.
        IndexNotFound, IndexCorrupted: there is nothing to answer from.
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


def _questions(engine: Engine, wanted: Measurement) -> tuple[Sequence[Question], tuple[str, ...]]:
    if wanted.golden is not None:
        loaded = load_golden(engine, wanted.golden, wanted.vault)
        return loaded.questions, loaded.unknown
    made = own_questions(engine, wanted.limit or _OWN_QUESTIONS, vault=wanted.vault)
    if not made:
        raise NotFound(
            "No question can be made from this vault: it has no title of two words or more,"
            " no alias and no link within a sentence.",
            "Write a golden file: see docs/guides/eval.md.",
        )
    return made, ()


def load_golden(engine: Engine, file: Path, vault: str | None = None) -> Golden:
    """The questions of a golden file; see `read_golden`.

    Raises:
        IndexNotFound: there is no index yet.
    """
    return read_golden(file, engine.vaults.files(vault).indexed())


def own_questions(
    engine: Engine, limit: int, seed: int = 0, vault: str | None = None
) -> list[Question]:
    """Questions made from the vault itself; see `questions_from`.

    Raises:
        IndexNotFound: there is no index yet.
    """

    files = engine.vaults.files(vault)

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
    options: EvalOptions = _AS_USUAL,
    on_progress: OnProgress = lambda done, total: None,
    vault: str | None = None,
) -> Report:
    """Ask every question of this engine, and say how many meaning vectors there were to help.

    With `vault`, only that one is asked.

    Raises:
        IndexNotFound, IndexCorrupted: there is nothing to answer from.
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
