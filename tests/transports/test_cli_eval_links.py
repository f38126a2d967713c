"""eval --links: how often a link that was taken away is suggested again."""

from pathlib import Path

import pytest
from tests.fixture_types import Cli, Configure, MakeVault
from tests.transports.command_line import on_terminal_in_process

HEAD = ["notes", "links", "Hit@1", "Hit@5", "Hit@10", "Hit@20", "MRR"]
NOTES = {
    "Garden.md": "# Garden\n\nFox sedge by the downspout, see [[Bog]] and [[Pump]].\n",
    "Bog.md": "# Bog\n\nFox sedge likes the downspout.\n",
    "Pump.md": "# Pump\n\nDrains the cellar. See [[Bog]].\n",
    "Bread.md": "# Bread\n\nRye and salt.\n",
}
SAMPLE = Path(__file__).parents[2] / "samples" / "vault"


def test_people_get_a_table_of_one_row(cli: Cli, vault: Path) -> None:
    done = cli("eval", "--links")
    assert (done.code, done.err) == (0, "")
    table, _, verdict = done.out.partition("\n\n")
    assert verdict == "`related` has the linked note among the first 20 for 100% of 3 links.\n"
    head, row = (line.split() for line in table.splitlines())
    assert head == HEAD
    assert row[:2] == ["2", "3"]
    rates = [float(rate) for rate in row[2:6]]
    assert rates == sorted(rates)
    assert rates[-1] == 1.0


def test_json_has_the_same_numbers_in_the_envelope(cli: Cli, vault: Path) -> None:
    envelope = cli("eval", "--links", "--json").json
    assert (envelope["status"], envelope["error"]) == ("healthy", None)
    data = envelope["data"]
    assert list(data) == [
        "notes",
        "links",
        "hit_at_1",
        "hit_at_5",
        "hit_at_10",
        "hit_at_20",
        "mrr",
    ]
    shown = cli("eval", "--links").out.splitlines()[1].split()
    assert [f"{value:.3f}" for value in list(data.values())[2:]] == shown[2:]
    assert [data["notes"], data["links"]] == [2, 3]


def test_limit_bounds_the_links_and_every_note_has_its_turn(cli: Cli, vault: Path) -> None:
    data = cli("eval", "--links", "--limit", "2", "--json").json["data"]
    assert (data["notes"], data["links"]) == (2, 2)


def test_a_vault_without_links_says_so(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault({"a.md": "one", "b.md": "two"}), {})
    cli("index")
    done = cli("eval", "--links", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "NOT_FOUND")
    assert "hint" in done.err


@pytest.mark.parametrize("other", [("--self",), ("golden.json",), ("--limit", "0")])
def test_links_are_measured_alone(cli: Cli, vault: Path, other: tuple[str, ...]) -> None:
    done = cli("eval", "--links", *other, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "INVALID_ARGUMENT")


def test_progress_goes_to_the_terminal_and_the_table_to_the_file(vault: Path) -> None:
    done = on_terminal_in_process("eval", "--links", is_redirected=True)
    assert done.code == 0
    assert "links" in done.err
    assert done.out.split()[:7] == HEAD


def test_the_authors_links_of_the_sample_vault_are_suggested(
    cli: Cli, configure: Configure
) -> None:
    configure(SAMPLE, {"embedding.provider": "builtin"})
    assert cli("index").code == 0
    data = cli("eval", "--links", "--json").json["data"]
    assert data["links"] > 200
    assert data["hit_at_10"] >= 0.65
