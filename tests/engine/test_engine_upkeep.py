"""Upkeep: what a storm of edits leaves on disk comes back while nothing else is to be done."""

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.integration.living import QUICK, living
from tests.waiting import until

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.index import Mode
from obsidian_rag.index.upkeep import tidy_up
from obsidian_rag.store import writer_lock

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
Configure = Callable[[Path, Mapping[str, object]], None]
EDITS = 40
LONGEST_S = 300


def size(home: Path) -> int:
    """How much the chunk table takes; what is swept while we look does not count."""
    total = 0
    for parent, _, names in os.walk(home / "vectors.lance"):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += Path(parent, name).stat().st_size
    return total


def notes() -> dict[str, str | bytes]:
    return {
        f"{number}.md": f"# Note {number}\n\n" + f"harbour lantern{number} copper " * 60
        for number in range(20)
    }


def test_a_quiet_moment_gives_back_what_a_storm_of_edits_took(
    engine: MakeEngine, make_vault: MakeVault, home: Path
) -> None:
    root = make_vault(notes())
    made = engine(root)
    run_index(made, Mode.FULL)
    clean = size(home)
    for number in range(EDITS):
        path = f"{number % 20}.md"
        (root / path).write_text(f"# Edit {number}\n\n" + f"harbour copper{number} " * 70)
        run_index(made, Mode.SYNC, paths=[path])
    assert size(home) > 3 * clean
    with writer_lock(home, "somebody else"):
        assert not tidy_up(made.config.home, made.database, made.chunks, window_s=0)
    # What readers may still use is left to a later round.
    assert not tidy_up(made.config.home, made.database, made.chunks)
    assert tidy_up(made.config.home, made.database, made.chunks, window_s=0)
    assert size(home) <= 2 * clean
    assert made.chunks.damage(is_deep=True) is None
    assert made.chunks.count() == 20


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_space_comes_back_to_an_idle_daemon_within_minutes(
    make_vault: MakeVault, configure: Configure, home: Path
) -> None:
    root = make_vault(notes())
    configure(root, QUICK)
    with living() as daemon:
        daemon.index()
        clean = size(home)
        for number in range(EDITS):
            text = f"# Edit {number}\n\n" + f"harbour copper{number} " * 70
            (root / f"{number % 20}.md").write_text(text)
            daemon.index("sync")
        assert size(home) > 3 * clean
        until(lambda: size(home) <= 3 * clean, "the space", LONGEST_S)
        assert daemon.call("status")["status"] == "healthy"
