"""Seed 001's state machine, all six transitions, provoked for real and seen from outside."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.embed.embedding_doubles import FakeOllama, fake_ollama
from tests.integration.living import QUICK, Living, living_below
from tests.waiting import until

from obsidian_rag.store import now

NOTES = {"Debts.md": "# Debts\nI owe Sreenivas 40 dollars.\n", "Garden.md": "# Garden\nFerns.\n"}


@pytest.fixture(scope="module")
def ollama() -> Iterator[FakeOllama]:
    with fake_ollama() as server:
        yield server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, ollama: FakeOllama) -> Iterator[Living]:
    """A daemon with an index made through Ollama."""
    settings = {
        "embedding.provider": "ollama",
        "embedding.base_url": ollama.url,
        "embedding.model": "tiny",
    }
    with living_below(tmp_path_factory.mktemp("health"), NOTES, {**QUICK, **settings}) as one:
        one.wait_for("health", code="INDEX_NOT_FOUND")
        one.index()
        yield one


@pytest.fixture
def daemon(shared: Living, ollama: FakeOllama) -> Iterator[Living]:
    """The daemon, healthy whatever was done to it before; what it told of that is used up."""
    ollama.start()
    shared.index("sync")
    until(lambda: state(shared) == "healthy", "a healthy daemon")
    yield shared


@pytest.fixture
def root(daemon: Living) -> Path:
    """The folder that has the vault and the data folder."""
    return daemon.home.parent


def state(daemon: Living) -> Any:
    return daemon.call("status")["data"]["plugin_health"]


def index_folder(home: Path) -> Path:
    return home / "vectors.lance" / "obsidian_chunks.lance"


def test_healthy_to_degraded_when_ollama_goes_and_back_when_it_answers(
    daemon: Living, ollama: FakeOllama
) -> None:
    ollama.stop()
    gone = daemon.wait_for("health", state="degraded")
    assert (gone["before"], gone["code"]) == ("healthy", "OLLAMA_UNREACHABLE")
    assert gone["reason"]
    assert gone["at"]
    answer = daemon.call("search", query="what do I owe Sreenivas?")
    assert (answer["status"], answer["error"]["code"]) == ("degraded", "OLLAMA_UNREACHABLE")
    assert answer["data"]["results"][0]["source_file"] == "Debts.md"
    ollama.start()
    back = daemon.wait_for("health", state="healthy")
    assert back["before"] == "degraded"
    assert daemon.call("search", query="what do I owe Sreenivas?")["status"] == "healthy"


def test_healthy_to_unavailable_when_the_index_is_deleted_and_back_after_a_reindex(
    daemon: Living,
) -> None:
    # All at once: a look at an index that is half deleted would find it corrupted.
    shutil.rmtree(index_folder(daemon.home).rename(daemon.home / "deleted"))
    gone = daemon.wait_for("health", state="unavailable")
    assert (gone["before"], gone["code"]) == ("healthy", "INDEX_NOT_FOUND")
    answer = daemon.call("search", query="ferns")
    assert (answer["status"], answer["data"]) == ("unavailable", None)
    assert answer["error"]["code"] == "INDEX_NOT_FOUND"
    daemon.call("index", mode="full")
    # A look while the index is being made finds it incomplete.
    back = daemon.wait_for("health", state="healthy")
    assert back["before"] in ("unavailable", "degraded")
    assert daemon.search("ferns") == ["Garden.md", "Debts.md"]


def test_healthy_to_unavailable_when_the_index_is_corrupted(daemon: Living) -> None:
    for file in index_folder(daemon.home).glob("_versions/*.manifest"):
        file.write_bytes(b"broken")
    gone = daemon.wait_for("health", state="unavailable")
    assert (gone["before"], gone["code"]) == ("healthy", "INDEX_CORRUPTED")
    daemon.call("index", mode="reindex")
    assert daemon.wait_for("health", state="healthy")["before"] == "unavailable"


def test_degraded_to_unavailable_and_back_to_degraded_while_ollama_is_down(
    daemon: Living, ollama: FakeOllama
) -> None:
    ollama.stop()
    daemon.wait_for("health", state="degraded")
    aside = daemon.home / "aside"
    index_folder(daemon.home).rename(aside)
    worse = daemon.wait_for("health", state="unavailable")
    assert (worse["before"], worse["code"]) == ("degraded", "INDEX_NOT_FOUND")
    aside.rename(index_folder(daemon.home))
    better = daemon.wait_for("health", state="degraded")
    assert (better["before"], better["code"]) == ("unavailable", "OLLAMA_UNREACHABLE")


def test_an_unreachable_vault_degrades_and_loses_nothing(daemon: Living, root: Path) -> None:
    (root / "vault").rename(root / "elsewhere")
    gone = daemon.wait_for("health", state="degraded", code="VAULT_AWAY")
    assert "not there" in gone["reason"]
    assert daemon.search("ferns")[0] == "Garden.md"
    assert daemon.call("status")["data"]["total_docs"] == 2
    (root / "elsewhere").rename(root / "vault")
    assert daemon.wait_for("health", state="healthy")["before"] == "degraded"
    assert daemon.call("status")["data"]["total_docs"] == 2


def test_an_emptied_mount_point_is_no_mass_deletion(daemon: Living, root: Path) -> None:
    (root / "vault").rename(root / "elsewhere")
    (root / "vault").mkdir()
    daemon.wait_for("health", state="degraded", code="VAULT_AWAY")
    assert daemon.call("status")["data"]["total_docs"] == 2
    (root / "vault").rmdir()
    (root / "elsewhere").rename(root / "vault")
    daemon.wait_for("health", state="healthy")
    assert daemon.search("ferns")[0] == "Garden.md"


def test_a_damaged_database_is_set_aside_by_a_reindex_and_the_new_one_used(daemon: Living) -> None:
    (daemon.home / "restored").write_bytes(b"this is no database" * 4096)
    # With its journal SQLite would put the file together again.
    for suffix in ("-wal", "-shm"):
        (daemon.home / f"state.db{suffix}").unlink(missing_ok=True)
    (daemon.home / "restored").replace(daemon.home / "state.db")
    gone = daemon.wait_for("health", state="unavailable")
    assert gone["code"] == "INDEX_CORRUPTED"
    daemon.call("index", mode="reindex")
    daemon.wait_for("health", state="healthy")
    assert daemon.search("ferns")[0] == "Garden.md"
    assert list(daemon.home.glob("state.db.damaged-*"))


def test_the_state_and_its_history_are_in_the_status(daemon: Living, ollama: FakeOllama) -> None:
    ollama.stop()
    daemon.wait_for("health", state="degraded")
    envelope = daemon.call("status")
    assert envelope["status"] == envelope["data"]["plugin_health"] == "degraded"
    assert envelope["data"]["ollama_status"] == "down"
    states = [change["state"] for change in envelope["data"]["health_changes"]]
    assert states[-2:] == ["healthy", "degraded"]


def test_what_another_process_left_in_the_result_file_is_honoured(daemon: Living) -> None:
    error = {"code": "INDEXER_FAILED", "message": "disk full"}
    failed = {"status": "failed", "finished_at": now(), "error": error}
    (daemon.home / "sync-result.json").write_text(json.dumps(failed))
    told = daemon.wait_for("health", state="unavailable", code="INDEXER_FAILED")
    assert "disk full" in told["reason"]
