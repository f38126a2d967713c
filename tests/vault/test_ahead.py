import threading
from collections.abc import Iterator

import pytest

from obsidian_rag.vault.ahead import Ahead


def test_items_arrive_in_order() -> None:
    with Ahead(iter(range(100)), depth=3) as items:
        assert list(items) == list(range(100))


def test_the_producer_is_at_most_depth_items_ahead() -> None:
    made = []
    taken = threading.Event()

    def produce() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            yield number
        taken.set()

    with Ahead(produce(), depth=2) as items:
        first = next(items)
        # One taken, two waiting, one in the producer's hands.
        assert (first, len(made) <= 5, taken.is_set()) == (0, True, False)


def test_an_error_in_the_producer_is_raised_to_the_consumer() -> None:
    def fail() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    with Ahead(fail(), depth=1) as items, pytest.raises(ValueError, match="broken"):
        list(items)


def test_leaving_early_ends_the_thread() -> None:
    before = threading.active_count()
    with Ahead(iter(range(1000)), depth=1) as items:
        next(items)
    assert threading.active_count() == before
