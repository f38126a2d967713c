"""The benchmark of answers, on a data folder that the test writes; no model, no network."""

import io
import json
import tarfile
from pathlib import Path

import pytest
from benchmarks import quality
from benchmarks.search import collection

from obsidian_rag.search import PARTS, Question

NOTES = {
    "Boiler.md": "# Gas boiler\n\nPress reset for a while.",
    "Barrel.md": "# Rain barrel\n\nHolds two hundred litres.",
    "Roof.md": "# Roof\n\nA tile came loose.",
}
QUESTIONS = [
    {"query": "gas boiler", "relevant": {"Boiler.md": 2}, "category": "title", "answer": "reset"},
    {"query": "rain barrel", "relevant": {"Barrel.md": 2}, "category": "title", "answer": None},
    {"query": "loose tile", "relevant": {"Roof.md": 2}, "category": "keyword"},
    {"query": "parrot on skis", "relevant": {}, "category": "none"},
]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Golden questions over an archive, and one collection of documents."""
    folder = tmp_path / "data"
    for name in ("golden", "vaults", "eval/tiny"):
        (folder / name).mkdir(parents=True)
    with tarfile.open(folder / "vaults" / "lyz-code__blue-book.tar.gz", "w:gz") as archive:
        for path, text in NOTES.items():
            entry = tarfile.TarInfo(f"lyz-code__blue-book/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    (folder / "golden" / "blue-book.json").write_text(json.dumps(QUESTIONS))
    tiny = folder / "eval" / "tiny"
    documents = [{"_id": f"d{n}", "title": f"Word{n}", "text": f"thing{n} here"} for n in range(3)]
    (tiny / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (tiny / "queries.jsonl").write_text('{"_id": "q", "text": "thing1"}')
    (tiny / "qrels.tsv").write_text("query\tdocument\tgrade\nq\td1\t1\n")
    monkeypatch.setenv("OBSIDIAN_RAG_DATA", str(folder))
    return folder


def cells(text: str, start: str) -> list[list[str]]:
    """The rows of the table whose first head is this."""
    lines = text.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(f"| {start} |"))
    rows = []
    for line in lines[at:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_all_tables_are_written_between_the_marks_and_missing_data_is_said(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{quality.MARKS[0]}\nwhat was here\n{quality.MARKS[1]}\nafter\n")
    quality.main(["--cache", str(tmp_path / "cache"), "--static-only", "--write", str(page)])
    said = capsys.readouterr().err
    assert "sample: left out" in said
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "what was here" not in text
    overview = cells(text, "set")
    assert [row[0] for row in overview[2:] if row[0]] == [
        "blue-book, odd half (reported): 1 questions",
        "blue-book, even half: 2 questions",
        "tiny: 1 questions",
    ]
    assert [row[1] for row in overview[2:5]] == [
        "words",
        "vectors, static only",
        "**hybrid, static only**",
    ]
    assert overview[2][2:8] == ["1.000"] * 6
    assert overview[5][8:] == ["1.000", "1.000"]
    assert [row[1] for row in cells(text, "golden set")[2:]] == [
        "title (1)",
        "title (1)",
        "keyword (1)",
    ]
    ablated = cells(text, "hybrid nDCG@5")
    assert ablated[0][1:] == ["blue-book, odd half (reported)", "blue-book, even half", "tiny"]
    assert [row[0] for row in ablated[3:]] == [f"without {name}" for name in PARTS]
    assert "tiny: no meaning vectors (minilm is not there)." in text


def test_a_second_run_uses_the_index_of_the_first(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--cache", str(tmp_path / "cache"), "--sets", "tiny,unknown", "--no-ablation"]
    arguments += ["--static-only"]
    quality.main(arguments)
    assert "unknown: no such set" in capsys.readouterr().err
    table = tmp_path / "cache" / "tiny" / "home"
    before = {path: path.stat().st_ino for path in table.rglob("*.lance") if path.is_file()}
    assert before
    quality.main(arguments)
    after = {path: path.stat().st_ino for path in table.rglob("*.lance") if path.is_file()}
    assert after == before
    quality.main([*arguments, "--fresh"])
    assert "hybrid nDCG@5" not in capsys.readouterr().out
    anew = {path: path.stat().st_ino for path in table.rglob("*.lance") if path.is_file()}
    assert anew.keys() != before.keys()


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    problem = quality.ran(tmp_path / "home", "sync")
    assert problem is not None
    assert problem.startswith("error")


def test_a_sample_is_spread_over_both_halves() -> None:
    questions = [Question(str(n), {"a.md": 1.0}, "x", position=n) for n in range(40)]
    sample = quality.spread(questions, 10)
    assert [one.position for one in sample] == [0, 5, 10, 15, 20, 25, 30, 35]
    assert len({one.position % 2 for one in sample}) == 2
    assert quality.spread(questions, None) == quality.spread(questions, 40) == questions


def test_a_collection_becomes_a_vault_with_its_questions(data: Path, tmp_path: Path) -> None:
    questions = collection(data / "eval" / "tiny", tmp_path / "vault")
    assert questions == [Question("thing1", {"d1.md": 1.0}, "tiny")]
    assert (tmp_path / "vault" / "d1.md").read_text() == "# Word1\n\nthing1 here\n"
