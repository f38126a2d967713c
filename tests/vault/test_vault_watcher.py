"""The watcher on a real file system: what it tells, what it keeps quiet about, what it survives."""

import contextlib
import functools
import logging
import os
import random
import secrets
import shutil
import subprocess
import sys
import textwrap
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import PATIENCE_S, TRIES, until

from obsidian_rag.config.settings import WatcherSettings
from obsidian_rag.vault import Rules, fs_events, replace_note
from obsidian_rag.vault.fs_events import Folders, list_folders
from obsidian_rag.vault.watcher import MOST_PATHS, Listener, Watcher

QUICK = WatcherSettings(debounce_s=0.05, collect_s=0)
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks at Linux's own books")


class Watched(logging.Handler):
    """A running watcher, with all that it told and logged; one can wait for either."""

    def __init__(self, root: Path, rules: Rules, settings: WatcherSettings) -> None:
        super().__init__(logging.WARNING)
        self.root = root
        self.told: list[frozenset[str] | None] = []
        self.warnings: list[str] = []
        self.news = threading.Condition()
        self.watcher = Watcher(
            root, Listener(self.changed, rules, settings.debounce_s, settings.collect_s)
        )
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.watcher.run, args=(self.stop,), daemon=True)

    def changed(self, paths: frozenset[str] | None) -> None:
        with self.news:
            self.told.append(paths)
            self.news.notify_all()

    def emit(self, record: logging.LogRecord) -> None:
        with self.news:
            self.warnings.append(record.getMessage())
            self.news.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        with self.news:
            assert self.news.wait_for(condition, PATIENCE_S), (self.told, self.warnings)

    @property
    def paths(self) -> set[str]:
        return {path for told in self.told for path in told or ()}

    def write_and_wait(self, path: str) -> None:
        """Wait until somebody who looks where he is told to finds this note."""
        before = len(self.told)
        self.write(path)
        whole = {path, *(str(folder) for folder in Path(path).parents)}
        self.wait(lambda: any(told is None or told & whole for told in self.told[before:]))

    def wait_for(self, *paths: str) -> None:
        self.wait(lambda: self.paths >= set(paths))

    def wait_for_warning(self, words: str) -> None:
        self.wait(lambda: any(words in warning for warning in self.warnings))

    def wait_for_all_before(self) -> set[str]:
        """All paths told up to now: what happens later is told later."""
        (self.root / "zz last.md").write_text("last")
        self.wait_for("zz last.md")
        return self.paths - {"zz last.md"}

    def write(self, path: str, text: str = "text") -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


@pytest.fixture
def watch() -> Iterator[Callable[..., Watched]]:
    """Start a watcher: `watch(root)`, `watch(root, rules=…, settings=…)`; it is ready."""
    started: list[Watched] = []
    log = logging.getLogger("obsidian_rag.vault.watcher")

    def start(root: Path, rules: Rules | None = None, settings: WatcherSettings = QUICK) -> Watched:
        one = Watched(root, rules or Rules(), settings)
        started.append(one)
        log.addHandler(one)
        one.thread.start()
        if root.exists():
            assert one.watcher.ready.wait(PATIENCE_S)
        return one

    yield start
    for one in started:
        log.removeHandler(one)
        one.stop.set()
        one.thread.join(PATIENCE_S)
        assert not one.thread.is_alive()


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """A small vault."""
    root = tmp_path.resolve() / "vault"
    (root / ".obsidian").mkdir(parents=True)
    (root / "Journal").mkdir()
    (root / "Journal" / "day.md").write_text("a day")
    (root / "top.md").write_text("top")
    return root


def test_nothing_is_told_at_the_start(vault: Path, watch: Callable[..., Watched]) -> None:
    watched = watch(vault)
    assert watched.watcher.is_watching
    assert watched.watcher.trouble is None
    assert watched.wait_for_all_before() == set()
    assert None not in watched.told


