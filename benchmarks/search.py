"""How good the answers are and how long they take, beside other ways to search the same notes.

Quality: every collection of ../shared/data/eval as a vault, each question asked by words, by
vectors and by both, next to SQLite FTS5 over the same notes. Latency: made vaults of three sizes,
next to the store's own searches, FTS5 and ripgrep. Run by `make bench NAME=search`; indexes
are kept and brought up to date, `--fresh` builds them anew.
"""

import argparse
import csv
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.index import CACHE, ROOT, command, made_vault, put_between, shared_vaults

from obsidian_rag.config import load, save
from obsidian_rag.engine import Engine, ask, run_index
from obsidian_rag.errors import EmbeddingMismatch, IndexCorrupted
from obsidian_rag.index import Mode
from obsidian_rag.search import EvalOptions, Filters, Question, Request
from obsidian_rag.search.evaluation import Measures, mean, measure
from obsidian_rag.store import Clause, Lookup
from obsidian_rag.tools.evaluation import evaluate

EVAL = ROOT.parent / "shared" / "data" / "eval"
MARKS = ("<!-- search benchmark -->", "<!-- end of search benchmark -->")
SIZES = (750, 11_000, 104_000)
TAGS = 20
HITS = 10
WARM_UP, TIMED, TIMED_RG = 20, 200, 10
COLD_RUNS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--quality-only", action="store_true", help="leave out the latency")
    only.add_argument("--latency-only", action="store_true", help="leave out the quality")
    parser.add_argument("--set", action="append", help="only this collection")
    parser.add_argument("--notes", type=int, action="append", help="only a vault of this size")
    parser.add_argument("--fresh", action="store_true", help="build every index anew")
    parser.add_argument("--write", type=Path, help="put the tables into this file")
    chosen = parser.parse_args()
    os.environ.setdefault("LANCEDB_LOG", "error")
    CACHE.mkdir(parents=True, exist_ok=True)
    parts = []
    if not chosen.latency_only:
        folders = sorted(path for path in EVAL.iterdir() if path.is_dir())
        wanted = [path for path in folders if not chosen.set or path.name in chosen.set]
        parts.append(quality_table([quality(folder, chosen.fresh) for folder in wanted]))
    if not chosen.quality_only:
        sizes = chosen.notes or SIZES
        parts.append(latency_table([latency(count, chosen.fresh) for count in sizes]))
    text = "\n".join(parts)
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def indexed(root: Path, home: Path, fresh: bool) -> Engine:
    """An engine whose index agrees with the vault."""
    if fresh:
        shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True, exist_ok=True)
    save({"vault_path": str(root), "embedding": {"provider": "builtin"}}, home / "config.json")
    engine = Engine(load(environ={"OBSIDIAN_RAG_HOME": str(home)}))
    try:
        run_index(engine, Mode.SYNC)
    except (EmbeddingMismatch, IndexCorrupted):
        run_index(engine, Mode.REINDEX)
    return engine


# Full text in SQLite, the usual way to search notes by word ---------------------------------


class Fts5:
    """SQLite FTS5 over whole notes: title and text, words joined by OR, ranked by bm25."""

    def __init__(self, notes: Iterator[tuple[str, str, str]], file: Path) -> None:
        file.unlink(missing_ok=True)
        self._database = sqlite3.connect(file)
        self._database.execute(
            "CREATE VIRTUAL TABLE notes"
            " USING fts5(path UNINDEXED, title, text, tokenize = 'porter unicode61')"
        )
        self._database.executemany("INSERT INTO notes VALUES (?, ?, ?)", notes)
        self._database.execute("INSERT INTO notes(notes) VALUES ('optimize')")
        self._database.commit()

    def search(self, question: str) -> list[str]:
        words = dict.fromkeys(re.findall(r"\w+", question.lower()))
        matching = " OR ".join(f'"{word}"' for word in words)
        rows = self._database.execute(
            "SELECT path FROM notes WHERE notes MATCH ? ORDER BY bm25(notes) LIMIT ?",
            (matching, HITS),
        )
        return [path for (path,) in rows]


