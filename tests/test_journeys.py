"""How far it is: what one edit and one question call. DESIGN §2 has the limits that we aim at.

The numbers are a thermometer: joining functions to lower them is worse than the number.
"""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.scripts import imported

DOCS = Path(__file__).parent.parent / "docs"
# By journey: the most functions and SQL statements. Both journeys had 450 and 252 functions, 106
# and 10 statements at 102e0e6, counted the same way.
LIMITS = {"edit": (480, 60), "question": (240, 8)}
# Looks at files by a question while nothing changes: at the settings, the database, the table, and
# the folder of a model, which other processes may replace at any time.
LOOKS = {
    "stat in config/follow.py",
    "stat in store/database.py",
    "stat in store/chunks.py",
    "scandir in index/embedding.py",
}


@pytest.fixture
def journeys() -> Iterator[ModuleType]:
    with imported(DOCS / "journeys.py", "docs_journeys") as module:
        yield module


@pytest.mark.parametrize("name", LIMITS)
def test_a_journey_is_as_short_as_it_was(name: str, journeys: ModuleType, tmp_path: Path) -> None:
    functions, statements = LIMITS[name]
    journey = journeys.JOURNEYS[name](tmp_path)
    assert journey.function_count <= functions
    assert len(journey.statements) <= statements, journey.statements


def test_a_question_opens_no_file_when_nothing_changed(
    journeys: ModuleType, tmp_path: Path
) -> None:
    assert set(journeys.trace_question(tmp_path).file_calls) <= LOOKS


def test_the_pictures_of_the_journeys_show_what_is_called(journeys: ModuleType) -> None:
    assert not journeys.stale(), "run `make fix`"
