"""What an agent could find out by asking again and again, were private notes part of any answer."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.security.planted import NEVER_PATH, PRIVATE_PATH, plant

from obsidian_rag.engine import Engine
from obsidian_rag.tools import AGENT, OWNER, Caller, call

SEARCH, READ = "obsidian_rag_search", "obsidian_rag_read"
RELATED, RECALL = "obsidian_rag_related", "obsidian_rag_memory_recall"
STORE, STATUS = "obsidian_rag_memory_store", "obsidian_rag_status"
PIN = 4711987


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """With the settings as they are by default: nothing is withheld but private notes."""
    engine = plant(tmp_path_factory.mktemp("planted"), with_hidden=True, settings={})
    yield engine
    engine.close()


def ask(engine: Engine, tool: str, **arguments: object) -> Any:
    return call(engine, tool, arguments)


def finds(engine: Engine, **arguments: object) -> bool:
    envelope = ask(engine, SEARCH, **arguments)
    return bool((envelope["data"] or {}).get("results"))


@pytest.mark.parametrize("is_written", [True, False], ids=["in the question", "as a parameter"])
def test_a_number_cannot_be_found_by_halving(planted: Engine, is_written: bool) -> None:
    low, high = 0, 2**23
    assert high > PIN
    answers = set()
    while high - low > 1:
        middle = (low + high) // 2
        asked: dict[str, object] = {"query": "*", "properties": [f"pin>={middle}"]}
        if is_written:
            asked = {"query": f"prop:pin>={middle}"}
        found = finds(planted, **asked)
        answers.add(found)
        low, high = (middle, high) if found else (low, middle)
    assert answers == {False}
    assert low != PIN
    assert finds(planted, query=f"prop:pin>={PIN}", confirm_sensitive=True)


@pytest.mark.parametrize(
    "question",
    [
        '"peas and beans textoprivo"',
        '"textop"',
        "tag:tagoprivo",
        "tag:inlineoprivo",
        "path:qorvexa",
        "after:2031-07-09 before:2031-07-10",
        "prop:keyoprivo=valueoprivo",
    ],
)
def test_no_question_is_answered_by_a_private_note_alone(planted: Engine, question: str) -> None:
    assert not finds(planted, query=question)
    assert finds(planted, query=question, confirm_sensitive=True)


@pytest.mark.parametrize("folder", ["Cellar", "Attic"])
def test_a_folder_of_such_notes_is_no_folder(planted: Engine, folder: str) -> None:
    known = ask(planted, SEARCH, query="peas", directory_filter=[folder])["error"]
    absent = ask(planted, SEARCH, query="peas", directory_filter=["Nowhere"])["error"]
    assert str(known).replace(folder, "Nowhere") == str(absent)


@pytest.mark.parametrize("name", ["Qorvexa", "qorvexa.md", "Wolframit", NEVER_PATH])
def test_no_name_finds_such_a_note(planted: Engine, name: str) -> None:
    for tool, parameter in (
        (READ, {"note": name}),
        (RELATED, {"note": name}),
        (STORE, {"key": "k", "value": "v", "source": name}),
    ):
        known = call(planted, tool, parameter)["error"]
        absent = call(planted, tool, {k: v.replace(name, "Nix") for k, v in parameter.items()})
        assert known is not None
        assert known["code"] == "NOT_FOUND"
        assert str(known).replace(name, "Nix") == str(absent["error"])


def test_a_word_of_a_private_note_is_a_word_of_none(planted: Engine) -> None:
    """Which words there are in the vault at all is an answer too."""
    known = ask(planted, RELATED, text="textoprivo")["error"]
    absent = ask(planted, RELATED, text="nosuchword")["error"]
    assert known == absent


@pytest.fixture(scope="module")
def withholding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = plant(tmp_path_factory.mktemp("withholding"), with_hidden=False)
    yield engine
    engine.close()


@pytest.mark.parametrize(
    ("begun", "wrong"),
    [
        ('"I owe Bo, textow"', '"I owe Bo, textoz"'),
        ('"headow"', '"headoz"'),
        ('"codeow"', '"codeoz"'),
        ('"titleow"', '"titleoz"'),
    ],
)
def test_withheld_text_cannot_be_spelt_out_by_phrases(
    withholding: Engine, begun: str, wrong: str
) -> None:
    """Neither by hits, nor by how sure an answer is, nor by how much was looked at."""

    def answer(question: str) -> Any:
        envelope: Any = ask(withholding, SEARCH, query=question)
        return envelope["data"], envelope["error"], envelope["meta"]["chunks_scanned"]

    assert answer(begun) == answer(wrong)


@pytest.mark.parametrize("slip", ["textowithx", "texowitho", "headowiho", "canvaswitho"])
def test_a_slip_is_not_put_right_with_a_withheld_word(withholding: Engine, slip: str) -> None:
    assert "searched_for" not in ask(withholding, SEARCH, query=slip)["data"]
    owner: Any = call(withholding, SEARCH, {"query": slip}, OWNER)
    assert owner["data"]["searched_for"] != slip


def test_facts_of_such_notes_are_not_remembered_for_agents(planted: Engine) -> None:
    for key in ("memkeyoprivo", "memkeyonevero"):
        assert ask(planted, RECALL, key=key)["data"]["facts"] == []
        assert key not in json.dumps(ask(planted, RECALL, query=f"{key} peas", limit=50)["data"])
    (fact,) = ask(planted, RECALL, key="memkeyoprivo", confirm_sensitive=True)["data"]["facts"]
    assert fact["sensitive_categories"] == ["private"]
    assert ask(planted, RECALL, key="memkeyonevero", confirm_sensitive=True)["data"]["facts"] == []
    flagged = ask(planted, RECALL, key="memkeyowitho")
    assert flagged["data"]["facts"][0]["sensitive_categories"] == ["financial"]
    assert flagged["data"]["sensitive_detected"] is True


def test_facts_follow_a_private_note_that_is_moved_and_count_as_private_once_it_is_gone(
    planted: Engine,
) -> None:
    place = planted.config.vault_root / PRIVATE_PATH
    for moved in (place.with_name("Elsewhere.md"), place.parent.parent / place.name):
        place.rename(moved)
        try:
            assert ask(planted, RECALL, key="memkeyoprivo")["data"]["facts"] == []
        finally:
            moved.rename(place)


def test_status_does_not_name_such_notes_to_agents(planted: Engine) -> None:
    def named(caller: Caller) -> set[str]:
        data: Any = call(planted, STATUS, {}, caller)["data"]
        return {notice["file"] for notice in data["notices"]}

    assert named(AGENT) == {"Notes/Odd.md"}
    assert named(OWNER) == {
        "Notes/Odd.md",
        "Cellar/Peas.md",
        "Attic/Beans.md",
        NEVER_PATH,
    }
