"""Questions with known answers: read from a golden file, or made from the vault itself.

Half of a golden file can be held out: tuning on the even half and reporting the odd half avoids
fitting the search to the reported questions.
"""

import datetime
import json
import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from obsidian_rag.errors import InvalidArgument, NotFound
from obsidian_rag.notes import (
    LETTERS,
    LINE_END,
    Link,
    LinkKind,
    Note,
    NoteNames,
    file_title,
    kind_of,
)
from obsidian_rag.search.words import question_words

# The category of questions without an answer.
UNANSWERABLE = "none"
_NO_CATEGORY = "questions"
# Enough for any sample, and still a matter of seconds in a large vault.
_MAX_NOTES_READ = 5000
_MIN_TITLE_WORDS = 2
_MIN_SENTENCE_WORDS = 5
_MIN_LINK_WORDS, _MAX_LINK_WORDS = 2, 12
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])")
_LINK = re.compile(r"!?\[\[([^\[\]]+)\]\]|!?\[([^\[\]]*)\]\(([^()\s]*)\)")
# Characters that the query language or Markdown would interpret.
_MARKS = re.compile(r"[\x00\"“”„«»*_`>|#~=:\[\]]+|(?<!\S)[-+]+|https?\S+")


class Half(StrEnum):
    """Which questions of a file to use, by position from 0."""

    ALL = "all"
    EVEN = "even"
    ODD = "odd"


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the notes that answer it; `excluded` is a note that contains the question.

    `answer` is a regular expression that matches the answering passage, `today` the day that
    "last March" is relative to. A question without `relevant` has no answer. `position` is its
    place in its file, from 0.
    """

    query: str
    relevant: Mapping[str, float]
    category: str
    excluded: str | None = None
    answer: str | None = None
    today: datetime.date | None = None
    position: int = field(default=0, compare=False)

    @property
    def is_answerable(self) -> bool:
        """Whether any note answers it."""
        return bool(self.relevant)


@dataclass(frozen=True, slots=True)
class Golden:
    """The questions of a golden file, and the notes it names that are not indexed."""

    questions: tuple[Question, ...]
    unknown: tuple[str, ...]


def read_golden(file: Path, indexed: Set[str]) -> Golden:
    """Read questions from a JSON list or JSON lines of `query`, `relevant`, `category` and others.

    Notes that are not indexed stay relevant, and count as not found.

    Raises:
        NotFound: the file does not exist.
        InvalidArgument: the file is malformed; the message names the entry.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise NotFound(f"No file '{file}'.", "Give a golden file, or --self.") from None
    except UnicodeDecodeError:
        raise _malformed("the file", "is not UTF-8 text") from None
    questions = tuple(_question(where, entry) for where, entry in _entries(text))
    if not questions:
        raise _malformed("the file", "has no questions")
    named = {path for question in questions for path in question.relevant}
    return Golden(questions, tuple(sorted(named - indexed)))


def half_of(questions: Sequence[Question], half: Half) -> list[Question]:
    """The questions at even positions, odd ones, or all of them, with `position` set."""
    placed = [replace(question, position=at) for at, question in enumerate(questions)]
    if half is Half.ALL:
        return placed
    return placed[0 if half is Half.EVEN else 1 :: 2]


def _entries(text: str) -> Iterator[tuple[str, object]]:
    """Each entry, with its name for error messages."""
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
    return Question(
        query,
        _grades(where, entry.get("relevant"), is_answerable=category.strip() != UNANSWERABLE),
        category.strip(),
        answer=_expression(where, entry.get("answer")),
        today=_day(where, entry.get("today")),
    )


def _expression(where: str, answer: object) -> str | None:
    if answer is None:
        return None
    if not isinstance(answer, str) or not answer:
        raise _malformed(where, "has no text in 'answer'")
    try:
        re.compile(answer)
    except re.error as error:
        raise _malformed(where, f"has no regular expression in 'answer' ({error})") from None
    return answer


def _day(where: str, today: object) -> datetime.date | None:
    if today is None:
        return None
    try:
        return datetime.date.fromisoformat(str(today))
    except ValueError:
        raise _malformed(where, "has no date such as 2025-01-31 in 'today'") from None


def _grades(where: str, relevant: object, *, is_answerable: bool) -> dict[str, float]:
    if isinstance(relevant, list) and all(isinstance(path, str) for path in relevant):
        grades = dict.fromkeys(relevant, 1.0)
    elif isinstance(relevant, dict) and all(_is_grade(grade) for grade in relevant.values()):
        grades = {path: float(grade) for path, grade in relevant.items()}
    else:
        raise _malformed(where, "needs a list of notes, or notes with grades, in 'relevant'")
    if any(grade > 0 for grade in grades.values()) == is_answerable:
        return grades if is_answerable else {}
    if is_answerable:
        raise _malformed(where, "names no note in 'relevant'")
    raise _malformed(where, f"names a note in 'relevant', but its category is '{UNANSWERABLE}'")


