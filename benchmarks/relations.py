"""Related notes: how fast they are indexed, loaded, edited and asked, and how well they are found.

Each number stands beside a floor or a peer of the same run: plain parsing of the same notes, one
look at the whole file, bm25 of the same terms by SQLite FTS5, words alone. Run by
`make bench NAME=relations`.
"""

import argparse
import os
import random
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
from benchmarks.index import CACHE, best, made_vault, put_between, shared_vaults

from obsidian_rag.config import RelationsSettings, Settings, load
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.index.meaning import add_meaning
from obsidian_rag.index.relate import read_for_relations
from obsidian_rag.notes import ChunkLimits, parse_note
from obsidian_rag.relations import (
    LinksFound,
    RelationsWriter,
    format_of,
    links_found,
    relations_state,
)
from obsidian_rag.relations.explain import explain
from obsidian_rag.relations.memory_index import MemoryIndex
from obsidian_rag.relations.packed import VectorKind
from obsidian_rag.relations.rows import Rows, open_rows
from obsidian_rag.relations.score import related, weights_of
from obsidian_rag.relations.signals import kind_of, note_source
from obsidian_rag.vault import NoteFile, Rules, Vault

MARKS = ("<!-- relations benchmark -->", "<!-- end of relations benchmark -->")
SETTINGS = RelationsSettings()
EDITS, WIDTH = 15, 384
MODEL = "made"
LINK = "measured"
WORDS_ALONE = {"tag_weight": 0, "term_weight": 0, "graph_weight": 0}
PROFILES: dict[str, dict[str, object]] = {
    "words alone: bm25 of the seed": {"profile": "seed", **WORDS_ALONE},
    "`seed`": {"profile": "seed"},
    "`default` without vectors": {"vector_weight": 0},
    "**`default`**, static vectors": {},
}
BY_MEANING = "**`default`**, meaning vectors"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vault", type=Path, help="instead of the larger shared vault")
    parser.add_argument("--notes", type=int, default=65_000, help="size of the made vault")
    parser.add_argument("--questions", type=int, default=200, help="how many notes are asked about")
    parser.add_argument("--links", type=int, default=1000, help="how many links are held out")
    parser.add_argument(
        "--models", type=Path, help="models folder with minilm: measure meaning vectors too"
    )
    parser.add_argument("--write", type=Path, help="put the tables into this file")
    chosen = parser.parse_args()
    os.environ.setdefault("LANCEDB_LOG", "error")
    CACHE.mkdir(parents=True, exist_ok=True)
    (small_name, small), *_, (name, root) = shared_vaults()
    if chosen.vault:
        name, root = chosen.vault.name, chosen.vault
    vaults = {
        name: root,
        f"{chosen.notes:,} made notes": made_vault(chosen.notes, small),
    }
    columns = {name: measured(root, chosen.questions) for name, root in vaults.items()}
    text = f"{speeds(columns)}\n{hits(small_name, held_out(small, chosen.links, chosen.models))}"
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measured(root: Path, questions: int) -> list[tuple[str, str]]:
    vault = Vault(root, Rules.from_settings(Settings().indexing), LINK)
    work = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        say(f"{root.name}: parsing, indexing …")
        notes = len(vault.scan().files)
        parse_s = best(lambda: parse_all(vault), times=2)
        index_s = min(index(vault, work / str(turn)) for turn in range(2))
        home = work / "0"
        with closing(open_rows(home, format_of(SETTINGS))) as rows:
            give_vectors(rows)
            say("loading, asking …")
            size = (home / "relations.db").stat().st_size / 1e6
            table = [
                ("notes / MB on disk", f"{notes:,} / {size:.0f}"),
                ("read and parse all notes (floor)", f"{parse_s:.1f} s"),
                (
                    "**index, beyond parsing** (target 10 s at 15,000)",
                    f"{index_s - parse_s:.1f} s = {(index_s - parse_s) / parse_s:.1f} × floor",
                ),
                *loading(home, rows),
            ]
            return table + asking(rows, questions) + editing(vault, rows)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def parse_all(vault: Vault) -> None:
    for entry in vault.scan().files:
        file = vault.read(entry.rel_path)
        if isinstance(file, NoteFile):
            parse_note(entry.rel_path, file.text)


