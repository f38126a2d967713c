"""An edit is found by its path: what it costs does not depend on the size of the vault."""

import os
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.livesync.nodes import MakeNode
from tests.waiting import PATIENCE_S, until

from obsidian_rag.livesync.codec.documents import Codec
from obsidian_rag.livesync.codec.tweaks import Tweaks
from obsidian_rag.livesync.disk import Disk
from obsidian_rag.livesync.filters.filters import Filters, FilterSettings
from obsidian_rag.store import LivesyncRecords, SyncedFile
from obsidian_rag.vault import walk_files

NOTES = 400
# A handful of looks at one file and its folders, and none at any other.
FEW = 25


class Costs:
    """How often the files of a vault and the records are looked at."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.looks = 0
        self.walks = 0
        self.records = 0
        self._root = str(root)
        for name in ("lstat", "stat", "open"):
            patch.setattr(os, name, self._counted(getattr(os, name)))
        patch.setattr("obsidian_rag.livesync.disk.walk_files", self._walked(walk_files))
        files, files_of = LivesyncRecords.files, LivesyncRecords.files_of

        def all_files(records: LivesyncRecords) -> Iterator[SyncedFile]:
            for one in files(records):
                self.records += 1
                yield one

        def some_files(records: LivesyncRecords, ids: Iterable[str]) -> dict[str, SyncedFile]:
            asked = list(ids)
            self.records += len(asked)
            return files_of(records, asked)

        patch.setattr(LivesyncRecords, "files", all_files)
        patch.setattr(LivesyncRecords, "files_of", some_files)

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(path: Any, *rest: Any, **named: Any) -> Any:
            is_ours = isinstance(path, str | Path) and str(path).startswith(self._root)
            self.looks += is_ours or named.get("dir_fd") is not None
            return call(path, *rest, **named)

        return counted

    def _walked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def walked(root: Path) -> Any:
            self.walks += 1
            return call(root)

        return walked


def test_an_edit_costs_what_one_file_costs(
    make_node: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = make_node("one"), make_node("other")
    for number in range(NOTES):
        one.write(f"Folder {number % 7}/{number}.md", f"note {number}\n")
    one.sync()
    node, stop = one.node(), threading.Event()
    thread = threading.Thread(target=node.run, args=(stop,))
    thread.start()
    try:
        until(lambda: node.state.is_connected)
        costs = Costs(one.root, monkeypatch)
        one.write("Folder 3/17.md", "changed\n")
        node.changed(["Folder 3/17.md"])
        until(lambda: node.state.pushed == 1)
        one.write("Folder 3/new.md", "a new one\n")
        node.changed(["Folder 3/new.md"])
        until(lambda: node.state.pushed == 2)
        assert costs.walks == 0
        assert 0 < costs.looks <= FEW
        assert 0 < costs.records <= FEW
        (one.root / "Folder 3/17.md").unlink()
        node.changed(["Folder 3/17.md"])
        until(lambda: node.state.deleted_there == 1)
        assert costs.walks == 1  # how much is gone is never told by a few paths
    finally:
        stop.set()
        thread.join(PATIENCE_S)
    other.sync()
    assert other.files() == one.files()


def test_events_that_were_lost_take_a_walk(make_node: MakeNode) -> None:
    one = make_node("one")
    one.sync()
    node, stop = one.node(), threading.Event()
    thread = threading.Thread(target=node.run, args=(stop,))
    thread.start()
    try:
        until(lambda: node.state.is_connected)
        one.write("unheard of.md", "x\n")
        node.changed(None)
        until(lambda: node.state.pushed == 1)
    finally:
        stop.set()
        thread.join(PATIENCE_S)


# -- what a few paths can tell, and what only a walk can


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    (root / "Folder").mkdir(parents=True)
    for path in ("a.md", "Folder/b.md", "Übung.md", "Ünlike.md", "colon:name.md", "Draft/x.md"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(path)
    return root


def disk_of(root: Path) -> Disk:
    filters = Filters(FilterSettings(ignore="^Draft/", uses_ignore_files=True), Tweaks(), root)
    disk = Disk(root, Codec(Tweaks(), None, None), 1000, filters=filters)
    disk.scan()
    return disk


def known(disk: Disk) -> dict[str, object]:
    return {doc_id: disk.entry(doc_id) for doc_id in disk.ids()}


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("a.md", ["a.md"]),
        ("Folder/b.md", ["folder/b.md"]),
        ("Übung.md", ["übung.md"]),
        ("Folder/new.md", ["folder/new.md"]),
        ("日記.md", ["日記.md"]),
        ("what?.md", ["what?.md"]),
        ("colon:name.md", []),
        ("Draft/x.md", []),
    ],
)
def test_a_file_that_was_written_is_known_as_after_a_walk(
    vault: Path, path: str, document: list[str]
) -> None:
    disk = disk_of(vault)
    (vault / path).write_text("written")
    assert disk.scan_paths([path]) == document
    walked = disk_of(vault)
    assert known(disk) == known(walked)
    assert disk.warnings == walked.warnings


def gone(vault: Path) -> str:
    (vault / "a.md").unlink()
    return "a.md"


def folder(vault: Path) -> str:
    (vault / "New").mkdir()
    return "New"


def file_in_the_place_of_a_file(vault: Path) -> str:
    (vault / "a.md").unlink()
    (vault / "a.md").mkdir()
    (vault / "a.md/below.md").write_text("x")
    return "a.md/below.md"


def link(vault: Path) -> str:
    (vault / "link.md").symlink_to(vault / "a.md")
    return "link.md"


def file_below_a_link(vault: Path) -> str:
    (vault / "Linked").symlink_to(vault / "Folder")
    return "Linked/b.md"


def twin_in_case(vault: Path) -> str:
    (vault / "A.md").write_text("twin")
    return "A.md"


def twin_in_form(vault: Path) -> str:
    name = unicodedata.normalize("NFD", "Übung.md")
    (vault / name).write_text("twin")
    return name


def too_large(vault: Path) -> str:
    (vault / "a.md").write_text("x" * 2000)
    return "a.md"


def newly_filtered(vault: Path) -> str:
    (vault / "Draft/y.md").write_text("x")
    return "Draft/y.md"


def ignored_from_now_on(vault: Path) -> str:
    (vault / ".gitignore").write_text("Folder\n")
    return "Folder/b.md"


def ignored_elsewhere_from_now_on(vault: Path) -> str:
    (vault / ".gitignore").write_text("Folder\n")
    return "a.md"


def hidden(vault: Path) -> str:
    (vault / ".hidden.md").write_text("x")
    return ".hidden.md"


@pytest.mark.parametrize(
    "happens",
    [
        gone,
        folder,
        file_in_the_place_of_a_file,
        link,
        file_below_a_link,
        twin_in_case,
        twin_in_form,
        too_large,
        newly_filtered,
        ignored_from_now_on,
        ignored_elsewhere_from_now_on,
        hidden,
    ],
)
def test_only_a_walk_shows_that_a_file_is_gone(vault: Path, happens: Callable[[Path], str]) -> None:
    disk = disk_of(vault)
    assert disk.scan_paths(["a.md"]) == ["a.md"]
    assert disk.scan_paths([happens(vault)]) is None
    disk.scan()
    assert known(disk) == known(disk_of(vault))


def test_after_a_walk_the_new_filters_are_no_news(vault: Path) -> None:
    disk = disk_of(vault)
    ignored_elsewhere_from_now_on(vault)
    assert disk.scan_paths(["a.md"]) is None
    disk.scan()
    assert disk.scan_paths(["a.md"]) == ["a.md"]