def _is_grade(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value >= 0


def _malformed(where: str, what: str) -> InvalidArgument:
    return InvalidArgument(
        f"The golden file cannot be used: {where} {what}.",
        'An entry looks like {"query": "…", "relevant": ["Folder/Note.md"]}.',
    )


def questions_from(
    indexed: set[str],
    notes_at: Callable[[Sequence[str]], Iterable[Note]],
    limit: int,
    seed: int = 0,
) -> list[Question]:
    """At most `limit` questions of each kind from the vault; the same seed gives the same ones.

    `title`: does a note's title find it? `alias`: does an alias? `link`: does the sentence
    around a link to a note, without the note's name, find the note? `reworded`: does the text of a
    link that shares no word with the note's names and headings? `notes_at` reads notes, and skips
    those that it cannot read.
    """
    chance = random.Random(seed)
    paths = sorted(indexed)
    chance.shuffle(paths)
    notes = list(notes_at(paths[:_MAX_NOTES_READ]))
    titles = _group_by_name((note.title, note.path) for note in notes)
    aliases = _group_by_name((alias, note.path) for note in notes for alias in note.aliases)
    by_title = {
        name: found
        for name, found in titles.items()
        if len(LETTERS.findall(name)) >= _MIN_TITLE_WORDS
    }
    by_alias = {name: found for name, found in aliases.items() if name not in titles}
    names = {note.path: (note.title, *note.aliases) for note in notes}
    paths_by_name = NoteNames((path, path) for path in indexed)
    kinds = (
        [Question(name, dict.fromkeys(owners, 1.0), "title") for name, owners in by_title.values()],
        [Question(name, dict.fromkeys(owners, 1.0), "alias") for name, owners in by_alias.values()],
        _link_questions(notes, paths_by_name, names),
        _reworded_questions(notes, paths_by_name),
    )
    return [question for kind in kinds for question in chance.sample(kind, min(limit, len(kind)))]


def _group_by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, list[str]]]:
    """Case-folded names, each with its spelling and all the notes that have it."""
    found: dict[str, tuple[str, list[str]]] = {}
    for name, path in pairs:
        _, owners = found.setdefault(name.casefold(), (name, []))
        if path not in owners:
            owners.append(path)
    return found


def _reworded_questions(notes: Sequence[Note], paths_by_name: NoteNames[str]) -> list[Question]:
    """Link texts that share no word with the names and headings of the note they link to.

    The note with the link is excluded; texts that link to several notes are dropped.
    """
    words_of = {note.path: _name_words(note) for note in notes}
    found: dict[str, dict[str, Question]] = {}
    for note in notes:
        for link in note.links:
            target = _resolve_unique(link, note.path, paths_by_name)
            if target is None or target == note.path or target not in words_of:
                continue
            text = " ".join(_MARKS.sub(" ", link.display or "").split())
            words = set(question_words(text))
            is_enough = _MIN_LINK_WORDS <= len(words) <= _MAX_LINK_WORDS
            if is_enough and words.isdisjoint(words_of[target]):
                question = Question(text, {target: 1.0}, "reworded", note.path)
                found.setdefault(text.casefold(), {}).setdefault(target, question)
    return [one for some in found.values() if len(some) == 1 for one in some.values()]


def _name_words(note: Note) -> frozenset[str]:
    path = re.sub(r"[\W_]+", " ", note.path)
    names = (path, note.title, *note.aliases, *(head.text for head in note.headings))
    return frozenset(question_words(" ".join(names)))


def _link_questions(
    notes: Sequence[Note], paths_by_name: NoteNames[str], names: Mapping[str, tuple[str, ...]]
) -> list[Question]:
    questions: dict[str, Question] = {}
    for note in notes:
        for link, sentence in _link_sentences(note):
            target = _resolve_unique(link, note.path, paths_by_name)
            if target is None or target == note.path:
                continue
            query = _remove_names(sentence, (file_title(target), *names.get(target, ())))
            if query is not None:
                questions.setdefault(query, Question(query, {target: 1.0}, "link", note.path))
    return list(questions.values())


def _link_sentences(note: Note) -> Iterator[tuple[Link, str]]:
    """Sentences with exactly one link to a note; a NUL replaces the link."""
    lines = LINE_END.split(note.text) if kind_of(note.path).is_plain_text else []
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


def _remove_names(sentence: str, names: Iterable[str]) -> str | None:
    """The sentence without its link and the target's names, if enough of it is left."""
    for name in sorted(filter(None, names), key=len, reverse=True):
        sentence = re.sub(rf"\b{re.escape(name)}\b", " ", sentence, flags=re.IGNORECASE)
    plain = " ".join(_MARKS.sub(" ", sentence).split())
    return plain if len(LETTERS.findall(plain)) >= _MIN_SENTENCE_WORDS else None


def _is_inside(link: re.Match[str]) -> bool:
    return link[1] is not None or not re.match(r"[A-Za-z][\w+.-]*:|//", link[3])


def _resolve_unique(link: Link, source: str, paths_by_name: NoteNames[str]) -> str | None:
    """The note that a link resolves to, if there is exactly one."""
    meant = paths_by_name.resolve(link.target, source) if link.target else []
    return meant[0] if len(meant) == 1 else None
