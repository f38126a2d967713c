"""A data folder that an older version left behind: nothing is lost, and the index renews itself."""

import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.living import Cli, living

from obsidian_rag import config
from obsidian_rag.engine import Engine, ask, health_of, run_index
from obsidian_rag.errors import EmbeddingMismatch
from obsidian_rag.index import FINGERPRINT, Phase, Progress
from obsidian_rag.index.run import REBUILDING
from obsidian_rag.search import Request
from obsidian_rag.store import Links, LivesyncRecords, SyncedFile

OLDER = Path(__file__).parent / "older"
REMOTE = "0123456789abcdef"
QUESTION = Request("who repaired the boiler")
Open = Callable[[], Engine]


@pytest.fixture
def older(tmp_path: Path, home: Path) -> Path:
    """The vault and the data folder as bb99bbc left them; see make_old_folder.py."""
    with tarfile.open(OLDER / "data-of-bb99bbc.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    change(home, "vault_path", str(tmp_path / "vault"))
    return tmp_path / "vault"


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


def test_a_day_in_a_question_counts_as_words_where_the_old_index_knows_no_days(
    opened: Open,
) -> None:
    answer = ask(opened(), Request("boiler on 5 March 2024")).answer
    assert "Boiler.md" in [hit.source_file for hit in answer.hits]


def test_the_next_sync_builds_the_index_anew_while_the_old_one_answers(opened: Open) -> None:
    engine, reader = opened(), opened()
    answers: list[list[str]] = []

    def look(progress: Progress) -> None:
        if progress.phase is Phase.STORING:
            answers.append(found(reader))

    result = run_index(engine, "sync", look)
    assert "another version" in result.repair
    assert answers
    assert {answer[0] for answer in answers} == {"2024-03-05.md"}
    assert health_of(engine).state == "healthy"
    assert found(reader)[0] == "2024-03-05.md"
    assert health_of(reader).state == "healthy"
    assert run_index(engine, "sync").repair == ""


def test_a_rebuild_that_is_stopped_is_finished_by_the_next_sync(opened: Open) -> None:
    engine = opened()
    asked = iter(range(100))
    # The first two questions whether to stop come from the walk, the next from the rebuild.
    stopped = run_index(engine, "sync", stop=lambda: next(asked) > 1)
    assert stopped.tally.is_cancelled
    assert engine.database.get(REBUILDING) is not None
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
    assert {one.link_id for one in Links(engine.database).all()} == {link.link_id}
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
    assert [(one.path, one.stored_as) for one in records.trash()] == [("Gone.md", "0001-Gone.md")]
    assert [one.fact.value for one in engine.facts.all()] == ["Martha, on weekdays"]
    assert engine.config.settings.watcher.debounce_s == 3
    assert "Martha, on weekdays" in cli("memory", "recall", "plumber").out


def test_other_settings_still_wait_for_the_user(opened: Open, home: Path) -> None:
    change(home, "embedding", {"provider": "hash"})
    engine = opened()
    trouble = ask(engine, QUESTION).trouble
    assert trouble is not None
    assert (trouble.code, "reindex" in trouble.suggestion) == ("EMBEDDING_MISMATCH", True)
    before = engine.database.get(FINGERPRINT)
    with pytest.raises(EmbeddingMismatch):
        run_index(engine, "sync")
    assert engine.database.get(FINGERPRINT) == before


def test_a_daemon_builds_it_anew_by_itself(older: Path) -> None:
    with living() as daemon:
        assert daemon.search("who repaired the boiler")[0] == "2024-03-05.md"
        daemon.wait_for("job", status="completed")
        while daemon.call("status")["status"] != "healthy":
            daemon.wait_for("health")
        assert daemon.search("who repaired the boiler")[0] == "2024-03-05.md"
        states = [data for kind, data in daemon.events if kind == "health"]
        assert [data["code"] for data in states if data["code"]] == ["INDEX_INCOMPLETE"]
