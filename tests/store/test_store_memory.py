"""Facts: kept, replaced, found by words, forgotten, and still there in the next process."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from obsidian_rag.store import Database, Fact, Memory

DEBT = ("debt_to_sreenivas", "I owe Sreenivas $200 for the tickets", "Finance/Debts.md")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / "data/state.db")) as made:
        yield made


@pytest.fixture
def memory(database: Database) -> Memory:
    return Memory(database)


def test_a_stored_fact_is_there_with_its_times(memory: Memory) -> None:
    stored = memory.store(*DEBT)
    assert memory.get("debt_to_sreenivas") == stored
    assert stored == Fact(*DEBT, stored.created_at, stored.created_at)
    assert stored.text == "debt_to_sreenivas: I owe Sreenivas $200 for the tickets"


def test_the_same_key_replaces_value_and_source_but_not_the_first_time(memory: Memory) -> None:
    first = memory.store(*DEBT)
    second = memory.store("debt_to_sreenivas", "Paid back", "Journal/a.md")
    assert (second.value, second.source) == ("Paid back", "Journal/a.md")
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    assert memory.all() == [second]


def test_keys_are_exact(memory: Memory) -> None:
    memory.store(*DEBT)
    assert memory.get("Debt_to_sreenivas") is None
    assert memory.get("debt") is None


def test_all_facts_come_latest_first(memory: Memory) -> None:
    for key in ("a", "b", "c"):
        memory.store(key, "value", "n.md")
    memory.store("a", "again", "n.md")
    assert [fact.key for fact in memory.all()] == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("sreenivas", [("debt_to_sreenivas", 1.0)]),
        ("SREENIVAS owe", [("debt_to_sreenivas", 1.0)]),
        ("debt", [("debt_to_sreenivas", 1.0)]),
        ("debt_to_sreenivas", [("debt_to_sreenivas", 1.0)]),
        ("Debt_To_Sreenivas", [("debt_to_sreenivas", 1.0)]),
        ("sreenivas birthday", [("debt_to_sreenivas", 0.5), ("party", 0.5)]),
        ("nivas", []),
        ("?!", []),
        ("", []),
        ("誕生", [("party", 1.0)]),
    ],
)
def test_facts_are_found_by_whole_words_of_key_and_value(
    memory: Memory, query: str, found: list[tuple[str, float]]
) -> None:
    memory.store("party", "Birthday on 3 May 誕生日", "People/Ana.md")
    memory.store(*DEBT)
    assert [(fact.key, share) for fact, share in memory.search(query)] == found


def test_the_fact_with_more_of_the_words_comes_first(memory: Memory) -> None:
    memory.store("one", "red boat", "n.md")
    memory.store("two", "red boat sails", "n.md")
    memory.store("three", "red", "n.md")
    assert [fact.key for fact, _ in memory.search("red boat sails")] == ["two", "one", "three"]


def test_forgetting_says_whether_there_was_something(memory: Memory) -> None:
    memory.store(*DEBT)
    assert memory.forget("debt_to_sreenivas") is True
    assert memory.forget("debt_to_sreenivas") is False
    assert memory.all() == []


def test_facts_outlive_the_connection(database: Database, memory: Memory) -> None:
    stored = memory.store(*DEBT)
    with closing(Database(database.path)) as again:
        assert Memory(again).get("debt_to_sreenivas") == stored


def test_quotes_and_sql_in_a_fact_are_text(memory: Memory) -> None:
    key, value = "x'; DROP TABLE memory; --", 'a "quoted" \n line \N{GRINNING FACE}'
    memory.store(key, value, "n.md")
    found = memory.get(key)
    assert found is not None
    assert found.value == value


def test_vectors_belong_to_one_embedder_and_one_wording(memory: Memory) -> None:
    fact = memory.store(*DEBT)
    memory.keep_vectors("one", [(fact, b"\x01\x02")])
    assert memory.vectors("one") == {"debt_to_sreenivas": b"\x01\x02"}
    assert memory.vectors("two") == {}
    memory.store("debt_to_sreenivas", "Paid back", "n.md")
    assert memory.vectors("one") == {}
    memory.keep_vectors("one", [(fact, b"\x01\x02")])
    assert memory.vectors("one") == {}, "a vector of the old wording must not come back"
