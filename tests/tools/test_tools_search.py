"""Search through the door of agents: cited, explained, guarded, bounded."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fixture_types import MakeEngine, MakeVault
from tests.search.indexed import indexed

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.tools import OWNER, TOOLS, call
from obsidian_rag.tools.dispatch import parse, schemas
from obsidian_rag.tools.search import SearchParams, search

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "vault"
TOOL = "obsidian_rag_search"
WITHHOLD = {"security.sensitive_policy": "withhold"}
NOTES: dict[str, str | bytes] = {
    "Projects/Rain garden.md": "---\ntags: [project/garden]\nrating: 5\n---\n# Rain garden\n\n"
    "## Plants & soil\n\nBlue flag and sedge drink water.\n",
    "Journal/2024-03-10.md": "#mentalhealth\n\nSlept badly, anxious about work.\n",
    "Private/Diary.md": "---\nrag: private\n---\n# Diary\n\nzephyr thoughts, I owe Bo.\n",
    "Lists/Costco.md": "# Costco\n\nGrocery: rice and a bag of lentils.\n",
    "Long.md": "# Long\n\n" + "The heron waits. " * 900,
}


@pytest.fixture
def made(engine: MakeEngine, make_vault: MakeVault) -> Engine:
    one = engine(make_vault(NOTES))
    run_index(one, Mode.FULL)
    return one


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = indexed(tmp_path_factory.mktemp("sample"), SAMPLES, embedding__provider="builtin")
    yield engine
    engine.close()


def ask(engine: Engine, query: str, **arguments: object) -> Any:
    return call(engine, TOOL, {"query": query, **arguments})


def own(engine: Engine, query: str, **arguments: object) -> Any:
    params = parse(SearchParams, {"query": query, **arguments})
    return search(engine, params, OWNER)


def test_the_question_of_the_design_is_answered(sample: Engine) -> None:
    envelope = ask(sample, "how much do I owe Sreenivas?")
    assert (envelope["status"], envelope["error"]) == ("healthy", None)
    data = envelope["data"]
    first = data["results"][0]
    assert first["source_file"] == "Finance/Debts.md"
    assert "financial" in first["sensitive_categories"]
    assert data["sensitive_detected"] is True
    lines = (SAMPLES / "Finance/Debts.md").read_text(encoding="utf-8").split("\n")
    cited = "\n".join(lines[first["start_line"] - 1 : first["end_line"]])
    assert "Sreenivas" in cited
    assert 1 <= first["start_line"] <= first["end_line"] <= len(lines)
    assert first["link"] == "obsidian://open?vault=vault&file=Finance%2FDebts"
    assert {"owe", "sreenivas"} & set(first["why"]["terms"])
    suggestion = data["memory_suggestion"]
    assert set(suggestion) == {"key", "value", "source"}
    assert suggestion["source"] == "Finance/Debts.md"
    assert suggestion["value"]


def test_every_sample_question_finds_its_note_on_the_first_page(sample: Engine) -> None:
    questions = json.loads((SAMPLES.parent / "questions.json").read_text(encoding="utf-8"))
    missed = [
        item["query"]
        for item in questions
        if not set(item["relevant"])
        & {r["source_file"] for r in own(sample, item["query"])["data"]["results"]}
    ]
    assert missed == []


def test_a_hit_has_everything_needed_to_cite_and_explain_it(made: Engine) -> None:
    envelope = ask(made, "sedge", max_results=1)
    (result,) = envelope["data"]["results"]
    assert result == {
        "chunk_text": result["chunk_text"],
        "score": result["score"],
        "source_file": "Projects/Rain garden.md",
        "link_id": made.vaults.one().link_id,
        "vault": "vault",
        "vault_label": "Primary vault",
        "section": result["section"],
        "date": None,
        "tags": ["#project/garden"],
        "chunk_index": result["chunk_index"],
        "title": "Rain garden",
        "heading_path": result["heading_path"],
        "start_line": result["start_line"],
        "end_line": 9,
        "link": "obsidian://open?vault=vault&file=Projects%2FRain%20garden",
        "why": {"signals": result["why"]["signals"], "terms": ["sedge"]},
        "sensitive_categories": [],
        "withheld": False,
    }
    assert "sedge drink" in result["chunk_text"]
    assert result["heading_path"][0] == "Rain garden"
    assert sum(result["why"]["signals"].values()) == pytest.approx(result["score"], abs=0.001)
    assert 0 < result["score"] <= 1
    assert envelope["data"]["untrusted"] is True
    assert envelope["data"]["sensitive_detected"] is False
    assert "memory_suggestion" not in envelope["data"]
    assert "suggested_filter" not in envelope["data"]
    assert envelope["meta"]["chunks_scanned"] > 0
    assert envelope["meta"]["index_version"] == "1"


def test_a_section_of_the_sensitive_list_is_flagged(made: Engine) -> None:
    data = ask(made, "slept badly", max_results=1)["data"]
    assert data["sensitive_detected"] is True
    assert data["results"][0]["sensitive_categories"] == ["health"]
    assert data["results"][0]["chunk_text"]


def test_a_private_note_is_not_found_by_agents(made: Engine) -> None:
    envelope = ask(made, "zephyr", max_results=50)
    assert (envelope["status"], envelope["error"]) == ("healthy", None)
    assert "Private/Diary.md" not in {r["source_file"] for r in envelope["data"]["results"]}
    assert "thoughts" not in json.dumps(envelope)
    assert ask(made, '"zephyr thoughts"')["data"]["results"] == []


def test_a_private_note_is_shown_to_its_owner_and_after_confirmation(made: Engine) -> None:
    for envelope in (
        own(made, "zephyr", max_results=1),
        ask(made, "zephyr", max_results=1, confirm_sensitive=True),
    ):
        assert (envelope["status"], envelope["error"]) == ("healthy", None)
        (result,) = envelope["data"]["results"]
        assert "zephyr thoughts" in result["chunk_text"]
        assert result["withheld"] is False
        assert envelope["data"]["sensitive_detected"] is True


def test_the_headings_of_a_private_note_are_not_told(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    """A heading is text of the note, as much as the lines under it."""
    notes: dict[str, str | bytes] = {
        "P.md": "---\nrag: private\n---\n# P\n\n## I am leaving Bob\n\nzephyr\n"
    }
    made = engine(make_vault(notes))
    run_index(made, Mode.FULL)
    assert ask(made, "zephyr leaving Bob")["data"]["results"] == []


def test_a_withheld_passage_is_listed_by_its_place_alone(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    """Else an agent asks for words until it has them."""
    text = "---\ntags: [home]\n---\n# Bo\n\n## Loan\n\nI owe Bo 4711 crowns #crowns\n"
    made = engine(make_vault({"a.md": text}), WITHHOLD)
    run_index(made, Mode.FULL)
    envelope = ask(made, "owe 4711 nothing")
    assert (envelope["status"], envelope["error"]["code"]) == ("degraded", "SENSITIVE_FILTERED")
    (result,) = envelope["data"]["results"]
    assert result == {
        "chunk_text": "",
        "score": round(result["score"], 1),
        "source_file": "a.md",
        "link_id": made.vaults.one().link_id,
        "vault": "vault",
        "vault_label": "Primary vault",
        "section": None,
        "date": None,
        "tags": [],
        "chunk_index": 0,
        "title": "a",
        "heading_path": [],
        "start_line": 4,
        "end_line": 8,
        "link": "obsidian://open?vault=vault&file=a",
        "why": {"signals": {}, "terms": []},
        "sensitive_categories": ["financial"],
        "withheld": True,
    }
    assert "memory_suggestion" not in envelope["data"]


def test_a_long_section_is_withheld_in_all_its_passages(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    """The word that makes it sensitive stands in the first of them only."""
    # Herons at both ends only: passages that do not touch stay passages of their own.
    birds = [*["heron"] * 4, *["crane"] * 16, *["heron"] * 4]
    days = "\n\n".join(f"The {bird} at pond " + "stood for long. " * 30 for bird in birds)
    text = f"# Days\n\nquiet\n\n## Sessions\n\nStarted therapy.\n\n{days}\n\n## Pond\n\nheron\n"
    made = engine(make_vault({"a.md": text}), WITHHOLD)
    run_index(made, Mode.FULL)
    found = ask(made, "heron at the pond", max_results=50)["data"]["results"]
    assert sum(result["withheld"] for result in found) > 1
    assert {result["section"] for result in found if not result["withheld"]} == {"Days", "Pond"}
    assert "for long" not in json.dumps(found)


def test_a_withheld_passage_cannot_be_spelled_out_by_phrases(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": "I owe Bo 4711 crowns\n", "b.md": "rye\n"}), WITHHOLD)
    run_index(made, Mode.FULL)
    for digit in range(10):
        assert ask(made, f'"Bo {digit}"')["data"]["results"] == []
    assert [r["withheld"] for r in ask(made, '"Bo 4711"')["data"]["results"]] == [True]


def test_what_a_note_has_from_a_withheld_section_is_not_told_elsewhere(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    text = "# Leaving Bob\n\nStarted therapy #bobless\n\n" + "rest " * 60 + "\n\n## Beans\n\nsow "
    made = engine(make_vault({"a.md": text + "beans " * 60}), WITHHOLD)
    run_index(made, Mode.FULL)
    found = ask(made, "beans Bob", max_results=50)["data"]["results"]
    (result,) = [r for r in found if not r["withheld"]]
    assert (result["title"], result["heading_path"]) == ("a", ["Beans"])
    assert (result["tags"], result["why"]["terms"]) == ([], ["beans"])


def test_a_note_that_says_never_is_not_found(engine: MakeEngine, make_vault: MakeVault) -> None:
    made = engine(make_vault({"a.md": "---\nrag: false\n---\nzephyr", "b.md": "other"}))
    run_index(made, Mode.FULL)
    for envelope in (own(made, "zephyr"), ask(made, "zephyr", confirm_sensitive=True)):
        assert "a.md" not in {r["source_file"] for r in envelope["data"]["results"]}


def test_a_folder_denied_after_indexing_decides_no_answer(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    """Not even by taking the place of other hits, by how sure they are or by a word put right."""
    old = {"Old/Herons.md": "# Herons\n\nherons wait by the water, zephyrine\n"}
    others = {
        "New/Pond.md": "# Pond\n\nwater for the herons, one day\n",
        "New/Peas.md": "# Peas\n\nsow them by the wall\n",
    }
    run_index(engine(make_vault({**old, **others})), Mode.FULL)
    made = engine(make_vault({**old, **others}), {"indexing.deny_dirs": ["Old"]})
    found = ask(made, "herons wait by the water", max_results=1)["data"]
    assert [hit["source_file"] for hit in found["results"]] == ["New/Pond.md"]
    nothing = ask(made, '"herons wait"')
    assert (nothing["data"]["confidence"], nothing["meta"]["chunks_scanned"]) == (0.0, 0)
    assert "searched_for" not in ask(made, "zephyrina")["data"]


def test_a_commitment_is_worth_remembering_but_not_sensitive(made: Engine) -> None:
    data = ask(made, "rice and lentils at costco", max_results=1)["data"]
    assert data["sensitive_detected"] is False
    assert data["memory_suggestion"]["source"] == "Lists/Costco.md"
    assert "Grocery" in data["memory_suggestion"]["value"]


def test_suggestions_to_remember_can_be_switched_off(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault(NOTES), {"memory.auto_suggest": False})
    run_index(made, Mode.FULL)
    assert "memory_suggestion" not in ask(made, "rice at costco", max_results=1)["data"]


@pytest.mark.parametrize("limit", [1, 3, 50])
def test_text_and_number_of_hits_are_bounded(made: Engine, limit: int) -> None:
    results = ask(made, "heron waits", max_results=limit)["data"]["results"]
    assert 1 <= len(results) <= limit
    for result in results:
        assert len(result["chunk_text"]) <= 2000
    assert "heron" in results[0]["chunk_text"]


def test_a_date_in_the_question_is_told_and_can_be_refused(made: Engine) -> None:
    data = ask(made, "how did I sleep in 2024?")["data"]
    assert data["suggested_filter"] == {
        "phrase": "in 2024",
        "date_range": {"from": "2024-01-01", "to": "2024-12-31"},
        "applied": True,
    }
    assert "suggested_filter" not in ask(made, "sleep in 2024?", suggest_dates=False)["data"]
    assert ask(made, "rain garden in 1999")["data"]["suggested_filter"]["applied"] is False


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"directory_filter": ["Journal"]}, {"Journal/2024-03-10.md"}),
        ({"directory_filter": ["Journal/"]}, {"Journal/2024-03-10.md"}),
        ({"directory_filter": ["./Journal"]}, {"Journal/2024-03-10.md"}),
        (
            {"directory_filter": ["Journal", "Lists"]},
            {"Journal/2024-03-10.md", "Lists/Costco.md"},
        ),
        ({"tags": ["project"]}, {"Projects/Rain garden.md"}),
        ({"tags": ["#mentalhealth", "project/garden"]}, {"Projects/Rain garden.md",
          "Journal/2024-03-10.md"}),
        ({"date_range": {"from": "2024-03-10", "to": "2024-03-10"}}, {"Journal/2024-03-10.md"}),
        ({"date_range": {"from": "2025-01-01"}}, set()),
        ({"properties": ["rating>=4"]}, {"Projects/Rain garden.md"}),
        ({"properties": ["rating<4"]}, set()),
        ({"directory_filter": ["Journal"], "tags": ["project"]}, set()),
    ],
)  # fmt: skip
def test_nothing_outside_the_filters_is_returned(
    made: Engine, arguments: dict[str, object], expected: set[str]
) -> None:
    envelope = ask(made, "water slept rice heron", max_results=50, **arguments)
    assert envelope["status"] == "healthy"
    assert {r["source_file"] for r in envelope["data"]["results"]} == expected


def test_grouping_gives_each_note_once(made: Engine) -> None:
    results = ask(made, "heron waits", max_results=50, group_by_note=True)["data"]["results"]
    names = [result["source_file"] for result in results]
    assert len(names) == len(set(names))


def test_the_schema_tells_agents_the_ranges() -> None:
    schema = schemas()[TOOL]
    assert schema["required"] == ["query"]
    properties = schema["properties"]
    assert set(properties) >= {"query", "max_results", "directory_filter", "date_range", "tags"}
    most = properties["max_results"]
    assert (most["minimum"], most["maximum"], most["default"]) == (1, 50, 5)
    assert (properties["query"]["minLength"], properties["query"]["maxLength"]) == (1, 2000)
    assert set(properties["date_range"]["properties"]) == {"from", "to"}
    assert schema["additionalProperties"] is False
    assert "is_owner" not in properties
    assert TOOLS[TOOL].is_read_only


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "q", "max_results": 1},
        {"query": "q" * 2000, "max_results": 50},
        {"query": "q", "directory_filter": None, "tags": None, "date_range": None},
        {"query": "q", "date_range": {}},
        {"query": "q", "date_range": {"from": "2024-02-29", "to": "2024-02-29"}},
        {"query": "q", "date_range": {"from": None, "to": "2024-02-29"}},
    ],
)
def test_the_edges_of_each_range_are_let_in(arguments: dict[str, object]) -> None:
    parse(SearchParams, arguments)


@pytest.mark.parametrize("arguments", [{"date_range": {}}, {"tags": []}, {"directory_filter": []}])
def test_an_empty_filter_admits_everything(made: Engine, arguments: dict[str, object]) -> None:
    assert ask(made, "sedge", **arguments)["data"]["results"]
