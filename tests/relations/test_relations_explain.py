"""Why two notes belong together, in shares and in words."""

from pathlib import Path

import pytest
from tests.relations.related_vault import DEFAULT, SEED, RelatedVault, indexed, slots

from obsidian_rag.config import RelationsSettings
from obsidian_rag.relations.explain import Explained, explain
from obsidian_rag.relations.score import related, weights_of
from obsidian_rag.relations.signals import note_source, text_source

SHOWN = DEFAULT.model_copy(update={"hide_linked": False, "min_score": 0.0})
# Words of every note are common; a few notes have rare ones.
COMMON = {f"filler {number}.md": f"water word{number}\n" for number in range(20)}


def explained(
    vault: RelatedVault, path: str, settings: RelationsSettings = SHOWN
) -> dict[str, Explained]:
    with vault.loaded(settings) as loaded:
        source = note_source(loaded, slots(loaded)[path])
        found = related(loaded, source, settings, limit=50)
        return {one.card.path: one for one in explain(loaded, source, found, weights_of(settings))}


def test_the_shares_of_the_signals_sum_to_one(tmp_path: Path) -> None:
    notes = {"a.md": "#x zuv kof [[b]]", "b.md": "#x zuv kof", "c.md": "zuv"}
    for settings in (SHOWN, SEED.model_copy(update={"min_score": 0.0})):
        for one in explained(indexed(tmp_path, notes, settings), "a.md", settings).values():
            assert sum(one.shares.values()) == pytest.approx(1)
            assert set(one.shares) == set(one.parts) == set(weights_of(settings))


def test_shared_tags_are_named_as_the_found_note_orders_them(tmp_path: Path) -> None:
    notes = {
        "a.md": "---\ntags: [Water, garden, x]\n---\n",
        "b.md": "---\ntags: [garden, water, y]\n---\n",
    }
    found = explained(indexed(tmp_path, notes), "a.md")["b.md"]
    assert found.shared_tags == ("garden", "water")
    assert found.reasons == ("same tags: #garden, #water",)


def test_rare_words_in_common_are_told_the_rarest_first_and_as_they_are_written(
    tmp_path: Path,
) -> None:
    notes = COMMON | {
        "a.md": "water gardening zuv\n",
        "b.md": "water gardens zuv\n",
        "c.md": "gardener\n",
    }
    found = explained(indexed(tmp_path, notes), "a.md")["b.md"]
    first, second = found.shared_terms
    assert (first, second[:6]) == ("zuv", "garden")
    assert second in ("gardening", "gardens", "gardener")
    assert f"rare words in common: zuv, {second}" in found.reasons


def test_no_more_than_five_words_are_told(tmp_path: Path) -> None:
    words = "zuv kof mip tiq bax wob dul"
    found = explained(indexed(tmp_path, {"a.md": words, "b.md": words}), "a.md")["b.md"]
    assert len(found.shared_terms) == 5


def test_notes_that_share_only_common_words_say_so(tmp_path: Path) -> None:
    notes = COMMON | {"a.md": "water\n", "b.md": "water\n"}
    settings = SHOWN.model_copy(update={"discount_boilerplate": False, "vector_weight": 0.0})
    found = explained(indexed(tmp_path, notes, settings), "a.md", settings)["b.md"]
    assert (found.shared_terms, found.reasons) == ((), ("words in common",))


@pytest.mark.parametrize(
    ("target", "titles", "reason"),
    [
        ("b.md", ["a", "b"], "linked directly"),
        ("c.md", ["a", "b", "c"], "linked via b"),
        ("d.md", ["a", "b", "c", "d"], "linked via b and c"),
    ],
)
def test_the_way_through_the_graph_is_told(
    tmp_path: Path, target: str, titles: list[str], reason: str
) -> None:
    notes = {"a.md": "[[b]]", "b.md": "[[c]]", "c.md": "[[d]]", "d.md": "[[e]]", "e.md": ""}
    found = explained(indexed(tmp_path, notes), "a.md")
    assert [card.title for card in found[target].path] == titles
    assert reason in found[target].reasons
    assert found[target].is_linked is (target == "b.md")
    assert "e.md" not in found


def test_common_neighbours_a_name_and_a_meaning_are_reasons(tmp_path: Path) -> None:
    notes = {
        "a.md": "the Zuv Kof [[hub]]",
        "Zuv Kof.md": "[[hub]] [[a]]",
        "hub.md": "",
    }
    found = explained(indexed(tmp_path, notes), "a.md")
    assert "linked to the same notes" in found["Zuv Kof.md"].reasons
    assert "one mentions the other" in found["Zuv Kof.md"].reasons
    assert "similar in meaning" not in found["Zuv Kof.md"].reasons


def test_the_lines_are_where_the_shared_words_stand_closest(tmp_path: Path) -> None:
    notes = {
        "a.md": "---\ntags: [x]\n---\nzuv\n\n\n\n\nkof and mip\nzuv\n",
        "b.md": "kof\n\n\n\n\nplain\nzuv kof mip\nplain\n",
    }
    found = explained(indexed(tmp_path, notes), "a.md")["b.md"]
    assert found.source_line is not None
    assert found.line is not None
    assert 8 <= found.source_line <= 10
    assert 6 <= found.line <= 8


def test_without_places_there_are_words_but_no_lines(tmp_path: Path) -> None:
    settings = SHOWN.model_copy(update={"store_positions": False})
    vault = indexed(tmp_path, {"a.md": "zuv kof", "b.md": "zuv kof"}, settings)
    found = explained(vault, "a.md", settings)["b.md"]
    assert set(found.shared_terms) == {"zuv", "kof"}
    assert (found.source_line, found.line) == (None, None)


def test_a_text_has_no_way_and_no_line_of_its_own(tmp_path: Path) -> None:
    with indexed(tmp_path, {"b.md": "plain\nzuv kof"}).loaded() as loaded:
        source = text_source(loaded, "zuv kof")
        found = related(loaded, source, SHOWN)
        (one,) = explain(loaded, source, found, weights_of(SHOWN))
    assert (one.path, one.is_linked, one.source_line, one.line) == ((), False, None, 2)


def test_rows_that_are_newer_than_what_is_loaded_do_no_harm(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"a.md": "zuv kof", "b.md": "zuv kof"}, SHOWN)
    with vault.loaded() as loaded:
        source = note_source(loaded, slots(loaded)["a.md"])
        found = related(loaded, source, SHOWN)
        vault.write({"b.md": "zuv entirely different words", "a.md": "other ones too"})
        vault.update()
        (one,) = explain(loaded, source, found, weights_of(SHOWN))
    assert one.shared_terms == ("zuv",)
