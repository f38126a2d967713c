"""suggest: a list to choose from on a terminal, and a list for everybody else."""

import re
from pathlib import Path

import pytest
from tests.fixture_types import Cli, Configure, MakeVault
from tests.transports.command_line import Done, in_another_process, on_terminal_in_process

BOG_ID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
BREAD_ID = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
NOTES = {
    "Garden.md": "---\ntags: [water]\n---\n# Garden\n\nThe downspout feeds fox sedge and iris.\n",
    "Peat bog.md": (
        f"---\nid: {BOG_ID}\ntags: [water]\n---\n# Peat bog\n\nFox sedge near the downspout.\n"
    ),
    "Pond.md": "---\ntags: [water]\n---\n# Pond\n\nBlue iris and frogs.\n",
    "Broken.md": "---\nid: 17\ntags: [water]\n---\n# Ditch\n\nIris and a downspout.\n",
    "Bread.md": f"---\nid: {BREAD_ID}\n---\n# Sourdough bread\n\nTwice a day.\n",
}
PROMPT = "Enter to end: "


def garden(vault: Path) -> str:
    return (vault / "Garden.md").read_text()


def is_untouched(vault: Path) -> bool:
    return {name: (vault / name).read_text() for name in NOTES} == NOTES


def number_of(cli: Cli, note: str) -> str:
    """The number under which a note is suggested."""
    results = cli("suggest", "Garden", "--json").json["data"]["results"]
    return str([one["source_file"] for one in results].index(note) + 1)


def picking(*answers: str) -> Done:
    """The picker, answered line by line."""
    return on_terminal_in_process(
        "suggest", "Garden", answers=[(PROMPT, answer) for answer in answers]
    )


def test_in_a_pipe_suggestions_are_printed_and_nothing_is_written(vault: Path) -> None:
    done = in_another_process("suggest", "Garden")
    assert (done.code, done.err) == (0, "")
    first, why, *_ = done.out.splitlines()
    assert re.fullmatch(r" +1  0\.\d\d  Peat bog  Peat bog\.md", first)
    assert "same tags: #water" in why
    assert is_untouched(vault)


def test_json_is_the_answer_of_the_tool(cli: Cli, vault: Path) -> None:
    done = cli("suggest", "Garden", "--top", "2", "--json")
    assert (done.code, done.err, is_untouched(vault)) == (0, "", True)
    assert done.json["data"]["note"] == "Garden.md"
    assert [one["title"] for one in done.json["data"]["results"]][0] == "Peat bog"
    assert len(done.json["data"]["results"]) == 2


def test_nothing_to_suggest_is_no_failure(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault({"a.md": "sedge", "b.md": "bread"}), {"relations.vector_weight": 0})
    cli("index")
    done = cli("suggest", "a")
    assert (done.code, done.out) == (0, "")
    assert "Nothing to suggest for a.md" in done.err


def test_apply_writes_numbers_and_paths_without_asking(cli: Cli, vault: Path) -> None:
    number = number_of(cli, "Peat bog.md")
    done = cli("suggest", "Garden", "--apply", number, "--apply", "Bread.md", "--rel", "supports")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "Garden.md → Peat bog.md  (supports)",
        "Garden.md → Bread.md  (supports)",
    ]
    assert garden(vault).count('rel: "supports"') == 2
    assert {BOG_ID, BREAD_ID} <= set(re.findall(r'id: "(\S+)"', garden(vault)))


def test_what_was_applied_is_not_suggested_again(cli: Cli, vault: Path) -> None:
    cli("suggest", "Garden", "--apply", "Peat bog")
    results = cli("suggest", "Garden", "--json").json["data"]["results"]
    assert "Peat bog.md" not in [one["source_file"] for one in results]


@pytest.mark.parametrize("wanted", ["0", "99", "1,99"])
def test_a_number_that_is_not_in_the_list_writes_nothing(
    cli: Cli, vault: Path, wanted: str
) -> None:
    done = cli("suggest", "Garden", "--apply", wanted, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "INVALID_ARGUMENT")
    assert is_untouched(vault)


def test_a_target_without_an_id_gets_one_only_on_request(cli: Cli, vault: Path) -> None:
    refused = cli("suggest", "Garden", "--apply", "Pond.md")
    assert (refused.code, is_untouched(vault)) == (2, True)
    assert "--add-id" in refused.err
    assert cli("suggest", "Garden", "--apply", "Pond.md", "--add-id").code == 0
    assert (vault / "Pond.md").read_text().startswith('---\nid: "')


