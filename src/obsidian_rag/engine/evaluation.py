"""How well search does on questions whose answers are known: the user's, or made from the vault.

Each question is asked by words alone, by vectors alone and by both, so that a user sees what a
model or a setting does to their own notes. Only numbers come out; no text of a note does.
"""

import json
import math
import posixpath
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.engine.asking import ask
from obsidian_rag.engine.engine import Engine
from obsidian_rag.errors import (
    IndexNotFound,
    IndexStale,
    InvalidArgument,
    NoteChanged,
    NotFound,
    ObsidianRagError,
)
from obsidian_rag.notes import Link, LinkKind, Note, is_canvas, parse_note
from obsidian_rag.search import Measures, Request, Signals, mean, measure
from obsidian_rag.store import Links
from obsidian_rag.vault import NoteFile, read_note

SIGNALS = (Signals.WORDS, Signals.VECTORS, Signals.HYBRID)
_NO_CATEGORY = "questions"
# Enough for any sample, and a large vault still answers in seconds.
_MOST_NOTES_READ = 5000
_FEWEST_TITLE_WORDS = 2
_FEWEST_SENTENCE_WORDS = 5
_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])")
_LINE_END = re.compile(r"\r\n?|\n")
_LINK = re.compile(r"!?\[\[([^\[\]]+)\]\]|!?\[([^\[\]]*)\]\(([^()\s]*)\)")
# What the query language would take for a phrase, an exclusion, a filter, or Markdown for itself.
_MARKS = re.compile(r"[\x00\"“”„«»*_`>|#~=:\[\]]+|(?<!\S)[-+]+|https?\S+")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the notes that answer it; `excluded` is a note that gives it away."""

    query: str
    relevant: Mapping[str, float]
    category: str
    excluded: str | None = None


@dataclass(frozen=True, slots=True)
class Golden:
    """The questions of a golden file, and notes it names that are not in the index."""

    questions: tuple[Question, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The measures of a category by signal, over so many questions."""

    category: str
    questions: int
    by_signals: Mapping[Signals, Measures]


@dataclass(frozen=True, slots=True)
class Report:
    """What an evaluation found; with `trouble`, signals that need vectors may be missing."""

    categories: tuple[Evaluated, ...]
    overall: Evaluated
    trouble: ObsidianRagError | None


def load_golden(engine: Engine, file: Path) -> Golden:
    """Read questions from a JSON list or JSON lines of `query`, `relevant` and `category`.

    A note that is not in the index stays relevant, and counts as not found.

    Raises:
        NotFound: there is no such file.
        InvalidArgument: the file is malformed; the message names the entry.
        IndexNotFound: there is no index yet.
    """
    indexed = _indexed(engine)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise NotFound(f"There is no file '{file}'.", "Give a golden file, or --self.") from None
    except UnicodeDecodeError:
        raise _malformed("the file", "is not UTF-8 text") from None
    questions = tuple(_question(where, entry) for where, entry in _entries(text))
    if not questions:
        raise _malformed("the file", "has no questions")
    named = {path for question in questions for path in question.relevant}
    return Golden(questions, tuple(sorted(named - indexed)))


def own_questions(engine: Engine, limit: int, seed: int = 0) -> list[Question]:
    """At most `limit` questions of each kind, made from the vault itself, always the same ones.

    `title`: does a note's title find it? `alias`: does an alias? `link`: does the sentence
    around a link to a note, without the note's name, find the note?

    Raises:
        IndexNotFound: there is no index yet.
    """
    indexed = _indexed(engine)
    chance = random.Random(seed)
    paths = sorted(indexed)
    chance.shuffle(paths)
    notes = list(_read(engine, paths[:_MOST_NOTES_READ]))
    titles = _named((note.title, note.path) for note in notes)
    aliases = _named((alias, note.path) for note in notes for alias in note.aliases)
    by_title = {fold: found for fold, found in titles.items() if _is_telling(fold)}
    by_alias = {fold: found for fold, found in aliases.items() if fold not in titles}
    names = {note.path: (note.title, *note.aliases) for note in notes}
    kinds = (
        [Question(name, dict.fromkeys(owners, 1.0), "title") for name, owners in by_title.values()],
        [Question(name, dict.fromkeys(owners, 1.0), "alias") for name, owners in by_alias.values()],
        _link_questions(notes, indexed, names),
    )
    return [question for kind in kinds for question in chance.sample(kind, min(limit, len(kind)))]