def test_a_note_created_edited_and_deleted_is_told_each_time(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault)
    (vault / "Journal/new.md").write_text("one")
    watched.wait(lambda: len(watched.told) == 1)
    (vault / "Journal/new.md").write_text("two")
    watched.wait(lambda: len(watched.told) == 2)
    (vault / "Journal/new.md").unlink()
    watched.wait(lambda: len(watched.told) == 3)
    assert watched.told == [frozenset({"Journal/new.md"})] * 3


def test_with_no_delay_a_change_is_told_at_once(vault: Path, watch: Callable[..., Watched]) -> None:
    watched = watch(vault, settings=WatcherSettings(debounce_s=0, collect_s=0))
    (vault / "top.md").write_text("changed")
    watched.wait_for("top.md")
    assert watched.paths == {"top.md"}


@pytest.mark.parametrize("temporary", [".top.md.tmp", "top.md~", "top.tmp"])
def test_an_atomic_save_is_the_note_once(
    vault: Path, watch: Callable[..., Watched], temporary: str
) -> None:
    watched = watch(vault)
    (vault / temporary).write_text("new text")
    (vault / temporary).replace(vault / "top.md")
    watched.wait_for("top.md")
    assert watched.wait_for_all_before() == {"top.md"}
    assert sum("top.md" in (told or ()) for told in watched.told) == 1


def test_our_own_save_is_the_note_once(vault: Path, watch: Callable[..., Watched]) -> None:
    watched = watch(vault)
    replace_note(vault, "Journal/made.md", None, b"made by us")
    watched.wait_for("Journal/made.md")
    assert watched.wait_for_all_before() == {"Journal/made.md"}


def test_what_editors_and_programs_leave_about_is_not_told(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault)
    for name in (".top.md.swp", "top.md~", "4913", ".obsidian-rag-x", "#top.md#", "photo.jpg"):
        (vault / name).write_text("x")
        (vault / "Journal" / name).write_text("x")
        (vault / name).unlink()
    (vault / ".git/objects/ab").mkdir(parents=True)
    (vault / ".git/HEAD.md").write_text("x")
    (vault / ".obsidian").mkdir(exist_ok=True)
    (vault / ".obsidian/workspace.md").write_text("x")
    assert watched.wait_for_all_before() == set()


@ON_LINUX
def test_a_folder_whose_rights_change_is_not_told(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault)
    (vault / "Journal").chmod(0o755)
    (vault / "Journal").chmod(0o700)
    assert watched.wait_for_all_before() == set()


