"""Held-out links: one of the author's own links is taken away, and must be found again."""

from pathlib import Path

import pytest
from tests.relations.related_vault import DEFAULT, SEED, RelatedVault, indexed, link_of

from obsidian_rag.config import RelationsSettings
from obsidian_rag.relations.heldout import HITS_AT, LinksFound, evaluate_links
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.vault import Vault

NOTES = {
    "a.md": "zuv kof mip, see [[b]]",
    "b.md": "zuv kof mip",
    "c.md": "tiq bax",
    "d.md": "tiq wob, see [[c|the other]] and [[a]]",
    "e.md": "dul [[nowhere]] [x](https://b.example)",
}


def measured(
    vault: RelatedVault, settings: RelationsSettings = DEFAULT, limit: int = 100
) -> LinksFound:
    with vault.loaded(settings) as loaded:
        vault.settings = settings
        return evaluate_links(loaded, vault.settings, known(loaded, vault), limit=limit)


def known(loaded: MemoryIndex, vault: RelatedVault) -> dict[str, Vault]:
    link_id = link_of(loaded.rows)
    return {link_id: vault.vault(link_id)}


def test_links_are_counted_by_notes_and_links(tmp_path: Path) -> None:
    found = measured(indexed(tmp_path, NOTES))
    assert (found.notes, found.links) == (2, 3)
    assert tuple(found.hits) == HITS_AT == (1, 5, 10, 20)


def test_a_target_that_shares_rare_words_is_found_again(tmp_path: Path) -> None:
    found = measured(indexed(tmp_path, {"a.md": NOTES["a.md"], "b.md": NOTES["b.md"], "c.md": "x"}))
    assert (found.hits[1], found.mrr) == (1.0, 1.0)


def test_the_link_itself_and_its_words_do_not_help(tmp_path: Path) -> None:
    """Without them nothing ties the notes, and nothing may be found."""
    notes = {
        "a.md": "tiq [[zuv kof|the zuv kof]] bax",
        "zuv kof.md": "mip",
        "c.md": "tiq bax",
    }
    found = measured(indexed(tmp_path, notes))
    assert (found.links, found.hits[20], found.mrr) == (1, 0.0, 0.0)


@pytest.mark.parametrize(
    "link",
    [
        "[[zuv kof]]",
        "![[zuv kof#part]]",
        "[[zuv kof.md|shown]]",
        "[shown](zuv%20kof.md)",
        "[shown](<zuv kof.md>)",
    ],
)
def test_every_way_to_write_a_link_is_taken_away(tmp_path: Path, link: str) -> None:
    vault = indexed(tmp_path, {"a.md": f"tiq {link} bax", "zuv kof.md": "mip", "c.md": "tiq"})
    found = measured(vault)
    assert (found.links, found.hits[20]) == (1, 0.0)


def test_a_second_tie_between_the_notes_is_not_hidden(tmp_path: Path) -> None:
    vault = indexed(tmp_path, {"a.md": "[[b]]", "b.md": "mip [[a]]", "c.md": "tiq"})
    assert measured(vault).hits[1] == 1.0


def test_relations_are_not_links(tmp_path: Path) -> None:
    uid = "550e8400-e29b-41d4-a716-446655440000"
    notes = {"a.md": f"---\nrelated: [{uid}]\n---\n", "b.md": f"---\nid: {uid}\n---\n"}
    assert measured(indexed(tmp_path, notes)).links == 0


def test_the_limit_takes_every_note_in_its_turn_and_the_same_each_time(tmp_path: Path) -> None:
    notes = {f"{name}.md": "[[x]] [[y]] [[z]]" for name in "abcd"} | {
        f"{name}.md": name for name in "xyz"
    }
    vault = indexed(tmp_path, notes)
    few = measured(vault, limit=4)
    assert (few.notes, few.links) == (4, 4)
    assert measured(vault, limit=4) == few
    assert measured(vault, limit=5).notes == 4
    assert measured(vault).links == 12


def test_a_vault_without_links_finds_nothing(tmp_path: Path) -> None:
    found = measured(indexed(tmp_path, {"a.md": "x"}))
    assert found == LinksFound(0, 0, {1: 0.0, 5: 0.0, 10: 0.0, 20: 0.0}, 0.0)


def test_the_seeds_profile_is_asked_for_the_same_links(tmp_path: Path) -> None:
    """Its graph has relations only, but the authors' links are what is to be found."""
    vault = indexed(tmp_path, NOTES)
    assert measured(vault, SEED).links == 3


def test_progress_is_told(tmp_path: Path) -> None:
    vault = indexed(tmp_path, NOTES)
    told: list[tuple[int, int]] = []
    with vault.loaded() as loaded:
        evaluate_links(
            loaded,
            vault.settings,
            known(loaded, vault),
            limit=9,
            listener=lambda done, total: told.append((done, total)),
        )
    assert told == [(1, 3), (2, 3), (3, 3)]
