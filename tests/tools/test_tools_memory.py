"""Facts through the door of agents: stored with a real source, recalled by key and by meaning."""

import socket
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.embed.embedding_doubles import fake_ollama
from tests.fixture_types import MakeEngine, MakeVault

from obsidian_rag.embed.hashing import HashEmbedder
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.tools import call

STORE = "obsidian_rag_memory_store"
RECALL = "obsidian_rag_memory_recall"
NOTHING = {"facts": [], "sensitive_detected": False}
NOTES = {
    "Finance/Debts.md": "I owe Sreenivas $200",
    "People/Ana.md": "Birthday on 3 May",
    "zzz-Archive/Old.md": "old",
    ".obsidian/app.json": "{}",
}


@pytest.fixture
def made(engine: MakeEngine, make_vault: MakeVault) -> Engine:
    one = engine(make_vault(NOTES))
    run_index(one, Mode.FULL)
    return one


def store(engine: Engine, key: str, value: str, source: str = "Finance/Debts.md") -> Any:
    return call(engine, STORE, {"key": key, "value": value, "source": source})


def recall(engine: Engine, **arguments: object) -> Any:
    return call(engine, RECALL, arguments)


def code(envelope: Any) -> str:
    assert envelope["data"] is None
    return str(envelope["error"]["code"])


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_storing_answers_as_the_design_says(made: Engine) -> None:
    envelope = store(made, "debt_to_sreenivas", "I owe Sreenivas $200")
    assert (envelope["status"], envelope["error"]) == ("healthy", None)
    assert envelope["data"] == {"stored": True, "key": "debt_to_sreenivas"}


def test_a_fact_is_recalled_by_its_exact_key(made: Engine) -> None:
    store(made, "debt_to_sreenivas", "I owe Sreenivas $200")
    (fact,) = recall(made, key="debt_to_sreenivas")["data"]["facts"]
    assert set(fact) == {
        "key",
        "value",
        "source",
        "vault",
        "stored_at",
        "score",
        "sensitive_categories",
        "withheld",
    }
    assert (fact["sensitive_categories"], fact["withheld"]) == (["financial"], False)
    assert (fact["value"], fact["source"], fact["score"]) == (
        "I owe Sreenivas $200",
        "Finance/Debts.md",
        1.0,
    )
    assert recall(made, key="debt")["data"] == NOTHING


def test_an_unknown_key_falls_back_to_the_query(made: Engine) -> None:
    store(made, "birthday_of_ana", "3 May", "People/Ana.md")
    facts = recall(made, key="ana_birthday", query="birthday of Ana")["data"]["facts"]
    assert [fact["key"] for fact in facts] == ["birthday_of_ana"]


def test_the_nearest_fact_comes_first_and_limit_holds(made: Engine) -> None:
    store(made, "debt_to_sreenivas", "I owe Sreenivas $200")
    store(made, "birthday_of_ana", "Ana was born on 3 May", "People/Ana.md")
    for number in range(10):
        store(made, f"other_{number}", f"fact number {number}")
    facts = recall(made, query="how much do I owe Sreenivas?")["data"]["facts"]
    assert facts[0]["key"] == "debt_to_sreenivas"
    scores = [fact["score"] for fact in facts]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert len(recall(made, query="fact number", limit=3)["data"]["facts"]) == 3
    assert len(recall(made, query="fact number")["data"]["facts"]) == 5


def test_a_fact_is_found_by_meaning_without_a_common_word(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault(NOTES), {"embedding.provider": "builtin"})
    store(made, "physician", "Dr Ash, on the second floor", "People/Ana.md")
    store(made, "wifi", "The router stands behind the bookcase", "People/Ana.md")
    assert recall(made, query="doctor")["data"]["facts"][0]["key"] == "physician"


def test_storing_again_replaces_the_fact_and_what_it_means(made: Engine) -> None:
    store(made, "pet", "a cat called Tug")
    assert recall(made, query="cat Tug")["data"]["facts"][0]["value"] == "a cat called Tug"
    store(made, "pet", "a dog called Bo", "People/Ana.md")
    (fact,) = recall(made, query="dog Bo")["data"]["facts"]
    assert (fact["value"], fact["source"]) == ("a dog called Bo", "People/Ana.md")


