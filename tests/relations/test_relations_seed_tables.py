"""Every row of the seed's tables has a test that names it.

Here, in the order of the seed: the indexes (without tag co-occurrence, see docs/decisions.md), the
scoring steps and the BM25 formula, the events, the settings, the errors. What a row promises in
more detail is tested where the table below says.

| Row of the seed | Also tested in |
|---|---|
| UUID index, document stats | test_relations_rows.py, test_relations_content.py |
| Term index | test_relations_words.py, test_relations_rows.py, test_relations_postings.py |
| N-gram index | test_relations_rows.py |
| Relation graph | test_relations_graph.py |
| BM25, Jaccard, term overlap, graph proximity | test_relations_signals.py |
| Normalise, combine, filter | test_relations_score.py (with plain loops beside it) |
| Create, modify, delete, rename | test_relations_update.py; live: test_relations_cycle.py |
| Persistent, loaded on start, corrupted | test_relations_memory_index.py, test_engine_relating.py |
| ID rules, auto-add, rich and simple format | test_relations_ids.py, test_relations_write.py |
"""

import json
from contextlib import closing
from math import log
from pathlib import Path

import numpy as np
import pytest
from tests.relations.related_vault import (
    DEFAULT,
    SEED,
    RelatedVault,
    indexed,
    link_of,
    scores,
    slots,
)
from tests.relations.seed_scoring import SeedNote, seed_related

from obsidian_rag.config import RelationsSettings
from obsidian_rag.errors import IndexCorrupted
from obsidian_rag.notes import parse_note, read_id
from obsidian_rag.relations import signals
from obsidian_rag.relations.ids import check_ids
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.relations.note_edit import add_relation
from obsidian_rag.relations.rows import FILE, Rows, discard
from obsidian_rag.relations.score import related, seed_scale, weights_of
from obsidian_rag.relations.signals import Signal, SourcePostings, note_source, text_source
from obsidian_rag.relations.words import Vocabulary, ngrams
from obsidian_rag.store import Database

A = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
B = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
C = "550e8400-e29b-41d4-a716-446655440000"
NOTES = {
    "Sedge.md": f"---\nid: {A}\nkind: knowledge\ntags: [water, plant]\nrelated: [{B}]\n"
    "summary: A grass of wet places\n---\n# Fox sedge\n\nSedges like water.\nSedge!\n",
    "Pond.md": f"---\nid: {B}\ntags: [water]\n---\n# Pond\n\nStill waters, sedges.\n",
    "Bread.md": f"---\nid: {C}\n---\n# Bread\n\nRye.\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> RelatedVault:
    return indexed(tmp_path, NOTES, SEED)


def stored(rows: Rows, path: str, columns: str) -> tuple[object, ...]:
    row = rows.database.row(f"SELECT {columns} FROM note WHERE path = ?", (path,))
    assert row is not None
    return row


def number(rows: Rows, term: str) -> int:
    vocabulary = Vocabulary()
    (found,) = rows.numbers_of(vocabulary, vocabulary.name(term)).tolist()
    return int(found)


# The indexes


def test_uuid_index_maps_an_id_to_path_title_type_tags_and_modification_time(
    vault: RelatedVault,
) -> None:
    with vault.rows() as rows:
        row = rows.database.row("SELECT path, title, kind, tags FROM note WHERE uid = ?", (A,))
        assert row is not None
        path, title, kind, tags = row
    with closing(Database(vault.home / "state.db")) as database:
        (modified,) = database.row(
            "SELECT mtime_ns FROM vault_file_manifest WHERE rel_path = ?", (path,)
        ) or (None,)
    assert (path, title, kind) == ("Sedge.md", "Fox sedge", "knowledge")
    assert json.loads(str(tags)) == ["water", "plant"]
    # A time of just now is not trusted yet; see `trusted_mtime`.
    assert modified in (0, (vault.root / "Sedge.md").stat().st_mtime_ns)


def test_term_index_maps_stemmed_terms_to_notes_with_frequency_and_positions(
    vault: RelatedVault,
) -> None:
    with vault.rows() as rows:
        sedge, water = number(rows, "sedges"), number(rows, "waters")
        one, terms, counts = stored(rows, "Sedge.md", "number, terms, counts")
        assert isinstance(terms, bytes)
        assert isinstance(counts, bytes)
        frequency = dict(
            zip(
                np.frombuffer(terms, np.int32).tolist(),
                np.frombuffer(counts, np.uint16).tolist(),
                strict=True,
            )
        )
        assert (frequency[sedge], frequency[water]) == (3, 1)
        places = rows.places([int(str(one))])[int(str(one))]
        assert places.lines[places.terms == sedge].tolist() == [8, 10, 11]
    with vault.loaded() as loaded:
        _, slots, _ = loaded.terms.among(np.array([sedge], dtype=np.int32))
        assert {loaded.cards[slot].path for slot in slots} == {"Sedge.md", "Pond.md"}


def test_ngram_index_matches_titles_and_summaries_by_groups_of_three_letters(
    vault: RelatedVault,
) -> None:
    with vault.rows() as rows:
        one = int(str(stored(rows, "Sedge.md", "number")[0]))
        title, summary = stored(rows, "Sedge.md", "title, summary")
        groups = set(ngrams(f"{title} {summary}", 3))
        assert {"fox", "sed", "dge", "gra", "wet"} <= groups
        assert {len(letters) for letters in groups} == {3}
        assert rows.alike(link_of(rows), "fox segde", 3, 1)[0][0] == one
        assert rows.alike(link_of(rows), "wet plces", 3, 1)[0][0] == one


def test_relation_graph_ties_notes_both_ways_by_the_related_field(vault: RelatedVault) -> None:
    with vault.loaded() as loaded:
        sedge, pond = slots(loaded)["Sedge.md"], slots(loaded)["Pond.md"]
        assert loaded.graph.outgoing == {sedge: frozenset({pond})}
        assert loaded.graph.neighbours(pond) == {sedge}
        assert loaded.graph.neighbours(sedge) == {pond}


def test_document_stats_have_word_count_unique_terms_and_vector_norm(vault: RelatedVault) -> None:
    with vault.loaded() as loaded:
        pond = slots(loaded)["Pond.md"]
        # pond, still, water, sedge: of three notes one, one, two and two have them.
        rare, common = log((3 - 1 + 0.5) / 1.5 + 1), log((3 - 2 + 0.5) / 2.5 + 1)
        assert loaded.words[pond] == 4
        assert loaded.unique[pond] == 4
        assert loaded.norms[pond] == pytest.approx((2 * rare**2 + 2 * common**2) ** 0.5)


# How scoring works, step by step


def test_scoring_step_1_tokenizes_without_markdown_and_stopwords_and_stems(
    vault: RelatedVault,
) -> None:
    markdown = "**The** [sedges](https://water.example) of `water`\n```\nrye\n```"
    with vault.loaded() as loaded:
        expected = [number(loaded.rows, "sedge"), number(loaded.rows, "water")]
        assert text_source(loaded, markdown).sequence.tolist() == expected


def raw(loaded: MemoryIndex, path: str) -> dict[Signal, dict[str, float]]:
    """The four signals of the seed for one note, not yet normalised."""
    source = note_source(loaded, slots(loaded)[path])
    postings = SourcePostings(loaded, source)
    found = {
        Signal.BM25: postings.bm25(is_damped=False),
        Signal.TAGS: signals.tags(loaded, source.tags),
        Signal.TERMS: postings.shared_terms(),
        Signal.GRAPH: signals.proximity(loaded, source),
    }
    return {
        signal: {path: float(values[slot]) for path, slot in slots(loaded).items()}
        for signal, values in found.items()
    }


def test_scoring_step_2_bm25_scores_all_notes_that_share_a_term(vault: RelatedVault) -> None:
    with vault.loaded() as loaded:
        found = raw(loaded, "Sedge.md")[Signal.BM25]
    assert found["Pond.md"] > 0
    assert found["Bread.md"] == 0


def test_scoring_step_3_jaccard_tags(vault: RelatedVault) -> None:
    with vault.loaded() as loaded:
        found = raw(loaded, "Sedge.md")[Signal.TAGS]
    assert found == {"Sedge.md": 1, "Pond.md": 0.5, "Bread.md": 0}


def test_scoring_step_4_term_overlap(vault: RelatedVault) -> None:
    with vault.loaded() as loaded:
        found = raw(loaded, "Sedge.md")[Signal.TERMS]
    # {fox, sedge, like, water} and {pond, still, water, sedge}.
    assert found["Pond.md"] == pytest.approx(2 / 6)


def test_scoring_step_5_graph_proximity_is_one_through_distance_plus_one(
    tmp_path: Path,
) -> None:
    ids = [f"00000000-0000-4000-8000-{at:012d}" for at in range(6)]
    notes = {
        f"{at}.md": f"---\nid: {ids[at]}\nrelated: [{ids[at + 1]}]\n---\n" for at in range(5)
    } | {"5.md": f"---\nid: {ids[5]}\n---\n"}
    with indexed(tmp_path, notes, SEED).loaded() as loaded:
        found = raw(loaded, "0.md")[Signal.GRAPH]
    assert found == pytest.approx(
        {"0.md": 0, "1.md": 1 / 2, "2.md": 1 / 3, "3.md": 1 / 4, "4.md": 0, "5.md": 0}
    )


def test_scoring_step_6_normalises_each_set_of_scores_by_its_least_and_most() -> None:
    assert seed_scale(np.array([0.0, 1.0, 3.0, 2.0])).tolist() == [0, 0, 1, 0.5]
    assert seed_scale(np.array([0.0, 2.0, 2.0])).tolist() == [0, 0.5, 0.5]


def test_scoring_step_7_combines_with_the_configured_weights(vault: RelatedVault) -> None:
    settings = SEED.model_copy(update={"bm25_weight": 0.1, "graph_weight": 0.6, "min_score": 0.0})
    with vault.loaded() as loaded:
        (found,) = related(loaded, note_source(loaded, slots(loaded)["Sedge.md"]), settings)
        expected = (
            0.1 * found.parts[Signal.BM25]
            + 0.2 * found.parts[Signal.TAGS]
            + 0.2 * found.parts[Signal.TERMS]
            + 0.6 * found.parts[Signal.GRAPH]
        )
        assert found.score == pytest.approx(expected)


def test_scoring_step_8_filters_below_the_threshold_and_returns_the_top_n(tmp_path: Path) -> None:
    words = [f"zuv{at}" for at in range(40)]
    notes = {f"{at:02}.md": " ".join(words[: at + 1]) for at in range(40)}
    vault = indexed(tmp_path, notes, SEED)
    every = vault.scores("39.md", SEED.model_copy(update={"min_score": 0.0, "max_results": 200}))
    assert min(every.values()) < 0.10
    found = vault.scores("39.md")
    assert list(found.items()) == list(every.items())[:20]
    strict = vault.scores("39.md", SEED.model_copy(update={"min_score": 0.4}))
    assert strict == {path: score for path, score in every.items() if score >= 0.4}
    assert 0 < len(strict) < 20


def test_bm25_formula_with_k1_one_and_a_half_and_b_three_quarters(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"q.md": "zuv", "d.md": "zuv zuv kof mip", "e.md": "tiq"}, SEED)
    with vault.loaded() as loaded:
        found = raw(loaded, "q.md")[Signal.BM25]
    idf = log((3 - 2 + 0.5) / (2 + 0.5) + 1)
    average = (1 + 4 + 1) / 3
    assert found["d.md"] == pytest.approx(
        idf * 2 * (1.5 + 1) / (2 + 1.5 * (1 - 0.75 + 0.75 * 4 / average))
    )
    assert found["e.md"] == 0


