"""How answers look: cut and wrapped at words, local times, colour, whole summaries, completion."""

import json
import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.fixture_types import Cli
from tests.transports.command_line import COMMAND, on_terminal_in_process
from tests.waiting import PATIENCE_S

from obsidian_rag.engine import status
from obsidian_rag.transports.cli.app import app

WORDS = [f"badger{number}" for number in range(80)]
NOTES = {
    "Long line.md": "# Long line\n\n" + " ".join(WORDS) + " walrus " + " ".join(WORDS),
    "Many lines.md": "# Many lines\n\n" + "\n".join(f"line {n} of wombats" for n in range(60)),
    "Debts.md": "# Debts\n\nI owe a lot.\n",
    "Rain garden.md": "# Rain garden\n\nSedge.\n",
    "Sub/Rain barrel.md": "# Rain barrel\n\nWater.\n",
}


@pytest.mark.parametrize("columns", [80, 120])
def test_results_fit_the_terminal_and_are_cut_at_words(
    cli: Cli, vault: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = cli("search", "walrus", "--top", "1").out
    assert "walrus" in shown
    lines = shown.splitlines()
    assert max(map(len, lines)) <= columns
    assert len([line for line in lines if "badger" in line]) <= 7
    assert shown.strip().endswith("…")
    known = {*WORDS, "walrus", "…"}
    for line in lines[2:]:
        assert {word.strip("…") or "…" for word in line.split()} <= known, line


def test_a_passage_that_goes_on_ends_with_an_ellipsis(cli: Cli, vault: Path) -> None:
    shown = cli("search", "line 40 of wombats", "--top", "1", "--no-dates").out
    assert shown.rstrip().endswith("…")
    assert "… line" in shown


def test_a_passage_that_is_shown_whole_has_no_ellipsis(cli: Cli, vault: Path) -> None:
    assert "…" not in cli("search", "sedge", "--top", "1").out


def test_status_shows_local_time_to_the_minute_and_json_has_all_of_it(
    cli: Cli, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = re.search(r"^last sync +(\S+ \S+) \((.*)\)$", cli("status").out, re.MULTILINE)
    assert shown is not None
    told = cli("status", "--json").json["data"]["last_sync"]
    moment = datetime.fromisoformat(told)
    assert moment.tzinfo == UTC
    assert shown[1] == moment.astimezone().strftime("%Y-%m-%d %H:%M")


def test_status_has_colour_on_a_terminal_that_wants_it(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = on_terminal_in_process("status").err
    assert re.search(r"\x1b\[32m\S*healthy", shown)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = on_terminal_in_process("status").err
    assert "\x1b" not in plain
    assert "healthy" in plain


def test_what_was_not_checked_is_said(
    vault: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setattr(status, "_MAX_WALK_S", -1.0)  # as if the vault were very large
    assert re.search(r"^to index +not checked; `sync` checks$", cli("status").out, re.MULTILINE)


@pytest.mark.parametrize(
    "group", [(), *((one.name,) for one in app.registered_groups)], ids=lambda one: "".join(one)
)
def test_no_summary_is_cut_at_eighty_columns(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, group: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = cli(*group, "--help").out.partition("Commands:")[2]
    assert shown
    assert [line for line in shown.splitlines() if line.endswith("...")] == []


def completed(*words: str) -> list[str]:
    """What the shell would offer for the last word."""
    asked = {
        "_OBSIDIAN_RAG_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("obsidian-rag", *words)),
        "COMP_CWORD": str(len(words)),
    }
    shown = subprocess.run(
        [*COMMAND],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    return shown.stdout.splitlines()


def test_the_shell_completes_names_of_notes(vault: Path) -> None:
    assert completed("read", "Deb") == ["Debts"]
    assert completed("relate", "Debts", "Rain") == ["Rain\\ barrel", "Rain\\ garden"]


def test_eval_ends_with_a_sentence(cli: Cli, vault: Path, tmp_path: Path) -> None:
    golden = tmp_path / "golden.json"
    golden.write_text(json.dumps([{"query": "sedge", "relevant": ["Rain garden.md"]}]))
    shown = cli("eval", str(golden)).out
    assert "Search finds a right note first for 100% of 1 question" in shown
    assert shown.rstrip().endswith(".")