def test_facts_survive_the_engine_a_new_index_and_another_embedder(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    vault = make_vault(NOTES)
    first = engine(vault)
    store(first, "pet", "a cat called Tug")
    recall(first, query="cat")
    first.close()
    second = engine(vault, {"embedding.dimensions": 64})
    run_index(second, Mode.FULL)
    run_index(second, Mode.REINDEX)
    (fact,) = recall(second, query="cat")["data"]["facts"]
    assert (fact["key"], fact["value"]) == ("pet", "a cat called Tug")


def test_a_source_may_be_written_in_each_way_and_is_kept_as_the_path(made: Engine) -> None:
    run_index(made, Mode.FULL)
    vault = made.config.vault_root
    for source in (
        "Finance/Debts.md",
        "./Finance//Debts",
        "debts",
        str(vault / "Finance/Debts.md"),
    ):
        assert store(made, "k", source, source)["error"] is None
        assert recall(made, key="k")["data"]["facts"][0]["source"] == "Finance/Debts.md"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("../outside.md", "SECURITY_VIOLATION"),
        ("Finance/../../outside.md", "SECURITY_VIOLATION"),
        ("/etc/passwd", "SECURITY_VIOLATION"),
        ("%2e%2e/outside.md", "SECURITY_VIOLATION"),
        ("C:\\Windows\\System32", "SECURITY_VIOLATION"),
        ("\\\\server\\share", "SECURITY_VIOLATION"),
        ("..\\outside.md", "SECURITY_VIOLATION"),
        (".obsidian/app.json", "SECURITY_VIOLATION"),
        ("zzz-Archive/Old.md", "SECURITY_VIOLATION"),
        ("zzz-Archive/Absent.md", "SECURITY_VIOLATION"),
        ("Finance/Absent.md", "NOT_FOUND"),
        ("Finance", "NOT_FOUND"),
        ("x" * 900, "NOT_FOUND"),
    ],
)
def test_a_source_outside_or_absent_is_refused_and_nothing_is_stored(
    made: Engine, source: str, expected: str
) -> None:
    assert code(store(made, "k", "v", source)) == expected
    assert recall(made, key="k")["data"] == NOTHING


def test_without_the_embedder_words_answer_and_the_answer_says_so(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    made = engine(make_vault(NOTES), {"embedding.provider": "ollama", "embedding.base_url": url})
    assert store(made, "debt_to_sreenivas", "I owe Sreenivas $200")["data"]["stored"] is True
    envelope = recall(made, query="Sreenivas")
    assert envelope["error"]["code"] == "OLLAMA_UNREACHABLE"
    assert [fact["key"] for fact in envelope["data"]["facts"]] == ["debt_to_sreenivas"]
    by_key = recall(made, key="debt_to_sreenivas")
    # Nothing was indexed here, and no answer hides that.
    assert (by_key["status"], by_key["error"]["code"]) == ("unavailable", "INDEX_NOT_FOUND")
    assert len(by_key["data"]["facts"]) == 1


def test_each_fact_is_embedded_once(engine: MakeEngine, make_vault: MakeVault) -> None:
    with fake_ollama() as ollama:
        settings = {
            "embedding.provider": "ollama",
            "embedding.model": "tiny",
            "embedding.base_url": ollama.url,
        }
        made = engine(make_vault(NOTES), settings)
        store(made, "a", "first fact")
        store(made, "b", "second fact")
        assert len(recall(made, query="fact")["data"]["facts"]) == 2
        ollama.requests.clear()
        recall(made, query="fact")
        assert [len(texts) for texts in ollama.inputs] == [1], "only the query"
        store(made, "b", "another fact")
        ollama.requests.clear()
        recall(made, query="fact")
        assert sorted(len(texts) for texts in ollama.inputs) == [1, 1]
        assert ["b: another fact"] in ollama.inputs


def test_recalling_from_an_empty_memory_asks_no_embedder(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    made = engine(make_vault(NOTES), {"embedding.provider": "ollama", "embedding.base_url": url})
    envelope = recall(made, query="anything")
    assert (envelope["error"]["code"], envelope["data"]) == ("INDEX_NOT_FOUND", NOTHING)


class ExternalEmbedder(HashEmbedder):
    """Like a server elsewhere, which remembers all that reached it."""

    is_external = True

    def __init__(self) -> None:
        super().__init__(None)
        self.seen: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.seen += texts
        return super().embed_documents(texts)


def test_facts_never_reach_an_embedder_elsewhere(made: Engine) -> None:
    elsewhere = ExternalEmbedder()
    made.embedder = elsewhere
    store(made, "debt_to_sreenivas", "I owe Sreenivas $200")
    envelope = recall(made, query="what do I owe Sreenivas")
    assert elsewhere.seen == []
    assert len(envelope["data"]["facts"]) == 1
    assert envelope["data"]["facts"][0]["key"] == "debt_to_sreenivas", "words find it"
