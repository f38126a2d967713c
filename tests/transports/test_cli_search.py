"""search: passages on stdout, talk on stderr, colour on terminals only."""

import json
import re
from pathlib import Path

import pytest
from tests.fixture_types import Cli, Configure
from tests.transports.command_line import Done, in_another_process, on_terminal_in_process

NOTES = {
    "Finance/Debts.md": "# Debts\n\nI owe Sreenivas two hundred dollars.\n",
    "Journal/2024-03-10.md": "#mentalhealth\n\nSlept badly near the water.\n",
    "Journal/2025-05-01.md": "#work\n\nShipped the water importer.\n",
    "Projects/Rain garden.md": "---\ntags: [project/garden]\nrating: 5\n---\n# Rain garden\n\n"
    "## Plants\n\nBlue flag and sedge drink water.\n",
    "Private.md": "---\nrag: private\n---\n# Diary\n\nzephyr thoughts\n",
    "Long.md": "# Long\n\n"
    + "\n".join(f"line {n} is filler" for n in range(60))
    + "\nneedle here\n",
}
NOTES["Script.md"] = (
    "# Script\n\nRun it:\n\n```python\nif porcupine:\n    print(`x`)\n```\n\nDone.\n"
)
PLACE = re.compile(r"^\d+\. (.+):(\d+)-(\d+)  (\d\.\d\d)", re.MULTILINE)
COLOUR = "\x1b["

pytestmark = pytest.mark.usefixtures("vault")


def found(done: Done) -> list[str]:
    return [place[0] for place in PLACE.findall(done.out)]


def test_each_hit_is_readable_and_cites_its_lines(cli: Cli) -> None:
    done = cli("search", "how much do I owe Sreenivas?", "--top", "1")
    assert done.code == 0
    assert PLACE.match(done.out)
    first, headings, *text = done.out.rstrip("\n").split("\n")
    assert first.startswith("1. Finance/Debts.md:1-3  ")
    assert first.endswith("[financial]")
    assert headings.strip() == "Debts"
    assert "   I owe Sreenivas two hundred dollars." in text
    assert COLOUR not in done.out
    assert "why:" not in done.out


def test_code_is_shown_by_its_indent(cli: Cli) -> None:
    done = cli("search", "porcupine", "--top", "1")
    assert done.out.rstrip("\n").split("\n")[2:] == [
        "   Run it:",
        "       if porcupine:",
        "           print(`x`)",
        "   Done.",
    ]


def test_words_need_no_quotes(cli: Cli) -> None:
    assert found(cli("search", "owe", "Sreenivas", "--top", "1")) == ["Finance/Debts.md"]


def test_json_is_the_envelope_and_nothing_else(cli: Cli) -> None:
    done = cli("search", "sedge", "--json", "--top", "1")
    assert (done.code, done.err) == (0, "")
    assert set(done.json) == {"status", "data", "error", "meta"}
    (result,) = done.json["data"]["results"]
    assert result["source_file"] == "Projects/Rain garden.md"
    assert result["why"]["terms"] == ["sedge"]


@pytest.mark.parametrize("option", ["--top", "-n"])
def test_top_bounds_the_page(cli: Cli, option: str) -> None:
    assert len(found(cli("search", "water", option, "2"))) == 2


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--tags", "project"), {"Projects/Rain garden.md"}),
        (("-t", "#project/garden"), {"Projects/Rain garden.md"}),
        (("-t", "project", "-t", "work"), {"Projects/Rain garden.md", "Journal/2025-05-01.md"}),
        (("--folder", "Journal"), {"Journal/2024-03-10.md", "Journal/2025-05-01.md"}),
        (("--folder", "Journal", "--tags", "work"), {"Journal/2025-05-01.md"}),
        (("--from", "2025-01-01"), {"Journal/2025-05-01.md"}),
        (("--to", "2024-12-31"), {"Journal/2024-03-10.md"}),
        (("--from", "2024-03-10", "--to", "2024-03-10"), {"Journal/2024-03-10.md"}),
        (("--prop", "rating>=5"), {"Projects/Rain garden.md"}),
    ],
)
def test_options_filter(cli: Cli, options: tuple[str, ...], expected: set[str]) -> None:
    done = cli("search", "water", "--top", "20", *options)
    assert (done.code, set(found(done))) == (0, expected)


def test_grouping_gives_each_note_once(cli: Cli) -> None:
    names = found(cli("search", "line filler needle", "--group", "--top", "20"))
    assert len(names) == len(set(names))


