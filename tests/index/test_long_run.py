"""A long run keeps what it has stored searchable by indexes, not by reading row after row."""

from typing import TYPE_CHECKING

import pytest

from obsidian_rag.engine import ask
from obsidian_rag.index import Phase, Progress
from obsidian_rag.index.run import is_refresh_due
from obsidian_rag.search import Request
from obsidian_rag.store import ChunkStore, unindexed

if TYPE_CHECKING:
    from tests.index.conftest import World

NOTES = 2600
# What a run stores in one go at most.
_GROUP = 2048


def test_a_first_run_makes_word_indexes_on_the_way_and_searches_use_them(world: "World") -> None:
    world.write({f"{n:05}.md": f"moss number{n}" for n in range(NOTES)})
    seen: list[tuple[int, int]] = []
    found: list[str] = []

    def look(progress: Progress) -> None:
        if progress.phase is not Phase.STORING:
            return
        table = ChunkStore(str(world.home / "vectors.lance"))
        seen.append(unindexed(table))
        if not found and seen[-1][1]:
            reader = world.engine()
            [name] = [row["source_file"] for row in table.table.head(1).to_pylist()]
            hits = ask(reader, Request(f"number{int(name[:5])}")).answer.hits
            found.extend(hit.source_file for hit in hits if hit.source_file == name)
            reader.close()

    world.run("sync", look)
    assert found
    assert all(waiting < max(1024, indexed) + _GROUP for waiting, indexed in seen), seen


@pytest.mark.parametrize("group", [1, 64, _GROUP])
def test_the_indexes_are_refreshed_every_few_thousand_chunks(group: int) -> None:
    waiting, indexed, refreshed = 0, 0, 0
    while indexed + waiting < 500_000:
        waiting += group
        if is_refresh_due(waiting, indexed):
            indexed, waiting, refreshed = indexed + waiting, 0, refreshed + 1
        assert waiting < max(4096, indexed // 32)
    assert refreshed < 100
