"""The map of a vault: every tie with its kind, laid out once, kept, refined when notes change."""

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.waiting import PATIENCE_S

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.errors import IndexNotFound, NotFound
from obsidian_rag.index import Mode
from obsidian_rag.relations import VaultMap
from obsidian_rag.relations.map import DrawnMap, NoteGraph, Tie

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
ID = "550e8400-e29b-41d4-a716-446655440000"
NOTES = {
    "Pond.md": f"---\nid: {ID}\ntags: [water]\n---\n# The pond\n\nsee [[Bog]] and [[Rain]]\n",
    "Bog.md": "---\ntags: [water]\n---\n# Bog\n\nmoss and sedge, see [[Pond]]\n",
    "Garden/Rain.md": f"---\nrelated: [{ID}]\n---\n# Rain garden\n\nsee [[Nowhere]]\n",
    "Bread.md": "# Bread\n\nrye flour, salt, water and time\n",
    "Rye.md": "# Rye bread\n\nrye flour, salt, water and more time\n",
}


def ties_of(graph: NoteGraph) -> dict[tuple[str, str], str]:
    names = [note.path.removesuffix(".md") for note in graph.notes]
    return {
        (names[left], names[right]): Tie(kind).name
        for (left, right), kind in zip(graph.pairs.tolist(), graph.kinds.tolist(), strict=True)
    }


@pytest.fixture
def made(engine: MakeEngine, make_vault: MakeVault) -> Engine:
    one = engine(make_vault(NOTES), {"relations.min_score": 0.0})
    run_index(one, Mode.FULL)
    return one


def test_every_tie_has_its_kind_and_a_lonely_note_hangs_on_its_like(made: Engine) -> None:
    drawn = VaultMap(lambda: made.relations, print).drawn()
    assert [note.path for note in drawn.graph.notes] == sorted(NOTES)
    found = ties_of(drawn.graph)
    assert found["Bog", "Pond"] == "LINK"
    assert found["Garden/Rain", "Pond"] == "RELATION"
    assert found["Bread", "Rye"] == "LIKENESS"
    assert np.isfinite(drawn.places).all()
    titles = {note.path: (note.title, note.tags) for note in drawn.graph.notes}
    assert titles["Pond.md"] == ("The pond", ("water",))


def test_the_neighbourhood_has_ties_of_all_kinds(made: Engine) -> None:
    drawn = VaultMap(lambda: made.relations, print).around(made.vaults.primary.link_id, "Pond.md")
    found = ties_of(drawn.graph)
    assert found["Bog", "Pond"] == "LINK"
    assert found["Garden/Rain", "Pond"] == "RELATION"
    assert all("Pond" in pair for pair, kind in found.items() if kind == "LIKENESS")
    assert drawn.places.shape == (len(drawn.graph.notes), 2)
    with pytest.raises(NotFound):
        VaultMap(lambda: made.relations, print).around(made.vaults.primary.link_id, "Nowhere.md")


def test_a_vault_that_is_not_indexed_has_no_map(engine: MakeEngine, make_vault: MakeVault) -> None:
    with pytest.raises(IndexNotFound):
        VaultMap(lambda: engine(make_vault(NOTES)).relations, print).drawn()


def test_a_map_is_kept_and_another_process_draws_the_same(made: Engine) -> None:
    before = VaultMap(lambda: made.relations, print).drawn()
    file = made.config.home / "map.json"
    kept = json.loads(file.read_text())
    assert kept["version"] == before.version
    after = VaultMap(lambda: made.relations, print).drawn()
    assert np.allclose(before.places, after.places, atol=0.01)
    file.write_text("{")
    assert np.allclose(
        before.places, VaultMap(lambda: made.relations, print).drawn().places, atol=0.01
    )


def test_an_edit_of_words_alone_keeps_the_map_and_a_new_link_changes_it(made: Engine) -> None:
    vault = VaultMap(lambda: made.relations, print)
    before = vault.drawn()
    root = made.config.vault_root
    (root / "Pond.md").write_text(NOTES["Pond.md"] + "\nMore words.\n")
    run_index(made, Mode.SYNC)
    assert vault.drawn().version == before.version
    (root / "Bread.md").write_text("# Bread\n\nsee [[Rye]]\n")
    run_index(made, Mode.SYNC)
    after = vault.drawn()
    assert (after.version != before.version, ties_of(after.graph)["Bread", "Rye"]) == (True, "LINK")


def test_a_large_map_is_rough_at_once_and_settled_soon(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    links = {at: f"[[n{at // 2}]] [[n{at // 3}]]" for at in range(600)}
    made = engine(make_vault({f"n{at}.md": f"# N{at}\n\n{text}\n" for at, text in links.items()}))
    run_index(made, Mode.FULL)
    told, stop = threading.Event(), threading.Event()
    vault = VaultMap(lambda: made.relations, lambda _: told.set())
    rough: DrawnMap = vault.drawn()
    assert not rough.is_settled
    thread = threading.Thread(target=vault.run, args=(stop,))
    thread.start()
    assert told.wait(PATIENCE_S)
    stop.set()
    vault.wake()
    thread.join(PATIENCE_S)
    settled = vault.drawn()
    assert (settled.is_settled, settled.version) == (True, rough.version)
