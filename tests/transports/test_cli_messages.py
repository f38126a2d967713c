"""What users read when something is wrong: short, idiomatic, in the words of the command line."""

from pathlib import Path

import pytest
from tests.fixture_types import Cli, Configure

NOTES = {
    "Finance/Debts.md": "# Debts\n\nI owe money.\n",
    "Shopping/Costco.md": "# Costco\n\nMilk.\n",
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "x", "--top", "0"), "--top must be 1 to 50."),
        (("search", "x", "--top", "51"), "--top must be 1 to 50."),
        (("related", "Debts", "--top", "0"), "--top must be 1 to 200."),
        (("suggest", "Debts", "--top", "99"), "--top must be 1 to 50."),
        (("search", ""), "The question must be 1 to 2000 characters."),
        (("search", "x", "--from", "tomorrow"), "--from must be an ISO date such as 2025-01-31."),
        (("memory", "recall", "x", "--limit", "0"), "--limit must be 1 to 50."),
        (("read", "Debts", "--lines", "9"), "--lines must be 1 to 3"),
        (("read", "Debts", "--lines", "3-1"), "--lines 3-1 ends before it begins."),
        (("read", "Debt"), "No note 'Debt'. Did you mean Finance/Debts?"),
        (("related", "Cosco"), "No note 'Cosco'. Did you mean Shopping/Costco?"),
        (("uuid", "add", "Debt"), "No note 'Debt'. Did you mean Finance/Debts?"),
        (("relate", "Debts", "Kostco"), "No note 'Kostco'. Did you mean Shopping/Costco?"),
        (("read", "Zebra"), "No note 'Zebra'.\n"),
        (("relate", "Debts", "Costco"), "Costco has no id yet.\nhint  Add one with --add-id."),
    ],
)
def test_a_mistake_is_told_in_the_words_of_the_command_line(
    cli: Cli, vault: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = cli(*arguments)
    assert done.code == 2
    assert message in done.err
    assert "Parameter" not in done.err
    assert "parameters" not in done.err


def test_another_embedder_is_told_by_its_name(cli: Cli, vault: Path, configure: Configure) -> None:
    configure(vault, {"embedding.provider": "builtin"})
    done = cli("sync", "--json")
    assert done.json["error"]["message"] == (
        "The index was built with hash; the settings now say builtin."
    )
    assert "`obsidian-rag reindex`" in done.json["error"]["suggestion"]


def test_other_chunk_sizes_are_told_in_words(cli: Cli, vault: Path, configure: Configure) -> None:
    configure(vault, {"indexing.chunk_size": 300})
    message = cli("sync", "--json").json["error"]["message"]
    assert "chunks of 500 tokens" in message
    assert "the settings now say chunks of 300 tokens" in message


def test_one_note_differs_and_two_notes_differ(cli: Cli, vault: Path) -> None:
    (vault / "Finance" / "Debts.md").write_text("# Debts\n\nI owe nothing.\n")
    shown = cli("doctor", "--deep").out
    assert "1 note differs from the index: Finance/Debts.md" in shown
    assert "`obsidian-rag index` rereads every file." in shown
    (vault / "Shopping" / "Costco.md").write_text("# Costco\n\nBread.\n")
    assert "2 notes differ from the index" in cli("doctor", "--deep").out


def test_counts_agree_with_their_nouns(cli: Cli, vault: Path) -> None:
    (vault / "Shopping" / "Costco.md").unlink()
    assert cli("sync").code == 0
    assert "1 note, updated" in cli("status").out


def test_the_flag_for_agents_is_explained_plainly(cli: Cli) -> None:
    assert "For agent scripts; you don't need it" in " ".join(cli("read", "--help").out.split())
