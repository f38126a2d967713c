"""Questions with known answers, and the golden files that users write them in.

Half of a file can be held out: tuning on the even half and reporting the odd half avoids fitting
the search to the reported questions.
"""

import datetime
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from obsidian_rag.errors import InvalidArgument, NotFound

# The category of questions without an answer.
UNANSWERABLE = "none"
_NO_CATEGORY = "questions"


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
