"""The parts of an engine: made when first used, and once."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from obsidian_rag.engine import Engine, run_index
from obsidian_rag.errors import NotFound
from obsidian_rag.index import Mode
from obsidian_rag.store import Links
from obsidian_rag.vault import configured_vault


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


def test_a_vault_of_the_settings_gets_its_link_id_with_the_first_index(
    engine: Callable[[Path], Engine], make_vault: Callable[..., Path]
) -> None:
    root = make_vault({"a.md": "text"})
    one = engine(root)
    assert [(vault.root, vault.link_id) for vault in one.vaults] == [(root, "")]
    run_index(one, Mode.SYNC)
    link = Links(one.database).primary()
    assert link is not None
    assert [vault.link_id for vault in one.vaults] == [link.link_id]
    assert one.vaults.one() == one.vaults.one(link.link_id)
    assert configured_vault(one.config).link_id == ""
    with pytest.raises(NotFound):
        one.vaults.one("another")
