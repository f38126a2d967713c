"""memory: what one command stores the next one finds."""

from pathlib import Path

import pytest
from tests.fixture_types import Cli, Configure, MakeVault

STORE = ("memory", "store", "debt_to_sreenivas", "I owe Sreenivas 200", "--source", "Debts.md")


@pytest.fixture(autouse=True)
def vault(make_vault: MakeVault, configure: Configure) -> Path:
    made = make_vault({"Debts.md": "I owe Sreenivas 200", "Ana.md": "Birthday"})
    configure(made, {})
    return made


def test_a_stored_fact_is_recalled_listed_and_forgotten(cli: Cli) -> None:
    assert cli(*STORE).out == "Remembered as debt_to_sreenivas\n"
    cli("memory", "store", "birthday", "3 May", "--source", "Ana")
    recalled = cli("memory", "recall", "what do I owe Sreenivas", "--limit", "1")
    assert recalled.out.startswith("debt_to_sreenivas: I owe Sreenivas 200\n  Debts.md, 20")
    assert cli("memory", "recall", "birthday").out.startswith("birthday: 3 May\n  Ana.md, 20")
    listed = cli("memory", "list").out.splitlines()[::2]
    assert listed == ["birthday: 3 May", "debt_to_sreenivas: I owe Sreenivas 200"]
    assert cli("memory", "forget", "birthday").out == "Forgot birthday\n"
    assert len(cli("memory", "list", "--json").json["data"]["facts"]) == 1


def test_json_is_the_envelope(cli: Cli) -> None:
    assert cli(*STORE, "--json").json["data"] == {"stored": True, "key": "debt_to_sreenivas"}
    (fact,) = cli("memory", "recall", "debt_to_sreenivas", "--json").json["data"]["facts"]
    assert (fact["source"], fact["score"]) == ("Debts.md", 1.0)
    (fact,) = cli("memory", "list", "--json").json["data"]["facts"]
    assert fact["value"] == "I owe Sreenivas 200"
    forgotten = cli("memory", "forget", "debt_to_sreenivas", "--json").json["data"]
    assert forgotten == {"forgotten": True, "key": "debt_to_sreenivas"}


def test_an_empty_memory_is_no_failure(cli: Cli) -> None:
    for arguments in (("list",), ("recall", "anything")):
        done = cli("memory", *arguments)
        assert (done.code, done.out, done.err.splitlines()[0]) == (0, "", "No facts found.")


def test_a_long_question_is_no_key(cli: Cli) -> None:
    cli(*STORE)
    done = cli("memory", "recall", "Sreenivas " * 100)
    assert done.out.startswith("debt_to_sreenivas")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("forget", "unknown"), "NOT_FOUND"),
        (("store", "k", "v", "--source", "Absent.md"), "NOT_FOUND"),
        (("store", "k", "v", "--source", "../x.md"), "SECURITY_VIOLATION"),
        (("store", "", "v", "--source", "Debts.md"), "INVALID_ARGUMENT"),
        (("store", "k", "", "--source", "Debts.md"), "INVALID_ARGUMENT"),
        (("store", "k", "v"), "INVALID_ARGUMENT"),
        (("recall", ""), "INVALID_ARGUMENT"),
        (("recall", "q", "--limit", "0"), "INVALID_ARGUMENT"),
    ],
)
def test_failures_end_with_2_and_a_code(cli: Cli, arguments: tuple[str, ...], code: str) -> None:
    done = cli("memory", *arguments, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, code)
    assert cli("memory", "list", "--json").json["data"] == {"facts": []}
