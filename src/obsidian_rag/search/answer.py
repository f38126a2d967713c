"""The request and the answer of a search."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from obsidian_rag.notes import EVERYTHING, Scope
from obsidian_rag.search.query import DateRange, PropertyFilter


class Signals(StrEnum):
    """Which signals rank the answer."""

    HYBRID = "hybrid"
    WORDS = "words"
    VECTORS = "vectors"


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must satisfy; an empty filter admits everything.

    One of `directories`, and one of each group of `tags` and `vaults`, must match. Vaults are given
    by name or link id. Without `with_private`, notes with `rag: private` are treated as absent, and
    so are notes outside of `scope`: no signal sees them.
    """

    directories: tuple[str, ...] = ()
    tags: tuple[tuple[str, ...], ...] = ()
    dates: DateRange | None = None
    properties: tuple[PropertyFilter, ...] = ()
    vaults: tuple[tuple[str, ...], ...] = ()
    paths: tuple[str, ...] = ()
    with_private: bool = True
    scope: Scope = EVERYTHING
    # Notes, by link id and path, treated as absent because their files have changed since.
    without: frozenset[tuple[str, str]] = frozenset()
    # Privacy check of a note's properties, as lines of text: if it fails, no filter matches them.
    may_reveal: Callable[[str], bool] | None = None
    # Whether a file, by link id and path, may still answer: settings may have changed since.
    admits: Callable[[str, str], bool] | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A question with its filters. `today` is what "last March" is relative to.

    `by_section` keeps passages of different sections apart, so that each can be checked separately;
    as some will be withheld, phrases match whole words only and spelling is not corrected.
    `leave_out` names signals to ignore, to measure what each contributes.
    """

    question: str
    limit: int = 5
    filters: Filters = field(default_factory=Filters)
    signals: Signals = Signals.HYBRID
    group_by_note: bool = False
    use_dates: bool = True
    today: date | None = None
    by_section: bool = False
    leave_out: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Why:
    """Explains a hit's score: each signal's share, and the question's words it contains."""

    signals: dict[str, float]
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that answers. Lines are 1-based lines of the file."""

    text: str
    score: float
    source_file: str
    title: str
    section: str | None
    heading_path: tuple[str, ...]
    start_line: int
    end_line: int
    date: str | None
    tags: tuple[str, ...]
    chunk_index: int
    link_id: str
    is_private: bool
    why: Why


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A filter read out of the question ("last March"), and whether it was applied."""

    phrase: str
    first: str
    last: str
    is_applied: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """Hits, best first.

    `confidence`, from 0 to 1: how likely the first hits answer the question, comparable between
    questions; `is_weak` if they probably do not. `corrected` is the question that was searched if
    words in it seemed misspelt.
    """

    hits: tuple[Hit, ...]
    suggestion: Suggestion | None
    chunks_scanned: int
    is_weak: bool = False
    confidence: float = 0.0
    corrected: str | None = None
