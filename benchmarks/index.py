"""How fast a vault becomes an index, beside what cannot be avoided on the same machine.

Every number stands next to a floor measured in the same run: a bare stat walk, reading and
hashing all files, and the embedder alone on the same chunks. Run by `make bench NAME=index`, or
for one vault: `python -m benchmarks.index --vault ~/Notes`.
"""

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import psutil
import xxhash
from numpy.typing import NDArray

from obsidian_rag.config import load
from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.index.run import IndexRun, RunParts
from obsidian_rag.notes import chunk_note, embedding_text, parse_note

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data" / "vaults"
CACHE = ROOT / ".cache" / "bench"
MARKS = ("<!-- index benchmark -->", "<!-- end of index benchmark -->")


NOISE = np.random.default_rng(1).standard_normal((4096, 256), dtype=np.float32)


class NoEmbedder:
    """Vectors for nothing, to see the time of everything else."""

    provider, model, fingerprint = "none", "none", "none"
    is_external, max_tokens, dimensions = False, None, 256

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        start = hash(texts[0]) % 4096 if texts else 0
        return np.take(NOISE, range(start, start + len(texts)), axis=0, mode="wrap")

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return np.full(256, 1 / 16, dtype=np.float32)

    def probe(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Measured:
    """All of one vault's numbers, in seconds and bytes."""

    name: str
    files: int
    megabytes: float
    chunks: int
    walk_s: float
    hash_s: float
    embed_s: float
    stock_embed_s: float
    bare_index_s: float
    index_s: float
    unrelated_s: float
    peak_mb: float
    disk_mb: float
    noop_s: float
    noop_cli_s: float
    status_cli_s: float
    change_ms: float


def best(action: Callable[[], object], times: int = 3) -> float:
    """The least of several times: noise only ever adds."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        action()
        taken.append(time.perf_counter() - started)
    return min(taken)


def walk(root: Path) -> Iterator[os.stat_result]:
    folders = [str(root)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    yield entry.stat(follow_symlinks=False)


def hash_all(root: Path) -> None:
    for path in root.rglob("*.md"):
        xxhash.xxh3_128_hexdigest(path.read_bytes())


def chunks_of(engine: Engine, root: Path) -> list[str]:
    texts = []
    for path in root.rglob("*.md"):
        note = parse_note(path.relative_to(root).as_posix(), path.read_text("utf-8", "replace"))
        for chunk in chunk_note(note, engine.parts.limits):
            texts.append(embedding_text(note.title, chunk.heading_path, chunk.text))
    return texts


def command(home: Path, *arguments: str, python: str = sys.executable) -> float:
    """The time of one run of the installed command, start-up included."""
    environment = {**os.environ, "OBSIDIAN_RAG_HOME": str(home)}
    started = time.perf_counter()
    subprocess.run(
        [python, "-m", "obsidian_rag", *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - started


def bytes_below(folder: Path) -> int:
    return sum(status.st_size for status in walk(folder))


def indexed(home: Path, root: Path, *, is_related: bool = True) -> tuple[float, float]:
    """Seconds and peak megabytes of a first index, in a process of its own."""
    unrelated = "Parts.relations_writer = lambda self: contextlib.nullcontext();"
    program = (
        "import contextlib, time;"
        "from obsidian_rag.config import load;"
        "from obsidian_rag.engine import Engine, run_index;"
        "from obsidian_rag.index import Mode, Parts;"
        f"{'' if is_related else unrelated}"
        "engine = Engine(load());"
        "engine.embedder.embed_query('warm');"
        "import lancedb;"
        "started = time.perf_counter();"
        "run_index(engine, Mode.FULL);"
        "print(time.perf_counter() - started)"
    )
    home.mkdir(parents=True)
    (home / "config.json").write_text(json.dumps({"vault_path": str(root)}))
    environment = {**os.environ, "OBSIDIAN_RAG_HOME": str(home)}
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, memory_of(psutil.Process(process.pid)))
        time.sleep(0.25)  # a look at all processes takes some milliseconds itself
    assert process.stdout is not None
    return float(process.stdout.read()), peak / 1e6


def memory_of(process: psutil.Process) -> int:
    """Bytes that a process and its readers hold now; what they share is counted for each."""
    total = 0
    with contextlib.suppress(psutil.Error):
        for one in (process, *process.children(recursive=True)):
            total += one.memory_info().rss
    return total


def bare_index(home: Path, root: Path) -> float:
    """Seconds of a first index with vectors that cost nothing."""
    engine = Engine(load({"vault_path": str(root)}, {"OBSIDIAN_RAG_HOME": str(home)}))
    with closing(engine):
        place = replace(
            RunParts.of(engine.parts, engine.vaults.remember_primary(), None),
            embedder=NoEmbedder(),
        )
        run = IndexRun(place, lambda _: None, lambda: False)
        return best(lambda: run.run(Mode.FULL), times=1)


def change_one(engine: Engine, root: Path) -> float:
    """Milliseconds from a saved note to its words in the table."""
    rules = engine.vaults.primary.rules
    note = next(
        path
        for path in sorted(root.rglob("*.md"))
        if path.stat().st_size > 500 and rules.admits_file(path.relative_to(root).as_posix())
    )
    before = note.read_bytes()
    taken = []
    for turn in range(5):
        word = f"quixotic{turn}"
        note.write_bytes(before + f"\n\n{word}\n".encode())
        started = time.perf_counter()
        run_index(engine, Mode.SYNC, paths=[note.relative_to(root).as_posix()])
        found = engine.chunks.table.search(word, query_type="fts").limit(1).to_list()
        taken.append(time.perf_counter() - started)
        assert found
    note.write_bytes(before)
    return sorted(taken)[len(taken) // 2] * 1000


def measure(name: str, root: Path) -> Measured:
    print(f"{name} …", file=sys.stderr, flush=True)
    home = Path(tempfile.mkdtemp(dir=CACHE)) / "home"
    homes = (home, home.with_name("again"))
    # In turns: the machine's speed changes meanwhile.
    turns = [
        (indexed(one, root), indexed(one.with_name(f"{one.name} alone"), root, is_related=False))
        for one in homes
    ]
    notes = [status for path in root.rglob("*.md") for status in [path.stat()]]
    megabytes = sum(status.st_size for status in notes) / 1e6
    engine = Engine(load(environ={"OBSIDIAN_RAG_HOME": str(home)}))
    with closing(engine):
        texts = chunks_of(engine, root)
        engine.embedder.embed_query("warm")
        result = Measured(
            name=name,
            files=len(notes),
            megabytes=megabytes,
            chunks=len(texts),
            walk_s=best(lambda: sum(1 for _ in walk(root))),
            hash_s=best(lambda: hash_all(root), times=1),
            embed_s=best(lambda: engine.embedder.embed_documents(texts), times=1),
            stock_embed_s=stock_embed(texts),
            bare_index_s=bare_index(home.with_name("bare"), root),
            index_s=min(related[0] for related, _ in turns),
            unrelated_s=min(alone[0] for _, alone in turns),
            peak_mb=turns[0][0][1],
            disk_mb=bytes_below(home) / 1e6,
            noop_s=best(lambda: run_index(engine, Mode.SYNC)),
            noop_cli_s=command(home, "sync"),
            status_cli_s=command(home, "status"),
            change_ms=change_one(engine, root),
        )
    shutil.rmtree(home.parent)
    return result


def rows(m: Measured) -> list[tuple[str, str]]:
    related = m.index_s / m.unrelated_s
    speed = f"{m.files / m.index_s:.0f} notes/s, {m.megabytes / m.index_s:.1f} MB/s"
    bare = f"{m.bare_index_s:.1f} s = {m.files / m.bare_index_s:.0f} notes/s"
    disk = f"{m.disk_mb:.0f} MB = {m.disk_mb / m.megabytes:.1f} × Markdown"
    return [
        ("notes / MB of Markdown / chunks", f"{m.files:,} / {m.megabytes:.1f} / {m.chunks:,}"),
        ("bare stat walk (floor)", f"{m.walk_s:.3f} s"),
        ("read and hash all files (floor)", f"{m.hash_s:.2f} s"),
        ("embedder alone on the same chunks (floor)", f"{m.embed_s:.1f} s"),
        ("wordllama's own `embed` on the same chunks", f"{m.stock_embed_s:.1f} s"),
        ("**full index**", f"{m.index_s:.1f} s = {speed}"),
        ("embedder's share of it", f"{m.embed_s / m.index_s:.0%}"),
        ("the same without related notes", f"{m.unrelated_s:.1f} s; with them {related:.2f} ×"),
        ("full index without embedding", bare),
        ("**no-op sync**, warm", f"{m.noop_s:.3f} s = {m.noop_s / m.walk_s:.1f} × walk"),
        ("no-op `obsidian-rag sync`, whole process", f"{m.noop_cli_s:.2f} s"),
        ("`obsidian-rag status`, whole process", f"{m.status_cli_s:.2f} s"),
        ("**one changed note**, warm, to searchable", f"{m.change_ms:.0f} ms"),
        ("peak memory of the full index", f"{m.peak_mb:.0f} MB"),
        ("index on disk", disk),
    ]


def table(results: list[Measured]) -> str:
    columns = [rows(result) for result in results]
    lines = ["| | " + " | ".join(result.name for result in results) + " |"]
    lines.append("|---" * (len(results) + 1) + "|")
    for line in zip(*columns, strict=True):
        lines.append(f"| {line[0][0]} | " + " | ".join(value for _, value in line) + " |")
    return "\n".join(lines) + "\n"


def stock_embed(texts: list[str]) -> float:
    """Seconds of wordllama's `embed`, the usual way to use the same model."""
    import wordllama

    model = wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, disable_download=True
    )
    return best(lambda: model.embed(texts, norm=True, batch_size=32), times=1)