def index(vault: Vault, home: Path) -> float:
    """Seconds of a first index of related notes, chunks and vectors aside."""
    with closing(RelationsWriter(home, SETTINGS)) as notes:
        notes.begin("")
        return best(lambda: take_up(vault, notes, None), times=1)


def take_up(vault: Vault, notes: RelationsWriter, paths: list[str] | None) -> None:
    """Read notes as an index run does, for their relations alone."""
    if paths is None:
        paths = [one.rel_path for one in vault.scan().files]
    read_for_relations(vault, ChunkLimits(), notes, paths)
    notes.update_templates()


def give_vectors(rows: Rows) -> None:
    """A vector for each note, as an embedder would give it: what it says costs the same."""
    chance = np.random.default_rng(1)
    paths = list(rows.contents(LINK))
    matrix = chance.standard_normal((len(paths), WIDTH)).astype(np.float32)
    rows.expect_meanings_of(MODEL)
    for kind in VectorKind:
        with rows.changing():
            rows.put_vectors(
                LINK,
                (
                    (path, "made", kind.pack(vector))
                    for path, vector in zip(paths, matrix, strict=True)
                ),
                kind,
            )


def loading(home: Path, rows: Rows) -> list[tuple[str, str]]:
    def whole() -> MemoryIndex:
        loaded = MemoryIndex(rows, use_links=True, meanings_of=MODEL)
        assert loaded.graph.outgoing is not None
        return loaded

    look_s = best(lambda: (home / "relations.db").read_bytes())
    load_s, whole_s = (
        best(lambda: MemoryIndex(rows, use_links=True, meanings_of=MODEL)),
        best(whole),
    )
    return [
        ("read the file's bytes (floor)", f"{look_s:.3f} s"),
        ("**load** (target 0.5 s at 15,000)", f"{load_s:.2f} s"),
        ("load, and tie all notes by their links", f"{whole_s:.2f} s"),
    ]


