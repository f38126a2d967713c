"""What `status` tells in each state of an installation."""

import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.embed.embedding_doubles import fake_ollama
from tests.waiting import TRIES

from obsidian_rag.config import load
from obsidian_rag.engine import Engine, report_status, run_index
from obsidian_rag.errors import ConfigInvalid, EmbeddingMismatch
from obsidian_rag.health import FileNotice
from obsidian_rag.index import Mode

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
NOTES = {"a.md": "# A\n\nfirst text", "Folder/b.md": "# B\n\nsecond text"}


def closed_port() -> str:
    """An address of this machine where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def code_of(engine: Engine) -> str | None:
    trouble = report_status(engine).trouble
    return trouble.code if trouble else None


def test_before_the_first_index_there_is_none(engine: MakeEngine, make_vault: MakeVault) -> None:
    report = report_status(engine(make_vault(NOTES)))
    assert report.plugin_health == "unavailable"
    assert report.trouble is not None
    assert report.trouble.code == "INDEX_NOT_FOUND"
    assert (report.total_docs, report.total_chunks, report.last_sync) == (0, 0, None)
    assert (report.unindexed_files, report.unindexed_checked) == (2, True)


def test_after_an_index_all_is_well(engine: MakeEngine, make_vault: MakeVault) -> None:
    vault = make_vault(NOTES)
    made = engine(vault)
    run_index(made, Mode.FULL)
    report = report_status(made)
    assert (report.plugin_health, report.trouble) == ("healthy", None)
    assert (report.total_docs, report.total_chunks, report.unindexed_files) == (2, 2, 0)
    assert report.last_sync is not None
    assert report.vault_path == str(vault)
    assert report.embedder.startswith("hash:")
    assert report.notices == ()


def test_new_changed_and_vanished_files_are_counted_and_a_sync_settles_them(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    vault = make_vault({**NOTES, "gone.md": "text"})
    made = engine(vault)
    run_index(made, Mode.FULL)
    (vault / "a.md").write_text("# A\n\nother and longer text")
    (vault / "new.md").write_text("new")
    (vault / "gone.md").unlink()
    assert report_status(made).unindexed_files == 3
    run_index(made, Mode.SYNC)
    assert report_status(made).unindexed_files == 0


def test_a_vault_that_went_away_is_told(engine: MakeEngine, make_vault: MakeVault) -> None:
    vault = make_vault(NOTES)
    made = engine(vault)
    run_index(made, Mode.FULL)
    vault.rename(vault.with_name("elsewhere"))
    report = report_status(made)
    assert report.trouble is not None
    assert (report.plugin_health, report.trouble.code) == ("degraded", "VAULT_AWAY")
    assert (report.total_docs, report.unindexed_checked) == (2, False)


def test_without_a_vault_nothing_can_be_told(home: Path) -> None:
    with pytest.raises(ConfigInvalid):
        report_status(Engine(load()))


@pytest.mark.parametrize("pattern", ["_versions/*.manifest", "data/*.lance"])
def test_a_damaged_index_is_told_and_a_reindex_repairs_it(
    engine: MakeEngine, make_vault: MakeVault, pattern: str
) -> None:
    vault = make_vault(NOTES)
    made = engine(vault)
    run_index(made, Mode.FULL)
    assert made.chunks.folder is not None
    for file in made.chunks.folder.glob(pattern):
        os.truncate(file, file.stat().st_size // 2)
    made.close()
    report = report_status(made)
    assert report.plugin_health == "unavailable"
    assert report.trouble is not None
    assert report.trouble.code == "INDEX_CORRUPTED"
    assert "reindex" in report.trouble.suggestion
    run_index(made, Mode.REINDEX)
    assert code_of(made) is None
    assert made.chunks.count() == 2


def test_other_settings_do_not_fit_the_index_until_a_reindex(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    vault = make_vault(NOTES)
    run_index(engine(vault), Mode.FULL)
    changed = engine(vault, {"embedding.dimensions": 64})
    report = report_status(changed)
    assert report.plugin_health == "degraded"
    assert report.trouble is not None
    assert report.trouble.code == "EMBEDDING_MISMATCH"
    assert report.total_docs == 2
    with pytest.raises(EmbeddingMismatch):
        run_index(changed, Mode.SYNC)
    run_index(changed, Mode.REINDEX)
    assert code_of(changed) is None
    assert changed.chunks.dimensions == 64


def test_ollama_up_then_down_is_healthy_then_degraded(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    with fake_ollama() as server:
        settings = {
            "embedding.provider": "ollama",
            "embedding.model": "tiny",
            "embedding.base_url": server.url,
        }
        made = engine(make_vault(NOTES), settings)
        run_index(made, Mode.FULL)
        report = report_status(made)
        assert (report.ollama_status, report.plugin_health) == ("up", "healthy")
        made.close()
    report = report_status(made)
    assert (report.ollama_status, report.plugin_health) == ("down", "degraded")
    assert report.trouble is not None
    assert report.trouble.code == "OLLAMA_UNREACHABLE"
    assert report.total_docs == 2


def test_no_index_is_worse_than_no_ollama(engine: MakeEngine, make_vault: MakeVault) -> None:
    settings = {"embedding.provider": "ollama", "embedding.base_url": closed_port()}
    report = report_status(engine(make_vault(NOTES), settings))
    assert report.ollama_status == "down"
    assert report.trouble is not None
    assert report.trouble.code == "INDEX_NOT_FOUND"


def test_status_answers_at_once_when_ollama_is_down_whatever_the_model(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    settings = {
        "embedding.provider": "ollama",
        "embedding.model": "a-model-nobody-knows",
        "embedding.base_url": closed_port(),
    }
    made = engine(make_vault(NOTES), settings)

    def seconds() -> float:
        started = time.monotonic()
        report_status(made)
        return time.monotonic() - started

    assert any(seconds() < 10 for _ in range(TRIES))


def test_status_does_not_make_ollama_load_a_model(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    with fake_ollama() as server:
        settings = {
            "embedding.provider": "ollama",
            "embedding.model": "tiny",
            "embedding.base_url": server.url,
        }
        made = engine(make_vault(NOTES), settings)
        report_status(made)
        assert server.requests == []


def test_every_file_that_is_not_searchable_is_listed_with_its_reason(
    engine: MakeEngine, make_vault: MakeVault, tmp_path: Path
) -> None:
    vault = make_vault(
        {
            "good.md": "text",
            "latin.md": "Gru\xdf".encode("latin-1"),
            "picture.md": b"GIF89a\0\1\0\1",
            "large.md": "x" * 5000,
            "never.md": "---\nrag: false\n---\nsecret",
            "torn.md": "---\ntags: [a\n---\ntext",
        }
    )
    (tmp_path / "outside.md").write_text("outside")
    (vault / "link.md").symlink_to(tmp_path / "outside.md")
    made = engine(vault, {"indexing.max_file_mb": 0.002})
    run_index(made, Mode.FULL)
    report = report_status(made)
    assert {(one.link_id, one.vault) for one in report.notices} == {
        (made.vaults.primary.link_id, "vault")
    }
    listed = {one.file: replace(one, link_id="", vault="") for one in report.notices}
    torn = listed.pop("torn.md")
    assert torn.status == "warning"
    assert torn.reason
    assert listed == {
        "latin.md": FileNotice("latin.md", "warning", "read as windows-1252"),
        "picture.md": FileNotice("picture.md", "failed", "binary"),
        "large.md": FileNotice("large.md", "skipped", "too_large"),
        "link.md": FileNotice("link.md", "skipped", "outside_vault"),
        "never.md": FileNotice("never.md", "skipped", "rag_false"),
    }
    assert report.total_docs == 3
    assert report.unindexed_files == 0