# Incremental updates


def test_event_create_a_new_note_is_indexed(vault: RelatedVault) -> None:
    vault.write({"New.md": "sedges by the water"})
    assert vault.update(["New.md"]).written == 1
    assert "New.md" in vault.scores("Sedge.md")


def test_event_modify_a_file_is_indexed_again(vault: RelatedVault) -> None:
    vault.write({"Bread.md": NOTES["Bread.md"] + "Sedges and water.\n"})
    assert vault.update(["Bread.md"]).written == 1
    assert "Bread.md" in vault.scores("Sedge.md", DEFAULT)


def test_event_modify_waits_for_half_a_second_of_quiet() -> None:
    assert RelationsSettings().debounce_ms == 500


def test_event_delete_removes_a_file_from_all_six_indexes_and_leaves_references_dangling(
    vault: RelatedVault,
) -> None:
    (vault.root / "Pond.md").unlink()
    vault.update(["Pond.md"])
    with vault.rows() as rows:
        one, uid, title, tags, words, terms, places = stored(
            rows, "Pond.md", "number, uid, title, tags, words, terms, places"
        )
        assert (uid, title, tags, words, terms, places) == (None, "", "[]", 0, b"", None)
        assert one not in dict(rows.alike(link_of(rows), "Pond", 3, 10))
    with vault.loaded() as loaded:
        assert loaded.graph.outgoing == {}
        assert loaded.graph.dangling() == [(slots(loaded)["Sedge.md"], B)]


def test_event_rename_updates_the_path_and_keeps_id_and_relations(vault: RelatedVault) -> None:
    (vault.root / "Pond.md").rename(vault.root / "Lake.md")
    vault.update(["Pond.md", "Lake.md"])
    with vault.loaded() as loaded:
        lake = slots(loaded)["Lake.md"]
        assert loaded.cards[lake].uid == B
        assert loaded.graph.outgoing[slots(loaded)["Sedge.md"]] == {lake}
        assert "Pond.md" not in slots(loaded)


