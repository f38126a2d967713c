"""The scheduler and the database under threads that meet at a bad moment."""

import contextlib
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.embed.embedding_doubles import Answer, fake_ollama
from tests.waiting import PATIENCE_S

from obsidian_rag.engine import Bus, Engine, run_index
from obsidian_rag.engine.events import Event, EventKind
from obsidian_rag.engine.health import Health
from obsidian_rag.engine.jobs import Jobs
from obsidian_rag.engine.live import Live
from obsidian_rag.engine.scheduler import Scheduler
from obsidian_rag.health import HealthFacts
from obsidian_rag.index import Mode

MakeVault = Callable[[Mapping[str, str | bytes]], Path]
MakeEngine = Callable[..., Engine]
SLOW = {
    "embedding.provider": "ollama",
    "embedding.model": "tiny",
    "server.probe_s": 3600,
    "watcher.enabled": False,
}


def test_a_job_that_nobody_remembers_does_not_stop_automatic_sync(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    """The scheduler is busy looking while its own job and then more than 20 others end."""
    is_embedding, let_embed = threading.Event(), threading.Event()
    is_looking, let_look = threading.Event(), threading.Event()
    is_synced_again = threading.Event()
    with fake_ollama() as ollama, ExitStack() as stack:
        vault = make_vault({"a.md": "text"})
        made = engine(vault, {**SLOW, "embedding.base_url": ollama.url})
        run_index(made, Mode.FULL)
        (vault / "a.md").write_text("another text")

        def embed(request: dict[str, Any]) -> Answer:
            is_embedding.set()
            assert let_embed.wait(PATIENCE_S)
            return ollama.vectors(request)

        class SlowHealth(Health):
            def take(self, facts: HealthFacts) -> None:
                if is_embedding.is_set():
                    is_looking.set()
                    assert let_look.wait(PATIENCE_S)
                super().take(facts)

        def hear(event: Event) -> None:
            is_own = event.kind is EventKind.JOB and not event.data["requested"]
            if is_own and let_look.is_set() and event.data["status"] == "completed":
                is_synced_again.set()

        ollama.on_embed = embed
        bus = Bus()
        bus.subscribe(hear)
        jobs = Jobs(made.config, bus)
        made.live = Live(bus, jobs, SlowHealth(bus))
        scheduler, stop = Scheduler(made, made.live), threading.Event()
        thread = threading.Thread(target=scheduler.run, args=(stop,))
        jobs.start()
        stack.callback(jobs.stop, PATIENCE_S)
        thread.start()
        stack.callback(thread.join, PATIENCE_S)
        stack.callback(scheduler.wake)
        for event in (stop, let_look, let_embed):
            stack.callback(event.set)
        assert is_embedding.wait(PATIENCE_S)
        own = jobs.active
        assert own is not None
        scheduler.probe_soon()
        assert is_looking.wait(PATIENCE_S)
        let_embed.set()
        assert jobs.wait(own.id, PATIENCE_S).is_over
        for _ in range(21):
            assert jobs.wait(jobs.request(Mode.SYNC).id, PATIENCE_S).is_over
        let_look.set()
        scheduler.changed(frozenset({"a.md"}))
        assert is_synced_again.wait(PATIENCE_S), "the scheduler waits for a job that is over"


class Meeting:
    """A file identity that equals no other; whoever compares with it waits a while for a second."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2)

    def __ne__(self, other: object) -> bool:
        with contextlib.suppress(threading.BrokenBarrierError):
            self._barrier.wait(1.0)
        return True


def test_threads_may_meet_a_replaced_database_together(
    engine: MakeEngine, make_vault: MakeVault
) -> None:
    made = engine(make_vault({"a.md": "text"}))
    run_index(made, Mode.FULL)
    made.parts.file._identity = Meeting()  # type: ignore[assignment]  # as if the file were replaced
    failures: list[BaseException] = []

    def follow() -> None:
        try:
            made.follow_database()
        except BaseException as error:  # noqa: BLE001  (told below)
            failures.append(error)

    threads = [threading.Thread(target=follow) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert failures == []
    assert made.database.check() is None