def test_explain_shows_shares_words_and_the_link(cli: Cli) -> None:
    out = cli("search", "sedge", "--top", "1", "--explain").out
    assert re.search(r"why: text \d\.\d\d.*letters \d\.\d\d.*; words: sedge", out)
    assert "obsidian://open?vault=vault&file=Projects%2FRain%20garden" in out


def test_a_long_passage_is_shown_around_its_match(cli: Cli) -> None:
    out = cli("search", "needle", "--top", "1").out
    assert "needle here" in out
    assert len(out.splitlines()) < 15


def test_a_date_in_the_question_is_told_on_stderr(cli: Cli) -> None:
    done = cli("search", "water in 2024")
    assert "2024-01-01 to 2024-12-31" in done.err
    assert "--no-dates" in done.err
    assert "Journal/2025-05-01.md" not in found(done)
    done = cli("search", "water in 2024", "--no-dates")
    assert done.err == ""
    assert "Journal/2025-05-01.md" in found(done)


def test_the_owner_sees_private_notes(cli: Cli) -> None:
    done = cli("search", "zephyr", "--top", "1")
    assert "zephyr thoughts" in done.out
    assert "[private]" in done.out
    assert done.err == ""


def test_nothing_found_is_said_on_stderr(cli: Cli) -> None:
    done = cli("search", "water", "--from", "2030-01-01")
    assert (done.code, done.out) == (0, "")
    assert "Nothing found" in done.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("water", "--top", "0"), "INVALID_ARGUMENT"),
        (("water", "--top", "51"), "INVALID_ARGUMENT"),
        ((" ",), "INVALID_ARGUMENT"),
        (("water", "--folder", "Absent"), "INVALID_ARGUMENT"),
        (("water", "--folder", "../x"), "SECURITY_VIOLATION"),
        (("water", "--from", "soon"), "INVALID_ARGUMENT"),
        (("water", "--from", "2025-01-02", "--to", "2025-01-01"), "INVALID_ARGUMENT"),
        (("water", "--prop", "rating"), "INVALID_ARGUMENT"),
    ],
)
def test_known_failures_end_with_two(cli: Cli, arguments: tuple[str, ...], code: str) -> None:
    done = cli("search", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err
    answer = cli("search", *arguments, "--json")
    assert (answer.code, answer.json["error"]["code"]) == (2, code)
    assert answer.json["data"] is None


@pytest.mark.parametrize("arguments", [(), ("water", "--top", "many"), ("water", "--absent")])
def test_wrong_usage_ends_with_two(cli: Cli, arguments: tuple[str, ...]) -> None:
    done = cli("search", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err


def test_without_an_index_the_next_step_is_told(cli: Cli, home: Path) -> None:
    for file in home.glob("state.db*"):
        file.unlink()
    done = cli("search", "water")
    assert done.code == 2
    assert "obsidian-rag index" in done.err


def test_a_degraded_answer_is_printed_with_its_reason(
    cli: Cli, vault: Path, configure: Configure
) -> None:
    configure(vault, {"embedding.provider": "builtin"})
    done = cli("search", "sedge", "--top", "1")
    assert (done.code, found(done)) == (0, ["Projects/Rain garden.md"])
    assert "EMBEDDING_MISMATCH" in done.err
    assert cli("search", "sedge", "--json").json["status"] == "degraded"


def test_matches_are_highlighted_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("search", "sedge", "--top", "1")
    shown = on_terminal_in_process(*arguments)
    assert shown.code == 0
    assert re.search(r"\x1b\[\S*msedge\x1b\[0m", shown.err)
    assert COLOUR not in on_terminal_in_process(*arguments, is_redirected=True).out
    assert COLOUR not in in_another_process(*arguments).out
    monkeypatch.setenv("NO_COLOR", "1")
    plain = on_terminal_in_process(*arguments)
    assert COLOUR not in plain.err
    assert "sedge" in plain.err


def test_control_characters_of_a_note_do_not_reach_the_terminal(
    cli: Cli, vault: Path, home: Path
) -> None:
    (vault / "evil.md").write_text("badger \x1b]0;owned\x07\x1b[2J\u202e end")
    assert cli("sync").code == 0
    done = cli("search", "badger", "--top", "1")
    assert found(done) == ["evil.md"]
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", done.out)
    assert not re.search(r"[\x00-\x1f]", json.dumps(cli("search", "badger", "--json").json))
