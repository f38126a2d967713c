"""The doctor: what each check finds, and what only the deep ones can."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from obsidian_rag.config import load
from obsidian_rag.engine import Engine, examine, run_index
from obsidian_rag.health import Finding
from obsidian_rag.index import Mode

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
ZSTD = b"\x28\xb5\x2f\xfd"
SURFACE = [
    "health",
    "config",
    "vault",
    "disk",
    "permissions",
    "database",
    "files",
    "index",
    "lookup",
    "related",
    "embedder",
    "fingerprint",
    "meaning",
    "livesync",
]
DEEP = [*SURFACE, "chunks", "notes", "relations"]
PAST_NS = 1_700_000_000_123_456_789


def verdicts(engine: Engine, *, deep: bool = False) -> dict[str, str]:
    return {finding.check: finding.verdict for finding in examine(engine, deep=deep)}


def finding(engine: Engine, check: str, *, deep: bool = False) -> Finding:
    return next(found for found in examine(engine, deep=deep) if found.check == check)


def indexed(engine: MakeEngine, vault: Path) -> Engine:
    for file in vault.rglob("*.md"):
        os.utime(file, ns=(PAST_NS, PAST_NS))
    made = engine(vault)
    run_index(made, Mode.FULL)
    return made


def test_a_good_installation_has_nothing_wrong(engine: MakeEngine, make_vault: MakeVault) -> None:
    made = indexed(engine, make_vault({"a.md": "# A\n\ntext", "b.md": b"\xff\xff", "c.md": ""}))
    assert verdicts(made) == dict.fromkeys(SURFACE, "ok")
    assert verdicts(made, deep=True) == dict.fromkeys(DEEP, "ok")


def test_nothing_configured_is_told_without_a_crash(home: Path) -> None:
    found = verdicts(Engine(load()), deep=True)
    assert (found["config"], found["vault"], found["index"]) == ("warning", "problem", "problem")


def test_a_missing_vault_is_a_problem(engine: MakeEngine, make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": "text"})
    made = indexed(engine, vault)
    vault.rename(vault.with_name("elsewhere"))
    assert finding(made, "vault").verdict == "problem"
    assert "NOT_FOUND" in finding(made, "vault").message
    assert verdicts(made)["index"] == "ok"


def test_changed_bytes_in_a_stored_text_are_found_by_every_check_that_reads_files(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    # Text that does not compress is stored as it is; text that does is in a zstd frame.
    notes = {f"{number}.md": f"# Note {number}\n\n" + os.urandom(300).hex() for number in range(20)}
    made = indexed(engine, make_vault(notes))
    assert made.chunks.folder is not None
    made.close()
    (data,) = made.chunks.folder.glob("data/*.lance")
    content = bytearray(data.read_bytes())
    needle = notes["7.md"][-100:].encode()
    place = content.find(needle)
    if place < 0:
        place = content.index(ZSTD) + 200
    content[place : place + 4] = b"~~~~"
    data.write_bytes(content)
    assert verdicts(made)["files"] == "problem"
    made.close()
    (made.chunks.folder / "checksums.txt").unlink()
    assert verdicts(made)["files"] == "warning"
    made.close()
    found = finding(made, "chunks", deep=True)
    assert found.verdict == "problem"
    assert "INDEX_CORRUPTED" in found.message
    assert "reindex" in found.suggestion


def test_a_vector_that_cannot_be_one_is_found_by_the_deep_check(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = indexed(engine, make_vault({"a.md": "text", "b.md": "other"}))
    wrong = [1e30] * made.chunks.dimensions
    made.chunks.table.update(where="source_file = 'a.md'", values={"vector": wrong})
    made.chunks.record()
    found = finding(made, "chunks", deep=True)
    assert (found.verdict, "a.md" in found.message) == ("problem", True)


def test_a_note_changed_behind_the_back_of_its_timestamp_is_found_by_the_deep_check_only(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    vault = make_vault({"a.md": "# A\n\nold text", "b.md": "other"})
    made = indexed(engine, vault)
    (vault / "a.md").write_text("# A\n\nnew text")
    os.utime(vault / "a.md", ns=(PAST_NS, PAST_NS))
    assert set(verdicts(made).values()) == {"ok"}
    found = finding(made, "notes", deep=True)
    assert found.verdict == "warning"
    assert "a.md" in found.message
    assert "b.md" not in found.message
    run_index(made, Mode.SYNC)
    assert finding(made, "notes", deep=True).verdict == "warning"
    run_index(made, Mode.FULL)
    assert finding(made, "notes", deep=True).verdict == "ok"


def test_rows_that_got_lost_are_a_problem(engine: MakeEngine, make_vault: MakeVault) -> None:
    made = indexed(engine, make_vault({"a.md": "text", "b.md": "text"}))
    made.chunks.table.delete("source_file = 'a.md'")
    assert finding(made, "index").verdict == "problem"
    run_index(made, Mode.REINDEX)
    assert finding(made, "index").verdict == "ok"


def test_a_damaged_database_is_a_problem_and_a_reindex_keeps_it_aside(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    made = indexed(engine, make_vault({"a.md": "text"}))
    made.close()
    (home / "state.db").write_bytes(b"no database " * 1000)
    assert finding(made, "database").verdict == "problem"
    run_index(made, Mode.REINDEX)
    assert set(verdicts(made, deep=True).values()) == {"ok"}
    (aside,) = home.glob("state.db.damaged-*")
    assert aside.read_bytes().startswith(b"no database ")


def test_a_lost_data_file_is_a_problem_for_the_deep_check(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = indexed(engine, make_vault({"a.md": "text"}))
    made.close()
    assert made.chunks.folder is not None
    for file in made.chunks.folder.glob("data/*.lance"):
        file.unlink()
    made.close()
    assert finding(made, "chunks", deep=True).verdict == "problem"


def test_an_embedder_that_does_not_answer_is_a_problem(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    settings = {"embedding.provider": "ollama", "embedding.base_url": "http://127.0.0.1:9"}
    made = engine(make_vault({"a.md": "text"}), settings)
    assert "OLLAMA_UNREACHABLE" in finding(made, "embedder").message