def test_one_that_fails_does_not_stop_the_others(cli: Cli, vault: Path) -> None:
    asked = ("suggest", "Garden", "--apply", "Broken.md", "--apply", "Peat bog.md")
    done = cli(*asked)
    assert done.code == 1
    assert "INVALID_ARGUMENT" in done.err
    assert BOG_ID in garden(vault)
    data = cli(*asked, "--json").json["data"]
    assert [one["target"] for one in data["written"]] == ["Peat bog.md"]
    ((failed),) = data["failed"]
    assert (failed["target"], failed["code"]) == ("Broken.md", "INVALID_ARGUMENT")


def test_a_number_picks_and_an_empty_line_ends(cli: Cli, vault: Path) -> None:
    done = picking(number_of(cli, "Peat bog.md"), "references", "*", "")
    assert done.code == 0
    assert "Garden.md → Peat bog.md  (references)" in done.err
    assert "(written)" in done.err
    assert f'  - id: "{BOG_ID}"\n    rel: "references"\n' in garden(vault)


def test_an_empty_answer_takes_the_offered_relation(cli: Cli, vault: Path) -> None:
    number = number_of(cli, "Peat bog.md")
    answers = [(PROMPT, answer) for answer in (number, "", "")]
    done = on_terminal_in_process("suggest", "Garden", "--rel", "feeds", answers=answers)
    assert "How is it related? [feeds]" in done.err
    assert 'rel: "feeds"' in garden(vault)


def test_typing_filters_by_letters_and_finds_what_was_not_suggested(
    cli: Cli, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    done = picking("Paet bog", "sourdoug", "qqqq", "")
    assert (done.code, is_untouched(vault)) == (0, True)
    # The terminal echoes what is typed before it is asked for: the lists are what comes after.
    listed = re.findall(r"^.*? (\d+)  (?:0\.\d\d| –  )  (\S+ \S+)  \S.*$", done.err, re.MULTILINE)
    suggested = len(cli("suggest", "Garden", "--json").json["data"]["results"])
    filtered = listed[-2:]
    assert filtered == [
        (number_of(cli, "Peat bog.md"), "Peat bog"),
        (str(suggested + 1), "Sourdough bread"),
    ]
    assert "not suggested" in done.err
    assert "No such note" in done.err


def test_typing_filters_by_a_part_of_the_path_too(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    done = picking("ROKEN.", "")
    # In the first list and in the filtered one, of which it is all.
    assert [done.err.count(f"  {title}  ") for title in ("Ditch", "Peat bog", "Pond")] == [2, 1, 1]


def test_a_note_that_was_not_suggested_can_be_picked_too(cli: Cli, vault: Path) -> None:
    suggested = len(cli("suggest", "Garden", "--json").json["data"]["results"])
    picking("sourdough", str(suggested + 1), "", "")
    assert BREAD_ID in garden(vault)


def test_the_picker_asks_before_it_writes_an_id(cli: Cli, vault: Path) -> None:
    number = number_of(cli, "Pond.md")
    refused = picking(number, "", "", "")
    assert "Pond.md has no id. Write one into it? [y/N]" in refused.err
    assert "Nothing was written" in refused.err
    assert is_untouched(vault)
    picking(number, "", "y", "")
    (written,) = re.findall(r'id: "(\S+)"', (vault / "Pond.md").read_text())
    assert written in garden(vault)


def test_a_pick_that_fails_is_told_and_the_picker_goes_on(cli: Cli, vault: Path) -> None:
    done = picking(number_of(cli, "Broken.md"), "", number_of(cli, "Peat bog.md"), "", "")
    assert done.code == 0
    assert "INVALID_ARGUMENT" in done.err
    assert BOG_ID in garden(vault)


def test_the_end_of_the_input_ends_the_picker(vault: Path) -> None:
    done = picking("\x04")
    assert (done.code, is_untouched(vault)) == (0, True)


def test_without_suggestions_the_picker_still_finds_notes_by_title(
    make_vault: MakeVault, configure: Configure, cli: Cli
) -> None:
    vault = make_vault({"a.md": "sedge", "b.md": f"---\nid: {BOG_ID}\n---\n# Rye bread"})
    configure(vault, {"relations.vector_weight": 0})
    cli("index")
    answers = [(PROMPT, answer) for answer in ("rye", "1", "", "")]
    done = on_terminal_in_process("suggest", "a", answers=answers)
    assert "Nothing to suggest" in done.err
    assert BOG_ID in (vault / "a.md").read_text()


def test_a_terminal_whose_output_is_redirected_gets_the_list(vault: Path) -> None:
    done = on_terminal_in_process("suggest", "Garden", is_redirected=True)
    assert done.code == 0
    assert "Peat bog.md" in done.out
    assert PROMPT not in done.err
