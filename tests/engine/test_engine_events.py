"""Events reach everyone, in order, and the last few can be had again."""

import threading

from obsidian_rag.engine import Bus, Event
from obsidian_rag.engine.events import EventKind


def test_every_listener_hears_every_event_in_order() -> None:
    bus = Bus()
    heard: list[list[Event]] = [[], []]
    for one in heard:
        bus.subscribe(one.append)

    def write() -> None:
        for _ in range(200):
            bus.publish(EventKind.JOB, {})

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [event.number for event in heard[0]] == list(range(1, 801))
    assert heard[0] == heard[1]


def test_a_late_listener_gets_the_remembered_ones_it_asks_for() -> None:
    bus = Bus()
    for number in range(300):
        bus.publish(EventKind.PROGRESS, {"number": number})
    heard: list[Event] = []
    bus.subscribe(heard.append, after=0)
    assert [event.number for event in heard] == list(range(45, 301))
    later: list[Event] = []
    bus.subscribe(later.append, after=298)
    bus.publish(EventKind.HEALTH, {})
    assert [event.number for event in later] == [299, 300, 301]


def test_one_who_ended_hears_no_more_and_may_end_twice() -> None:
    bus = Bus()
    heard: list[Event] = []
    end = bus.subscribe(heard.append)
    bus.publish(EventKind.JOB, {})
    end()
    end()
    bus.publish(EventKind.JOB, {})
    assert len(heard) == 1


def test_a_listener_that_fails_hurts_nobody() -> None:
    bus = Bus()
    heard: list[Event] = []

    def fail(_: Event) -> None:
        raise ValueError

    bus.subscribe(fail)
    bus.subscribe(heard.append)
    bus.publish(EventKind.JOB, {})
    bus.publish(EventKind.JOB, {})
    assert len(heard) == 2
