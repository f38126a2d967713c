"""Which changes go out together, told by a clock that is only a number."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_rag.vault.watcher import MOST_PATHS, PATIENCE, Changeset, Collector


def paths(changeset: Changeset | None) -> set[str]:
    assert changeset is not None
    assert changeset.paths is not None
    return set(changeset.paths)


def add(collector: Collector, names: Iterable[str], now: float) -> None:
    for name in names:
        collector.add(name, now)


def test_nothing_is_due_when_nothing_happened() -> None:
    collector = Collector(2, 5)
    assert collector.due(100) is None
    assert collector.next_due() is None


def test_without_debounce_and_window_a_change_is_due_at_once() -> None:
    collector = Collector(0, 0)
    collector.add("a.md", 7)
    assert collector.next_due() == 7
    assert paths(collector.due(7)) == {"a.md"}
    assert collector.due(7) is None


def test_a_change_goes_out_after_debounce_and_window() -> None:
    collector = Collector(2, 5)
    collector.add("a.md", 0)
    assert collector.next_due() == 7
    assert collector.due(6.9) is None
    assert paths(collector.due(7)) == {"a.md"}
    assert collector.next_due() is None


def test_ten_saves_of_a_file_are_one_change() -> None:
    collector = Collector(2, 0)
    for second in range(10):
        assert collector.due(second) is None
        collector.add("a.md", second)
    assert collector.due(10.9) is None
    assert paths(collector.due(11)) == {"a.md"}
    assert collector.due(60) is None


def test_the_window_takes_what_is_quiet_when_it_closes_and_leaves_the_rest() -> None:
    collector = Collector(2, 5)
    collector.add("first.md", 0)
    collector.add("in time.md", 5)
    collector.add("too late.md", 5.1)
    assert paths(collector.due(7)) == {"first.md", "in time.md"}
    assert collector.next_due() == pytest.approx(12.1)
    assert paths(collector.due(12.1)) == {"too late.md"}


def test_a_window_opens_when_a_path_is_quiet_even_if_nobody_asks_then() -> None:
    collector = Collector(2, 5)
    collector.add("a.md", 0)
    collector.add("a.md", 4)
    assert collector.next_due() == 7
    assert paths(collector.due(7)) == {"a.md"}


def test_a_path_that_moves_again_in_its_window_waits_for_the_next() -> None:
    collector = Collector(2, 5)
    collector.add("a.md", 0)
    collector.add("a.md", 6)
    assert collector.due(7) is None
    assert paths(collector.due(13)) == {"a.md"}


def test_a_path_that_never_rests_is_taken_all_the_same() -> None:
    collector = Collector(2, 5)
    for second in range(35):
        assert collector.due(second) is None
        collector.add("log.md", second)
    assert paths(collector.due(2 * PATIENCE + 5)) == {"log.md"}


def test_a_path_changed_after_it_went_out_comes_again() -> None:
    collector = Collector(1, 0)
    collector.add("a.md", 0)
    assert paths(collector.due(1)) == {"a.md"}
    collector.add("a.md", 1.5)
    assert collector.due(2) is None
    assert paths(collector.due(2.5)) == {"a.md"}


def test_too_many_paths_become_one_look_at_everything() -> None:
    collector = Collector(2, 5)
    add(collector, (f"{n}.md" for n in range(MOST_PATHS)), 0)
    assert len(paths(collector.due(7))) == MOST_PATHS
    add(collector, (f"{n}.md" for n in range(MOST_PATHS + 1)), 10)
    collector.add("one more.md", 11)
    assert collector.next_due() == 18
    assert collector.due(17.9) is None
    assert collector.due(18) == Changeset(None)
    assert collector.next_due() is None
    collector.add("later.md", 20)
    assert paths(collector.due(27)) == {"later.md"}


def test_everything_that_never_rests_is_taken_all_the_same() -> None:
    collector = Collector(1, 1)
    add(collector, (f"{n}.md" for n in range(MOST_PATHS + 1)), 0)
    for half in range(1, 2 * PATIENCE + 1):
        assert collector.due(half / 2) is None
        collector.add("log.md", half / 2)
    assert collector.due(PATIENCE + 1) == Changeset(None)


# Eighths of a second, so that sums are exact.
gaps = st.integers(0, 40).map(lambda eighths: eighths / 8)
names = st.sampled_from(["a.md", "b.md", "c.md", "d.md"])


@given(
    debounce=gaps,
    collect=gaps,
    happenings=st.lists(st.tuples(gaps, st.none() | names), max_size=60),
)
def test_each_burst_comes_out_once_not_before_it_is_quiet_and_not_too_late(
    debounce: float, collect: float, happenings: list[tuple[float, str | None]]
) -> None:
    """A path of None: nothing happens, somebody only asks. Asking is always done when it is due."""
    collector = Collector(debounce, collect)
    bursts: dict[str, list[float]] = {}

    def ask(now: float) -> None:
        changeset = collector.due(now)
        for path in paths(changeset) if changeset else ():
            times = bursts.pop(path)  # A second time without a new change is a KeyError.
            assert now >= min(times[-1] + debounce, times[0] + PATIENCE * debounce)

    def pass_time(until: float) -> None:
        while (due := collector.next_due()) is not None and due <= until:
            ask(due)

    now = 0.0
    for gap, path in happenings:
        pass_time(now + gap)
        now += gap
        if path is None:
            ask(now)
        else:
            collector.add(path, now)
            bursts.setdefault(path, []).append(now)
        for times in bursts.values():
            assert now <= times[0] + PATIENCE * debounce + collect
    pass_time(now + PATIENCE * debounce + collect)
    assert bursts == {}
    assert collector.next_due() is None
