import threading
from collections.abc import Iterator

import pytest

from obsidian_rag.vault.readers import Ahead


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


def test_one_that_waits_for_an_item_hears_that_it_shall_stop() -> None:
    is_waiting, may_go_on, stop = threading.Event(), threading.Event(), threading.Event()

    def produce() -> Iterator[int]:
        yield 1
        is_waiting.set()
        may_go_on.wait()
        yield 2

    def tell() -> None:
        is_waiting.wait()
        stop.set()

    threading.Thread(target=tell).start()
    with Ahead(produce(), 1, stop.is_set) as items:
        # The producer has not gone on, and yet this ends.
        assert list(items) in ([1], [])
        may_go_on.set()
