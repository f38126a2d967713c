"""related: which notes belong to a note or a text, why, and how that looks; and its status line."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.fixture_types import Cli, Configure, MakeVault
from tests.integration.living import QUICK, living
from tests.transports.command_line import Done, in_another_process, on_terminal_in_process

from obsidian_rag.transports.cli.output import plain, wrap
from obsidian_rag.transports.cli.related_cmd import excerpt

COLOUR = "\x1b["
NOTES = {
    "Garden/Rain garden.md": (
        "---\ntags: [water, garden]\n---\n# Rain garden\n\nThe downspout feeds fox sedge.\n"
        "The [[Sump pump]] may rest.\n"
    ),
    "Garden/Bog.md": "---\ntags: [water]\n---\n# Bog\n\nFox sedge likes a downspout.\n",
    "Sump pump.md": "# Sump pump\n\nDrains the cellar when it rains.\n",
    "Bread.md": "---\ntags: [baking]\n---\n# Rye bread\n\nFeed the sourdough twice a day.\n",
    "Places/京都の旅.md": "---\ntags: [baking]\n---\n# 京都の旅\n\n秋に京都へ行きました。"
    + "庭を見た。" * 30,
    "Starter.md": "# Starter\n\nSourdough wants rye, 京都 wants patience.\n",
    "Private.md": "---\nrag: private\ntags: [water]\n---\n# Secret pond\n\nNobody knows it.\n",
}


def found(done: Done) -> list[str]:
    """The notes of a JSON answer, best first."""
    return [result["source_file"] for result in done.json["data"]["results"]]


def blocks(done: Done) -> Iterator[list[str]]:
    """The lines of each note in an answer for people."""
    return (block.splitlines() for block in done.out.strip().split("\n\n"))


def test_each_note_has_a_title_a_score_a_path_reasons_and_both_passages(
    cli: Cli, vault: Path
) -> None:
    done = cli("related", "Rain garden", "--top", "1")
    assert done.code == 0
    ((head, path, reasons, *passages),) = blocks(done)
    assert re.fullmatch(r"1\. Bog  [01]\.\d\d", head)
    assert path.strip() == "Garden/Bog.md"
    assert "same tags: #water" in reasons
    assert "downspout" in reasons
    assert [line.split()[0] for line in passages] == ["here:4-7", "there:4-6"]
    assert "The downspout feeds fox sedge" in passages[0]
    assert "# Bog" not in passages[1]


def test_json_is_the_answer_of_the_tool(cli: Cli, vault: Path) -> None:
    done = cli("related", "Garden/Rain garden.md", "--json")
    assert (done.code, done.err) == (0, "")
    data = done.json["data"]
    assert (data["note"], data["compared"]) == ("Garden/Rain garden.md", 7)
    assert found(done)[0] == "Garden/Bog.md"
    assert {"score", "signals", "reasons", "shared_tags", "shared_terms", "passages"} <= set(
        data["results"][0]
    )
    assert done.json["status"] == "healthy"


def test_a_text_takes_the_place_of_a_note(cli: Cli, vault: Path) -> None:
    done = cli("related", "--text", "sourdough and rye", "--json")
    assert set(found(done)[:2]) == {"Bread.md", "Starter.md"}
    assert done.json["data"]["note"] is None
    shown = cli("related", "--text", "sourdough and rye", "--top", "1").out
    assert " here:" not in shown
    assert " there:" in shown


def test_tags_after_a_comma_lift_notes_that_have_them(cli: Cli, vault: Path) -> None:
    def scores(*tags: str) -> dict[str, float]:
        done = cli("related", "--text", "京都 sourdough", *tags, "--json")
        return {one["source_file"]: one["score"] for one in done.json["data"]["results"]}

    assert scores("--tags", "#Baking, water")["Bread.md"] > scores()["Bread.md"]
    assert scores("--tags", "baking", "-t", "water") == scores("--tags", "baking,water")


def test_top_bounds_the_list_and_is_checked(cli: Cli, vault: Path, configure: Configure) -> None:
    assert len(found(cli("related", "Rain garden", "-n", "2", "--json"))) == 2
    configure(vault, {"relations.max_results": 1})
    assert len(found(cli("related", "Rain garden", "--json"))) == 1
    wrong = cli("related", "Rain garden", "--top", "0", "--json")
    assert (wrong.code, wrong.json["error"]["code"]) == (2, "INVALID_ARGUMENT")


def test_linked_notes_are_hidden_and_told_until_they_are_wanted(
    cli: Cli, vault: Path, configure: Configure
) -> None:
    hidden = cli("related", "Rain garden")
    assert "Sump pump.md" not in hidden.out
    assert "already links to 1 note; --show-linked" in hidden.err
    shown = cli("related", "Rain garden", "--show-linked")
    assert "Sump pump.md" in shown.out
    assert re.search(r"Sump pump  \d\.\d\d  \[linked\]", shown.out)
    assert shown.err == ""
    configure(vault, {"relations.hide_linked": False})
    assert "Sump pump.md" in cli("related", "Rain garden").out
    assert "Sump pump.md" not in cli("related", "Rain garden", "--hide-linked").out


def test_explain_tells_the_shares_and_the_link(cli: Cli, vault: Path) -> None:
    done = cli("related", "Rain garden", "--top", "1", "--explain")
    shares = re.findall(r"(\w+) ([01]\.\d\d)", done.out.partition("shares: ")[2])
    assert {"tags", "cosine"} <= {name for name, _ in shares}
    assert sum(float(share) for _, share in shares) == pytest.approx(1, abs=0.05)
    assert "obsidian://open?vault=vault&file=Garden%2FBog" in done.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "INVALID_ARGUMENT"),
        (("Rain garden", "--text", "rain"), "INVALID_ARGUMENT"),
        (("Nowhere",), "NOT_FOUND"),
        (("--text", "zzzz"), "INVALID_ARGUMENT"),
        (("--text", " "), "INVALID_ARGUMENT"),
        (("../outside.md",), "SECURITY_VIOLATION"),
    ],
)
def test_what_cannot_be_related_ends_with_two_and_a_hint(
    cli: Cli, vault: Path, arguments: tuple[str, ...], code: str
) -> None:
    done = cli("related", *arguments, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, code)
    assert "hint" in done.err


def test_before_the_first_index_the_next_step_is_told(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault(NOTES), {})
    done = cli("related", "Garden/Rain garden.md")
    assert (done.code, done.out) == (2, "")
    assert "obsidian-rag sync" in done.err


def test_nothing_related_is_no_failure(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault({"a.md": "sedge", "b.md": "sourdough"}), {"relations.vector_weight": 0})
    cli("index")
    done = cli("related", "a")
    assert (done.code, done.out) == (0, "")
    assert "No related notes among 2 notes" in done.err


def test_scores_have_the_colours_of_the_panel_on_a_terminal_only(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("related", "Rain garden", "--show-linked")
    shown = re.findall(r"\x1b\[(\d+)m([01]\.\d\d)\x1b", on_terminal_in_process(*arguments).err)
    assert shown
    for colour, score in shown:
        worth = float(score)
        assert colour == ("32" if worth > 0.7 else "33" if worth > 0.4 else "90")
    assert COLOUR not in in_another_process(*arguments).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert COLOUR not in on_terminal_in_process(*arguments).err


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_lines_fit_the_terminal_in_every_script(
    cli: Cli, vault: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for note in ("Rain garden", "京都の旅", "Starter"):
        done = cli("related", note, "--show-linked")
        assert done.out
        assert max(cell_len(line) for line in done.out.splitlines()) <= columns


def test_a_title_that_is_too_long_is_cut(
    cli: Cli, vault: Path, make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_vault({"long.md": f"---\ntags: [water]\n---\n# {'Downspout ' * 30}\n"})
    cli("sync")
    monkeypatch.setenv("COLUMNS", "60")
    for arguments in (("related", "Rain garden", "--explain"), ("suggest", "Rain garden")):
        lines = [line for line in cli(*arguments).out.splitlines() if "obsidian://" not in line]
        assert any("Downspout Downspout" in line for line in lines)
        assert max(map(cell_len, lines)) <= 60


def test_characters_that_steer_a_terminal_do_not_reach_it(
    cli: Cli, vault: Path, make_vault: MakeVault
) -> None:
    evil = '---\ntitle: "Bad \\e[2J\\e]0;owned\\a\\u202e pond"\ntags: [water]\n---\nFox sedge.\n'
    deeper = "---\ntags: [water]\n---\nA [[evil\u202e]] way.\n"
    make_vault({"evil\u202e.md": f"{evil}To the [[Rain garden]].\n", "deeper.md": deeper})
    assert cli("sync").code == 0
    for arguments in (("related", "Rain garden"), ("suggest", "Rain garden")):
        done = cli(*arguments)
        assert "linked via Bad" in done.out
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", done.out + done.err)


def test_a_running_daemon_answers_and_the_owner_sees_private_notes(
    make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault(NOTES), QUICK)
    with living() as daemon:
        daemon.index()
        done = in_another_process("related", "Rain garden", "--json")
        assert done.code == 0
        (private,) = (one for one in done.json["data"]["results"] if one["title"] == "Secret pond")
        assert not private["withheld"]
        asked = daemon.call("related", note="Rain garden")["data"]["results"]
        assert [one for one in asked if one["title"] == "Secret pond"] == []
        status = in_another_process("status")
        assert re.search(r"^related +7 notes, updated just now$", status.out, re.MULTILINE)


def test_status_tells_how_many_notes_are_related_and_since_when(
    cli: Cli, vault: Path, home: Path
) -> None:
    assert cli("status", "--json").json["data"]["relations"]["notes"] == 7
    for moment, said in (
        ("2020-01-01T00:00:00.000000Z", r"[\d,]+ days ago"),
        ("2999-01-01T00:00:00.000000Z", "just now"),
    ):
        with closing(sqlite3.connect(home / "relations.db", isolation_level=None)) as rows:
            rows.execute("UPDATE meta SET value = ? WHERE key = 'updated_at'", (moment,))
        shown = cli("status").out
        assert re.search(rf"^related +7 notes, updated {said}$", shown, re.MULTILINE)


def test_status_before_the_first_index_says_that_nothing_is_related(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault(NOTES), {})
    assert re.search(r"^related +not indexed$", cli("status").out, re.MULTILINE)
    assert cli("status", "--json").json["data"]["relations"] is None


@given(st.text("ab 京,;", max_size=200), st.integers(10, 40), st.integers(1, 4))
def test_wrapped_text_fits_and_only_its_end_is_ever_lost(
    text: str, columns: int, most: int
) -> None:
    lines = wrap(plain(text), columns, most)
    assert len(lines) <= most
    assert max(map(cell_len, lines)) <= columns
    kept = "".join(lines).removesuffix("…").replace(" ", "")
    assert text.replace(" ", "").startswith(kept)
    assert lines[-1].endswith("…") or kept == text.replace(" ", "")


def test_an_excerpt_begins_with_its_most_telling_line() -> None:
    text = "# Head\n\nNothing here.\nThe sedges grow.\nMore."
    assert excerpt(text, ["sedge"]) == "The sedges grow. More."
    assert excerpt("# Only a heading", ["sedge"]) == "# Only a heading"
    assert excerpt("", []) == ""