# Settings


def test_setting_excluded_folders_are_skipped(tmp_path: Path) -> None:
    settings = SEED.model_copy(update={"excluded_folders": ("templates", "archive")})
    vault = indexed(
        tmp_path, {"a.md": "x", "templates/t.md": "x", "archive/old/b.md": "x"}, settings
    )
    with vault.rows() as rows:
        assert set(rows.contents(link_of(rows))) == {"a.md"}
    assert RelationsSettings().excluded_folders == ()


def test_setting_auto_add_uuids_is_off_and_writes_only_into_notes_that_lack_one(
    tmp_path: Path,
) -> None:
    assert RelationsSettings().auto_add_ids is False
    settings = SEED.model_copy(update={"auto_add_ids": True})
    vault = indexed(tmp_path, {"a.md": "text\n", "b.md": f"---\nuuid: {B}\n---\n"}, settings)
    assert (vault.root / "a.md").read_text().startswith("---\nid: ")
    assert (vault.root / "b.md").read_text() == f"---\nuuid: {B}\n---\n"


@pytest.mark.parametrize(
    ("is_rich", "written"),
    [(True, f'  - id: "{B}"\n    rel: "supports"\n    auto: false\n'), (False, f'  - "{B}"\n')],
)
def test_setting_rich_related_format_is_on_and_decides_how_relations_are_written(
    tmp_path: Path, is_rich: bool, written: str
) -> None:
    assert RelationsSettings().rich_format is True
    vault = indexed(tmp_path, {"a.md": "---\nrelated:\n---\n", "b.md": NOTES["Pond.md"]})
    add_relation(vault.vault(), "a.md", "b.md", rel="supports", auto=False, rich=is_rich)
    assert written in (vault.root / "a.md").read_text()


@pytest.mark.parametrize(
    ("setting", "signal", "default"),
    [
        ("bm25_weight", Signal.BM25, 0.40),
        ("tag_weight", Signal.TAGS, 0.20),
        ("term_weight", Signal.TERMS, 0.20),
        ("graph_weight", Signal.GRAPH, 0.20),
    ],
)
def test_setting_weight_of_a_signal(setting: str, signal: Signal, default: float) -> None:
    assert weights_of(SEED)[signal] == default
    assert weights_of(SEED.model_copy(update={setting: 0.7}))[signal] == 0.7


def test_setting_min_similarity_threshold_is_a_tenth(vault: RelatedVault) -> None:
    assert RelationsSettings().min_score == 0.10
    score = vault.scores("Sedge.md")["Pond.md"]
    assert vault.scores("Sedge.md", SEED.model_copy(update={"min_score": score + 0.001})) == {}


def test_setting_max_related_notes_is_twenty(tmp_path: Path) -> None:
    assert RelationsSettings().max_results == 20
    vault = indexed(tmp_path, {f"{at}.md": f"zuv kof word{at}" for at in range(30)}, DEFAULT)
    assert len(vault.scores("3.md")) == 20
    assert len(vault.scores("3.md", DEFAULT.model_copy(update={"max_results": 5}))) == 5


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_setting_ngram_size_is_three_and_may_be_two_to_five(tmp_path: Path, size: int) -> None:
    assert RelationsSettings().ngram_size == 3
    vault = indexed(tmp_path, NOTES, SEED.model_copy(update={"ngram_size": size}))
    with vault.rows() as rows:
        assert {len(group) for group in ngrams("Fox sedgw", size)} == {size}
        assert rows.alike(link_of(rows), "Fox sedgw", size, 1) != []


def test_setting_store_term_positions_is_on_and_may_be_off(tmp_path: Path) -> None:
    assert RelationsSettings().store_positions is True
    vault = indexed(tmp_path, NOTES, SEED.model_copy(update={"store_positions": False}))
    with vault.rows() as rows:
        assert rows.database.rows("SELECT number FROM note WHERE places IS NOT NULL") == []
    assert "Pond.md" in vault.scores("Sedge.md")


# Errors


def test_error_notes_without_a_uuid_are_told_and_related_all_the_same(tmp_path: Path) -> None:
    """The seed leaves them out; here they are known by their path."""
    notes = {"a.md": "sedge water", "b.md": "sedge water", "c.md": "rye"}
    vault = indexed(tmp_path, notes, DEFAULT)
    assert list(vault.scores("a.md")) == ["b.md"]
    found = ((path, read_id(parse_note(path, text).frontmatter)) for path, text in notes.items())
    assert check_ids(found).missing == ("a.md", "b.md", "c.md")