def notes_of(root: Path) -> Iterator[tuple[str, str, str]]:
    """(path, title, text) of every note."""
    for path in sorted(root.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        head = re.search(r"^# (.+)\n", text, re.MULTILINE)
        title, body = (head[1], text[head.end() :]) if head else ("", text)
        yield path.relative_to(root).as_posix(), title, body


# Quality --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quality:
    """One collection's measures by the way of searching."""

    name: str
    notes: int
    questions: int
    measures: dict[str, Measures]
    ask_s: float


def quality(folder: Path, fresh: bool) -> Quality:
    say(f"{folder.name} …")
    place = CACHE / "eval" / folder.name
    root = place / "vault"
    questions = collection(folder, root)
    fts5 = Fts5(notes_of(root), place / "fts5.db")
    by_fts5 = mean([measure(fts5.search(one.query), one.relevant) for one in questions])
    with closing(indexed(root, place / "home", fresh)) as engine:
        started = time.perf_counter()
        report = evaluate(engine, questions, EvalOptions(depth=HITS))
        took = time.perf_counter() - started
    if report.trouble is not None:
        raise report.trouble
    own = {signals.value: found for signals, found in report.overall.by_signals.items()}
    notes = sum(1 for _ in root.rglob("*.md"))
    return Quality(folder.name, notes, len(questions), {"FTS5": by_fts5, **own}, took)


def collection(folder: Path, root: Path) -> list[Question]:
    """Write the documents as notes, and return the questions about them."""
    paths = {}
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for document in json_lines(folder / "corpus.jsonl"):
        path = f"{str(document['_id']).replace('/', '_')}.md"
        paths[document["_id"]] = path
        title = " ".join(str(document.get("title") or "").split())
        head = f"# {title}\n\n" if title else ""
        (root / path).write_text(f"{head}{document['text']}\n", encoding="utf-8")
    relevant: dict[str, dict[str, float]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8") as stream:
        for query, document_id, grade in list(csv.reader(stream, delimiter="\t"))[1:]:
            if float(grade) > 0:
                relevant.setdefault(query, {})[paths[document_id]] = float(grade)
    return [
        Question(str(query["text"]), relevant[str(query["_id"])], folder.name)
        for query in json_lines(folder / "queries.jsonl")
        if query["_id"] in relevant
    ]


def json_lines(file: Path) -> Iterator[dict[str, object]]:
    with file.open(encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def quality_table(found: Sequence[Quality]) -> str:
    lines = [
        "| collection | ranked by | nDCG@10 | MRR | Hit@1 | Hit@5 |",
        "|---|---|---|---|---|---|",
    ]
    for one in found:
        label = f"{one.name}: {one.questions:,} questions, {one.notes:,} notes"
        for way, m in one.measures.items():
            name = f"**{way}**" if way == "hybrid" else way
            numbers = (m.ndcg_at_10, m.mrr, m.hit_at_1, m.hit_at_5)
            lines.append(f"| {label} | {name} | {' | '.join(f'{n:.3f}' for n in numbers)} |")
            label = ""
    return "\n".join(lines) + "\n"


# Latency --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Latency:
    """One vault's times: (p50, p95) in milliseconds by what was done; None: not possible."""

    notes: int
    chunks: int
    times: dict[str, tuple[float, float] | None]
    cold_s: float | None


def latency(count: int, fresh: bool) -> Latency:
    say(f"{count:,} notes …")
    place = CACHE / f"search-{count}"
    root = tagged_vault(count, place / "vault")
    with closing(indexed(root, place / "home", fresh)) as engine:
        times = own_times(engine, root)
        chunks = engine.chunks.count()
    questions = made_questions(root)
    fts5 = Fts5(notes_of(root), place / "fts5.db")
    times["SQLite FTS5"] = timed(fts5.search, questions)
    times["ripgrep, files with any of the words"] = ripgrep(root, questions[WARM_UP:])
    return Latency(count, chunks, times, cold(place / "home", questions))


def tagged_vault(count: int, root: Path) -> Path:
    """A made vault with two tags in each note, one of which a twentieth of the notes have."""
    if root.is_dir():
        return root
    _, source = next(iter(shared_vaults()))
    unfinished = root.with_name("unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    plain = made_vault(count, source)
    for number, path in enumerate(sorted(plain.rglob("*.md"))):
        copy = unfinished / path.relative_to(plain)
        copy.parent.mkdir(parents=True, exist_ok=True)
        head = f"---\ntags: [made, topic/t{number % TAGS}]\n---\n"
        copy.write_text(head + path.read_text(encoding="utf-8"), encoding="utf-8")
    unfinished.rename(root)
    return root


def made_questions(root: Path, seed: int = 0) -> list[str]:
    """Six words of a paragraph each, none of them a stop word, so that every way gets the same."""
    chance = random.Random(seed)
    notes = sorted(root.rglob("*.md"))
    found: dict[str, None] = {}
    while len(found) < WARM_UP + TIMED:
        text = chance.choice(notes).read_text(encoding="utf-8").partition("\n# ")[2]
        words = list(dict.fromkeys(re.findall(r"[a-z]{5,}", text)))
        if len(words) >= 6:
            at = chance.randrange(len(words) - 5)
            found[" ".join(words[at : at + 6])] = None
    return list(found)


def own_times(engine: Engine, root: Path) -> dict[str, tuple[float, float] | None]:
    """Each case has questions of its own, so that none finds its vector remembered."""
    cases = {
        "**hybrid**": Filters(),
        "**hybrid**, one folder": Filters(directories=("0",)),
        "**hybrid**, one tag of 20": Filters(tags=((f"topic/t{TAGS // 2}",),)),
    }
    times: dict[str, tuple[float, float] | None] = {}
    for name, filters in cases.items():
        asked = partial(answer, engine, filters)
        times[name] = timed(asked, made_questions(root, len(times)))
    questions = made_questions(root)
    vectors = {text: engine.parts.embedding.query_vector(text) for text in questions}

    def by_store(text: str) -> None:
        lookup = Lookup(engine.chunks)
        lookup.by_words([Clause(text, "chunk_text")], None, HITS)
        lookup.begin_by_vector(vectors[text], None, HITS).result()

    times["the store alone: text, then vector search"] = timed(by_store, questions)
    return times


def answer(engine: Engine, filters: Filters, text: str) -> None:
    ask(engine, Request(text, limit=HITS, filters=filters))


def timed(action: Callable[[str], object], questions: Sequence[str]) -> tuple[float, float]:
    """p50 and p95 in milliseconds, after a few questions nobody counts."""
    for text in questions[:WARM_UP]:
        action(text)
    return percentiles([elapsed(action, text) for text in questions[WARM_UP:]])


def elapsed(action: Callable[[str], object], text: str) -> float:
    started = time.perf_counter()
    action(text)
    return time.perf_counter() - started


def percentiles(seconds: list[float]) -> tuple[float, float]:
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return ordered[last // 2] * 1000, ordered[int(0.95 * last)] * 1000


def ripgrep(root: Path, questions: Sequence[str]) -> tuple[float, float] | None:
    program = shutil.which("rg")
    if program is None:
        return None

    def run(text: str) -> None:
        patterns = [part for word in text.split() for part in ("-e", word)]
        subprocess.run(
            [program, "-i", "-l", *patterns, str(root)], stdout=subprocess.DEVNULL, check=False
        )

    run(questions[0])
    return percentiles([elapsed(run, text) for text in questions[:TIMED_RG]])


def cold(home: Path, questions: Sequence[str]) -> float | None:
    """Seconds of a whole `obsidian-rag search` process; None if there is no such command."""
    known = [sys.executable, "-m", "obsidian_rag", "search", "--help"]
    if subprocess.run(known, capture_output=True, check=False).returncode:
        return None
    return sorted(command(home, "search", text) for text in questions[:COLD_RUNS])[COLD_RUNS // 2]


def latency_table(found: Sequence[Latency]) -> str:
    heads = [f"{one.chunks:,} chunks ({one.notes:,} notes)" for one in found]
    lines = ["| p50 / p95, ms | " + " | ".join(heads) + " |", "|---" * (len(found) + 1) + "|"]
    for name in found[0].times:
        cells = [
            "not installed" if pair is None else f"{pair[0]:.1f} / {pair[1]:.1f}"
            for one in found
            for pair in [one.times[name]]
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    colds = ["no such command" if one.cold_s is None else f"{one.cold_s:.2f} s" for one in found]
    lines.append("| `obsidian-rag search`, whole process, no daemon | " + " | ".join(colds) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