def evaluate(
    engine: Engine,
    questions: Sequence[Question],
    depth: int = 10,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Ask every question in every way, and measure the first `depth` notes of each answer.

    Raises:
        IndexNotFound, IndexCorrupted: there is nothing to answer from.
    """
    measured: dict[Signals, list[Measures]] = {signals: [] for signals in SIGNALS}
    trouble: ObsidianRagError | None = None
    for done, question in enumerate(questions):
        on_progress(done, len(questions))
        for signals in list(measured):
            ranking, problem = _ranking(engine, question, signals, depth)
            trouble = trouble or problem
            if problem is None or isinstance(problem, IndexStale) or signals is Signals.WORDS:
                measured[signals].append(measure(ranking, question.relevant))
            else:  # It was answered by words alone: no measure of what was asked for.
                del measured[signals]
    on_progress(len(questions), len(questions))
    categories = dict.fromkeys(question.category for question in questions)
    return Report(
        tuple(_evaluated(name, questions, measured) for name in categories),
        _evaluated(None, questions, measured),
        trouble,
    )


def _evaluated(
    category: str | None,
    questions: Sequence[Question],
    measured: Mapping[Signals, list[Measures]],
) -> Evaluated:
    places = [
        place
        for place, question in enumerate(questions)
        if category is None or question.category == category
    ]
    means = {signals: mean([found[i] for i in places]) for signals, found in measured.items()}
    return Evaluated(category or "all", len(places), means)


def _ranking(
    engine: Engine, question: Question, signals: Signals, depth: int
) -> tuple[list[str], ObsidianRagError | None]:
    asked = ask(
        engine,
        Request(
            question.query,
            limit=depth + (question.excluded is not None),
            signals=signals,
            group_by_note=True,
        ),
    )
    paths = dict.fromkeys(hit.source_file for hit in asked.answer.hits)
    return [path for path in paths if path != question.excluded][:depth], asked.trouble


def _indexed(engine: Engine) -> set[str]:
    """Every note that can be found."""
    if not engine.chunks.exists():
        raise IndexNotFound("There is no index yet.", "Run `obsidian-rag index`.")
    links = Links(engine.database).all()
    return {path for link in links for path in engine.chunks.paths(link.link_id)}


def _entries(text: str) -> Iterator[tuple[str, object]]:
    """Each entry with the name it has in a message."""
    if text.lstrip().startswith("["):
        try:
            entries = json.loads(text)
        except ValueError as error:
            raise _malformed("the file", f"is not JSON ({error})") from None
        yield from ((f"entry {number}", entry) for number, entry in enumerate(entries, 1))
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                entry = json.loads(line)
            except ValueError as error:
                raise _malformed(f"line {number}", f"is not JSON ({error})") from None
            yield f"line {number}", entry


def _question(where: str, entry: object) -> Question:
    if not isinstance(entry, dict):
        raise _malformed(where, "is not an object")
    query, category = entry.get("query"), entry.get("category", _NO_CATEGORY)
    if not isinstance(query, str) or not query.strip():
        raise _malformed(where, "has no text in 'query'")
    if not isinstance(category, str) or not category.strip():
        raise _malformed(where, "has no text in 'category'")
    return Question(query, _grades(where, entry.get("relevant")), category.strip())


def _grades(where: str, relevant: object) -> dict[str, float]:
    if isinstance(relevant, list) and all(isinstance(path, str) for path in relevant):
        grades = dict.fromkeys(relevant, 1.0)
    elif isinstance(relevant, dict) and all(_is_grade(grade) for grade in relevant.values()):
        grades = {path: float(grade) for path, grade in relevant.items()}
    else:
        raise _malformed(where, "needs a list of notes, or notes with grades, in 'relevant'")
    if not any(grade > 0 for grade in grades.values()):
        raise _malformed(where, "names no note in 'relevant'")
    return grades


def _is_grade(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value >= 0


def _malformed(where: str, what: str) -> InvalidArgument:
    return InvalidArgument(
        f"The golden file cannot be used: {where} {what}.",
        'An entry looks like {"query": "…", "relevant": ["Folder/Note.md"]}.',
    )


def _read(engine: Engine, paths: Iterable[str]) -> Iterator[Note]:
    """The notes that can still be read; others are passed over."""
    root = engine.config.vault_root
    most = engine.rules.max_file_bytes
    for path in paths:
        try:
            found = read_note(root, path, most)
        except NoteChanged:
            continue
        if isinstance(found, NoteFile):
            yield parse_note(path, found.text)


def _named(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, list[str]]]:
    """Names in any case, as written and with all the notes that have them."""
    found: dict[str, tuple[str, list[str]]] = {}
    for name, path in pairs:
        _, owners = found.setdefault(name.casefold(), (name, []))
        if path not in owners:
            owners.append(path)
    return found


def _is_telling(title: str) -> bool:
    return len(_WORD.findall(title)) >= _FEWEST_TITLE_WORDS


def _link_questions(
    notes: Sequence[Note], indexed: set[str], names: Mapping[str, tuple[str, ...]]
) -> list[Question]:
    by_stem: dict[str, list[str]] = {}
    for path in indexed:
        by_stem.setdefault(_stem(path).casefold(), []).append(path)
    questions: dict[str, Question] = {}
    for note in notes:
        for link, sentence in _link_sentences(note):
            target = _resolved(link, note.path, indexed, by_stem)
            if target is None or target == note.path:
                continue
            query = _held_out(sentence, (_stem(target), *names.get(target, ())))
            if query is not None:
                questions.setdefault(query, Question(query, {target: 1.0}, "link", note.path))
    return list(questions.values())


def _link_sentences(note: Note) -> Iterator[tuple[Link, str]]:
    """Sentences with exactly one link to a note; a NUL stands where the link was."""
    lines = [] if is_canvas(note.path) else _LINE_END.split(note.text)
    by_line: dict[int, list[Link]] = {}
    for link in note.links:
        if note.body_line <= link.line <= len(lines):
            by_line.setdefault(link.line, []).append(link)
    for number, links in by_line.items():
        line = lines[number - 1].replace("\x00", " ")
        marked = _LINK.sub(lambda found: "\x00" if _is_inside(found) else found[2], line)
        if marked.count("\x00") != len(links):
            continue
        waiting = iter(links)
        for sentence in _SENTENCE_END.split(marked):
            inside = [next(waiting) for _ in range(sentence.count("\x00"))]
            if len(inside) == 1 and inside[0].kind is not LinkKind.EMBED:
                yield inside[0], sentence


def _held_out(sentence: str, names: Iterable[str]) -> str | None:
    """The sentence without its link and the target's names, if enough of it is left."""
    for name in sorted(filter(None, names), key=len, reverse=True):
        sentence = re.sub(rf"\b{re.escape(name)}\b", " ", sentence, flags=re.IGNORECASE)
    plain = " ".join(_MARKS.sub(" ", sentence).split())
    return plain if len(_WORD.findall(plain)) >= _FEWEST_SENTENCE_WORDS else None


def _is_inside(link: re.Match[str]) -> bool:
    return link[1] is not None or not re.match(r"[A-Za-z][\w+.-]*:|//", link[3])


def _resolved(
    link: Link, source: str, indexed: set[str], by_stem: Mapping[str, list[str]]
) -> str | None:
    """The note a link means, if only one can be meant."""
    if not link.target:
        return None
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(source), link.target))
    for path in (beside, f"{beside}.md", link.target, f"{link.target}.md"):
        if path in indexed:
            return path
    wanted = link.target.casefold().removesuffix(".md")
    alike = [
        path
        for path in by_stem.get(_stem(wanted).casefold(), [])
        if f"/{path.casefold()}".removesuffix(".md").endswith(f"/{wanted}")
    ]
    return alike[0] if len(alike) == 1 else None


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name