def asking(rows: Rows, questions: int) -> list[tuple[str, str]]:
    loaded = MemoryIndex(rows, use_links=True, meanings_of=MODEL)
    slots = random.Random(3).sample(range(loaded.size), min(questions, loaded.size))
    taken = timed(lambda slot: ask(loaded, slot), slots)
    with closing(fts5(rows)) as peer:
        few = slots[: max(1, len(slots) // 4)]
        beside = timed(lambda slot: ask_fts5(peer, loaded, slot), few)
    return [
        ("SQLite FTS5, bm25 of the same terms, p50 / p95", pair(beside)),
        (
            "**related notes with reasons**, p50 / p95 (target p95 50 ms at 15,000, 150 at 65,000)",
            f"{pair(taken)} = {statistics.median(taken) / statistics.median(beside):.2f} × FTS5",
        ),
    ]


def ask(loaded: MemoryIndex, slot: int) -> None:
    source = note_source(loaded, slot)
    weights = weights_of(SETTINGS, kind_of(loaded, source))
    explain(loaded, source, related(loaded, source, SETTINGS), weights)


def fts5(rows: Rows) -> sqlite3.Connection:
    """A full-text index of the same terms, each under its number."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE note USING fts5(terms, detail = none)")
    numbers = [number for (number,) in rows.database.rows("SELECT number FROM note")]
    for start in range(0, len(numbers), 500):
        places = rows.places([int(str(number)) for number in numbers[start : start + 500]])
        database.executemany(
            "INSERT INTO note VALUES (?)",
            ((" ".join(map(str, place.terms.tolist())),) for place in places.values()),
        )
    return database


def ask_fts5(database: sqlite3.Connection, loaded: MemoryIndex, slot: int) -> None:
    terms, _ = note_source(loaded, slot).terms
    if len(terms):
        wanted = " OR ".join(map(str, terms.tolist()))
        database.execute(
            "SELECT rowid FROM note WHERE note MATCH ? ORDER BY bm25(note) LIMIT 20", (wanted,)
        ).fetchall()


def editing(vault: Vault, rows: Rows) -> list[tuple[str, str]]:
    """One note saved again and again: until the indexes have it, and until an answer has."""
    loaded = MemoryIndex(rows, use_links=True, meanings_of=MODEL)
    card = max(loaded.cards[:500], key=lambda one: len(one.links))
    note = vault.root / card.path
    before = note.read_bytes()
    ask(loaded, loaded.by_path[card.key])
    parsed, written, answered = [], [], []
    notes = RelationsWriter(rows.database.path.parent, SETTINGS)
    assert notes.open_existing()
    try:
        for turn in range(EDITS):
            note.write_bytes(before + f"\n\nquixotic{turn}\n".encode())
            parsed.append(best(lambda: parse_note(card.path, note.read_text("utf-8")), 1) * 1000)
            started = time.perf_counter()
            take_up(vault, notes, [card.path])
            assert notes.written == turn + 1
            loaded.follow()
            written.append((time.perf_counter() - started) * 1000)
            ask(loaded, loaded.by_path[card.key])
            answered.append((time.perf_counter() - started) * 1000)
    finally:
        note.write_bytes(before)
        notes.close()
    return [
        ("read and parse one note (floor)", f"{statistics.median(parsed):.1f} ms"),
        (
            f"**one edit**, median / worst of {EDITS} (target 50 ms at 15,000)",
            f"{statistics.median(written):.0f} / {max(written):.0f} ms",
        ),
        (
            "one edit and the first answer after it, median / worst",
            f"{statistics.median(answered):.0f} / {max(answered):.0f} ms",
        ),
    ]


def timed(ask: Callable[[int], None], slots: list[int]) -> list[float]:
    """Milliseconds of each question, warm."""
    for slot in slots[:10]:
        ask(slot)
    taken = []
    for slot in slots:
        started = time.perf_counter()
        ask(slot)
        taken.append((time.perf_counter() - started) * 1000)
    return sorted(taken)


def pair(taken: list[float]) -> str:
    return f"{statistics.median(taken):.1f} / {taken[int(len(taken) * 0.95)]:.1f} ms"


def held_out(root: Path, limit: int, models: Path | None) -> Iterator[tuple[str, LinksFound]]:
    """How often each profile finds the target of a link that was taken away.

    With meaning vectors last, on the same index: adding them takes minutes.
    """
    home = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        if models is not None:
            shutil.copytree(models, home / "models")
        for name, values in PROFILES.items():
            say(f"{root.name}: held-out links, {name} …")
            flags = {f"relations.{key}": value for key, value in values.items()}
            config = load({"vault_path": str(root), **flags}, {"OBSIDIAN_RAG_HOME": str(home)})
            with closing(Engine(config)) as engine:
                run_index(engine, Mode.SYNC)
                yield (
                    name,
                    links_found(
                        engine.relations, limit, lambda _done, _total: None, is_static=True
                    ),
                )
        if models is not None:
            say(f"{root.name}: meaning vectors …")
            config = load({"vault_path": str(root)}, {"OBSIDIAN_RAG_HOME": str(home)})
            with closing(Engine(config)) as engine:
                add_meaning(engine.parts, lambda _: None, lambda: False)
                assert (relations_state(engine.relations) or {})["vectors"] == "meaning"
                yield BY_MEANING, links_found(engine.relations, limit, lambda _done, _total: None)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def speeds(columns: Mapping[str, list[tuple[str, str]]]) -> str:
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for row in zip(*columns.values(), strict=True):
        lines.append(f"| {row[0][0]} | " + " | ".join(value for _, value in row) + " |")
    return "\n".join(lines) + "\n"


def hits(name: str, found: Iterator[tuple[str, LinksFound]]) -> str:
    lines = []
    for profile, one in found:
        shares = " | ".join(f"{share:.3f}" for share in one.hits.values())
        lines.append(f"| {profile} | {shares} | {one.mrr:.3f} |")
        head = f"| {name}: {one.links:,} links of {one.notes:,} notes |"
    marks = " | ".join(f"Hit@{most}" for most in one.hits)
    return "\n".join([f"{head} {marks} | MRR |", "|---" * (len(one.hits) + 2) + "|", *lines]) + "\n"


if __name__ == "__main__":
    main()
