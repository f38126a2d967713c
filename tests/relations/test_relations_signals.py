"""Each signal against values computed by hand or with plain loops."""

from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from tests.relations.related_vault import RelatedVault, indexed, link_of, load, slots
from tests.relations.seed_scoring import SeedNote, bm25, idf

from obsidian_rag.relations import signals
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.relations.signals import (
    K1,
    Scores,
    Source,
    SourcePostings,
    note_source,
    text_source,
)
from obsidian_rag.search.keywords import B

# Four notes of made-up words, which no stemmer changes: 3, 2, 5 and 0 terms.
NOTES = {
    "a.md": "zuv zuv kof",
    "b.md": "zuv mip",
    "c.md": "kof kof kof mip tiq",
    "d.md": "",
}
TAGS = {
    "a.md": "---\ntags: [x, y]\n---\n",
    "b.md": "---\ntags: [x, y, z]\n---\n",
    "c.md": "---\ntags: [y]\n---\n",
    "d.md": "---\ntags: [w]\n---\n",
    "e.md": "",
}


def by_path(loaded: MemoryIndex, scores: Scores) -> dict[str, float]:
    return {path: float(scores[slot]) for path, slot in slots(loaded).items()}


def source(loaded: MemoryIndex, path: str) -> Source:
    return note_source(loaded, slots(loaded)[path])


def test_k1_and_b_are_the_seeds() -> None:
    assert (K1, B) == (1.5, 0.75)


def test_idf_is_the_seeds_formula(tmp_path: Path) -> None:
    with indexed(tmp_path, NOTES).loaded() as loaded:
        zuv, tiq = text_source(loaded, "zuv tiq").sequence.tolist()
        assert loaded.idf[zuv] == pytest.approx(log((4 - 2 + 0.5) / (2 + 0.5) + 1))
        assert loaded.idf[tiq] == pytest.approx(log((4 - 1 + 0.5) / (1 + 0.5) + 1))


def test_bm25_is_the_seeds_formula(tmp_path: Path) -> None:
    # The average of 3, 2, 5 and (an empty note counts as one word) 1 is 2.75.
    zuv = log((4 - 2 + 0.5) / 2.5 + 1)
    kof = log((4 - 2 + 0.5) / 2.5 + 1)

    def part(count: int, length: int) -> float:
        return count * 2.5 / (count + 1.5 * (0.25 + 0.75 * length / 2.75))

    with indexed(tmp_path, NOTES).loaded() as loaded:
        found = by_path(
            loaded, SourcePostings(loaded, source(loaded, "a.md")).bm25(is_damped=False)
        )
    assert found == pytest.approx(
        {
            "a.md": 2 * zuv * part(2, 3) + kof * part(1, 3),
            "b.md": 2 * zuv * part(1, 2),
            "c.md": kof * part(3, 5),
            "d.md": 0.0,
        }
    )


def test_a_term_that_the_source_repeats_counts_less_each_time_when_damped(tmp_path: Path) -> None:
    with indexed(tmp_path, NOTES).loaded() as loaded:
        postings = SourcePostings(loaded, source(loaded, "a.md"))
        plain = by_path(loaded, postings.bm25(is_damped=False))
        damped = by_path(loaded, postings.bm25(is_damped=True))
    assert damped["b.md"] == pytest.approx(plain["b.md"] / 2 * (2 * 2.5 / (2 + 1.5)))
    assert damped["c.md"] == pytest.approx(plain["c.md"])


def test_bm25_agrees_with_plain_loops(tmp_path: Path) -> None:
    notes = {path: SeedNote(tuple(text.split()), frozenset()) for path, text in NOTES.items()}
    with indexed(tmp_path, NOTES).loaded() as loaded:
        found = by_path(
            loaded, SourcePostings(loaded, source(loaded, "c.md")).bm25(is_damped=False)
        )
    asked = NOTES["c.md"].split()
    assert found == pytest.approx({path: bm25(notes, asked, path) for path in NOTES})


