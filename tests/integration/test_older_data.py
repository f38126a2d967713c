"""A data folder of an older version: what no vault can give back is kept, the index built anew."""

import json
import logging
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.living import Cli, living

from obsidian_rag import config
from obsidian_rag.engine import Engine, Tokens, ask, health_of, run_index
from obsidian_rag.index import Phase, Progress
from obsidian_rag.livesync.disk import Trash
from obsidian_rag.livesync.site import trash_folder
from obsidian_rag.relations import check_relations
from obsidian_rag.search import Request
from obsidian_rag.store import IndexFact, Links, LivesyncRecords, SyncedFile

OLDER = Path(__file__).parent / "older"
REMOTE = "0123456789abcdef"
QUESTION = Request("who repaired the boiler")
Open = Callable[[], Engine]


def unpack(commit: str, into: Path) -> Path:
    """The vaults and the data folder as this commit left them; see make_old_folder.py."""
    with tarfile.open(OLDER / f"data-of-{commit}.tar.gz") as archive:
        archive.extractall(into, filter="data")
    change(into / "home", "vault_path", str(into / "vault"))
    return into / "vault"


@pytest.fixture
def older(tmp_path: Path, home: Path) -> Path:
    found = unpack("102e0e6", tmp_path)
    with closing(sqlite3.connect(home / "state.db")) as raw, raw:
        where = str(tmp_path / "work")
        raw.execute("UPDATE vault_link SET root_path = ? WHERE name = 'work'", (where,))
    return found


@pytest.fixture
def opened(older: Path) -> Iterator[Open]:
    made: list[Engine] = []

    def make() -> Engine:
        made.append(Engine(config.load()))
        return made[-1]

    yield make
    for one in made:
        one.close()


def change(home: Path, key: str, value: object) -> None:
    file = home / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))


def found(engine: Engine) -> list[str]:
    return [hit.source_file for hit in ask(engine, QUESTION).answer.hits]


def test_it_answers_at_once_and_says_what_is_the_matter(opened: Open) -> None:
    engine = opened()
    asked = ask(engine, QUESTION)
    assert asked.answer.hits[0].source_file == "2024-03-05.md"
    # The embedder is the same, so its vectors still count.
    assert any(hit.why.signals.get("static") for hit in asked.answer.hits)
    assert asked.trouble is not None
    assert (asked.trouble.code, health_of(engine).state) == ("INDEX_INCOMPLETE", "degraded")
    assert "another version" in asked.trouble.message
    assert "obsidian-rag sync" in asked.trouble.suggestion


def test_the_next_sync_builds_the_index_anew_while_the_old_one_answers(opened: Open) -> None:
    engine, reader = opened(), opened()
    answers: list[list[str]] = []

    def look(progress: Progress) -> None:
        if progress.phase is Phase.STORING:
            answers.append(found(reader))

    result = run_index(engine, "sync", look)
    assert "another version" in result.repair
    assert (
        "taken over from it: 1 fact, 2 vaults, 1 LiveSync record, 1 conflict, 1 file in the trash."
        in result.repair
    )
    assert answers
    assert {answer[0] for answer in answers} == {"2024-03-05.md"}
    assert health_of(engine).state == "healthy"
    assert found(reader)[0] == "2024-03-05.md"
    assert health_of(reader).state == "healthy"
    assert run_index(engine, "sync").repair == ""


def test_a_rebuild_that_is_stopped_is_finished_by_the_next_sync(opened: Open) -> None:
    engine = opened()
    asked = iter(range(100))
    # The first four questions whether to stop come from the walks, the next from the rebuild.
    stopped = run_index(engine, "sync", stop=lambda: next(asked) > 3)
    assert stopped.tally.is_cancelled
    assert engine.database.get(IndexFact.REBUILDING) is not None
    assert found(engine)[0] == "2024-03-05.md"
    assert health_of(engine).state == "degraded"
    assert run_index(engine, "sync").exit_code == 0
    assert health_of(engine).state == "healthy"


def test_what_no_vault_can_give_back_is_kept(opened: Open, older: Path, cli: Cli) -> None:
    engine = opened()
    link = Links(engine.database).primary()
    assert link is not None
    run_index(engine, "sync")
    assert Links(engine.database).primary() is not None
    assert link.link_id in {one.link_id for one in Links(engine.database).all()}
    assert_kept(engine)
    assert engine.config.settings.watcher.debounce_s == 3
    assert "Martha, on weekdays" in cli("memory", "recall", "plumber").out


