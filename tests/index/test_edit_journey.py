"""How far a saved edit goes: the SQL statements of its run, counted by SQLite itself."""

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.index.conftest import World

# DESIGN §2, "How far is it?".
MOST_STATEMENTS = 60
NOTES = {
    f"{at:02}.md": f"---\ntags: [pond, t{at % 5}]\nrank: {at}\n---\n# Note {at}\n\n"
    f"Sedge and frogs{at} by the water. See [[{at + 1:02}]].\n\n## Log\n\nA line of {at}.\n"
    for at in range(40)
}


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What any connection that is opened from now on executes."""
    found: list[str] = []
    connect = sqlite3.connect

    def traced(*given: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **named)
        connection.set_trace_callback(found.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    return found


def test_a_saved_edit_takes_few_sql_statements(world: "World", statements: list[str]) -> None:
    world.write({**NOTES})
    world.run("full")
    world.write({"03.md": f"{NOTES['03.md']}\nA new line about herons.\n"})
    statements.clear()
    done = world.run("sync", paths=["03.md"])
    run = [one for one in statements if not one.startswith("PRAGMA")]
    assert done.tally.changed == 1
    assert len(run) <= MOST_STATEMENTS, "\n".join(run)