def test_error_duplicate_uuids_are_flagged_and_the_first_is_kept(tmp_path: Path) -> None:
    notes = {
        "b.md": f"---\nid: {A}\n---\n",
        "a.md": f"---\nid: {A}\n---\n",
        "c.md": f"---\nrelated: [{A}]\n---\n",
    }
    with indexed(tmp_path, notes, SEED).loaded() as loaded:
        assert loaded.graph.outgoing == {slots(loaded)["c.md"]: frozenset({slots(loaded)["a.md"]})}
    found = ((path, read_id(parse_note(path, text).frontmatter)) for path, text in notes.items())
    (duplicate,) = check_ids(found).duplicates
    assert (duplicate.kept, duplicate.others) == ("a.md", ("b.md",))


def test_error_empty_notes_have_a_length_of_zero_and_divide_nothing(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"a.md": "", "b.md": "", "c.md": "sedge"}, SEED)
    with vault.rows() as rows:
        assert stored(rows, "a.md", "words") == (0,)
    for path in ("a.md", "c.md"):
        assert vault.scores(path) == {}


def test_error_very_long_notes_are_read_whole_or_up_to_a_limit(tmp_path: Path) -> None:
    """The seed's limit of 50,000 characters is a setting here, and off by default."""
    assert RelationsSettings().max_chars is None
    long = {"a.md": "herons x " * 20_000}
    limited = indexed(tmp_path / "a", long, SEED.model_copy(update={"max_chars": 50_000}))
    whole = indexed(tmp_path / "b", long, SEED)
    with limited.rows() as rows:
        assert stored(rows, "a.md", "words") == (50_000 // 9 + 1,)
    with whole.rows() as rows:
        assert stored(rows, "a.md", "words") == (20_000,)


def test_error_dangling_references_are_told_and_harm_nothing(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"a.md": f"---\nrelated: [{A}]\n---\nsedge", "b.md": "sedge"})
    with vault.loaded() as loaded:
        assert loaded.graph.dangling() == [(slots(loaded)["a.md"], A)]
        assert list(scores(loaded, "a.md", DEFAULT)) == ["b.md"]


def test_error_corrupted_indexes_are_rebuilt_from_scratch(vault: RelatedVault) -> None:
    expected = vault.scores("Sedge.md")
    (vault.home / FILE).write_bytes(b"not an index" * 500)
    assert vault.update().written == 3
    assert vault.scores("Sedge.md") == expected
    size = (vault.home / FILE).stat().st_size
    (vault.home / FILE).write_bytes((vault.home / FILE).read_bytes()[:8192] + b"\xff" * size)
    with pytest.raises(IndexCorrupted), vault.loaded():
        pass
    discard(vault.home)
    assert vault.update().written == 3
    assert vault.scores("Sedge.md") == expected


def test_error_circular_relations_end(tmp_path: Path) -> None:
    notes = {
        "a.md": f"---\nid: {A}\nrelated: [{B}]\n---\n",
        "b.md": f"---\nid: {B}\nrelated: [{C}, {B}]\n---\n",
        "c.md": f"---\nid: {C}\nrelated: [{A}]\n---\n",
    }
    with indexed(tmp_path, notes, SEED).loaded() as loaded:
        found = raw(loaded, "a.md")[Signal.GRAPH]
        assert len(loaded.graph.cycles()) == 2
    assert found == {"a.md": 0, "b.md": 0.5, "c.md": 0.5}


# The promises around the tables


def test_a_vault_with_the_word_constructor_is_scored_like_any_other(tmp_path: Path) -> None:
    """The original cannot index it."""
    texts = {
        "a.md": "constructor proto valueof",
        "b.md": "constructor constructor hasown",
        "c.md": "valueof proto isprototypeof",
    }
    vocabulary = Vocabulary()
    notes = {
        path: SeedNote(tuple(vocabulary.terms[term] for term in vocabulary.name(text)), frozenset())
        for path, text in texts.items()
    }
    vault = indexed(tmp_path, texts, SEED)
    for path in texts:
        assert vault.scores(path) == pytest.approx(dict(seed_related(notes, path)))


def test_persistent_indexes_are_loaded_and_not_made_again(vault: RelatedVault) -> None:
    expected = vault.scores("Sedge.md")
    done = vault.update()
    assert (done.written, done.unchanged) == (0, 3)
    assert vault.scores("Sedge.md") == expected


def test_incremental_indexing_reads_only_notes_that_changed(vault: RelatedVault) -> None:
    vault.write({"Pond.md": NOTES["Pond.md"] + "Deep.\n"})
    done = vault.update()
    assert (done.written, done.unchanged) == (1, 2)
