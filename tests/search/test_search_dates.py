"""Which notes belong to a span of time: by name, folder, property, heading; in a real index."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.search.indexed import asked, files, hits, indexed, write_notes

from obsidian_rag.engine import Engine
from obsidian_rag.search import DateRange, Filters
from obsidian_rag.search.filters import closeness, mentioning, undated, within
from obsidian_rag.store.lookup import titles_of

FILLER = " ".join(f"pebble{number} lantern{number}" for number in range(60))
NOTES = {
    "Day/2024-03-15.md": "otter",
    "Folder/2024/03/otter.md": "otter",
    "Month/2024-03.md": "otter",
    "Month/April 2024.md": "otter",
    "Week/2024-W11.md": "otter",
    "Week/KW 14 2024.md": "otter",
    "Year/2024.md": "otter",
    "Quarter/Q1 2024.md": "otter",
    "Property/Trip.md": "---\nstarts: 2024-03-15\n---\notter",
    "Property/Made.md": "---\ncreated: 2024-03-20\nmodified: 2022-05-05\n---\notter",
    "Property/Two.md": "---\nstarts: 2021-01-01\nends: 2024-12-31\n---\notter",
    "Heading/Log.md": f"---\ncreated: 2020-02-02\n---\n# Log\n\n## 2024-03-15\n\notter {FILLER}\n\n"
    f"## 2023-07-01\n\nbadger {FILLER}\n",
    "Heading/Monthly.md": f"# Monthly\n\n## März 2024\n\notter {FILLER}\n\n"
    f"## Juli 2023\n\nfox {FILLER}",
    "Text/Freiburg.md": "Zehn Tage im Juli 2024 mit otter.",
    "Text/Garden.md": "---\ncreated: 2020-02-02\n---\nBuy a pipe 📅 2024-07-13, otter.",
    "1984.md": "otter",
    "Undated.md": "otter",
}
EVERYTHING = set(NOTES)
WHOLE_MARCH = {
    "Day/2024-03-15.md", "Folder/2024/03/otter.md", "Month/2024-03.md", "Week/2024-W11.md",
    "Year/2024.md", "Quarter/Q1 2024.md", "Property/Trip.md", "Property/Made.md",
    "Heading/Log.md", "Heading/Monthly.md",
}  # fmt: skip


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    root = tmp_path_factory.mktemp("dated")
    engine = indexed(root / "home", write_notes(root / "vault", NOTES))
    yield engine
    engine.close()


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("2024-03-01", "2024-03-31", WHOLE_MARCH),
        ("2024-03-15", "2024-03-15", WHOLE_MARCH - {"Property/Made.md"}),
        (
            "2024-03-16",
            "2024-03-16",
            WHOLE_MARCH
            - {"Property/Made.md", "Property/Trip.md", "Day/2024-03-15.md", "Heading/Log.md"},
        ),
        # Spring 2024: a week that begins in it and a month in it.
        (
            "2024-03-01",
            "2024-05-31",
            WHOLE_MARCH | {"Month/April 2024.md", "Week/KW 14 2024.md"},
        ),
        ("2024-04-02", "2024-04-02", {"Month/April 2024.md", "Week/KW 14 2024.md", "Year/2024.md"}),
        ("2023-01-01", "2023-12-31", {"Heading/Log.md", "Heading/Monthly.md"}),
        ("2022-01-01", "2022-12-31", set()),
        ("2024-12-31", None, {"Year/2024.md", "Property/Two.md"}),
        (None, "2021-06-30", {"Property/Two.md", "Text/Garden.md"}),
        ("2021-02-01", "2023-06-30", set()),
        ("1984-01-01", "1984-12-31", set()),
        ("2025-01-01", "2024-01-01", set()),
    ],
)
def test_a_note_is_in_a_span_by_any_of_its_dates(
    dated: Engine, first: str | None, last: str | None, expected: set[str]
) -> None:
    dates = DateRange(first, last)
    assert set(titles_of(dated.chunks, within(dates), 1000)) == expected
    assert set(files(dated, "otter", limit=50, filters=Filters(dates=dates))) == expected


def test_passages_belong_to_their_own_headings(dated: Engine) -> None:
    july = Filters(dates=DateRange("2023-07-01", "2023-07-31"))
    found = asked(dated, "otter badger fox", filters=july).answer.hits
    assert {hit.heading_path[-1] for hit in found} == {"2023-07-01", "Juli 2023"}
    assert all("otter" not in hit.text for hit in found)


def test_notes_without_a_date_are_known(dated: Engine) -> None:
    found = set(titles_of(dated.chunks, undated(), 1000))
    assert found == {"Undated.md", "1984.md", "Text/Freiburg.md"}
    everything = f"{within(DateRange(None, None))} OR {undated()}"
    assert set(titles_of(dated.chunks, everything, 1000)) == EVERYTHING


def test_what_a_text_speaks_of_is_known_too(dated: Engine) -> None:
    july = DateRange("2024-07-01", "2024-07-31")
    said = {"Text/Freiburg.md", "Text/Garden.md"}
    assert set(titles_of(dated.chunks, mentioning(july), 1000)) == said
    assert set(titles_of(dated.chunks, within(july), 1000)) == {"Year/2024.md"}


def test_the_exact_date_fits_better_than_the_week_the_month_and_the_year() -> None:
    day = DateRange("2024-03-15", "2024-03-15")
    dates = ["2024-03-15", "2024-03-11/2024-03-17", "2024-03", "2024", "2023-01-01"]
    fits = [closeness([one], day) for one in dates]
    assert fits == sorted(fits, reverse=True)
    assert (fits[0], fits[-1]) == (1.0, 0.0)
    assert closeness(["2023-01-01", "2024-03-15"], day) == 1.0
    assert closeness([], day) == 0.0
    assert 0.0 < closeness(["2020"], DateRange(None, "2021-12-31")) < 1.0


def test_an_index_that_grew_is_filtered_like_one_that_was_made_at_once(tmp_path: Path) -> None:
    """Rows that no index holds yet count as well."""
    vault = write_notes(tmp_path / "v", {"2024-03-15.md": "otter", "b.md": "otter"})
    engine = indexed(tmp_path / "home", vault)
    write_notes(vault, {"2024-03-16.md": "otter", "c.md": "otter"})
    engine.close()
    engine = indexed(tmp_path / "home", vault)
    march = DateRange("2024-03-01", "2024-03-31")
    assert set(titles_of(engine.chunks, within(march), 9)) == {"2024-03-15.md", "2024-03-16.md"}
    assert set(titles_of(engine.chunks, undated(), 9)) == {"b.md", "c.md"}
    engine.close()


def test_who_asks_for_a_day_gets_all_of_it(tmp_path: Path) -> None:
    day = "\n\n".join(f"## Part {n}\n\nThought {n} of the day." for n in range(5))
    notes = {"Journal/2026-04-14.md": day, "Journal/2026-04-02.md": day, "Ideas.md": day}
    vault = write_notes(tmp_path / "vault", notes)
    engine = indexed(tmp_path / "home", vault)
    found = hits(engine, "what did I think yesterday?", limit=5)
    assert [hit.source_file for hit in found] == ["Journal/2026-04-14.md"] * 5
    found = hits(engine, "what did I think in April?", limit=5)
    assert len({hit.source_file for hit in found}) == 2 + 1
    engine.close()


def test_the_words_of_a_time_are_not_taken_for_slips(tmp_path: Path) -> None:
    notes = {
        "Journal/2024-12-23.md": "Packed the presents.\n",
        "Journal/2024-06-01.md": "Lunch with Christian, who told of Otto.\n",
        "Journal/2024-10-05.md": "Raked leaves.\n",
    }
    with closing(indexed(tmp_path / "home", write_notes(tmp_path / "vault", notes))) as engine:
        answer = asked(engine, "what did I do two days before Christmas in 2024?").answer
        assert answer.hits[0].source_file == "Journal/2024-12-23.md"
        assert answer.corrected is None
        assert files(engine, "what did I do in October 2024?") == ["Journal/2024-10-05.md"]
