"""An engine that lives follows its config file, and a call sees one set of settings only."""

import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from obsidian_rag.engine import Bus, Engine
from obsidian_rag.engine.health import Health
from obsidian_rag.engine.jobs import Jobs
from obsidian_rag.engine.live import Live
from obsidian_rag.errors import InvalidArgument
from obsidian_rag.tools import call
from obsidian_rag.vault import configured_vault

Configure = Callable[[Path, Mapping[str, object]], None]
WEIGHTS = ("bm25", "cosine", "tag", "term", "graph", "title")


@pytest.fixture
def vault(make_vault: Callable[..., Path]) -> Path:
    return make_vault({"a.md": "text"})


@pytest.fixture
def living(engine: Callable[[Path], Engine], vault: Path) -> Engine:
    one = engine(vault)
    bus = Bus()
    one.live = Live(bus, Jobs(one.config, bus), Health(bus))
    return one


def test_a_call_keeps_the_settings_it_began_with(
    living: Engine, vault: Path, configure: Configure
) -> None:
    before = living.embedder
    with living.one_set_of_settings():
        configure(vault, {"embedding.dimensions": 64, "indexing.chunk_size": 300})
        other = threading.Thread(target=living.follow_settings)
        other.start()
        other.join()
        assert living.config.settings.indexing.chunk_size == 500
        assert living.embedder is before
    assert living.config.settings.indexing.chunk_size == 300
    assert living.embedder.dimensions == 64


def test_what_no_change_concerns_is_kept(living: Engine, vault: Path, configure: Configure) -> None:
    embedder, chunks = living.embedder, living.chunks
    configure(vault, {"watcher.debounce_s": 1.5})
    living.follow_settings()
    assert living.config.settings.watcher.debounce_s == 1.5
    assert living.embedder is embedder
    assert living.chunks is chunks


def test_changes_at_the_same_moment_are_all_kept(living: Engine) -> None:
    changes = {f"relations.{name}_weight": number / 10 for number, name in enumerate(WEIGHTS, 1)}
    at_once = threading.Barrier(len(changes))

    def change(name: str, value: float) -> None:
        at_once.wait()
        living.settings_file.change({name: value})

    threads = [threading.Thread(target=change, args=one) for one in changes.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    living.follow_settings()
    assert {name: living.config.value(name) for name in changes} == changes


def test_of_several_changes_a_wrong_one_keeps_all_from_being_written(living: Engine) -> None:
    before = living.config.file.read_bytes()
    for wrong in ({"relations.nothing": 1}, {"watcher.debounce_s": "soon"}):
        with pytest.raises(InvalidArgument):
            living.settings_file.change({"indexing.chunk_size": 300, **wrong})
    assert living.config.file.read_bytes() == before


def test_threads_never_see_a_mix_of_two_files(
    living: Engine, vault: Path, configure: Configure
) -> None:
    over = threading.Event()
    mixed: list[tuple[int, float]] = []

    def read() -> None:
        while not over.is_set():
            with living.one_set_of_settings():
                size = living.config.settings.indexing.chunk_size
                limit = living.parts.limits.max_tokens
                megabytes = configured_vault(living.config).max_file_bytes / 1024 / 1024
                if not size == limit == megabytes * 100:
                    mixed.append((size, megabytes))

    threads = [threading.Thread(target=read) for _ in range(3)]
    configure(vault, {"indexing.chunk_size": 300, "indexing.max_file_mb": 3})
    for thread in threads:
        thread.start()
    for _ in range(30):
        for number in (4, 3):
            size = number * 100
            configure(vault, {"indexing.chunk_size": size, "indexing.max_file_mb": number})
            with living.one_set_of_settings():
                assert living.config.settings.indexing.chunk_size == size
    over.set()
    for thread in threads:
        thread.join()
    assert mixed == []


def test_a_file_with_the_same_size_and_time_is_still_another(living: Engine, home: Path) -> None:
    file = home / "config.json"
    living.follow_settings()
    found = file.stat()
    text = file.read_text()
    tree = json.loads(text)
    tree["indexing"] = {"deny_dirs": ["Old"]}
    for name in ("Old", "New"):
        tree["indexing"]["deny_dirs"] = [name]
        file.write_text(json.dumps(tree))
        os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
        living.follow_settings()
        assert living.config.settings.indexing.deny_dirs == (name,)


def test_an_engine_that_ends_with_its_command_does_not_follow(
    engine: Callable[[Path], Engine], vault: Path, configure: Configure
) -> None:
    one = engine(vault)
    configure(vault, {"indexing.chunk_size": 300})
    assert call(one, "obsidian_rag_status", {})["data"] is not None
    assert one.config.settings.indexing.chunk_size == 500
