"""uuid check tells which ids break a rule; uuid add writes them, on request only."""

import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest
from tests.fixture_types import Cli, Configure, MakeVault
from tests.folders import files_below
from tests.transports.command_line import COMMAND, in_another_process, on_terminal_in_process
from tests.waiting import PATIENCE_S

V4 = "550e8400-e29b-41d4-a716-44665544000"
GOOD, OTHER, LOST = f"{V4}0", f"{V4}1", f"{V4}9"
V1 = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
ID_LINE = re.compile(r'id: "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"\n')


def with_id(value: str, more: str = "") -> str:
    return f"---\nid: {value}\n{more}---\ntext\n"


NOTES: dict[str, str | bytes] = {
    "a good.md": with_id(GOOD),
    "b copy.md": with_id(GOOD),
    "c old.md": f"---\nuuid: {OTHER}\n---\n",
    "d upper.md": with_id(f"{V4}2".upper()),
    "e version.md": with_id(V1),
    "f word.md": with_id("mine"),
    "g none.md": "# None\n",
    "h empty.md": "---\nid:\ntags: [x]\n---\n",
    "i torn.md": "---\ntags: [a\n---\ntext",
    "j lost.md": with_id(f"{V4}3", f"related: [{LOST}]\n"),
    "k never.md": "---\nrag: false\n---\nsecret",
    "l bytes.md": b"\xff\xff",
    "m board.canvas": '{"nodes": [], "edges": []}',
    "Templates/day.md": "# Day\n",
}
SETTINGS = {"relations.excluded_folders": ["Templates/"]}


@pytest.fixture
def vault(make_vault: MakeVault, configure: Configure) -> Path:
    root = make_vault(NOTES)
    configure(root, SETTINGS)
    return root


def test_check_reports_every_rule_that_is_broken_and_writes_nothing(cli: Cli, vault: Path) -> None:
    before = files_below(vault)
    done = cli("uuid", "check", "--json")
    assert (done.code, done.err) == (1, "")
    assert done.json["data"] == {
        "is_clean": False,
        "notes": 10,
        "missing": ["g none.md", "h empty.md", "i torn.md"],
        "invalid": [
            {"note": "e version.md", "id": V1, "field": "id", "trouble": "not_v4"},
            {"note": "f word.md", "id": "mine", "field": "id", "trouble": "not_a_uuid"},
        ],
        "not_lower_case": [
            {
                "note": "d upper.md",
                "id": f"{V4}2".upper(),
                "field": "id",
                "trouble": "not_lower_case",
            }
        ],
        "duplicates": [{"id": GOOD, "kept": "a good.md", "others": ["b copy.md"]}],
        "legacy": ["c old.md"],
        "dangling": [{"note": "j lost.md", "target": LOST}],
        "cycles": None,
        "unread": [{"note": "l bytes.md", "reason": "not_utf8"}],
    }
    assert files_below(vault) == before


def test_check_tells_people_the_same(cli: Cli, vault: Path) -> None:
    done = cli("uuid", "check")
    assert done.code == 1
    sections = dict(block.split("\n", 1) for block in done.out.strip().split("\n\n")[:-1])
    assert list(sections) == [
        "No id (3)",
        "Not a UUID v4 (2)",
        "Not in lower case (1)",
        "Used twice; the first note keeps it (1)",
        "Related to nothing (1)",
        "Could not be read (1)",
        "In the older field `uuid`, which works too (1)",
    ]
    assert sections["Used twice; the first note keeps it (1)"].strip() == (
        f"{GOOD}: a good.md, not b copy.md"
    )
    assert sections["Not a UUID v4 (2)"].split("\n")[0].strip() == (
        f"e version.md: id: {V1} (another version)"
    )
    assert done.out.splitlines()[-1] == "3 of 10 notes have valid ids"
    assert "obsidian-rag uuid add --all" in done.err


def test_a_clean_vault_ends_with_0_also_with_the_older_field(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault({"a.md": with_id(GOOD), "b.md": NOTES["c old.md"]}), {})
    done = cli("uuid", "check")
    assert done.code == 0
    assert "2 notes, each with a valid id" in done.out


