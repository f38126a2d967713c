"""For any small vault and any filter: nothing leaks, scores are in order, lines are right."""

import contextlib
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.notes.test_sanitise import sanitise
from tests.search.indexed import asked, indexed, write_notes

from obsidian_rag.engine import Engine
from obsidian_rag.errors import ObsidianRagError
from obsidian_rag.search import DateRange, Filters, Hit, Signals
from obsidian_rag.search.query import PropertyFilter
from obsidian_rag.tools import call

WORDS = ("rain", "garden", "roof", "owe", "Café", "каша", "抹茶", "boiler", "sleep", "ice-out")
TAGS = ("project", "project/garden", "health", "it's")
FOLDERS = ("", "A/", "A/B/", "Ab/", "Jo's/")
DAYS = ("2023-12-31", "2024-01-01", "2024-06-15", "2025-02-28")
FEW = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@dataclass(frozen=True)
class Written:
    """A note, and what a filter may ask of it."""

    path: str
    text: str
    day: str | None
    rating: int | None
    tags: tuple[str, ...] = field(default=())


@st.composite
def notes(draw: st.DrawFn) -> list[Written]:
    made = []
    for number in range(draw(st.integers(2, 7))):
        day = draw(st.sampled_from((None, *DAYS)))
        rating = draw(st.none() | st.integers(-2, 12))
        tags = tuple(draw(st.lists(st.sampled_from(TAGS[:3]), max_size=2, unique=True)))
        head = "".join(
            line
            for line, is_there in (
                (f"date: {day}\n", day is not None),
                (f"rating: {rating}\n", rating is not None),
                (f"tags: [{', '.join(tags)}]\n", bool(tags)),
            )
            if is_there
        )
        parts = draw(
            st.lists(
                st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join),
                min_size=1,
                max_size=4,
            )
        )
        body = "\n\n".join(
            f"## Part {position}\n\n{part}" if draw(st.booleans()) else f"- {part}\n<b>x</b>\n"
            for position, part in enumerate(parts)
        )
        folder = draw(st.sampled_from(FOLDERS))
        text = f"---\n{head}---\n{body}" if head else body
        made.append(Written(f"{folder}n{number}.md", text, day, rating, tags))
    return made


questions = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


@st.composite
def filters(draw: st.DrawFn) -> Filters:
    days = sorted(draw(st.lists(st.sampled_from(DAYS), min_size=2, max_size=2)))
    bounds = sorted(draw(st.lists(st.integers(-3, 13), min_size=2, max_size=2)))
    kind = draw(
        st.sampled_from(["low", "high", "both", "equal", "open"]),
    )
    low, high = str(bounds[0]), str(bounds[1])
    wanted = {
        "low": PropertyFilter("rating", low=low),
        "high": PropertyFilter("rating", high=high),
        "both": PropertyFilter("rating", low, high),
        "equal": PropertyFilter("rating", low, low),
        "open": PropertyFilter("rating", low, high, True, True),
    }[kind]
    folders = st.sampled_from([folder.rstrip("/") for folder in FOLDERS if folder])
    return Filters(
        directories=tuple(draw(st.lists(folders, max_size=2, unique=True))),
        tags=((draw(st.sampled_from(TAGS)),),) if draw(st.booleans()) else (),
        dates=DateRange(draw(st.none() | st.just(days[0])), draw(st.none() | st.just(days[1])))
        if draw(st.booleans())
        else None,
        properties=(wanted,) if draw(st.booleans()) else (),
        paths=("n1",) if draw(st.integers(0, 5)) == 0 else (),
    )


def admits(wanted: Filters, note: Written) -> bool:
    """The filters in words of Python, to compare with those in words of SQL."""
    return (
        (not wanted.directories or any(note.path.startswith(f"{d}/") for d in wanted.directories))
        and all(_is_tagged(note, group) for group in wanted.tags)
        and _is_dated(note, wanted.dates)
        and all(_is_rated(note, one) for one in wanted.properties)
        and all(part.lower() in note.path.lower() for part in wanted.paths)
    )


def _is_tagged(note: Written, group: tuple[str, ...]) -> bool:
    return any(own == tag or own.startswith(f"{tag}/") for tag in group for own in note.tags)


def _is_dated(note: Written, dates: DateRange | None) -> bool:
    if dates is None or (dates.first is None and dates.last is None):
        return True
    return note.day is not None and (dates.first or "") <= note.day <= (dates.last or "9")