def test_denied_folders_are_not_told_and_allowed_ones_are(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    (vault / "Private").mkdir()
    rules = Rules(deny_dirs=("Private", "drafts"), allow_dirs=("Journal", "Work/Notes"))
    watched = watch(vault, rules=rules)
    watched.write("Private/secret.md")
    watched.write("Journal/drafts/early.md")
    watched.write("Journal/kept.md")
    watched.write("Work/other.md")
    watched.write("Work/Notes/kept.md")
    watched.write("Elsewhere/a.md")
    watched.write("top.md")
    watched.wait_for("Journal/kept.md", "Work")
    # A folder on the way to an allowed one is told, because it may bring it along.
    assert watched.paths <= {"Journal/kept.md", "Work", "Work/Notes", "Work/Notes/kept.md"}
    told = len(watched.told)
    watched.write("Work/other.md", "again")
    watched.write("Work/Notes/kept.md", "again")
    watched.wait(
        lambda: "Work/Notes/kept.md" in {p for told in watched.told[told:] for p in told or ()}
    )
    assert "Work/other.md" not in watched.paths


def test_a_renamed_folder_is_told_by_its_old_and_its_new_name(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault)
    (vault / "Journal").rename(vault / "Diary 2.0")
    watched.wait_for("Journal", "Diary 2.0")
    assert watched.wait_for_all_before() == {"Journal", "Diary 2.0"}
    (vault / "Diary 2.0/day.md").write_text("another day")
    watched.wait_for("Diary 2.0/day.md")
    assert "Journal/day.md" not in watched.paths


def test_a_folder_renamed_to_and_fro_is_still_watched(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault)
    for _ in range(3):
        (vault / "Journal").rename(vault / "Diary")
        (vault / "Diary").rename(vault / "Journal")
    watched.wait_for("Journal")
    (vault / "Journal/day.md").write_text("another day")
    watched.wait_for("Journal/day.md")


def test_a_folder_removed_and_made_again_is_still_watched(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault)
    shutil.rmtree(vault / "Journal")
    (vault / "Journal").mkdir()
    watched.wait_for("Journal")
    watched.wait_for_all_before()
    (vault / "Journal/later.md").write_text("later")
    watched.wait_for("Journal/later.md")


def test_a_removed_folder_is_told_and_not_each_of_its_notes(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    for number in range(20):
        (vault / "Journal" / f"{number}.md").write_text("x")
    watched = watch(vault, settings=WatcherSettings(debounce_s=0.3, collect_s=0))
    (vault / "Journal").rename(vault.parent / "elsewhere")
    watched.wait_for("Journal")
    (vault.parent / "elsewhere/1.md").write_text("outside now")
    assert watched.wait_for_all_before() == {"Journal"}


def test_a_folder_moved_in_is_told_and_watched_with_all_in_it(
    vault: Path, watch: Callable[..., Watched], tmp_path: Path
) -> None:
    deep = tmp_path / "outside/a/b"
    deep.mkdir(parents=True)
    (deep / "note.md").write_text("x")
    watched = watch(vault)
    (tmp_path / "outside").rename(vault / "Moved in")
    watched.wait_for("Moved in")
    assert watched.wait_for_all_before() == {"Moved in"}
    (vault / "Moved in/a/b/note.md").write_text("y")
    watched.wait_for("Moved in/a/b/note.md")


def test_a_new_folder_with_folders_and_notes_is_told_and_watched(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault, settings=WatcherSettings(debounce_s=0.2, collect_s=0))
    for number in range(20):
        watched.write(f"New/{number}/deep/note.md")
    watched.wait_for("New")
    watched.write("New/7/deep/note.md", "changed")
    watched.wait_for("New/7/deep/note.md")


def test_a_folder_that_looks_like_a_note_is_a_folder(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault)
    (vault / "odd.md").mkdir()
    watched.wait_for("odd.md")
    (vault / "odd.md/inside.md").write_text("x")
    watched.wait_for("odd.md/inside.md")


def test_many_new_folders_one_after_another_are_all_watched(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault)
    for number in range(24):
        watched.write_and_wait(f"Folder {number}/note.md")
    for number in range(24):
        watched.write_and_wait(f"Folder {number}/another.md")


@pytest.mark.parametrize("seed", range(4))
def test_after_any_coming_and_going_of_folders_each_is_watched(
    vault: Path, watch: Callable[..., Watched], tmp_path: Path, seed: int
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    rules = Rules(deny_dirs=("denied",))
    watched = watch(vault, rules=rules)
    dice = random.Random(seed)
    for _ in range(60):
        shuffle_folders(vault, outside, dice)
    # By its path, or by everything: so many new folders wear the watch out, and it begins anew.
    watched.write_and_wait("zz last.md")
    found = list_folders(str(vault), rules, {str(vault): ""})
    for rel in found.places.values():
        watched.write_and_wait(f"{rel}/probe.md".lstrip("/"))


def shuffle_folders(root: Path, outside: Path, dice: random.Random) -> None:
    folders = [Path(folder) for folder, _, _ in os.walk(root)]
    folder, other = dice.choice(folders), dice.choice(folders)
    name = dice.choice(["a", "b", "c", "denied", ".hidden", "with space"])
    acts: list[Callable[[], object]] = [
        lambda: (folder / name).mkdir(),
        lambda: (folder / name / "deep/deeper").mkdir(parents=True),
        lambda: (folder / "note.md").write_text("x"),
    ]
    if folder != root:
        acts += [
            lambda: folder.rename(other / name),
            lambda: shutil.rmtree(folder),
            lambda: folder.rename(outside / secrets.token_hex(4)),
        ]
    for moved in list(outside.iterdir())[:1]:
        acts.append(functools.partial(moved.rename, folder / name))
    with contextlib.suppress(OSError):
        dice.choice(acts)()


def test_thousands_of_files_at_once_are_one_look_at_everything(
    vault: Path, watch: Callable[..., Watched], tmp_path: Path
) -> None:
    (vault / "Many").mkdir()
    for number in range(3 * MOST_PATHS):
        (tmp_path / f"{number}.md").write_text("x")
    watched = watch(vault, settings=WatcherSettings(debounce_s=1, collect_s=0.5))
    for number in range(3 * MOST_PATHS):
        (tmp_path / f"{number}.md").rename(vault / "Many" / f"{number}.md")
    watched.wait(lambda: None in watched.told)
    watched.wait_for_all_before()
    assert len(watched.told) <= 5


def test_ten_saves_of_a_note_are_told_once(vault: Path, watch: Callable[..., Watched]) -> None:
    watched = watch(vault, settings=WatcherSettings(debounce_s=0.5, collect_s=0))
    for number in range(10):
        (vault / "top.md").write_text(f"version {number}")
    watched.wait_for("top.md")
    watched.wait_for_all_before()
    assert sum("top.md" in (told or ()) for told in watched.told) == 1


def test_notes_changed_together_are_told_together(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault, settings=WatcherSettings(debounce_s=0.1, collect_s=0.5))
    (vault / "top.md").write_text("changed")
    (vault / "Journal/day.md").write_text("changed")
    (vault / "new.md").write_text("new")
    watched.wait(lambda: bool(watched.told))
    assert watched.told == [frozenset({"top.md", "Journal/day.md", "new.md"})]


@pytest.mark.parametrize(
    "name",
    [
        "with some spaces.md",
        unicodedata.normalize("NFC", "Übergröße.md"),
        unicodedata.normalize("NFD", "Übergröße.md"),
        "日本語 🧠.md",
        "a%20b & 'c'.md",
    ],
)
def test_names_are_told_as_they_are_on_disk(
    vault: Path, watch: Callable[..., Watched], name: str
) -> None:
    watched = watch(vault)
    folder = name.removesuffix(".md")
    (vault / folder).mkdir()
    watched.wait_for(folder)
    (vault / folder / name).write_text("x")
    watched.wait_for(f"{folder}/{name}")
    assert watched.paths == {folder, f"{folder}/{name}"}


def seconds_to_stop(watched: Watched) -> float:
    began = time.monotonic()
    watched.stop.set()
    watched.thread.join(PATIENCE_S)
    assert not watched.thread.is_alive()
    assert not watched.watcher.is_watching
    return time.monotonic() - began


def test_run_returns_soon_after_stop(vault: Path, watch: Callable[..., Watched]) -> None:
    assert any(seconds_to_stop(watch(vault)) < 0.3 for _ in range(TRIES))


def test_run_returns_soon_after_stop_while_there_is_no_vault(
    tmp_path: Path, watch: Callable[..., Watched]
) -> None:
    def seconds() -> float:
        watched = watch(tmp_path / "nowhere")
        watched.wait_for_warning("is not there")
        return seconds_to_stop(watched)

    assert any(seconds() < 0.3 for _ in range(TRIES))


def test_a_vault_that_goes_away_and_comes_back_is_looked_at_and_nothing_is_told_as_gone(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault)
    away = vault.with_name("away")
    vault.rename(away)
    watched.wait_for_warning("is not there")
    assert not watched.watcher.is_watching
    assert watched.watcher.trouble
    (away / "top.md").write_text("changed while away")
    assert watched.told == []
    away.rename(vault)
    watched.wait(lambda: bool(watched.told))
    assert watched.told == [None]
    assert watched.watcher.is_watching
    assert watched.watcher.trouble is None
    (vault / "Journal/day.md").write_text("changed")
    watched.wait_for("Journal/day.md")
    assert watched.told == [None, frozenset({"Journal/day.md"})]


def test_a_vault_that_is_removed_is_not_told_as_deleted_notes(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault, settings=WatcherSettings(debounce_s=1, collect_s=0))
    shutil.rmtree(vault)
    watched.wait_for_warning("is not there")
    vault.mkdir()
    watched.wait(lambda: bool(watched.told))
    assert watched.told == [None]


def test_a_vault_removed_and_made_again_at_once_is_watched(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault, settings=WatcherSettings(debounce_s=1, collect_s=0))
    shutil.rmtree(vault)
    vault.mkdir()
    watched.wait(lambda: bool(watched.told))
    assert watched.told == [None]
    (vault / "fresh.md").write_text("fresh")
    watched.wait_for("fresh.md")


def test_a_vault_replaced_by_another_folder_is_looked_at(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault)
    vault.rename(vault.with_name("old"))
    vault.mkdir()
    watched.wait(lambda: bool(watched.told))
    assert watched.told == [None]
    (vault / "fresh.md").write_text("fresh")
    watched.wait_for("fresh.md")
    (vault.with_name("old") / "top.md").write_text("no longer ours")
    assert watched.wait_for_all_before() == {"fresh.md"}


def test_a_vault_that_appears_after_the_start_is_looked_at(
    tmp_path: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(tmp_path / "later")
    watched.wait_for_warning("is not there")
    (tmp_path / "later").mkdir()
    watched.wait(lambda: bool(watched.told))
    assert watched.told == [None]


def test_a_vault_behind_a_link_is_told_in_its_own_words(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    link = vault.with_name("link")
    link.symlink_to(vault, target_is_directory=True)
    watched = watch(link)
    (vault / "Journal/day.md").write_text("by the real path")
    (link / "top.md").write_text("by the link")
    watched.wait_for("Journal/day.md", "top.md")
    other = vault.with_name("other")
    other.mkdir()
    link.unlink()
    link.symlink_to(other, target_is_directory=True)
    watched.wait(lambda: None in watched.told)
    (other / "elsewhere.md").write_text("x")
    watched.wait_for("elsewhere.md")


def test_a_note_in_a_folder_with_two_names_is_told_by_its_own(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    (vault / "Alias").symlink_to("Journal", target_is_directory=True)
    watched = watch(vault)
    (vault / "Alias/day.md").write_text("changed")
    watched.wait_for("Journal/day.md")
    assert watched.wait_for_all_before() == {"Journal/day.md"}


@pytest.mark.parametrize("behind_link", [False, True])
def test_a_folder_that_only_a_link_opens_is_told_by_the_link(
    vault: Path, watch: Callable[..., Watched], behind_link: bool
) -> None:
    root = vault
    if behind_link:
        root = vault.with_name("link")
        root.symlink_to(vault, target_is_directory=True)
    (vault / "Open").mkdir()
    (vault / "Open/alias").symlink_to("../Journal", target_is_directory=True)
    watched = watch(root, rules=Rules(allow_dirs=("Open",)))
    (vault / "Journal/day.md").write_text("changed")
    watched.wait_for("Open/alias/day.md")
    (vault / "Open/alias").unlink()
    watched.wait_for("Open/alias")
    (vault / "Open/other").symlink_to("../Journal", target_is_directory=True)
    watched.wait_for("Open/other")
    (vault / "Journal/day.md").write_text("changed again")
    watched.wait_for("Open/other/day.md")
    watched.told.clear()
    (vault / "Open/other").unlink()
    watched.wait_for("Open/other")
    assert watched.paths == {"Open/other"}


@ON_LINUX
def test_nothing_outside_the_vault_or_denied_is_watched(
    vault: Path, watch: Callable[..., Watched], tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    for folder in (outside / "deep", vault / ".obsidian/plugins", vault / "node_modules/x"):
        folder.mkdir(parents=True)
    (vault / "Journal/link").symlink_to(outside, target_is_directory=True)
    watched = watch(vault, rules=Rules(deny_dirs=("node_modules",)))
    inodes = watched_inodes()
    assert vault.stat().st_ino in inodes
    assert (vault / "Journal").stat().st_ino in inodes
    for folder in (outside, outside / "deep", vault / ".obsidian", vault / "node_modules/x"):
        assert folder.stat().st_ino not in inodes
    (outside / "deep/a.md").write_text("x")
    assert watched.wait_for_all_before() == set()


def watched_inodes() -> set[int]:
    found = set()
    for info in Path("/proc/self/fdinfo").iterdir():
        try:
            lines = info.read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith("inotify "):
                found.add(int(line.split("ino:")[1].split()[0], 16))
    return found


@ON_LINUX
def test_a_name_that_cannot_be_told_costs_a_look_at_everything_and_no_more(
    vault: Path, watch: Callable[..., Watched]
) -> None:
    watched = watch(vault)
    Path(os.fsdecode(os.fsencode(vault) + b"/bad\xff.md")).write_text("x")
    watched.wait(lambda: None in watched.told)
    assert any("was interrupted" in warning for warning in watched.warnings)
    assert watched.watcher.trouble is None
    (vault / "top.md").write_text("changed")
    watched.wait_for("top.md")


def test_each_listener_hears_of_its_own_files(vault: Path) -> None:
    """One watcher serves the index and LiveSync, which also syncs what is no note."""
    (vault / "denied").mkdir()
    (vault / ".hidden/notes").mkdir(parents=True)
    heard: dict[str, set[str]] = {"notes": set(), "files": set()}
    news, stop = threading.Condition(), threading.Event()

    def hear(name: str) -> Callable[[frozenset[str] | None], None]:
        def changed(paths: frozenset[str] | None) -> None:
            with news:
                heard[name] |= paths or {"everything"}
                news.notify_all()

        return changed

    watcher = Watcher(
        vault,
        Listener(hear("notes"), Rules(deny_dirs=("denied",))),
        Listener(hear("files"), debounce_s=0.05),
    )
    thread = threading.Thread(target=watcher.run, args=(stop,), daemon=True)
    thread.start()
    try:
        assert watcher.ready.wait(PATIENCE_S)
        (vault / "denied/secret.md").write_text("x")
        (vault / "picture.png").write_bytes(b"x")
        (vault / "denied/Folder").mkdir()
        (vault / "Linked").symlink_to(vault / "Journal")
        (vault / "top.md").write_text("changed")
        notes = {"Linked", "top.md"}
        files = notes | {"denied/secret.md", "picture.png", "denied/Folder"}
        with news:
            assert news.wait_for(lambda: heard["notes"] >= notes, PATIENCE_S), heard
            assert news.wait_for(lambda: heard["files"] >= files, PATIENCE_S), heard
    finally:
        stop.set()
        thread.join(PATIENCE_S)
    assert heard == {"notes": notes, "files": files}


def seen_by(one: fs_events.FsEvents, *paths: str) -> set[str]:
    """All that is told until it has seen these; it has to be asked again and again."""
    seen: set[str] = set()

    def has_seen() -> bool:
        changed = one.take()
        seen.update(changed.files | changed.folders)
        return seen >= set(paths)

    until(has_seen, f"{paths}")
    return seen


def test_a_vault_that_is_polled_is_told_like_any_other(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fs_events, "_POLL_MS", 30)
    with contextlib.closing(fs_events.FsEvents(str(vault), Rules(), is_polling=True)) as polling:
        (vault / "new.md").write_text("x")
        seen = seen_by(polling, "new.md")
        (vault / "New folder").mkdir()
        seen |= seen_by(polling, "New folder")
        (vault / "New folder/a.md").write_text("x")
        seen |= seen_by(polling, "New folder/a.md")
        (vault / "Journal/day.md").unlink()
        seen |= seen_by(polling, "Journal/day.md")
    assert seen == {"new.md", "New folder", "New folder/a.md", "Journal/day.md"}


def test_a_system_that_watches_whole_trees_tells_the_same(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS and Windows, where denied folders are heard of and have to be passed over."""
    monkeypatch.setattr(fs_events, "_HAS_TREES", True)
    (vault / "denied/deep").mkdir(parents=True)
    rules = Rules(deny_dirs=("denied",))
    with contextlib.closing(fs_events.FsEvents(str(vault), rules)) as whole:
        (vault / ".obsidian/workspace.md").write_text("x")
        (vault / "denied/deep/a.md").write_text("x")
        (vault / "Journal/day.md").write_text("changed")
        seen = seen_by(whole, "Journal/day.md")
        (vault / "Journal/a/b").mkdir(parents=True)
        seen |= seen_by(whole, "Journal/a")
        (vault / "top.md").write_text("all about the folders has been said before this")
        seen |= seen_by(whole, "top.md")
        (vault / "Journal/a/b/c.md").write_text("x")
        seen |= seen_by(whole, "Journal/a/b/c.md")
        (vault / "Journal").rename(vault / "Diary")
        seen |= seen_by(whole, "Journal", "Diary")
    notes = {"Journal/day.md", "Journal/a/b/c.md", "top.md"}
    assert seen - {"Journal/a/b"} == notes | {"Journal/a", "Journal", "Diary"}


def test_a_folder_made_while_the_watch_begins_is_not_overlooked(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_and_make(*arguments: Any) -> Folders:
        found = list_folders(*arguments)
        (vault / "Between").mkdir(exist_ok=True)
        return found

    monkeypatch.setattr(fs_events, "list_folders", list_and_make)
    with contextlib.closing(fs_events.FsEvents(str(vault), Rules())) as late:
        seen_by(late, "Between")
        (vault / "Between/note.md").write_text("x")
        seen_by(late, "Between/note.md")


@ON_LINUX
def test_when_the_system_cannot_watch_any_more_the_vault_is_polled_and_the_user_is_told(
    vault: Path,
) -> None:
    script = """
        import logging, os, resource, sys, threading
        from pathlib import Path
        from watchfiles._rust_notify import RustNotify
        from obsidian_rag.vault import fs_events
        from obsidian_rag.vault.watcher import Listener, Watcher
        from obsidian_rag.vault import Rules

        logging.basicConfig(format="%(message)s")
        # The first look comes after the limit is gone, or it could fail for want of a file.
        fs_events._POLL_MS = 1000
        root = Path(sys.argv[1])
        news = threading.Event()
        listener = Listener(lambda paths: (print(*paths), news.set()), Rules())
        watcher = Watcher(root, listener)
        stop = threading.Event()
        thread = threading.Thread(target=watcher.run, args=(stop,), daemon=True)
        # Enough to list a folder, too little for inotify and its two companions.
        free = os.dup(0)
        os.close(free)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + 2, most[1]))
        thread.start()
        assert watcher.ready.wait(300) and watcher.is_watching
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
        assert "max_user_instances" in watcher.trouble, watcher.trouble
        (root / "seen.md").write_text("x")
        assert news.wait(300)
        stop.set()
        thread.join(300)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(vault)],
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (0, "seen.md\n"), done.stderr
    assert done.stderr.count("\n") == 1
    assert "The vault is polled for changes every" in done.stderr
