import sys

import psutil
import pytest

from obsidian_rag.process import give_back


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do it themselves")
def test_memory_that_is_free_is_given_back() -> None:
    process = psutil.Process()
    # Each too small to be mapped alone; the last one keeps the heap from shrinking by itself.
    blocks = [b"x" * 100_000 for _ in range(1000)]
    last = blocks[-1]
    del blocks
    before = process.memory_info().rss
    give_back()
    assert process.memory_info().rss < before - 50_000_000
    assert last
