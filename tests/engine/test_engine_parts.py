"""The parts of an engine: made when first used, and once."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path

from obsidian_rag.engine import Engine


def test_threads_that_meet_at_the_first_use_share_one_database(
    engine: Callable[[Path], Engine], make_vault: Callable[..., Path]
) -> None:
    one = engine(make_vault({"a.md": "text"}))
    meet = threading.Barrier(8)
    seen: list[object] = []

    def use() -> None:
        meet.wait()
        seen.append(one.database)

    threads = [threading.Thread(target=use) for _ in range(8)]
    pause = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(pause)
    assert len({id(database) for database in seen}) == 1
