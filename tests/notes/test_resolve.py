"""Which note a name or a link means."""

import pytest

from obsidian_rag.notes import (
    NoteNames,
    asked_name,
    exact_paths,
    file_title,
    names_of,
    notes_called,
    notes_ending,
    without_extension,
)

PATHS = ["Index.md", "Garden/Index.md", "Garden/Iris.md", "Work/Garden/Iris.md", "Plan.canvas"]


def test_only_markdown_loses_its_extension_in_a_link() -> None:
    assert without_extension("A/Note.MD") == "A/Note"
    assert without_extension("A/Plan.canvas") == "A/Plan.canvas"
    assert file_title("A/Plan.canvas") == "Plan"
    assert file_title("A/.md") == ".md"
    assert exact_paths("A/Note") == ("A/Note", "A/Note.md")


def test_an_exact_path_is_meant_alone_and_else_every_note_whose_path_ends_so() -> None:
    assert notes_called("Index", PATHS) == ["Index.md"]
    assert notes_called("Garden/Iris.md", PATHS) == ["Garden/Iris.md"]
    assert notes_called("index", PATHS) == ["Index.md", "Garden/Index.md"]
    assert notes_called("garden/IRIS", PATHS) == ["Garden/Iris.md", "Work/Garden/Iris.md"]
    assert notes_called("ndex", PATHS) == []
    assert list(notes_ending("plan.canvas", PATHS)) == ["Plan.canvas"]


@pytest.mark.parametrize(
    ("target", "source", "meant"),
    [
        ("Iris", "", ["Garden/Iris.md", "Work/Garden/Iris.md"]),
        ("garden/iris.md", "", ["Garden/Iris.md"]),
        ("Index", "Garden/Iris.md", ["Index.md"]),
        ("../Index", "Garden/Iris.md", ["Index.md"]),
        ("Iris", "Work/Garden/Other.md", ["Work/Garden/Iris.md"]),
        ("Work/Garden/Iris", "", ["Work/Garden/Iris.md"]),
        ("/Index/", "", ["Index.md"]),
        ("Plan.canvas", "", ["Plan.canvas"]),
        ("Plan", "", []),
        ("", "", []),
    ],
)
def test_a_link_means_a_path_or_the_shortest_path_that_ends_so(
    target: str, source: str, meant: list[str]
) -> None:
    names = NoteNames((path, path) for path in PATHS)
    assert names.resolve(target, source) == meant


def test_a_note_that_is_removed_is_meant_no_more_and_can_be_asked_for_again() -> None:
    names = NoteNames(enumerate(PATHS))
    assert names.resolve("Index.md") == [0]
    names.remove(2)
    assert names.resolve("Iris") == [3]
    names.add(2, "Iris.md")
    assert names.resolve("Iris") == [2]


@pytest.mark.parametrize("target", ["Iris", "garden/iris", "../Garden/Iris.md", "/Iris"])
def test_what_is_asked_for_is_a_name_of_every_note_that_can_be_meant(target: str) -> None:
    assert asked_name(target) in names_of("Work/Garden/Iris.md")
