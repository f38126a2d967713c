"""Reading through the door of agents: the right lines, inside the boundary, guarded."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.fixture_types import MakeEngine, MakeVault

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.tools import OWNER, call
from obsidian_rag.tools.citation import obsidian_link
from obsidian_rag.tools.dispatch import parse
from obsidian_rag.tools.read import ReadParams, read

WITHHOLD = {"security.sensitive_policy": "withhold"}

PLAN = """---
title: The plan
tags: [project/garden]
---
# Plan

Intro

## Spring
Sow peas
### Week 1
Dig
## Autumn
Plant #bulbs

# Notes
## Spring
Wet
"""
JOURNAL = "Morning\n#mentalhealth\nSlept badly\nAgain\n#finance\nA quiet day\n"
NOTES: dict[str, str | bytes] = {
    "Projects/Plan.md": PLAN,
    "Journal/2024-01-15.md": JOURNAL,
    "Finance/Debts.md": "# Debts\n\nI owe Sreenivas two hundred.\n",
    "Health/Secret.md": "---\nrag: private\n---\n# Secret\nquiet words\n",
    "Home/Never.md": "---\nrag: false\n---\n# Never\nhidden words\n",
    "A/Same.md": "one",
    "B/Same.md": "two",
    "Boards/Map.canvas": '{"nodes":[{"id":"1","type":"text","text":"See\\nowe Bo","x":0,"y":0,'
    '"width":1,"height":1}],"edges":[]}',
    "zzz-Archive/Old.md": "old secret",
    ".obsidian/app.json": "{}",
    "image.png": b"\x89PNG",
    "latin.md": b"\xff\xfe\xfd",
}


@pytest.fixture
def made(engine: MakeEngine, make_vault: MakeVault) -> Engine:
    return engine(make_vault(NOTES))


def ask(engine: Engine, note: str, **arguments: object) -> Any:
    return call(engine, "obsidian_rag_read", {"note": note, **arguments})


def code(envelope: Any) -> str:
    assert envelope["data"] is None
    return str(envelope["error"]["code"])


def test_a_whole_note_comes_with_what_is_needed_to_cite_it(made: Engine) -> None:
    run_index(made, Mode.FULL)
    envelope = ask(made, "Projects/Plan.md")
    assert (envelope["status"], envelope["error"]) == ("healthy", None)
    assert envelope["data"] == {
        "source_file": "Projects/Plan.md",
        "title": "The plan",
        "text": PLAN.rstrip("\n"),
        "start_line": 1,
        "end_line": 18,
        "total_lines": 18,
        "is_truncated": False,
        "heading_path": [],
        "tags": ["#project/garden", "#bulbs"],
        "date": None,
        "sensitive_detected": False,
        "sensitive_categories": [],
        "link": "obsidian://open?vault=vault&file=Projects%2FPlan",
        "link_id": made.vaults.one().link_id,
        "vault": "vault",
        "vault_label": "Primary vault",
        "untrusted": True,
    }


@pytest.mark.parametrize("name", ["Projects/Plan", "./Projects//Plan.md"])
def test_a_path_may_be_short_and_needs_no_index(made: Engine, name: str) -> None:
    assert ask(made, name)["data"]["source_file"] == "Projects/Plan.md"


def test_an_absolute_path_in_the_vault_is_a_path(made: Engine) -> None:
    path = str(made.config.vault_root / "Projects/Plan.md")
    assert ask(made, path)["data"]["source_file"] == "Projects/Plan.md"


@pytest.mark.parametrize("name", ["Plan", "plan", "PLAN.MD", "projects/plan"])
def test_a_unique_name_is_found_as_obsidian_finds_links(made: Engine, name: str) -> None:
    assert code(ask(made, name)) == "NOT_FOUND"
    run_index(made, Mode.FULL)
    assert ask(made, name)["data"]["source_file"] == "Projects/Plan.md"


def test_an_ambiguous_name_is_refused_with_the_candidates(made: Engine) -> None:
    run_index(made, Mode.FULL)
    envelope = ask(made, "Same")
    assert code(envelope) == "INVALID_ARGUMENT"
    assert "'A/Same.md', 'B/Same.md'" in envelope["error"]["message"]
    assert ask(made, "B/Same")["data"]["text"] == "two"
    (made.config.vault_root / "A/Same.md").unlink()
    assert ask(made, "Same")["data"]["text"] == "two", "a note that is gone is no candidate"


@pytest.mark.parametrize("name", ["lan", "Projects", "Absent.md", "image.png", "x" * 300])
def test_what_is_no_note_is_not_found(made: Engine, name: str) -> None:
    run_index(made, Mode.FULL)
    assert code(ask(made, name)) == "NOT_FOUND"


def test_a_note_that_is_no_text_is_refused(made: Engine) -> None:
    assert code(ask(made, "latin.md")) == "INDEXER_FAILED"


@pytest.mark.parametrize(
    ("heading", "lines", "path"),
    [
        ("Spring", (9, 12), ["Plan", "Spring"]),
        ("spring", (9, 12), ["Plan", "Spring"]),
        ("## Spring", (9, 12), ["Plan", "Spring"]),
        ("Plan", (5, 15), ["Plan"]),
        ("Week 1", (11, 12), ["Plan", "Spring", "Week 1"]),
        ("Plan > Spring > Week 1", (11, 12), ["Plan", "Spring", "Week 1"]),
        ("Notes > Spring", (17, 18), ["Notes", "Spring"]),
        ("notes>spring", (17, 18), ["Notes", "Spring"]),
        ("Autumn", (13, 15), ["Plan", "Autumn"]),
        ("Notes", (16, 18), ["Notes"]),
    ],
)
def test_a_heading_gives_its_section_to_the_next_of_its_level(
    made: Engine, heading: str, lines: tuple[int, int], path: list[str]
) -> None:
    data = ask(made, "Projects/Plan", heading=heading)["data"]
    assert (data["start_line"], data["end_line"]) == lines
    assert data["text"] == "\n".join(PLAN.splitlines()[lines[0] - 1 : lines[1]])
    assert data["heading_path"] == path


@pytest.mark.parametrize("heading", ["#mentalhealth", "mentalhealth", "#MentalHealth"])
def test_a_tag_line_is_a_heading_too(made: Engine, heading: str) -> None:
    data = ask(made, "Journal/2024-01-15", heading=heading)["data"]
    assert data["text"] == "#mentalhealth\nSlept badly\nAgain"
    assert data["date"] == "2024-01-15"
    assert (data["sensitive_detected"], data["sensitive_categories"]) == (True, ["health"])


def test_a_heading_that_is_not_there_is_not_found(made: Engine) -> None:
    envelope = ask(made, "Projects/Plan", heading="Winter")
    assert code(envelope) == "NOT_FOUND"
    assert "'Week 1'" in envelope["error"]["suggestion"]
    assert code(ask(made, "Projects/Plan", heading="Autumn > Week 1")) == "NOT_FOUND"
    assert code(ask(made, "Boards/Map.canvas", heading="A")) == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(9, 10, (9, 10)), (17, None, (17, 18)), (None, 2, (1, 2)), (18, 99, (18, 18)), (1, 1, (1, 1))],
)
def test_lines_are_those_of_the_file(
    made: Engine, first: int | None, last: int | None, expected: tuple[int, int]
) -> None:
    data = ask(made, "Projects/Plan", start_line=first, end_line=last)["data"]
    assert (data["start_line"], data["end_line"]) == expected
    assert data["text"] == "\n".join(PLAN.splitlines()[expected[0] - 1 : expected[1]])


def test_lines_after_the_end_are_refused(made: Engine) -> None:
    envelope = ask(made, "Projects/Plan", start_line=19)
    assert code(envelope) == "INVALID_ARGUMENT"
    assert "1 to 18" in envelope["error"]["message"]


def test_windows_line_ends_and_a_byte_order_mark_do_not_shift_lines(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"w.md": b"\xef\xbb\xbf# A\r\n\r\nb\r\n# C\r\nd\r\n"}))
    data = ask(made, "w", heading="C")["data"]
    assert (data["text"], data["start_line"], data["total_lines"]) == ("# C\nd", 4, 5)


def test_a_long_note_is_cut_between_lines_and_can_be_read_on(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    lines = [f"line {number:03}" for number in range(1, 101)]
    made = engine(make_vault({"long.md": "\n".join(lines)}))
    collected: list[str] = []
    while len(collected) < 100:
        data = ask(made, "long", max_chars=100, start_line=len(collected) + 1)["data"]
        assert len(data["text"]) <= 100
        collected += data["text"].split("\n")
        assert data["end_line"] == len(collected)
        assert data["is_truncated"] is (len(collected) < 100)
    assert collected == lines


def test_a_line_longer_than_the_limit_is_cut(engine: MakeEngine, make_vault: MakeVault) -> None:
    made = engine(make_vault({"one.md": "x" * 500}))
    data = ask(made, "one", max_chars=100)["data"]
    assert (data["text"], data["is_truncated"], data["end_line"]) == ("x" * 100, True, 1)


def test_an_empty_note_is_one_empty_line(engine: MakeEngine, make_vault: MakeVault) -> None:
    data = ask(engine(make_vault({"empty.md": ""})), "empty")["data"]
    assert (data["text"], data["total_lines"], data["is_truncated"]) == ("", 1, False)


@pytest.mark.parametrize(
    "path",
    [
        "../outside.md",
        "../vault/Projects/Plan.md",
        "Projects/../../outside.md",
        "/etc/passwd",
        "%2e%2e/outside.md",
        "%252e%252e%252foutside.md",
        "..%5coutside.md",
        "..\\outside.md",
        "\\\\server\\share\\x.md",
        "C:\\Windows\\System32\\x.md",
        "C:/Windows/x.md",
        "\uff0e\uff0e/outside.md",
        "a\x00b.md",
        "\x1b[2J.md",
        "~",
        ".",
        ".obsidian/app.json",
        ".obsidian/absent.json",
        "zzz-Archive/Old.md",
        "zzz-Archive/Old",
        "zzz-archive/Absent.md",
        "ZZZ-ARCHIVE/OLD.MD",
    ],
)
def test_a_path_that_leaves_the_boundary_is_a_violation(
    made: Engine, tmp_path: Path, path: str
) -> None:
    (tmp_path / "outside.md").write_text("outside")
    run_index(made, Mode.FULL)
    envelope = ask(made, path)
    assert code(envelope) == "SECURITY_VIOLATION"
    assert (envelope["status"], envelope["error"]["recoverable"]) == ("healthy", False)


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("Projects/link.md", "zzz-Archive/Old.md"),
        ("Projects/link.md", ".obsidian/app.json"),
        ("Projects/link.md", "../outside.md"),
        ("Folder", "zzz-Archive"),
        ("Folder", ".."),
    ],
)
def test_a_symlink_reaches_nothing_that_its_target_would_not(
    made: Engine, tmp_path: Path, link: str, target: str
) -> None:
    vault = made.config.vault_root
    (tmp_path / "outside.md").write_text("outside")
    (vault / link).symlink_to(os.path.relpath(vault / target, (vault / link).parent))
    name = link if link.endswith(".md") else f"{link}/Old.md"
    if target == "..":
        name = f"{link}/outside.md"
    assert code(ask(made, name)) == "SECURITY_VIOLATION"
    assert code(ask(made, name, confirm_sensitive=True)) == "SECURITY_VIOLATION"


def test_a_symlink_to_an_open_note_is_read_by_its_own_name(made: Engine) -> None:
    vault = made.config.vault_root
    (vault / "link.md").symlink_to(vault / "Projects/Plan.md")
    assert ask(made, "link")["data"]["source_file"] == "link.md"
    (vault / "private.md").symlink_to(vault / "Health/Secret.md")
    assert code(ask(made, "private")) == "SENSITIVE_FILTERED"


def test_only_allowed_folders_are_read(engine: MakeEngine, make_vault: MakeVault) -> None:
    made = engine(make_vault(NOTES), {"indexing.allow_dirs": ["Projects"]})
    run_index(made, Mode.FULL)
    assert ask(made, "Plan")["data"]["source_file"] == "Projects/Plan.md"
    assert code(ask(made, "Finance/Debts.md")) == "SECURITY_VIOLATION"
    assert code(ask(made, "Debts")) == "NOT_FOUND"


def test_a_folder_denied_after_indexing_is_closed_at_once(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    vault = make_vault(NOTES)
    run_index(engine(vault), Mode.FULL)
    made = engine(vault, {"indexing.deny_dirs": ["Finance"]})
    assert code(ask(made, "Finance/Debts.md")) == "SECURITY_VIOLATION"
    assert code(ask(made, "Debts")) == "NOT_FOUND"


def test_sensitive_text_is_flagged(made: Engine) -> None:
    run_index(made, Mode.FULL)
    envelope = ask(made, "Finance/Debts.md")
    assert envelope["status"] == "healthy"
    assert "owe Sreenivas" in envelope["data"]["text"]
    assert envelope["data"]["sensitive_detected"] is True
    assert envelope["data"]["sensitive_categories"] == ["financial"]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(3, 3, ["health"]), (4, 4, ["health"]), (6, 6, []), (1, 1, []), (1, 6, ["health"])],
)
def test_a_line_is_judged_by_the_section_it_stands_in(
    made: Engine, first: int, last: int, expected: list[str]
) -> None:
    data = ask(made, "Journal/2024-01-15", start_line=first, end_line=last)["data"]
    assert data["sensitive_categories"] == expected


def test_the_words_of_a_canvas_are_judged_as_they_are_shown(made: Engine) -> None:
    assert ask(made, "Boards/Map.canvas")["data"]["sensitive_categories"] == ["financial"]


def test_withhold_keeps_sensitive_text_back_until_confirmed(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault(NOTES), WITHHOLD)
    run_index(made, Mode.FULL)
    envelope = ask(made, "Finance/Debts.md")
    assert code(envelope) == "SENSITIVE_FILTERED"
    assert (envelope["status"], envelope["error"]["recoverable"]) == ("degraded", True)
    assert "owe" not in str(envelope)
    confirmed = ask(made, "Finance/Debts.md", confirm_sensitive=True)
    assert confirmed["status"] == "healthy"
    assert confirmed["data"]["sensitive_categories"] == ["financial"]
    assert ask(made, "Projects/Plan")["data"]["text"]
    assert ask(made, "Journal/2024-01-15", heading="#finance")["data"]["text"]
    assert code(ask(made, "Journal/2024-01-15", heading="#mentalhealth")) == "SENSITIVE_FILTERED"


@pytest.mark.parametrize("settings", [{}, WITHHOLD], ids=["flag", "withhold"])
def test_private_notes_need_confirmation_under_each_policy(
    engine: MakeEngine, make_vault: MakeVault, settings: dict[str, object]
) -> None:
    made = engine(make_vault(NOTES), settings)
    for arguments in ({}, {"heading": "Secret"}, {"start_line": 5}, {"heading": "Absent"}):
        envelope = ask(made, "Health/Secret.md", **arguments)
        assert code(envelope) == "SENSITIVE_FILTERED"
        assert "quiet" not in str(envelope)
    data = ask(made, "Health/Secret.md", confirm_sensitive=True)["data"]
    assert "quiet words" in data["text"]
    assert (data["sensitive_detected"], data["sensitive_categories"]) == (True, ["private"])


@pytest.mark.parametrize("is_confirmed", [False, True])
@pytest.mark.parametrize("settings", [{}, WITHHOLD], ids=["flag", "withhold"])
def test_notes_that_say_false_are_never_read_to_agents(
    engine: MakeEngine, make_vault: MakeVault, settings: dict[str, object], is_confirmed: bool
) -> None:
    made = engine(make_vault(NOTES), settings)
    for name in ("Home/Never.md", "Home/Never", "Never"):
        envelope = ask(made, name, confirm_sensitive=is_confirmed)
        absent = ask(made, name.replace("Never", "Nowhere"), confirm_sensitive=is_confirmed)
        assert code(envelope) == "NOT_FOUND"
        assert str(envelope["error"]).replace("Never", "Nowhere") == str(absent["error"])


DAYS = """---
title: Days
pin: 4711
debt: a lot
---
# Days

