"""A chunk store outside this machine gets private passages only with consent of their own."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from obsidian_rag import config
from obsidian_rag.engine import Engine, ask, report_status, run_index
from obsidian_rag.errors import EmbeddingMismatch
from obsidian_rag.index import Mode
from obsidian_rag.search import Request
from obsidian_rag.tools import OWNER, call

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
LONG = " and some more words" * 40
NOTES = {
    "Open.md": "# Open\n\nzqopen apples",
    "Diary.md": "---\nrag: private\n---\n# Zqtitle\n\nzqdiary apples\n\n## More\n\nzqmore",
    "Mixed.md": f"# Mixed\n\nzqbefore apples{LONG}\n\n## Money\n\nI owe Bo zqdebt{LONG}\n\n"
    f"## After\n\nzqafter{LONG}",
    "Tagged.md": "---\ntags: [mentalhealth]\n---\nzqtagged apples",
    "Alias.md": "---\naliases: [my debt]\n---\nzqalias apples",
}
PUBLIC = {"zqopen", "zqbefore", "zqafter"}
SECRET = {"zqtitle", "zqdiary", "zqmore", "zqdebt", "zqtagged", "zqalias"}


def settings(place: str, **more: object) -> dict[str, object]:
    """A store at an address, as an object store has one; this one can be looked into."""
    return {"vector_store.path": place, "security.local_only": False, **more}


def words_in(folder: Path) -> set[str]:
    """The planted words in any file of the store; nothing there is compressed or hidden."""
    content = b"".join(file.read_bytes().lower() for file in folder.rglob("*") if file.is_file())
    return {word for word in PUBLIC | SECRET if word.encode() in content}


def found(engine: Engine, question: str) -> set[str]:
    return {hit.source_file for hit in ask(engine, Request(question)).answer.hits}


def test_private_passages_stay_out_of_it_without_consent_and_the_user_is_told(
    engine: MakeEngine, make_vault: MakeVault, tmp_path: Path
) -> None:
    one = engine(make_vault(NOTES), settings(f"file://{tmp_path}/store"))
    run_index(one, Mode.SYNC)
    assert words_in(tmp_path / "store") == PUBLIC
    assert found(one, "apples") == {"Open.md", "Mixed.md"}
    status = call(one, "obsidian_rag_status", {}, OWNER)["data"]
    kept = {notice["file"]: notice["reason"] for notice in status["notices"]}  # type: ignore[index]
    assert kept == {
        "Alias.md": "1 private passage is kept out of the vector store",
        "Diary.md": "1 private passage is kept out of the vector store",
        "Mixed.md": "1 private passage is kept out of the vector store",
        "Tagged.md": "1 private passage is kept out of the vector store",
    }
    assert report_status(one).plugin_health == "healthy"


def test_a_note_that_is_made_private_leaves_the_store_with_the_next_sync(
    engine: MakeEngine, make_vault: MakeVault, tmp_path: Path
) -> None:
    vault = make_vault(NOTES)
    one = engine(vault, settings(f"file://{tmp_path}/store"))
    run_index(one, Mode.SYNC)
    (vault / "Open.md").write_text("---\nrag: private\n---\nzqopen apples", encoding="utf-8")
    run_index(one, Mode.SYNC)
    assert found(one, "apples") == {"Mixed.md"}
    assert one.chunks.paths(one.vaults.primary.link_id) == {"Mixed.md"}


def test_with_consent_all_of_it_goes_there(
    engine: MakeEngine, make_vault: MakeVault, tmp_path: Path
) -> None:
    place = f"file://{tmp_path}/store"
    one = engine(make_vault(NOTES), settings(place, **{"vector_store.private_consent": True}))
    run_index(one, Mode.SYNC)
    assert words_in(tmp_path / "store") == PUBLIC | SECRET


def test_consent_that_is_withdrawn_and_other_rules_need_a_reindex(
    engine: MakeEngine, make_vault: MakeVault, tmp_path: Path
) -> None:
    vault, place = make_vault(NOTES), f"file://{tmp_path}/store"
    with_consent = settings(place, **{"vector_store.private_consent": True})
    one = engine(vault, with_consent)
    run_index(one, Mode.SYNC)
    one.close()
    other = engine(vault, settings(place))
    with pytest.raises(EmbeddingMismatch, match="private passages"):
        run_index(other, Mode.SYNC)
    run_index(other, Mode.REINDEX)
    assert words_in(tmp_path / "store") == PUBLIC
    other.close()
    stricter = engine(vault, settings(place, **{"security.sensitive_sections": ["#After"]}))
    with pytest.raises(EmbeddingMismatch, match="what is private"):
        run_index(stricter, Mode.SYNC)


def test_a_store_on_this_machine_gets_everything(
    engine: MakeEngine, make_vault: MakeVault, tmp_path: Path
) -> None:
    one = engine(make_vault(NOTES), {"vector_store.path": str(tmp_path / "store")})
    run_index(one, Mode.SYNC)
    assert words_in(tmp_path / "store") == PUBLIC | SECRET


@pytest.mark.parametrize(
    ("path", "is_remote"),
    [
        (None, False),
        ("/mnt/store", False),
        ("store", False),
        ("s3://bucket/notes", True),
        ("gs://bucket", True),
        ("az://container", True),
        ("file:///mnt/store", True),
    ],
)
def test_every_address_counts_as_outside_this_machine(
    path: str | None, is_remote: bool, tmp_path: Path
) -> None:
    tree = {"vector_store": {"path": path}, "security": {"local_only": False}}
    config.save(tree, tmp_path / "config.json")
    loaded = config.load({}, {"OBSIDIAN_RAG_HOME": str(tmp_path)})
    assert loaded.is_store_remote is is_remote
