"""Detection, batching, sync, result: an edit on disk becomes searchable by itself."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.living import QUICK, Cli, Configure, Living, MakeVault, living, watching

NOTES = {
    "Debts.md": "# Debts\nI owe Sreenivas 40 dollars.\n",
    "Garden/Ferns.md": "# Ferns\nThey like shade.\n",
    "Garden/Roses.md": "# Roses\nThey like sun.\n",
}


@pytest.fixture
def vault(make_vault: MakeVault, configure: Configure) -> Path:
    root = make_vault(NOTES)
    configure(root, QUICK)
    return root


@pytest.fixture
def daemon(vault: Path, cli: Cli) -> Iterator[Living]:
    assert cli("index").code == 0
    with watching() as one:
        yield one


def test_a_new_an_edited_and_a_deleted_note(daemon: Living, vault: Path) -> None:
    (vault / "Bread.md").write_text("# Bread\nRye sourdough, 24 hours.\n")
    told = daemon.wait_for("changes")
    assert (told["added"], told["paths"]) == (1, ["Bread.md"])
    assert daemon.search("sourdough")[0] == "Bread.md"
    (vault / "Bread.md").write_text("# Bread\nSpelt with walnuts.\n")
    assert daemon.wait_for("changes")["changed"] == 1
    assert daemon.search("walnuts")[0] == "Bread.md"
    (vault / "Bread.md").unlink()
    assert daemon.wait_for("changes")["removed"] == 1
    assert "Bread.md" not in daemon.search("walnuts")
    result = json.loads(Path(os.environ["OBSIDIAN_RAG_HOME"], "sync-result.json").read_text())
    assert (result["status"], result["removed"], result["indexed_files"]) == ("complete", 1, 3)


def test_an_atomic_save_of_an_editor(daemon: Living, vault: Path) -> None:
    (vault / ".Debts.md.swp").write_text("I owe nobody.\n")
    (vault / ".Debts.md.swp").rename(vault / "Debts.md")
    assert daemon.wait_for("changes")["changed"] == 1
    assert daemon.search("nobody")[0] == "Debts.md"


def test_a_renamed_folder_keeps_its_chunks(daemon: Living, vault: Path) -> None:
    (vault / "Garden").rename(vault / "Plants")
    told = daemon.wait_for("changes")
    assert (told["renamed"], told["added"], told["removed"]) == (2, 0, 0)
    assert daemon.search("shade")[0] == "Plants/Ferns.md"


def test_a_folder_moved_in_from_outside(daemon: Living, vault: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "Deep").mkdir(parents=True)
    (outside / "Deep" / "Well.md").write_text("# Well\nDug in 1911.\n")
    outside.rename(vault / "House")
    assert daemon.wait_for("changes")["added"] == 1
    assert daemon.search("dug in 1911")[0] == "House/Deep/Well.md"


def test_denied_folders_and_hidden_files_start_no_job(daemon: Living, vault: Path) -> None:
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian" / "workspace.md").write_text("secret marmalade\n")
    (vault / "zzz-Archive").mkdir()
    (vault / "zzz-Archive" / "Old.md").write_text("secret marmalade\n")
    (vault / "Open.md").write_text("# Open\npublic marmalade\n")
    told = daemon.wait_for("changes")
    assert told["added"] == 1
    assert daemon.search("marmalade")[0] == "Open.md"
    assert daemon.call("status")["data"]["total_docs"] == 4


@pytest.mark.slow
def test_many_files_at_once_like_a_checkout(daemon: Living, vault: Path, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(2000):
        (many / f"Note {number}.md").write_text(f"# Note {number}\nword{number}\n")
    shutil.copytree(many, vault / "Many")
    added = 0
    while added < 2000:
        added += daemon.wait_for("changes")["added"]
    jobs = {data["id"] for kind, data in daemon.events if kind == "job"}
    assert len(jobs) < 100
    assert daemon.search("word1234")[0] == "Many/Note 1234.md"


@pytest.mark.slow
def test_ten_files_saved_together_are_one_sync(
    make_vault: MakeVault, configure: Configure, cli: Cli
) -> None:
    root = make_vault(NOTES)
    # Longer than a busy machine lets a program wait between two files.
    configure(root, {**QUICK, "watcher.debounce_s": 2.0, "watcher.collect_s": 60.0})
    assert cli("index").code == 0
    with watching() as daemon:
        for number in range(10):
            (root / f"Idea {number}.md").write_text(f"# Idea {number}\n")
        told = daemon.wait_for("changes")
        assert (told["added"], len(told["paths"])) == (10, 10)


def test_edits_made_while_no_daemon_ran_are_found_at_the_start(vault: Path, cli: Cli) -> None:
    assert cli("index").code == 0
    (vault / "Late.md").write_text("# Late\nwritten meanwhile\n")
    with living() as daemon:
        assert daemon.wait_for("changes")["added"] == 1
        assert daemon.search("written meanwhile")[0] == "Late.md"


def test_what_the_watcher_missed_is_found_by_the_next_reconcile(
    make_vault: MakeVault, configure: Configure, cli: Cli
) -> None:
    root = make_vault(NOTES)
    configure(root, {**QUICK, "watcher.enabled": False, "watcher.reconcile_s": 1.0})
    assert cli("index").code == 0
    with living() as daemon:
        daemon.wait_for("job", status="completed")
        (root / "Missed.md").write_text("# Missed\nunseen\n")
        assert daemon.wait_for("changes")["added"] == 1


def test_a_vault_that_was_never_indexed_is_left_alone_until_asked(
    vault: Path, make_vault: MakeVault
) -> None:
    with living() as daemon:
        assert daemon.wait_for("health")["code"] == "INDEX_NOT_FOUND"
        answer = daemon.call("search", query="ferns")
        assert (answer["status"], answer["error"]["code"]) == ("unavailable", "INDEX_NOT_FOUND")
        daemon.index("full")
        assert daemon.search("shade")[0] == "Garden/Ferns.md"


def test_a_sync_that_met_another_writer_is_made_up_for(daemon: Living, vault: Path) -> None:
    program = (
        "import sys; from obsidian_rag.config import data_home;"
        "from obsidian_rag.store import writer_lock;"
        "lock = writer_lock(data_home(), 'test'); lock.__enter__();"
        "print('held', flush=True); sys.stdin.read(); lock.__exit__(None, None, None)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        (vault / "Owed.md").write_text("# Owed\nnot forgotten\n")
        failed: Any = daemon.wait_for("job", status="failed")
        assert failed["error"]["code"] == "BUSY"
        holder.communicate("")
    assert daemon.wait_for("changes")["added"] == 1
    assert daemon.search("not forgotten")[0] == "Owed.md"
