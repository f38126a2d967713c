"""eval: numbers for people and for programs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fixture_types import Cli, Configure, MakeVault
from tests.transports.command_line import on_terminal_in_process

from obsidian_rag.search import Outcome, Question, Signals
from obsidian_rag.search.evaluation import measure, report_of
from obsidian_rag.transports.cli.eval_text import verdict

MEASURES = ["nDCG@5", "nDCG@10", "MRR", "Hit@1", "Hit@3", "Hit@5", "recall@10"]
NOTES = {
    "Boiler.md": "---\naliases: [heating]\n---\n# Gas boiler\n\nPress reset.",
    "Barrel.md": "# Rain barrel\n\nHolds two hundred litres.",
}
SAMPLES = Path(__file__).parents[2] / "samples"


def golden(tmp_path: Path, *entries: object) -> str:
    file = tmp_path / "golden.jsonl"
    file.write_text("\n".join(map(json.dumps, entries)))
    return str(file)


def test_a_vault_is_measured_by_its_own_questions(cli: Cli, vault: Path) -> None:
    done = cli("eval", "--self")
    assert (done.code, done.err) == (0, "")
    table, _, verdict = done.out.partition("\n\n")
    assert verdict.startswith("Search finds a right note first for 100% of 3 questions")
    head, *rows = (line.split() for line in table.splitlines())
    assert head == MEASURES
    assert [row[:3] for row in rows if "(" in row[1]] == [
        ["title", "(2)", "words"],
        ["alias", "(1)", "words"],
        ["all", "(3)", "words"],
    ]
    assert [row[0] for row in rows if len(row) == 8] == ["vectors", "hybrid"] * 3
    assert rows[0][3:] == ["1.000"] * 7


def test_json_has_the_same_numbers(cli: Cli, vault: Path, tmp_path: Path) -> None:
    file = golden(tmp_path, {"query": "Gas boiler", "relevant": ["Boiler.md"], "category": "home"})
    envelope = cli("eval", file, "--json").json
    assert (envelope["status"], envelope["error"]) == ("healthy", None)
    names = ("ndcg_at_5", "ndcg_at_10", "mrr", "hit_at_1", "hit_at_3", "hit_at_5", "recall_at_10")
    perfect = {**dict.fromkeys(names, 1.0), "answer_at_1": None, "answer_at_3": None}
    data = envelope["data"]
    assert set(data) == {
        "categories",
        "half",
        "meaning",
        "overall",
        "unknown_notes",
        "verdict",
        "weak",
    }
    assert (data["overall"]["questions"], data["unknown_notes"], data["half"]) == (1, [], "all")
    assert data["meaning"] == {"vectors": None, "chunks": 2, "answers": 0}
    assert list(data["categories"]) == ["home"]
    assert data["overall"]["words"] == data["categories"]["home"]["hybrid"] == perfect


def test_notes_that_are_not_in_the_index_are_named(cli: Cli, vault: Path, tmp_path: Path) -> None:
    file = golden(tmp_path, {"query": "boiler", "relevant": [f"{n}.md" for n in range(12)]})
    done = cli("eval", file)
    assert done.code == 0
    assert done.err.count(".md") == 10
    assert "2 more" in done.err
    assert len(cli("eval", file, "--json").json["data"]["unknown_notes"]) == 12


def test_limit_bounds_the_questions(cli: Cli, vault: Path, tmp_path: Path) -> None:
    entry = {"query": "boiler", "relevant": ["Boiler.md"]}
    file = golden(tmp_path, entry, entry, entry)
    limited = cli("eval", file, "--limit", "2", "--json").json
    assert limited["data"]["overall"]["questions"] == 2
    own = cli("eval", "--self", "--limit", "1", "--json").json
    assert own["data"]["overall"]["questions"] == 2


@pytest.mark.parametrize("arguments", [(), ("golden.json", "--self"), ("--self", "--limit", "0")])
def test_it_needs_a_file_or_self(cli: Cli, vault: Path, arguments: tuple[str, ...]) -> None:
    done = cli("eval", *arguments, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "INVALID_ARGUMENT")


GOLDEN: tuple[dict[str, object], ...] = (
    {"query": "Gas boiler", "relevant": {"Boiler.md": 2}, "category": "home", "answer": "RESET"},
    {"query": "Rain barrel", "relevant": ["Boiler.md"], "category": "home", "answer": "^Press"},
    {"query": "parrot on skis", "relevant": {}, "category": "none", "answer": None},
)


def test_the_table_says_which_half_it_is_about_and_shows_no_question(
    cli: Cli, vault: Path, tmp_path: Path
) -> None:
    file = golden(tmp_path, *GOLDEN)
    even = cli("eval", file, "--half", "even").out
    assert even.startswith("even half ")
    assert "Even half: 1 with an answer and 1 without." in even
    assert "all (1)" in even
    both = cli("eval", file).out
    assert both.startswith("both halves ")
    assert "answer@3" in both
    assert "arrel" not in both
    assert cli("eval", file, "--half", "odd", "--json").json["data"]["half"] == "odd"


def test_the_answer_is_looked_for_in_the_passages_shown(
    cli: Cli, vault: Path, tmp_path: Path
) -> None:
    data = cli("eval", golden(tmp_path, *GOLDEN), "--json").json["data"]
    assert data["overall"]["questions_with_answer_text"] == 2
    words = data["overall"]["words"]
    assert (words["answer_at_1"], words["answer_at_3"]) == (0.5, 0.5)
    assert (data["weak"]["answerable"], data["weak"]["unanswerable"]) == (2, 1)
    assert len(data["weak"]["answerable_confidence"]) == 2


def test_the_worst_questions_come_with_what_was_first_and_why(
    cli: Cli, vault: Path, tmp_path: Path
) -> None:
    file = golden(tmp_path, *GOLDEN)
    listed = cli("eval", file, "--worst", "5", "--json").json["data"]["worst"]
    (worst,) = (one for one in listed if one["query"] == "Rain barrel")
    assert worst["position"] == 1
    assert worst["first"]["source_file"] == "Barrel.md"
    assert worst["first"]["terms"] == ["rain", "barrel"]
    assert set(worst["ranks"]) == {"words", "vectors", "hybrid"}
    shown = cli("eval", file, "--worst", "5").out
    assert "Rain barrel" in shown
    assert "wanted: Boiler.md" in shown
    assert "first: Barrel.md:1" in shown
    assert "answer: in" in shown


def test_a_signal_can_be_left_out_if_there_is_one_of_that_name(
    cli: Cli, vault: Path, tmp_path: Path
) -> None:
    file = golden(tmp_path, *GOLDEN)
    assert cli("eval", file, "--without", "meaning").code == 0
    refused = cli("eval", file, "--without", "smell", "--json").json["error"]
    assert refused["code"] == "INVALID_ARGUMENT"
    assert "letters" in refused["suggestion"]


def test_links_have_neither_halves_nor_worst_questions(cli: Cli, vault: Path) -> None:
    for arguments in (("--half", "odd"), ("--worst", "3"), ("--without", "date")):
        done = cli("eval", "--links", *arguments, "--json")
        assert (done.code, done.json["error"]["code"]) == (2, "INVALID_ARGUMENT")


def test_a_half_without_questions_is_refused(cli: Cli, vault: Path, tmp_path: Path) -> None:
    done = cli("eval", golden(tmp_path, GOLDEN[0]), "--half", "odd", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "INVALID_ARGUMENT")


def outcomes(category: str, rank: int, count: int, *, is_weak: bool = False) -> list[Outcome]:
    """So many questions whose right note has this rank; at 0 nothing answers them."""
    question = Question("q", {"a.md": 1.0} if rank else {}, category)
    ranking = [*(f"{n}.md" for n in range(rank - 1)), "a.md"]
    one = Outcome(
        question,
        position=0,
        measures=measure(ranking, question.relevant),
        rank=rank or None,
        answered_at=None,
        is_weak=is_weak,
        confidence=0.1 if is_weak else 0.7,
        used=frozenset({"meaning"}),
        first=None,
    )
    return [one] * count


def said(**by_way: list[Outcome]) -> str:
    report = report_of({Signals(way): tuple(some) for way, some in by_way.items()})
    return "\n".join(verdict(replace(report, meaning_vectors=3, chunks=4), ""))


def test_the_verdict_names_the_categories_in_which_hybrid_loses_to_its_parts() -> None:
    told = said(
        words=[*outcomes("date", 1, 12), *outcomes("title", 1, 11), *outcomes("multi", 2, 12)],
        hybrid=[*outcomes("date", 2, 12), *outcomes("title", 2, 11), *outcomes("multi", 1, 12)],
    )
    assert "more than 0.03 behind the better of words and vectors in: date (0.369 behind" in told
    assert "title (" not in told
    assert "multi (" not in told
    level = said(words=outcomes("date", 2, 12), hybrid=outcomes("date", 1, 12))
    assert "In no category of 12 questions or more is hybrid more than 0.03 behind" in level
    few = said(words=outcomes("date", 1, 11), hybrid=outcomes("date", 1, 11))
    assert "No category has 12 questions" in few


def test_the_verdict_says_how_far_meaning_vectors_are() -> None:
    told = said(words=outcomes("date", 1, 2), hybrid=outcomes("date", 1, 2))
    assert "Meaning vectors: 3 of 4 passages" in told
    assert "they took part in 2 of 2 answers" in told


@pytest.mark.parametrize(
    ("caught", "missed", "wrong", "right", "worth"),
    [
        (8, 2, 1, 19, "The flag can be trusted."),
        (7, 3, 1, 19, "The flag misses too many of them."),
        (10, 0, 2, 18, "it doubts too many good answers"),
    ],
)
def test_the_verdict_says_whether_weak_flags_can_be_trusted(
    caught: int, missed: int, wrong: int, right: int, worth: str
) -> None:
    told = said(
        hybrid=[
            *outcomes("none", 0, caught, is_weak=True),
            *outcomes("none", 0, missed),
            *outcomes("home", 1, wrong, is_weak=True),
            *outcomes("home", 1, right),
        ],
        words=outcomes("home", 1, wrong + right),
    )
    assert f"Called weak: {caught} of 10 questions that nothing answers" in told
    assert f"and {wrong} of 20 answerable ones" in told
    assert worth in told
    assert "A confidence below " in told


def test_a_vault_that_yields_no_question_says_so(
    cli: Cli, make_vault: MakeVault, configure: Configure
) -> None:
    configure(make_vault({"a.md": "text"}), {})
    cli("index")
    done = cli("eval", "--self", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "NOT_FOUND")


def test_a_degraded_evaluation_says_why(cli: Cli, vault: Path, configure: Configure) -> None:
    configure(vault, {"embedding.dimensions": 64})
    done = cli("eval", "--self")
    assert done.code == 0
    assert "EMBEDDING_MISMATCH" in done.err
    assert "words" in done.out
    assert "vectors" not in done.out
    assert cli("eval", "--self", "--json").json["status"] == "degraded"


def test_progress_goes_to_the_terminal_and_the_table_to_the_file(vault: Path) -> None:
    done = on_terminal_in_process("eval", "--self", is_redirected=True)
    assert done.code == 0
    assert "questions" in done.err
    assert done.out.split()[:7] == MEASURES


def test_the_sample_questions_are_answered_from_the_sample_vault(
    cli: Cli, configure: Configure
) -> None:
    configure(SAMPLES / "vault", {"embedding.provider": "builtin"})
    assert cli("index").code == 0
    data = cli("eval", str(SAMPLES / "questions.json"), "--json").json["data"]
    assert data["unknown_notes"] == []
    assert data["overall"]["questions"] == 22
    assert data["overall"]["hybrid"]["hit_at_5"] >= 0.95
