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
LIMITS = {"edit": (500, 60), "question": (240, 8)}
# A file with more functions of a journey than this is in its picture.
BORDER = 8
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


@pytest.mark.parametrize("name", LIMITS)
def test_a_picture_shows_what_is_called(name: str, journeys: ModuleType, tmp_path: Path) -> None:
    """Files on the border of being drawn may differ from run to run."""
    functions = journeys.JOURNEYS[name](tmp_path).functions
    called = {journeys.node_of(file): len(names) for file, names in functions.items()}
    drawn = journeys.drawn_nodes(name)
    assert drawn <= called.keys()
    assert {node for node, count in called.items() if count > BORDER} <= drawn, "run `make fix`"