def test_bm25_of_a_vault_of_empty_notes_is_nothing(tmp_path: Path) -> None:
    with indexed(tmp_path, {"a.md": "", "b.md": "\n"}).loaded() as loaded:
        found = SourcePostings(loaded, source(loaded, "a.md")).bm25(is_damped=False)
        assert found.tolist() == [0, 0]
        assert loaded.average == 1


def test_shared_terms_are_jaccard_of_the_vocabularies(tmp_path: Path) -> None:
    with indexed(tmp_path, NOTES).loaded() as loaded:
        found = by_path(loaded, SourcePostings(loaded, source(loaded, "a.md")).shared_terms())
    # {zuv, kof} beside itself, {zuv, mip}, {kof, mip, tiq} and nothing.
    assert found == pytest.approx({"a.md": 1, "b.md": 1 / 3, "c.md": 1 / 4, "d.md": 0})


def test_tags_are_jaccard_of_the_tags(tmp_path: Path) -> None:
    with indexed(tmp_path, TAGS).loaded() as loaded:
        found = by_path(loaded, signals.tags(loaded, source(loaded, "a.md").tags))
        none = by_path(loaded, signals.tags(loaded, frozenset()))
    assert found == pytest.approx({"a.md": 1, "b.md": 2 / 3, "c.md": 1 / 2, "d.md": 0, "e.md": 0})
    assert set(none.values()) == {0.0}


def test_proximity_is_one_through_distance_plus_one_up_to_three_steps(tmp_path: Path) -> None:
    notes = {f"{at}.md": f"[[{at + 1}]]" for at in range(5)} | {"far.md": ""}
    with indexed(tmp_path, notes).loaded() as loaded:
        found = by_path(loaded, signals.proximity(loaded, source(loaded, "0.md")))
        nobody = signals.proximity(loaded, text_source(loaded, "0"))
    assert found == pytest.approx(
        {"0.md": 0, "1.md": 1 / 2, "2.md": 1 / 3, "3.md": 1 / 4, "4.md": 0, "far.md": 0}
    )
    assert not nobody.any()


def test_links_are_no_ties_when_they_are_switched_off(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"a.md": "[[b]]", "b.md": ""})
    with vault.rows() as rows:
        off = load(rows, vault.settings.model_copy(update={"use_links": False}))
        assert not signals.proximity(off, source(off, "a.md")).any()


def test_neighbours_in_common(tmp_path: Path) -> None:
    notes = {"a.md": "[[hub]]", "b.md": "[[hub]]", "c.md": "[[hub]]", "hub.md": "", "d.md": ""}
    with indexed(tmp_path, notes).loaded() as loaded:
        found = by_path(loaded, signals.neighbours(loaded, source(loaded, "a.md")))
    assert found == pytest.approx({"a.md": 0, "b.md": 1 / 3, "c.md": 1 / 3, "hub.md": 0, "d.md": 0})


def test_cosine_of_damped_counts_times_idf(tmp_path: Path) -> None:
    notes = {path: SeedNote(tuple(text.split()), frozenset()) for path, text in NOTES.items()}

    def vector(path: str) -> dict[str, float]:
        terms = notes[path].terms
        return {term: (1 + log(terms.count(term))) * idf(notes, term) for term in set(terms)}

    def cosine(one: dict[str, float], other: dict[str, float]) -> float:
        dot = sum(value * other.get(term, 0) for term, value in one.items())
        return dot / sqrt(sum(value**2 for value in other.values())) if other else 0

    with indexed(tmp_path, NOTES).loaded() as loaded:
        found = by_path(loaded, SourcePostings(loaded, source(loaded, "a.md")).cosine())
    assert found == pytest.approx({path: cosine(vector("a.md"), vector(path)) for path in NOTES})


def test_a_note_whose_name_the_source_says_is_named(tmp_path: Path) -> None:
    notes = {
        "a.md": "we went to the zuv kof by night",
        "zuv kof.md": "",
        "kof zuv.md": "",
        "Mip.md": "---\naliases: [by night]\n---\n",
        "Tiq.md": "nothing",
    }
    with indexed(tmp_path, notes).loaded() as loaded:
        found = by_path(loaded, signals.names(loaded, source(loaded, "a.md")))
    assert found["zuv kof.md"] > found["kof zuv.md"] > found["Tiq.md"]
    assert found["Mip.md"] > found["kof zuv.md"]
    assert found["Tiq.md"] == 0


