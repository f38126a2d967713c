"""The graph of notes: who a link means, who is near, what leads nowhere or round in a circle."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_rag.relations.graph import MOST_STEPS, Graph, Ties

A = "550e8400-e29b-41d4-a716-446655440000"
B = "f47ac10b-58cc-4372-a567-0e02b2c3d479"


def note(
    path: str, *links: str, uid: str | None = None, related: tuple[tuple[str, bool], ...] = ()
) -> Ties:
    return Ties("link", path, uid, links, related)


def graph(*notes: Ties) -> Graph:
    return Graph(dict(enumerate(notes)))


def chain(length: int) -> Graph:
    """Notes 0 to `length`, each with a link to the next."""
    return graph(*(note(f"n{at}.md", f"n{at + 1}") for at in range(length + 1)))


@pytest.mark.parametrize(
    ("target", "source", "expected"),
    [
        ("Pond", 0, "Pond.md"),
        ("pond", 0, "Pond.md"),
        ("Pond.md", 0, "Pond.md"),
        (" Pond ", 0, "Pond.md"),
        ("/Pond", 0, "Pond.md"),
        ("Garden/Bog", 0, "Garden/Bog.md"),
        ("Bog", 0, "Garden/Bog.md"),
        ("Bog", 3, "Deep/Down/Bog.md"),
        ("Down/Bog", 0, "Deep/Down/Bog.md"),
        ("own/Bog", 0, None),
        ("../Pond", 3, None),
        ("../../Pond", 3, "Pond.md"),
        ("./Other", 3, "Deep/Down/Other.md"),
        ("Plan.canvas", 0, "Plan.canvas"),
        ("Plan", 0, None),
        ("Nowhere", 0, None),
        ("", 0, None),
        ("/", 0, None),
        ("京都", 0, "Places/京都.md"),
    ],
)
def test_a_link_means_the_note_that_obsidian_opens(
    target: str, source: int, expected: str | None
) -> None:
    paths = [
        "Pond.md",
        "Garden/Bog.md",
        "Deep/Down/Bog.md",
        "Deep/Down/Other.md",
        "Plan.canvas",
        "Places/京都.md",
    ]
    found = graph(*map(note, paths)).find(target, source)
    assert (paths[found] if found is not None else None) == expected


def test_of_notes_with_one_name_the_shortest_path_is_meant_and_then_the_first() -> None:
    made = graph(note("long/way/x.md"), note("b/x.md"), note("a/x.md"), note("y.md", "x"))
    assert made.find("x", 3) == 2
    assert made.outgoing == {3: frozenset({2})}


def test_paths_that_differ_only_in_case_are_told_apart_by_order() -> None:
    assert graph(note("x.md"), note("X.md")).find("x", 0) == 1


def test_a_link_a_named_relation_and_an_id_are_ties_alike() -> None:
    made = graph(
        note("a.md", "b", related=(("c", True), (A, False))),
        note("b.md"),
        note("c.md"),
        note("d.md", uid=A),
    )
    assert made.outgoing == {0: frozenset({1, 2, 3})}
    assert made.neighbours(3) == {0}


def test_ties_count_in_both_directions() -> None:
    made = graph(note("a.md", "b"), note("b.md"))
    assert made.neighbours(0) == {1}
    assert made.neighbours(1) == {0}


def test_a_note_is_not_its_own_neighbour() -> None:
    made = graph(note("a.md", "a", uid=A, related=((A, False),)))
    assert made.outgoing == {}
    assert made.neighbours(0) == frozenset()


def test_of_two_notes_with_one_id_the_first_by_path_has_it() -> None:
    made = graph(note("z.md", related=((A, False),)), note("b.md", uid=A), note("a.md", uid=A))
    assert made.outgoing[0] == {2}


def test_an_id_is_not_a_name_and_a_name_is_no_id() -> None:
    made = graph(note(f"{A}.md"), note("b.md", related=((A, False),)), note("c.md", A))
    assert made.outgoing == {2: frozenset({0})}
    assert made.dangling() == [(1, A)]


def test_distances_end_after_three_steps() -> None:
    assert chain(5).distances(0) == {1: 1, 2: 2, 3: 3}
    assert MOST_STEPS == 3


def test_the_shortest_way_counts() -> None:
    made = graph(note("a.md", "b", "d"), note("b.md", "c"), note("c.md", "d"), note("d.md"))
    assert made.distances(0) == {1: 1, 3: 1, 2: 2}
    assert made.path(0, 2) == [0, 1, 2]


def test_the_way_is_told_up_to_three_steps() -> None:
    assert chain(5).path(0, 3) == [0, 1, 2, 3]
    assert chain(5).path(3, 0) == [3, 2, 1, 0]
    assert chain(5).path(0, 4) == []
    assert chain(5).path(0, 0) == [0]


def test_a_circle_is_walked_once() -> None:
    made = graph(note("a.md", "b"), note("b.md", "c"), note("c.md", "a"))
    assert made.distances(0) == {1: 1, 2: 1}


def test_neighbours_in_common_say_more_when_they_are_few() -> None:
    hub = [note(f"n{at}.md", "hub") for at in range(8)]
    made = graph(note("a.md", "hub", "small"), note("hub.md"), note("small.md"), *hub,
                 note("b.md", "small"))  # fmt: skip
    shared = made.shared(0)
    assert shared[11] == pytest.approx(1 / 2)
    assert shared[3] == pytest.approx(1 / 9)
    assert 0 not in shared


def test_a_tie_that_is_taken_away_for_measuring_counts_neither_way() -> None:
    made = graph(note("a.md", "b", "c"), note("b.md", "c"), note("c.md"))
    assert made.distances(0, without=1) == {2: 1, 1: 2}
    assert made.shared(0, without=1) == {1: pytest.approx(1 / 2)}


def test_a_tie_that_the_other_side_has_too_stays() -> None:
    made = graph(note("a.md", "b"), note("b.md", "a"))
    assert made.distances(0, without=1) == {1: 1}


def test_relations_that_lead_nowhere_are_told_in_the_order_of_paths() -> None:
    made = graph(
        note("z.md", "Nowhere", related=(("Gone", True), (A, False))),
        note("a.md", related=((B, False), ("z", True))),
    )
    assert made.dangling() == [(1, B), (0, "Gone"), (0, A)]
    assert made.outgoing == {1: frozenset({0})}


def test_circles_of_relations_are_told_once_and_links_are_none() -> None:
    made = graph(
        note("a.md", "b", uid=A, related=((B, False),)),
        note("b.md", "a", uid=B, related=((A, False),)),
        note("c.md", related=(("c", True),)),
        note("d.md", "e"),
        note("e.md", "d"),
    )
    assert made.cycles() == [(0, 1), (2,)]


def test_a_long_chain_of_relations_is_walked_without_recursion() -> None:
    length = 5000
    ties = (note(f"{at}.md", related=((str((at + 1) % length), True),)) for at in range(length))
    (cycle,) = graph(*ties).cycles()
    assert len(cycle) == length


def test_many_notes_of_one_name_are_found_by_their_folder() -> None:
    notes = [note(f"Web/{at}/index.md", f"{at + 1}/index") for at in range(3000)]
    made = graph(*notes)
    assert made.outgoing[7] == {8}
    assert made.find("2999/index", 0) == 2999


NAMES = ("a", "b", "c", "x/a", "x/b", "x/y/a", "A")
TARGETS = (*NAMES, "y/a", "../a", "./b", "gone")
Change = tuple[int, Ties | None]
ties = st.builds(
    Ties,
    st.sampled_from(["one", "other"]),
    st.sampled_from([f"{name}.md" for name in NAMES]),
    st.sampled_from([None, A, B]),
    st.lists(st.sampled_from(TARGETS), max_size=3).map(tuple),
    st.lists(
        st.tuples(st.sampled_from([A, B]), st.just(False))
        | st.tuples(st.sampled_from(TARGETS), st.just(True)),
        max_size=2,
    ).map(tuple),
)
changes = st.dictionaries(st.integers(0, 5), st.none() | ties, max_size=3)


def is_possible(notes: Mapping[int, Ties]) -> bool:
    paths = [(one.link_id, one.path) for one in notes.values()]
    return len(paths) == len(set(paths))


@given(st.dictionaries(st.integers(0, 5), ties, max_size=6), st.lists(changes, max_size=4))
def test_a_graph_that_followed_changes_is_the_graph_made_anew(
    notes: dict[int, Ties], rounds: list[dict[int, Ties | None]]
) -> None:
    if not is_possible(notes):
        return
    followed = Graph(notes)
    assert followed.outgoing is not None
    for changed in rounds:
        after = {slot: one for slot, one in (notes | changed).items() if one is not None}
        if not is_possible(after):
            continue
        notes = after
        followed.change(changed)
        anew = Graph(notes)
        assert followed.outgoing == anew.outgoing
        assert followed.dangling() == anew.dangling()
        assert followed.cycles() == anew.cycles()
        for slot in notes:
            assert followed.neighbours(slot) == anew.neighbours(slot)
            assert followed.distances(slot) == anew.distances(slot)
            assert followed.shared(slot) == anew.shared(slot)
            for other in notes:
                assert followed.path(slot, other) == anew.path(slot, other)
