"""What a search is asked and what it answers."""

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

    Of `directories` and each group of `tags` and `vaults`, one must fit; every group must. Vaults
    go by name or link id. Without `with_private`, notes that say `rag: private` are as good as
    absent, and so are notes outside of `scope`: no signal looks at them.
    """

    directories: tuple[str, ...] = ()
    tags: tuple[tuple[str, ...], ...] = ()
    dates: DateRange | None = None
    properties: tuple[PropertyFilter, ...] = ()
    vaults: tuple[tuple[str, ...], ...] = ()
    paths: tuple[str, ...] = ()
    with_private: bool = True
    scope: Scope = EVERYTHING
    # Whether properties, as lines of text, may decide: those of other notes fit no filter.
    may_tell: Callable[[str], bool] | None = None
    # Which files may still answer, by link id and path: settings may have changed since.
    admits: Callable[[str, str], bool] | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A question with its filters. `today` is what "last March" is counted from.

    `by_section` keeps passages of different sections apart, so that each can be judged by itself;
    as some will be withheld, phrases count as whole words only and no word is put right.
    `leave_out` names signals that do not count, to see what each is worth.
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
    """How a hit came by its score: each signal's share, and the question's words it contains."""

    signals: dict[str, float]
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that answers. Lines are 1-based and count the file's own lines."""

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

    `confidence` says from 0 to 1 how sure it is that the first ones answer the question, and can be
    compared between questions; `is_weak` that they probably do not. `corrected` is the question as
    it was asked when words in it seemed misspelt.
    """

    hits: tuple[Hit, ...]
    suggestion: Suggestion | None
    chunks_scanned: int
    is_weak: bool = False
    confidence: float = 0.0
    corrected: str | None = None