def _is_rated(note: Written, wanted: PropertyFilter) -> bool:
    if note.rating is None:
        return False
    low = float(wanted.low) if wanted.low is not None else float("-inf")
    high = float(wanted.high) if wanted.high is not None else float("inf")
    return (note.rating > low if wanted.is_open_low else note.rating >= low) and (
        note.rating < high if wanted.is_open_high else note.rating <= high
    )


@contextlib.contextmanager
def searched(written: list[Written]) -> Iterator[Engine]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        vault = write_notes(root / "vault", {note.path: note.text for note in written})
        engine = indexed(root / "home", vault)
        try:
            yield engine
        finally:
            engine.close()


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", sanitise(text).casefold()))


def assert_sound(found: tuple[Hit, ...], vault: Path) -> None:
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)
    for hit in found:
        assert all(0.0 <= share <= 1.0 for share in hit.why.signals.values())
        lines = (vault / hit.source_file).read_text(encoding="utf-8").split("\n")
        assert 1 <= hit.start_line <= hit.end_line <= len(lines)
        cited = "\n".join(lines[hit.start_line - 1 : hit.end_line])
        assert words_of(hit.text.replace("…", " ")) <= words_of(cited)


@FEW
@given(notes(), st.lists(st.tuples(questions, filters()), min_size=6, max_size=6))
def test_nothing_outside_the_filters_is_returned_and_everything_inside_is(
    written: list[Written], trials: list[tuple[str, Filters]]
) -> None:
    with searched(written) as engine:
        for question, wanted in trials:
            for signals in Signals:
                found = asked(
                    engine, question, limit=50, filters=wanted, signals=signals
                ).answer.hits
                admitted = {note.path for note in written if admits(wanted, note)}
                got = {hit.source_file for hit in found}
                assert got <= admitted
                if signals is not Signals.WORDS:
                    assert got == admitted, "vectors have something to say about every passage"
                assert_sound(found, engine.config.vault_root)


@FEW
@given(notes(), st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), questions)
def test_excluded_words_and_phrases_hold_for_every_hit(
    written: list[Written], excluded: list[str], question: str
) -> None:
    with searched(written) as engine:
        for signals in Signals:
            asking = f"{question} " + " ".join(f"-{word}" for word in excluded)
            for hit in asked(engine, asking, limit=50, signals=signals).answer.hits:
                assert not {word.casefold() for word in excluded} & words_of(hit.text)
            for hit in asked(engine, '"rain garden"', limit=50, signals=signals).answer.hits:
                assert "rain garden" in hit.text


@FEW
@given(
    st.lists(
        st.text(
            st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n\t"),
            min_size=1,
            max_size=400,
        ),
        min_size=1,
        max_size=3,
    ),
    st.integers(1, 50),
)
def test_lines_are_right_for_any_text(bodies: list[str], limit: int) -> None:
    written = [
        Written(f"n{number}.md", f"# Note {number}\n\nrain\n\n{body}", None, None)
        for number, body in enumerate(bodies)
    ]
    with searched(written) as engine:
        found = asked(engine, "rain note", limit=limit).answer.hits
        assert len(found) <= limit
        vault = engine.config.vault_root
        for hit in found:
            text = (vault / hit.source_file).read_bytes().decode()
            assert 1 <= hit.start_line <= hit.end_line <= text.count("\n") + 1


@pytest.fixture(scope="module")
def rain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    root = tmp_path_factory.mktemp("rain")
    notes = {"a.md": "rain garden", "b.md": "---\na: 1\ndate: 2024-03-01\n---\nroof #project"}
    engine = indexed(root / "home", write_notes(root / "vault", notes))
    yield engine
    engine.close()


PIECES = st.sampled_from(
    ['"', "-", "tag:", "path:", "before:", "after:", "prop:", "=", ">", "<=", "..", "'", "%", "\\"]
    + ["0001", "9999-12-31", "2024-02-30", "last March", "in 2024", "3 days ago", " ", "\n", "#"]
    + ["tag:#", "prop:a=1", "prop:a>=", "before:0001", "Aprıl 2024", "(", "~2", "*", "^", "+", "/"]
)


@settings(FEW, max_examples=80)
@given(question=st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=8).map("".join)))
@example(question="before:0001 rain")
@example(question="Aprıl 2024")
@example(question='"!!!" rain')
@example(question="tag:# rain")
def test_no_question_fails_in_an_unexpected_way(question: str, rain: Engine) -> None:
    for signals in Signals:
        with contextlib.suppress(ObsidianRagError):
            asked(rain, question, signals=signals)
    envelope = call(rain, "obsidian_rag_search", {"query": question})
    if envelope["error"] is not None:
        assert envelope["error"]["code"] == "INVALID_ARGUMENT"