def assert_kept(engine: Engine, *, stored_as: str | None = None) -> None:
    records = LivesyncRecords(engine.database, REMOTE)
    assert records.get_fact("since") == "42-abc"
    assert list(records.files()) == [
        SyncedFile("boiler.md", "Boiler.md", "2-b", "c0ffee", 71, 1_700_000_000_000_000_000)
    ]
    assert [(one.doc_id, one.code) for one in records.quarantined()] == [
        ("odd.md", "LIVESYNC_UNREADABLE")
    ]
    assert [(one.revs, one.kept_as) for one in records.conflicts()] == [
        (("3-x", "3-y"), "Two (conflict).md")
    ]
    (gone,) = records.trash()
    assert (gone.trash_id, gone.path) == (1, "Gone.md")
    assert stored_as is None or gone.stored_as == stored_as
    assert [one.fact.value for one in engine.facts.all()] == ["Martha, on weekdays"]


def test_a_linked_vault_is_still_linked_and_searched(opened: Open) -> None:
    engine = opened()
    work = Links(engine.database).all()[1]
    assert (work.name, work.mode, work.exclude) == ("work", "read_only", ("Drafts",))
    run_index(engine, "sync")
    assert Links(engine.database).get(work.link_id) is not None
    hit = ask(engine, Request("what do the radiators of the workshop cost")).answer.hits[0]
    assert (hit.source_file, hit.link_id) == ("Offer.md", work.link_id)


def test_an_agents_token_opens_the_same_folder(older: Path, home: Path) -> None:
    token = Tokens(home).find((older.parent / "token").read_text())
    assert token is not None
    assert (token.name, token.scope.folders, token.is_read_only) == ("gardener", ("Garden",), True)


def test_a_file_in_the_trash_can_be_put_back(opened: Open, older: Path) -> None:
    engine = opened()
    records = LivesyncRecords(engine.database, REMOTE)
    trash = Trash(trash_folder(engine.config), older, records)
    assert trash.put_back(records.trash()[0]) == "Gone.md"
    assert (older / "Gone.md").read_bytes() == b"Gone.\n"
    # The id of a file that had left the trash before is not used again.
    assert records.add_trash("New.md", "3", 1, "2026-01-01", "deleted") == 3


def test_it_is_said_where_the_folder_is_opened(
    opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        opened().database.close()
        opened().database.close()
    said = [one.getMessage() for one in caplog.records if "older version" in one.getMessage()]
    assert len(said) == 1
    assert "1 fact, 2 vaults" in said[0]


def test_related_notes_are_made_again(opened: Open) -> None:
    engine = opened()
    run_index(engine, "sync")
    config = engine.config
    found = check_relations(config.home, config.settings.relations, is_deep=True)
    assert found == (4, None)


def test_a_folder_from_before_linked_vaults_keeps_what_no_vault_can_give_back(
    tmp_path: Path, opened: Open
) -> None:
    shutil.rmtree(tmp_path / "home")
    unpack("bb99bbc", tmp_path)
    engine = opened()
    assert_kept(engine, stored_as="0001-Gone.md")
    # Its chunk table has other columns, so nothing can be found until it is built anew.
    health = health_of(engine)
    assert (health.state, health.error and health.error.code) == ("unavailable", "INDEX_NOT_FOUND")
    assert run_index(engine, "sync").exit_code == 0
    assert health_of(engine).state == "healthy"
    assert found(engine)[0] == "2024-03-05.md"
    assert_kept(engine, stored_as="0001-Gone.md")


def test_a_kill_at_any_statement_leaves_the_folder_as_it_was(older: Path, home: Path) -> None:
    """In a process of its own, whose children die: this one has threads, and must not fork."""
    script = [sys.executable, str(OLDER / "kill_everywhere.py"), str(home / "state.db")]
    done = subprocess.run(script, check=False, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 25


def test_a_daemon_builds_it_anew_by_itself(older: Path) -> None:
    with living() as daemon:
        assert daemon.search("who repaired the boiler")[0] == "2024-03-05.md"
        daemon.wait_for("job", status="completed")
        while daemon.call("status")["status"] != "healthy":
            daemon.wait_for("health")
        assert daemon.search("who repaired the boiler")[0] == "2024-03-05.md"
        states = [data for kind, data in daemon.events if kind == "health"]
        assert [data["code"] for data in states if data["code"]] == ["INDEX_INCOMPLETE"]
