"""Linked vaults while a daemon runs: watched, imported in the background, overtaken by edits."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.folders import write_notes
from tests.waiting import PATIENCE_S, until

from obsidian_rag.config import load
from obsidian_rag.engine import Daemon, Event, run_index
from obsidian_rag.engine.job import Job, JobStatus
from obsidian_rag.engine.linking import (
    add_link,
    change_link,
    link_status,
    remove_link,
    sync_link,
)
from obsidian_rag.tools import call

Make = Callable[[Mapping[str, str]], Path]
QUICK = {"watcher.debounce_s": 0.05, "watcher.collect_s": 0.05, "watcher.reconcile_s": 3600}
MANY = {f"{n:04}.md": f"# Note {n}\n\nmoss and lichen number {n}" for n in range(3000)}


@pytest.fixture
def daemon(
    make_vault: Make, configure: Callable[[Path, Mapping[str, object]], None]
) -> Iterator[Daemon]:
    configure(make_vault({"Pond.md": "# Pond\n\nnewts"}), QUICK)
    one = Daemon(load())
    run_index(one.engine, "sync")
    one.start()
    try:
        yield one
    finally:
        one.stop()


def found(daemon: Daemon, query: str) -> list[tuple[str, str]]:
    envelope: Any = call(daemon.engine, "obsidian_rag_search", {"query": query, "max_results": 9})
    return [(one["vault"], one["source_file"]) for one in envelope["data"]["results"]]


def test_a_link_is_imported_and_watched_at_once_and_no_more_when_removed(
    daemon: Daemon, tmp_path: Path
) -> None:
    root = tmp_path / "Stones"
    write_notes(root, {"Granite.md": "# Granite\n\ncoarse"})
    link = add_link(daemon.engine, str(root))
    until(lambda: ("Stones", "Granite.md") in found(daemon, "coarse granite"))
    until(lambda: link_status(daemon.engine, link.link_id).progress.phase == "done")
    (root / "Basalt.md").write_text("# Basalt\n\nvolcanic")
    until(lambda: ("Stones", "Basalt.md") in found(daemon, "volcanic basalt"))
    remove_link(daemon.engine, link.link_id)
    assert found(daemon, "volcanic basalt") == [("vault", "Pond.md")] or not any(
        vault == "Stones" for vault, _ in found(daemon, "volcanic basalt")
    )
    assert link.link_id not in daemon._threads


def test_an_edit_of_the_primary_vault_overtakes_an_import(daemon: Daemon, tmp_path: Path) -> None:
    root = tmp_path / "Many"
    write_notes(root, MANY)
    told: list[Event] = []
    daemon.live.bus.subscribe(told.append)
    link = add_link(daemon.engine, str(root))
    until(lambda: _stored(daemon, link.link_id) > 0)
    (daemon.engine.vaults.primary.root / "New.md").write_text("# New\n\nzymurgy")
    until(lambda: ("vault", "New.md") in found(daemon, "zymurgy"))
    status = link_status(daemon.engine, link.link_id)
    assert status.totals.pending > 0, "the import was over before the edit"
    until(lambda: link_status(daemon.engine, link.link_id).health.error is None)
    assert link_status(daemon.engine, link.link_id).totals.indexed == len(MANY)
    # Each file once, although the import gave way.
    job = daemon.live.jobs.latest
    assert job is not None
    steps = [
        one.data
        for one in told
        if one.data.get("phase") == "storing" and one.data["link_id"] == link.link_id
    ]
    done = [int(str(step["current"])) for step in steps]
    assert done == sorted(done), "progress went back when the import gave way"
    assert done[-1] == steps[-1]["total"]


def test_neither_a_reconcile_nor_an_edit_after_it_waits_for_an_import(
    daemon: Daemon, tmp_path: Path
) -> None:
    stones, many = tmp_path / "Stones", tmp_path / "Many"
    write_notes(stones, {"Granite.md": "# Granite\n\ncoarse"})
    other = add_link(daemon.engine, str(stones))
    until(lambda: link_status(daemon.engine, other.link_id).progress.phase == "done")
    write_notes(many, MANY)
    link = add_link(daemon.engine, str(many))
    until(lambda: _stored(daemon, link.link_id) > 0)
    primary = daemon.engine.vaults.primary
    looks = _looks(daemon, primary.link_id), _looks(daemon, other.link_id)
    for vault in (None, other.link_id, link.link_id):  # as when the reconcile falls due
        daemon._scheduler.changed(None, vault)
    until(lambda: _looks(daemon, primary.link_id) > looks[0])
    until(lambda: _looks(daemon, other.link_id) > looks[1])
    (primary.root / "New.md").write_text("# New\n\nzymurgy")
    (stones / "Basalt.md").write_text("# Basalt\n\nvolcanic")
    until(lambda: ("vault", "New.md") in found(daemon, "zymurgy"))
    until(lambda: ("Stones", "Basalt.md") in found(daemon, "volcanic basalt"))
    status = link_status(daemon.engine, link.link_id)
    assert status.totals.pending > 0, "the import was over before the edits"


def _looks(daemon: Daemon, link_id: str) -> int:
    """How many runs over all of a vault are over."""
    with daemon.live.jobs._changed:
        over = list(daemon.live.jobs._over.values())
    orders = [job.order for job in over if job.status is JobStatus.COMPLETED]
    return sum((one.link_id, one.paths) == (link_id, None) for one in orders)


def test_an_import_can_be_paused_resumed_and_removed(daemon: Daemon, tmp_path: Path) -> None:
    root = tmp_path / "Many"
    write_notes(root, MANY)
    link = add_link(daemon.engine, str(root))
    until(lambda: _stored(daemon, link.link_id) > 0)
    change_link(daemon.engine, link.link_id, is_paused=True)
    assert daemon.live.jobs.for_link(link.link_id) is None
    paused = link_status(daemon.engine, link.link_id).totals
    assert 0 < paused.indexed < len(MANY)
    change_link(daemon.engine, link.link_id, is_paused=False)
    until(lambda: link_status(daemon.engine, link.link_id).totals.indexed > paused.indexed)
    removed = remove_link(daemon.engine, link.link_id)
    assert removed.files >= paused.indexed
    assert daemon.engine.chunks.paths(link.link_id) == set()
    assert [path.name for path in root.iterdir() if path.name not in MANY] == []
    assert found(daemon, "newts")[0] == ("vault", "Pond.md")


def test_a_linked_vault_that_goes_away_is_told_and_loses_nothing(
    daemon: Daemon, tmp_path: Path
) -> None:
    root = tmp_path / "Stones"
    write_notes(root, {"Granite.md": "# Granite\n\ncoarse"})
    link = add_link(daemon.engine, str(root))
    until(lambda: link_status(daemon.engine, link.link_id).health.error is None)
    until(lambda: daemon.live.health.state == "healthy")
    root.rename(tmp_path / "away")
    until(lambda: daemon.live.health.state == "degraded")
    trouble = daemon.live.health.trouble
    assert trouble is not None
    assert (trouble.code, "'Stones'" in trouble.message) == ("VAULT_AWAY", True)
    (daemon.engine.vaults.primary.root / "New.md").write_text("# New\n\nzymurgy")
    until(lambda: ("vault", "New.md") in found(daemon, "zymurgy"))
    assert ("Stones", "Granite.md") in found(daemon, "coarse granite")
    (tmp_path / "away").rename(root)
    until(lambda: daemon.live.health.state == "healthy")
    assert ("Stones", "Granite.md") in found(daemon, "coarse granite")


def test_a_sync_that_is_asked_for_is_a_job(daemon: Daemon, tmp_path: Path) -> None:
    root = tmp_path / "Stones"
    write_notes(root, {"Granite.md": "# Granite\n\ncoarse"})
    link = add_link(daemon.engine, str(root))
    job = sync_link(daemon.engine, link.link_id)
    assert isinstance(job, Job)
    assert job.order.link_id == link.link_id
    done = daemon.live.jobs.wait(job.id, PATIENCE_S)
    assert done.status is JobStatus.COMPLETED
    assert link_status(daemon.engine, link.link_id).totals.indexed == 1


def _stored(daemon: Daemon, link_id: str) -> int:
    job = daemon.live.jobs.for_link(link_id)
    return job.stored.current if job is not None and job.stored is not None else 0