quiet morning

## Sessions

Started therapy.
The heron stood long.

```
left the key under the mat
```

## Beans #garden

sow early #soil

## Mental health

### Ana

tea with her #ana
"""


@pytest.mark.parametrize("line", range(1, 28))
def test_a_withheld_section_cannot_be_read_line_by_line(
    engine: MakeEngine, make_vault: MakeVault, line: int
) -> None:
    """It is judged as a whole, whichever of its lines are asked for."""
    made = engine(make_vault({"d.md": DAYS}), WITHHOLD)
    envelope = ask(made, "d", start_line=line, end_line=line)
    if line in (6, 7, 8, 9, 19, 20, 21, 22):
        assert envelope["data"]["text"] == DAYS.splitlines()[line - 1]
    else:
        assert code(envelope) in ("SENSITIVE_FILTERED", "INVALID_ARGUMENT")
    for word in ("therapy", "heron", "mat", "4711", "Ana", "ana", "Sessions"):
        assert word not in str(envelope)
    assert ask(made, "d", start_line=13, end_line=13, confirm_sensitive=True)["data"]["text"]


def test_a_cut_answer_is_judged_by_all_of_the_section_that_it_begins(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    text = "# A\n" + "quiet line\n" * 30 + "I owe Bo\n"
    made = engine(make_vault({"a.md": text}), WITHHOLD)
    assert code(ask(made, "a", max_chars=100)) == "SENSITIVE_FILTERED"


def test_a_withheld_heading_answers_as_one_that_does_not_exist(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"d.md": DAYS}), WITHHOLD)
    answers = {
        str(ask(made, "d", heading=name)["error"]).replace(name, "…")
        for name in ("Sessions", "Mental health", "Ana", "Mental health > Ana", "Winter")
    }
    (only,) = answers
    assert "SENSITIVE_FILTERED" in only
    assert "'Days', 'Beans #garden'" in only
    shown = ask(made, "d", heading="Beans #garden")["data"]
    assert (shown["title"], shown["tags"]) == ("Days", ["#garden", "#soil"])
    assert code(ask(made, "d", heading="Winter", confirm_sensitive=True)) == "NOT_FOUND"


def test_headings_and_length_of_a_private_note_are_not_confirmed(made: Engine) -> None:
    """Nor is a private note found by its name: only who has its path is told to ask."""
    run_index(made, Mode.FULL)
    answers = [
        ask(made, "Health/Secret", heading="Secret"),
        ask(made, "Health/Secret", heading="Winter"),
        ask(made, "Health/Secret", start_line=2),
        ask(made, "Health/Secret", start_line=900),
    ]
    assert {str(envelope["error"]) for envelope in answers} == {str(answers[0]["error"])}
    assert code(answers[0]) == "SENSITIVE_FILTERED"
    assert code(ask(made, "Secret")) == "NOT_FOUND"
    assert ask(made, "Secret", confirm_sensitive=True)["data"]["source_file"] == "Health/Secret.md"


def test_notes_that_are_not_for_agents_make_no_name_ambiguous(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    notes: dict[str, str | bytes] = {
        "A/Same.md": "one",
        "B/Same.md": "---\nrag: false\n---\ntwo",
        "C/Same.md": "---\nrag: private\n---\nthree",
    }
    made = engine(make_vault(notes))
    run_index(made, Mode.FULL)
    assert ask(made, "Same")["data"]["text"] == "one"
    confirmed = ask(made, "Same", confirm_sensitive=True)
    assert "'A/Same.md', 'C/Same.md'." in confirmed["error"]["message"]


def test_a_note_made_private_after_indexing_is_withheld_at_once(made: Engine) -> None:
    run_index(made, Mode.FULL)
    (made.config.vault_root / "A/Same.md").write_text("---\nrag: private\n---\none")
    assert code(ask(made, "A/Same")) == "SENSITIVE_FILTERED"


def test_the_owner_reads_everything_inside_the_boundary(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({**NOTES, "long.md": "word " * 50_000}), WITHHOLD)

    def own(note: str) -> Any:
        return read(made, parse(ReadParams, {"note": note}), OWNER)["data"]

    assert "hidden words" in own("Home/Never.md")["text"]
    assert own("Health/Secret.md")["sensitive_categories"] == ["private"]
    assert own("Finance/Debts.md")["text"]
    assert own("long")["is_truncated"] is False
    assert code(ask(made, "../x")) == "SECURITY_VIOLATION"


def test_reading_by_path_works_with_damaged_books(made: Engine, home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "state.db").write_bytes(b"not a database " * 500)
    envelope = ask(made, "Projects/Plan.md")
    assert envelope["data"]["title"] == "The plan"
    assert envelope["meta"]["index_version"] == "0"


@pytest.mark.parametrize(
    ("root", "path", "expected"),
    [
        ("/v/Notes", "a.md", "obsidian://open?vault=Notes&file=a"),
        ("/v/My Notes", "A b/c&d.md", "obsidian://open?vault=My%20Notes&file=A%20b%2Fc%26d"),
        ("/v/Ñ", "日記/1#2.MD", "obsidian://open?vault=%C3%91&file=%E6%97%A5%E8%A8%98%2F1%232"),
        ("/v/n", "Map.canvas", "obsidian://open?vault=n&file=Map.canvas"),
        ("/v/n", "a.md.md", "obsidian://open?vault=n&file=a.md"),
    ],
)
def test_links_open_the_note_in_obsidian(root: str, path: str, expected: str) -> None:
    assert obsidian_link(Path(root), path) == expected
