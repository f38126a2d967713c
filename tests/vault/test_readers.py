"""Processes beside this one: answers in order, a reader that dies, readers that end."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from obsidian_rag.vault import read_beside

Asked = tuple[int, int]


def squares(source: int) -> Callable[[int], Asked]:
    """The work: it tells in which process it was done."""
    return lambda request: (os.getpid(), source + request * request)


def killed(source: int) -> Callable[[int], Asked]:
    def answer(request: int) -> Asked:
        if request == 5 and os.getpid() != source:
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid(), request

    return answer


@pytest.fixture(autouse=True)
def no_reader_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))  # readers import this module
    before = set(psutil.Process().children())
    yield
    assert set(psutil.Process().children()) == before


def test_answers_come_in_order_from_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    found = list(read_beside(squares, 7, range(50), ahead=2))
    assert [answer for _, answer in found] == [7 + n * n for n in range(50)]
    workers = {pid for pid, _ in found}
    assert len(workers) == 3
    assert os.getpid() not in workers


def test_the_work_of_a_reader_that_dies_is_done_here() -> None:
    found = list(read_beside(killed, os.getpid(), range(20), ahead=2))
    assert [answer for _, answer in found] == list(range(20))
    assert found[-1][0] == os.getpid()


def test_readers_end_when_nobody_wants_more() -> None:
    answers = read_beside(squares, 0, range(1000), ahead=1)
    assert next(answers)[1] == 0
    del answers
