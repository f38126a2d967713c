"""eval: numbers for people and for programs."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.transports.command_line import Done, on_terminal

Cli = Callable[..., Done]
MakeVault = Callable[[Mapping[str, str | bytes]], Path]
Configure = Callable[[Path, Mapping[str, object]], None]
MEASURES = ["nDCG@5", "nDCG@10", "MRR", "Hit@1", "Hit@5", "recall@10"]
NOTES = {
    "Boiler.md": "---\naliases: [heating]\n---\n# Gas boiler\n\nPress reset.",
    "Barrel.md": "# Rain barrel\n\nHolds two hundred litres.",
}
SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture
def vault(make_vault: MakeVault, configure: Configure, cli: Cli) -> Path:
    root = make_vault(NOTES)
    configure(root, {})
    assert cli("index").code == 0
    return root


def golden(tmp_path: Path, *entries: object) -> str:
    file = tmp_path / "golden.jsonl"
    file.write_text("\n".join(map(json.dumps, entries)))
    return str(file)


def test_a_vault_is_measured_by_its_own_questions(cli: Cli, vault: Path) -> None:
    done = cli("eval", "--self")
    assert (done.code, done.err) == (0, "")
    head, *rows = (line.split() for line in done.out.splitlines())
    assert head == MEASURES
    assert [row[:3] for row in rows if "(" in row[1]] == [
        ["title", "(2)", "words"],
        ["alias", "(1)", "words"],
        ["all", "(3)", "words"],
    ]
    assert [row[0] for row in rows if len(row) == 7] == ["vectors", "hybrid"] * 3
    assert rows[0][3:] == ["1.000"] * 6


def test_json_has_the_same_numbers(cli: Cli, vault: Path, tmp_path: Path) -> None:
    file = golden(tmp_path, {"query": "Gas boiler", "relevant": ["Boiler.md"], "category": "home"})
    envelope = cli("eval", file, "--json").json
    assert (envelope["status"], envelope["error"]) == ("healthy", None)
    perfect = dict.fromkeys(
        ("ndcg_at_5", "ndcg_at_10", "mrr", "hit_at_1", "hit_at_5", "recall_at_10"), 1.0
    )
    data = envelope["data"]
    assert set(data) == {"overall", "categories", "unknown_notes"}
    assert (data["overall"]["questions"], data["unknown_notes"]) == (1, [])
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
    done = on_terminal("eval", "--self", is_redirected=True)
    assert done.code == 0
    assert "questions" in done.err
    assert done.out.split()[:6] == MEASURES


def test_the_sample_questions_are_answered_from_the_sample_vault(
    cli: Cli, configure: Configure
) -> None:
    configure(SAMPLES / "vault", {"embedding.provider": "builtin"})
    assert cli("index").code == 0
    data = cli("eval", str(SAMPLES / "questions.json"), "--json").json["data"]
    assert data["unknown_notes"] == []
    assert data["overall"]["questions"] == 22
    assert data["overall"]["hybrid"]["hit_at_5"] >= 0.95
