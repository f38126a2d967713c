"""Related notes through the door of agents: explained, guarded, bounded, and written on request."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.fixture_types import MakeEngine, MakeVault

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.notes import Relation, parse_note, read_related
from obsidian_rag.tools import OWNER, call
from obsidian_rag.tools.dispatch import parse
from obsidian_rag.tools.related import RelatedParams, SuggestParams, related, suggest

RELATED, SUGGEST, ADD = (
    "obsidian_rag_related",
    "obsidian_rag_suggest_relations",
    "obsidian_rag_add_relation",
)
ID = "550e8400-e29b-41d4-a716-446655440000"
WITHHOLD = {"security.sensitive_policy": "withhold"}
NOTES: dict[str, str | bytes] = {
    "Pond.md": f"---\nid: {ID}\ntags: [water]\n---\n# Pond\n\nfox sedge and marsh marigold\n",
    "Garden/Rain.md": "---\ntags: [water]\n---\n# Rain garden\n\nfox sedge by the [[Pond]]\n",
    "Bog.md": "# Bog\n\nmarsh marigold, fox sedge\n",
    "Diary.md": "---\nrag: private\n---\n# Diary\n\nzephyr by the fox sedge, marsh marigold\n",
    "Never.md": "---\nrag: false\n---\n# Never\n\nfox sedge, marsh marigold, zephyr\n",
    "Health.md": "#mentalhealth\n\nanxious about the marsh marigold\n",
    "Mixed.md": "# Mixed\n\n## Plants\n\nfox sedge and marsh marigold\n\n"
    + "filler text here. " * 200
    + "\n\n## Mental health\n\nso anxious today\n",
    "Worry.md": "# Worry\n\nanxious, fox sedge\n",
    "Bread.md": "# Bread\n\nrye\n",
    # Enough others that the words above are rare.
    **{f"Others/{number}.md": f"# Other {number}\n\nword{number}\n" for number in range(40)},
}


@pytest.fixture
def made(engine: MakeEngine, make_vault: MakeVault) -> Engine:
    one = engine(make_vault(NOTES))
    run_index(one, Mode.FULL)
    return one


@pytest.fixture
def careful(engine: MakeEngine, make_vault: MakeVault) -> Engine:
    """An engine that withholds sensitive passages."""
    one = engine(make_vault(NOTES), WITHHOLD)
    run_index(one, Mode.FULL)
    return one


def use(engine: Engine, tool: str, arguments: dict[str, object]) -> Any:
    return call(engine, tool, arguments)


def ask(engine: Engine, note: str, **arguments: object) -> Any:
    return use(engine, RELATED, {"note": note, **arguments})


def own(engine: Engine, note: str) -> Any:
    return related(engine, parse(RelatedParams, {"note": note}), OWNER)


def results(envelope: Any) -> dict[str, Any]:
    return {result["source_file"]: result for result in envelope["data"]["results"]}


def test_a_result_has_everything_needed_to_cite_and_explain_it(made: Engine) -> None:
    envelope = ask(made, "Pond", max_results=3, hide_linked=False)
    data = envelope["data"]
    result = results(envelope)["Garden/Rain.md"]
    assert result == {
        "source_file": "Garden/Rain.md",
        "link_id": made.vaults.one().link_id,
        "vault": "vault",
        "vault_label": "Primary vault",
        "title": "Rain garden",
        "id": None,
        "kind": "",
        "tags": ["water"],
        "score": result["score"],
        "signals": result["signals"],
        "reasons": result["reasons"],
        "shared_tags": ["water"],
        "shared_terms": result["shared_terms"],
        "path": ["Pond", "Rain garden"],
        "linked": False,
        "passages": result["passages"],
        "link": "obsidian://open?vault=vault&file=Garden%2FRain",
        "sensitive_categories": [],
        "withheld": False,
    }
    assert {"same tags: #water", "linked directly"} <= set(result["reasons"])
    assert "sedge" in result["shared_terms"]
    assert [passage["source_file"] for passage in result["passages"]] == [
        "Pond.md",
        "Garden/Rain.md",
    ]
    assert sum(signal["share"] for signal in result["signals"].values()) == pytest.approx(
        1, abs=0.001
    )
    assert 0 < result["score"] <= 1
    assert (data["note"], data["untrusted"], data["compared"]) == ("Pond.md", True, 47)


def test_answers_are_in_order_and_no_more_than_wanted(made: Engine) -> None:
    data = ask(made, "Pond", max_results=2)["data"]
    scores = [result["score"] for result in data["results"]]
    assert len(scores) == 2
    assert scores == sorted(scores, reverse=True)


def test_a_note_that_says_rag_false_is_neither_found_nor_asked(made: Engine) -> None:
    assert "Never.md" not in results(ask(made, "Pond", max_results=50))
    assert ask(made, "Never")["error"]["code"] == "NOT_FOUND"


def test_agents_are_not_told_of_private_notes(made: Engine) -> None:
    envelope = ask(made, "Pond", max_results=50)
    assert "Diary.md" not in results(envelope)
    assert (envelope["status"], envelope["error"]) == ("healthy", None)
    assert "Diary.md" in results(ask(made, "Pond", max_results=50, confirm_sensitive=True))


def test_nothing_is_told_of_what_ties_others_to_a_private_note(made: Engine) -> None:
    """A word that two notes share is a word of each of them."""
    envelope = ask(made, "Diary.md", max_results=50)
    assert (envelope["data"], envelope["error"]["code"]) == (None, "SENSITIVE_FILTERED")
    assert "marigold" not in json.dumps(envelope)


def test_private_notes_are_shown_to_their_owner_and_after_confirmation(made: Engine) -> None:
    for envelope in (
        own(made, "Pond"),
        ask(made, "Pond", confirm_sensitive=True),
        own(made, "Diary"),
        ask(made, "Diary", confirm_sensitive=True),
    ):
        assert (envelope["status"], envelope["error"]) == ("healthy", None)
        result = results(envelope)["Bog.md" if "Bog.md" in results(envelope) else "Diary.md"]
        assert result["withheld"] is False
        assert {"sedge", "marigold"} & set(result["shared_terms"])
        assert all(passage["text"] for passage in result["passages"])


def test_a_note_made_private_since_is_no_longer_related_for_agents(made: Engine) -> None:
    """The notes are loaded by then, and follow what changes."""
    assert "Bog.md" in results(ask(made, "Pond", max_results=50))
    bog = made.config.vault_root / "Bog.md"
    text = bog.read_text()
    bog.write_text(f"---\nrag: private\n---\n{text}")
    run_index(made, Mode.SYNC)
    assert "Bog.md" not in results(ask(made, "Pond", max_results=50))
    assert "Bog.md" in results(ask(made, "Pond", max_results=50, confirm_sensitive=True))
    bog.write_text(text)
    run_index(made, Mode.SYNC)
    assert "Bog.md" in results(ask(made, "Pond", max_results=50))


def test_sensitive_passages_are_marked_by_default(made: Engine) -> None:
    result = results(ask(made, "Pond", max_results=50))["Health.md"]
    assert result["sensitive_categories"] == ["health"]
    assert (result["withheld"], "marigold" in result["shared_terms"]) == (False, True)


def test_sensitive_passages_are_withheld_if_the_user_wants_that(careful: Engine) -> None:
    envelope = ask(careful, "Pond", max_results=50)
    result = results(envelope)["Health.md"]
    assert (result["withheld"], result["shared_terms"]) == (True, [])
    assert "anxious" not in json.dumps(result)
    shown = results(ask(careful, "Pond", max_results=50, confirm_sensitive=True))["Health.md"]
    assert (shown["withheld"], "marigold" in shown["shared_terms"]) == (False, True)


def test_words_of_a_sensitive_passage_elsewhere_in_the_note_are_not_told(careful: Engine) -> None:
    result = results(ask(careful, "Worry", max_results=50))["Mixed.md"]
    assert result["shared_terms"] == []
    assert not any(reason.startswith("rare words") for reason in result["reasons"])
    assert "anxious" in results(own(careful, "Worry"))["Mixed.md"]["shared_terms"]


def test_words_are_not_told_of_notes_whose_text_is_unknown(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault(NOTES), WITHHOLD | {"relations.store_positions": False})
    run_index(made, Mode.FULL)
    result = results(ask(made, "Pond", max_results=50))["Bog.md"]
    assert (result["passages"], result["shared_terms"]) == ([], [])
    assert results(own(made, "Pond"))["Bog.md"]["shared_terms"] != []


def test_harmless_words_are_told_also_where_sensitive_passages_are_withheld(
    careful: Engine,
) -> None:
    result = results(ask(careful, "Pond", max_results=50))["Bog.md"]
    assert (result["withheld"], "marigold" in result["shared_terms"]) == (False, True)


def test_a_text_is_asked_instead_of_a_note(made: Engine) -> None:
    envelope = use(made, RELATED, {"text": "marsh marigold", "max_results": 3})
    assert envelope["data"]["note"] is None
    assert "Bog.md" in results(envelope)


def test_tags_are_preferred(made: Engine) -> None:
    plain = results(use(made, RELATED, {"text": "fox sedge"}))
    tagged = results(use(made, RELATED, {"text": "fox sedge", "tags": ["#water"]}))
    assert tagged["Pond.md"]["signals"]["tags"]["score"] > 0
    assert plain["Pond.md"]["signals"]["tags"]["score"] == 0
    assert tagged["Pond.md"]["shared_tags"] == ["water"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"note": "Pond", "text": "sedge"},
        {"text": " "},
        {"text": ""},
        {"note": ""},
        {"note": "Pond", "max_results": 0},
        {"note": "Pond", "max_results": 201},
        {"note": "Pond", "tags": [""]},
        {"note": "Pond", "unknown": 1},
        {"text": "the of and"},
    ],
)
def test_wrong_arguments_are_refused(made: Engine, arguments: dict[str, object]) -> None:
    assert use(made, RELATED, arguments)["error"]["code"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("note", "code"),
    [("Nowhere", "NOT_FOUND"), ("../outside", "SECURITY_VIOLATION"), ("/etc/passwd", None)],
)
def test_only_notes_of_the_vault_can_be_asked_about(
    made: Engine, note: str, code: str | None
) -> None:
    error = ask(made, note)["error"]
    assert error["code"] == code or error["code"] in ("NOT_FOUND", "SECURITY_VIOLATION")


def test_before_the_first_index_there_is_nothing_to_ask(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    assert ask(engine(make_vault(NOTES)), "Pond")["error"]["code"] == "INDEX_NOT_FOUND"


def test_suggestions_are_what_the_note_does_not_name_yet(made: Engine) -> None:
    found = results(use(made, SUGGEST, {"note": "Garden/Rain.md", "max_results": 50}))
    assert "Pond.md" not in found
    assert "Bog.md" in found


def test_suggestions_hide_what_is_linked_whatever_the_setting_says(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault(NOTES), {"relations.hide_linked": False})
    run_index(made, Mode.FULL)
    assert "Pond.md" in results(ask(made, "Garden/Rain.md"))
    assert "Pond.md" not in results(use(made, SUGGEST, {"note": "Garden/Rain.md"}))


def test_suggestions_are_guarded_too(made: Engine) -> None:
    envelope = use(made, SUGGEST, {"note": "Pond", "max_results": 50})
    assert "Diary.md" not in results(envelope)
    owner = suggest(made, parse(SuggestParams, {"note": "Pond", "max_results": 50}), OWNER)
    assert results(owner)["Diary.md"]["withheld"] is False


def relations(engine: Engine, path: str) -> tuple[Relation, ...]:
    text = (engine.config.vault_root / path).read_text()
    return read_related(parse_note(path, text).frontmatter)


def test_a_relation_is_written_and_counts_at_once(made: Engine) -> None:
    envelope = use(made, ADD, {"note": "Bog", "target": "Pond", "rel": "supports"})
    assert envelope["data"] == {
        "source": "Bog.md",
        "target": "Pond.md",
        "id": ID,
        "rel": "supports",
        "written": True,
        "id_added": False,
        "link_id": made.vaults.one().link_id,
        "vault": "vault",
        "vault_label": "Primary vault",
    }
    assert relations(made, "Bog.md") == (Relation(ID, "supports", False),)
    shown = results(ask(made, "Bog", hide_linked=False))["Pond.md"]
    assert (shown["linked"], "linked directly" in shown["reasons"]) == (True, True)
    assert "Pond.md" not in results(use(made, SUGGEST, {"note": "Bog"}))
    again = use(made, ADD, {"note": "Bog", "target": "Pond"})["data"]
    assert (again["written"], len(relations(made, "Bog.md"))) == (False, 1)


def test_relations_are_written_in_the_configured_form(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault(NOTES), {"relations.rich_format": False})
    run_index(made, Mode.FULL)
    use(made, ADD, {"note": "Bog", "target": "Pond"})
    assert "rel:" not in (made.config.vault_root / "Bog.md").read_text()
    assert relations(made, "Bog.md") == (Relation(ID),)


def test_a_target_without_an_id_is_refused_unless_it_may_get_one(made: Engine) -> None:
    refused = use(made, ADD, {"note": "Bog", "target": "Bread"})
    assert refused["error"]["code"] == "INVALID_ARGUMENT"
    assert (made.config.vault_root / "Bread.md").read_text() == NOTES["Bread.md"]
    written = use(made, ADD, {"note": "Bog", "target": "Bread", "add_missing_id": True})["data"]
    assert written["id_added"] is True
    assert (made.config.vault_root / "Bread.md").read_text().startswith("---\nid: ")


def test_an_agent_cannot_relate_a_note_that_says_rag_false(made: Engine) -> None:
    envelope = use(made, ADD, {"note": "Never", "target": "Pond"})
    assert envelope["error"]["code"] == "NOT_FOUND"
    assert (made.config.vault_root / "Never.md").read_text() == NOTES["Never.md"]


def test_a_relation_that_is_written_is_told_though_the_indexes_are_damaged(
    made: Engine, home: Path
) -> None:
    made.close()
    (home / "relations.db").write_bytes(b"no database" * 1000)
    envelope = use(made, ADD, {"note": "Bog", "target": "Pond"})
    assert (envelope["error"], envelope["data"]["written"]) == (None, True)
    assert results(ask(made, "Bog", hide_linked=False))["Pond.md"]["linked"] is True


def test_a_relation_can_be_written_before_the_first_index(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault(NOTES))
    assert use(made, ADD, {"note": "Bog", "target": "Pond"})["data"]["written"] is True