def test_a_note_that_says_the_sources_name_is_named_too(tmp_path: Path) -> None:
    notes = {
        "Zuv Kof.md": "",
        "says it.md": "the zuv kof",
        "both apart.md": "kof and zuv",
        "neither.md": "mip",
    }
    with indexed(tmp_path, notes).loaded() as loaded:
        found = by_path(loaded, signals.names(loaded, source(loaded, "Zuv Kof.md")))
    assert found["says it.md"] > 0
    assert found["both apart.md"] == found["neither.md"] == 0


def test_a_name_in_which_a_word_stands_nowhere_else_is_no_obstacle(tmp_path: Path) -> None:
    """Its alias is said, though its file name never is."""
    notes = {"Unsaid Title.md": "---\naliases: [zuv kof]\n---\n", "b.md": "the zuv kof"}
    with indexed(tmp_path, notes).loaded() as loaded:
        found = by_path(loaded, signals.names(loaded, source(loaded, "Unsaid Title.md")))
    assert found["b.md"] > 0


def test_a_name_counts_though_no_text_has_it(tmp_path: Path) -> None:
    with indexed(tmp_path, {"Zuv.md": "mip", "b.md": "kof"}).loaded() as loaded:
        found = by_path(loaded, signals.names(loaded, text_source(loaded, "zuv")))
    assert found["Zuv.md"] > found["b.md"] == 0


def test_names_are_said_also_where_places_are_not_kept(tmp_path: Path) -> None:
    vault = RelatedVault(tmp_path)
    vault.settings = vault.settings.model_copy(update={"store_positions": False})
    vault.write({"Zuv Kof.md": "", "says it.md": "zuv kof", "neither.md": "mip"})
    vault.update()
    with vault.loaded() as loaded:
        found = by_path(loaded, signals.names(loaded, source(loaded, "Zuv Kof.md")))
    assert found["says it.md"] > found["neither.md"] == 0


def put_vectors(vault: RelatedVault, vectors: dict[str, list[float]]) -> None:
    with vault.rows() as rows, rows.changing():
        rows.put_vectors(
            link_of(rows),
            [
                (path, "hash", np.array(vector, dtype=np.float16).tobytes())
                for path, vector in vectors.items()
            ],
        )


def test_meaning_is_the_cosine_seen_from_the_average_note(tmp_path: Path) -> None:
    vault = indexed(tmp_path, NOTES)
    vectors: dict[str, list[float]] = {"a.md": [1, 0], "b.md": [0.8, 0.6], "c.md": [0, 1]}
    put_vectors(vault, vectors)
    centre = np.mean([*vectors.values()], axis=0)
    a, b = np.array(vectors["a.md"]) - centre, np.array(vectors["b.md"]) - centre
    with vault.loaded() as loaded:
        found = by_path(loaded, signals.meaning(loaded, source(loaded, "a.md")))
        asked = Source(source(loaded, "d.md").sequence, frozenset(), vector=np.array([0, 1.0]))
        by_text = by_path(loaded, signals.meaning(loaded, asked))
    expected = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert found["b.md"] == pytest.approx(expected, abs=0.02)
    assert (found["c.md"], found["d.md"]) == (0, 0)
    assert max(by_text, key=lambda path: by_text[path]) == "c.md"


def test_there_is_no_meaning_without_vectors_or_of_another_width(tmp_path: Path) -> None:
    vault = indexed(tmp_path, NOTES)
    with vault.loaded() as loaded:
        assert not signals.meaning(loaded, source(loaded, "a.md")).any()
    put_vectors(vault, {"a.md": [1, 0], "b.md": [1, 0]})
    with vault.loaded() as loaded:
        wide = Source(source(loaded, "d.md").sequence, frozenset(), vector=np.ones(3, np.float32))
        assert not signals.meaning(loaded, wide).any()
        assert not signals.meaning(loaded, source(loaded, "d.md")).any()