def test_names_that_lead_nowhere_are_wrong_and_circles_are_not(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    notes = {
        "a.md": with_id(GOOD, f"related: [{OTHER}]\n"),
        "b.md": with_id(OTHER, f"related: [{GOOD}]\n"),
    }
    configure(make_vault(notes), {})
    cli("index")
    done = cli("uuid", "check")
    assert done.code == 0
    assert "Relations in a circle, which are harmless (1)\n  a.md → b.md → a.md\n" in done.out
    make_vault({"c.md": with_id(f"{V4}4", "related: ['[[Nowhere]]', '[[a]]']\n")})
    cli("sync")
    broken = cli("uuid", "check", "--json")
    assert broken.code == 1
    assert broken.json["data"]["dangling"] == [{"note": "c.md", "target": "Nowhere"}]
    assert broken.json["data"]["cycles"] == [["a.md", "b.md"]]


def test_twenty_notes_are_shown_and_all_of_them_on_request(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault({f"{number:02}.md": "x" for number in range(30)}), {})
    assert cli("uuid", "check").out.count(".md") == 20
    assert "10 more" in cli("uuid", "check").out
    assert cli("uuid", "check", "--all").out.count(".md") == 30


def test_add_writes_an_id_as_the_first_field_and_nothing_else(cli: Cli, vault: Path) -> None:
    (vault / "crlf.md").write_bytes(b"---\r\n# why\r\ntags: [a]\r\n---\r\nno end")
    done = cli("uuid", "add", "crlf")
    assert (done.code, done.err) == (0, "")
    written = (vault / "crlf.md").read_bytes().decode()
    (line,) = re.findall(r'id: ".{36}"\r\n', written)
    assert written.replace(line, "", 1) == "---\r\n# why\r\ntags: [a]\r\n---\r\nno end"
    assert written.startswith(f"---\r\n{line}")
    assert done.out == f"crlf.md  got the id {line[5:41]}\n"


def test_a_good_id_never_changes(cli: Cli, vault: Path) -> None:
    before = files_below(vault)
    for note, value in (("a good", GOOD), ("c old", OTHER)):
        done = cli("uuid", "add", note)
        assert (done.code, done.out) == (0, f"{note}.md  has the id {value}\n")
    assert files_below(vault) == before
    answer = cli("uuid", "add", "a good", "--json").json["data"]
    assert answer == {"note": "a good.md", "outcome": "existing", "id": GOOD, "error": None}


def test_a_dry_run_writes_nothing(cli: Cli, vault: Path) -> None:
    before = files_below(vault)
    assert cli("uuid", "add", "g none", "--dry-run").out == "g none.md  would get an id\n"
    done = cli("uuid", "add", "--all", "--dry-run")
    assert done.out.splitlines() == [
        "g none.md  would get an id",
        "h empty.md  would get an id",
        "2 notes would get an id",
    ]
    assert done.err.count("failed: ") == 4
    assert files_below(vault) == before
    data = cli("uuid", "add", "--all", "--dry-run", "--json").json["data"]
    assert (data["dry_run"], data["interrupted"]) == (True, False)
    assert {one["outcome"] for one in data["notes"]} == {"planned", "failed"}


def test_add_all_goes_on_after_a_bad_note_and_tells_of_it(cli: Cli, vault: Path) -> None:
    before = files_below(vault)
    done = cli("uuid", "add", "--all")
    assert done.code == 1
    assert done.out == "2 notes got an id\n"
    failed = [line for line in done.err.splitlines() if "failed" in line]
    assert [re.findall(r"'([^']*?\.md)'", line)[0] for line in failed] == [
        "d upper.md",
        "e version.md",
        "f word.md",
        "i torn.md",
    ]
    changed = {file for file, data in files_below(vault).items() if data != before[file]}
    assert {Path(file).name for file in changed} == {"g none.md", "h empty.md"}
    assert ID_LINE.search((vault / "g none.md").read_text())
    assert cli("uuid", "check", "--json").json["data"]["missing"] == ["i torn.md"]


def test_add_all_in_a_vault_that_has_all_ids_says_so(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault({"a.md": with_id(GOOD)}), {})
    done = cli("uuid", "add", "--all")
    assert (done.code, done.out, done.err) == (0, "Every note has an id\n", "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "INVALID_ARGUMENT"),
        (("g none", "--all"), "INVALID_ARGUMENT"),
        (("Nowhere",), "NOT_FOUND"),
        (("../outside.md",), "SECURITY_VIOLATION"),
        (("m board.canvas",), "INVALID_ARGUMENT"),
        (("f word",), "INVALID_ARGUMENT"),
        (("i torn",), "INVALID_ARGUMENT"),
        (("l bytes",), "INDEXER_FAILED"),
    ],
)
def test_what_cannot_get_an_id_stays_as_it_is(
    cli: Cli, vault: Path, arguments: tuple[str, ...], code: str
) -> None:
    before = files_below(vault)
    done = cli("uuid", "add", *arguments, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, code)
    assert "hint" in done.err
    assert files_below(vault) == before


def test_the_owner_may_give_an_id_to_any_note_by_name(cli: Cli, vault: Path) -> None:
    assert cli("uuid", "add", "k never").code == 0
    assert cli("uuid", "add", "Templates/day").code == 0


def test_progress_goes_to_the_terminal_and_the_summary_to_the_file(vault: Path) -> None:
    done = on_terminal_in_process("uuid", "add", "--all", is_redirected=True)
    assert (done.code, done.out) == (1, "2 notes got an id\n")
    assert "━" in done.err
    assert "━" not in in_another_process("uuid", "check").err


def test_an_interrupt_leaves_whole_notes_and_tells_how_far_it_came(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    vault = make_vault({f"{number}.md": "x\n" for number in range(4000)})
    configure(vault, {})
    terminal, far_end = pty.openpty()
    command = [*COMMAND, "uuid", "add", "--all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=far_end, text=True) as process:
        os.close(far_end)
        shown = b""
        while b"ids" not in shown:
            shown += os.read(terminal, 65536)
        process.send_signal(signal.SIGINT)
        while b"stayed unchanged" not in shown:
            shown += os.read(terminal, 65536)
        out, _ = process.communicate(timeout=PATIENCE_S)
    os.close(terminal)
    assert process.returncode == 130
    written = int(out.split()[0])
    texts = [file.read_text() for file in vault.glob("*.md")]
    with_ids = [text for text in texts if ID_LINE.match(text.removeprefix("---\n"))]
    assert all(text == "x\n" or text.endswith('"\n---\nx\n') for text in texts)
    assert len(with_ids) == written < 4000


def test_without_a_vault_the_next_step_is_told(cli: Cli) -> None:
    done = cli("uuid", "check", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "CONFIG_INVALID")
