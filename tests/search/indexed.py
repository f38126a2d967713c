"""Vaults on disk and engines over them, for tests that share one index."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path

from obsidian_rag import config
from obsidian_rag.engine import Engine, ask, run_index
from obsidian_rag.engine.query import AskResult
from obsidian_rag.index import Mode
from obsidian_rag.search import Filters, Hit, Request, Signals

TODAY = date(2026, 4, 15)


def write_notes(root: Path, notes: Mapping[str, str]) -> Path:
    for path, text in notes.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
    return root


def open_engine(home: Path, vault: Path, **settings: object) -> Engine:
    """An engine of its own; `embedding__provider="hash"` sets a dotted key."""
    flags = {"vault_path": str(vault), "embedding.provider": "hash"}
    flags |= {key.replace("__", "."): value for key, value in settings.items()}  # type: ignore[misc]
    return Engine(config.load(flags, {"OBSIDIAN_RAG_HOME": str(home)}))


def indexed(home: Path, vault: Path, **settings: object) -> Engine:
    engine = open_engine(home, vault, **settings)
    run_index(engine, Mode.FULL)
    return engine


def asked(
    engine: Engine,
    question: str,
    *,
    limit: int = 10,
    filters: Filters | None = None,
    signals: Signals = Signals.HYBRID,
    use_dates: bool = True,
    group_by_note: bool = False,
) -> AskResult:
    request = Request(
        question, limit, filters or Filters(), signals, group_by_note, use_dates, TODAY
    )
    return ask(engine, request)


def hits(engine: Engine, question: str, **options: object) -> tuple[Hit, ...]:
    return asked(engine, question, **options).answer.hits  # type: ignore[arg-type]


def files(engine: Engine, question: str, **options: object) -> list[str]:
    """The notes found, best first, each once."""
    return list(dict.fromkeys(hit.source_file for hit in hits(engine, question, **options)))