def shared_vaults() -> Iterator[tuple[str, Path]]:
    for archive in sorted(SHARED.glob("*.tar.gz")):
        name = archive.name.removesuffix(".tar.gz")
        if not (CACHE / name).is_dir():
            with tarfile.open(archive) as stream:
                stream.extractall(CACHE, filter="data")
        yield name.replace("__", "/"), CACHE / name


def made_vault(count: int, source: Path) -> Path:
    """`count` notes of real paragraphs, 2 KB on average, in 100 folders per thousand."""
    root = CACHE / f"made-{count}"
    if root.is_dir():
        return root
    paragraphs = [
        part
        for path in sorted(source.rglob("*.md"))
        for part in re.split(r"\n{2,}", path.read_text(encoding="utf-8"))
        if 80 < len(part) < 1200
    ]
    chance = random.Random(1)
    for number in range(count):
        folder = root / f"{number % (count // 10 or 1) // 100}" / f"{number % 97}"
        folder.mkdir(parents=True, exist_ok=True)
        body = "\n\n".join(chance.sample(paragraphs, chance.randint(2, 8)))
        (folder / f"note {number}.md").write_text(f"# Note {number}\n\n{body}\n", encoding="utf-8")
    return root


def put_between(file: Path, marks: tuple[str, str], text: str) -> None:
    """Replace what stands between two marks of a page."""
    page = file.read_text(encoding="utf-8")
    start, end = page.index(marks[0]) + len(marks[0]), page.index(marks[1])
    file.write_text(f"{page[:start]}\n{text}{page[end:]}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vault", type=Path, action="append", default=[], help="also measure this")
    parser.add_argument("--notes", type=int, action="append", default=[], help="and a made vault")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    chosen = parser.parse_args()
    os.environ.setdefault("LANCEDB_LOG", "error")
    import lancedb  # noqa: F401  (over a second, once, in no measurement)

    CACHE.mkdir(parents=True, exist_ok=True)
    vaults = list(shared_vaults()) if not chosen.vault else []
    vaults += [(path.name, path) for path in chosen.vault]
    vaults += [(f"{count:,} made notes", made_vault(count, vaults[0][1])) for count in chosen.notes]
    text = table([measure(name, path) for name, path in vaults])
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


if __name__ == "__main__":
    main()
