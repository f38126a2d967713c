"""Each chunk store belongs to one data folder, and holds what that folder's state.db says."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.folders import write_config

from obsidian_rag import config
from obsidian_rag.engine import Engine, ask, examine, report_status, run_index
from obsidian_rag.errors import StoreForeign
from obsidian_rag.index import Mode
from obsidian_rag.search import Request

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
NOTES = {"a.md": "# Apples\n\ngreen apples", "b.md": "# Pears\n\nyellow pears"}


@pytest.fixture(params=["folder", "address"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, object]:
    """Settings for a store outside the data folder: a folder, or an address."""
    address = f"file://{tmp_path}/shared"
    is_address = request.param == "address"
    return {
        "vector_store.path": address if is_address else str(tmp_path / "shared"),
        "security.local_only": not is_address,
    }


def engine_in(home: Path, vault: Path, settings: Mapping[str, object]) -> Engine:
    write_config(home, vault, settings)
    return Engine(config.load())


def found(engine: Engine, question: str) -> list[str]:
    return [hit.source_file for hit in ask(engine, Request(question)).answer.hits]


@pytest.mark.parametrize("mode", list(Mode))
def test_a_second_data_folder_is_refused_and_the_first_keeps_its_index(
    mode: Mode,
    shared: dict[str, object],
    engine: MakeEngine,
    make_vault: MakeVault,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vault = make_vault(NOTES)
    first = engine(vault, shared)
    run_index(first, Mode.SYNC)
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(home.with_name("second")))
    second = engine_in(home.with_name("second"), vault, shared)
    try:
        with pytest.raises(StoreForeign):
            run_index(second, mode)
        assert report_status(second).trouble.code == "STORE_FOREIGN"  # type: ignore[union-attr]
    finally:
        second.close()
    first.chunks.close()
    assert "a.md" in found(first, "apples")
    assert report_status(first).plugin_health == "healthy"


def test_a_store_without_a_record_is_taken_over_only_by_the_data_folder_of_its_vaults(
    shared: dict[str, object],
    engine: MakeEngine,
    make_vault: MakeVault,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vault = make_vault(NOTES)
    first = engine(vault, shared)
    run_index(first, Mode.SYNC)
    remove_record(tmp_path / "shared")
    monkeypatch.setenv("OBSIDIAN_RAG_HOME", str(home.with_name("second")))
    second = engine_in(home.with_name("second"), vault, shared)
    try:
        with pytest.raises(StoreForeign):
            run_index(second, Mode.SYNC)
        assert run_index(first, Mode.SYNC).tally.unchanged == 2
        with pytest.raises(StoreForeign):
            run_index(second, Mode.REINDEX)
    finally:
        second.close()


@pytest.mark.parametrize("damage", ["", "\0" * 36, "99999999-0000-4000-8000-000000000000\n"])
def test_a_data_folder_whose_id_is_damaged_keeps_the_store_inside_it(
    damage: str, engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    made = engine(make_vault(NOTES))
    run_index(made, Mode.SYNC)
    (home / "folder-id").write_text(damage)
    made.chunks.close()
    assert "a.md" in found(made, "apples")
    assert run_index(made, Mode.SYNC).tally.unchanged == 2
    (home / "vectors.lance" / "owner.json").write_text("{")
    run_index(made, Mode.REINDEX)
    assert "a.md" in found(made, "apples")


def test_status_and_doctor_name_rows_that_state_db_does_not_know(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault(NOTES))
    run_index(made, Mode.SYNC)
    assert report_status(made).trouble is None
    other = "99999999-0000-4000-8000-000000000000"
    made.chunks.table.update(values={"link_id": other})
    made.chunks.record()
    trouble = report_status(made).trouble
    assert trouble is not None
    assert (trouble.code, "2 chunks of vaults" in trouble.message) == ("INDEX_CORRUPTED", True)
    checks = {finding.check: finding for finding in examine(made)}
    assert (checks["index"].verdict, checks["health"].verdict) == ("problem", "problem")


def test_status_and_doctor_name_rows_that_are_missing(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault(NOTES))
    run_index(made, Mode.SYNC)
    made.chunks.table.delete("source_file = 'a.md'")
    made.chunks.record()
    trouble = report_status(made).trouble
    assert trouble is not None
    assert "holds 1 chunks" in trouble.message
    assert "but 2 were written" in trouble.message
    run_index(made, Mode.REINDEX)
    assert report_status(made).plugin_health == "healthy"


def remove_record(store: Path) -> None:
    if (store / "owner.json").exists():
        (store / "owner.json").unlink()
    else:
        (store / "obsidian_owner.lance").rename(store.with_name("taken-away"))
