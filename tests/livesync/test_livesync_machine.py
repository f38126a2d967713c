"""Three devices, anything in any order: all converge, and nothing that was saved is lost.

Each save puts a token into a file. The rule that decides what may disappear:

- A token is *given up* only by its reader's own hand: a user who has a file with the token before
  them (in the vault of that device; for the third client, in the revision it read) saves that file
  without the token, or deletes the file. It does not matter who wrote the token, whether it was
  synced, or what other devices think: whoever removes a line knows that line.
- Nothing else gives a token up. In particular not: an edit or deletion of the same file by
  somebody who had never seen the token, a sync in whatever order, a merge, a crash, a lost
  connection, or an action during a sync.
- A token that was never given up is kept if it is in a file of a vault (conflict files are files),
  in a file of a trash that its device lists, or in a living revision of a document whose conflict
  both nodes report.

Two more things may happen to a file than to be synced, and both must be told: a name in two
Unicode forms, of which one file or document is left out, and a file where another device has a
folder. A node that holds many deletions says so, and they are accepted in the end.

A rename gives nothing up. The rule is weak in one place on purpose: a token that was copied (into
a conflict file, say) is given up when its reader removes one of the copies.
"""

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from tests.livesync.faults import Crash, crashing, dropping, meddling
from tests.livesync.nodes import TestNode
from tests.livesync.pouch import Server
from tests.livesync.third import ThirdClient

from obsidian_rag.errors import LivesyncBrake, LivesyncUnreachable
from obsidian_rag.livesync import decision
from obsidian_rag.livesync.codec.path_ids import normalise
from obsidian_rag.livesync.sync import Policy
from obsidian_rag.store import Database

NAMES = ("a.md", "a.md", "Dir/b.md", "c.canvas", "d.bin")
# One name in two Unicode forms, and a file with the name of a folder.
ODD_NAMES = ("caf\u00e9.md", "cafe\u0301.md", "Dir/b.md", "Dir", "a.md")
STYLES = ("whole", "append", "top", "same_size")
ROUNDS = 8
TOKEN = re.compile(rb"<t\d{4}>")

devices = st.sampled_from((0, 1))
# What is done to a file: by whom and what, the name or number says to which, and how.
THIRD = 2
acts = st.one_of(
    st.tuples(
        devices,
        st.sampled_from(
            ("save", "save", "edit", "edit", "delete", "rename", "respell", "touch", "swap")
        ),
        st.integers(0, 4),
        st.integers(0, 5),
        st.sampled_from(STYLES),
    ),
    st.tuples(
        st.just(THIRD),
        st.sampled_from(
            (
                *("save", "late", "deliver", "delete", "rename", "respell", "away", "away", "twin"),
                *("swap", "delete all"),
            )
        ),
        st.integers(0, 4),
        st.integers(0, 2),
        st.sampled_from(STYLES),
    ),
)
Act = tuple[int, str, int, int, str]
# What comes between: nothing, a crash, a lost connection, somebody at work, the other node.
steps = st.integers(1, 24)
faults = st.one_of(
    st.just(("none", 0, None)),
    st.tuples(st.just("crash"), steps, st.none()),
    st.tuples(st.just("drop"), st.integers(1, 16), st.booleans()),
    st.tuples(st.just("work"), steps, acts),
    st.tuples(st.just("other"), steps, st.none()),
)
Fault = tuple[str, int, Any]


def tokens_in(content: bytes) -> set[bytes]:
    return set(TOKEN.findall(content))


class Network(RuleBasedStateMachine):
    """Two of our nodes and a third client around one database."""

    def __init__(
        self, server: Server, folder: Path, template: Path, policy: Policy, names: tuple[str, ...]
    ) -> None:
        super().__init__()
        self._names = names
        self._left_out: dict[int, set[str]] = {}
        self._server = server
        self._folder = folder
        self._manner = policy
        self._remote = server.new_remote()
        server.request("PUT", f"/{self._remote.database}?q=1")
        self._third = ThirdClient(server, self._remote.database)
        self._clock_ns = 1_600_000_000 * 10**9
        self._count = 0
        self._saved: set[bytes] = set()
        self._given_up: set[bytes] = set()
        for name in ("0", "1"):
            # An empty vault would pull the brake.
            (folder / name / "vault" / "Folder").mkdir(parents=True)
            shutil.copy(template, folder / name / "state.db")
        self._nodes = [self._open("0"), self._open("1")]
        self._save(self._nodes[0], "a.md", "whole")
        self._nodes[0].sync()
        self._nodes[1].sync()

    @rule(
        work=st.lists(acts, min_size=1, max_size=3),
        syncs=st.lists(st.tuples(devices, faults), max_size=2),
    )
    def turn(self, work: list[Act], syncs: list[tuple[int, Fault]]) -> None:
        """Somebody works on some devices, and some devices sync, well or badly."""
        for act in work:
            self._do(act)
        for device, fault in syncs:
            self._sync(device, fault)

    # -- what must be true in the end

    def teardown(self) -> None:
        try:
            self._third.deliver()
            self._settle()
            self._check()
        finally:
            for node in self._nodes:
                node.close()
            self._server.request("DELETE", f"/{self._remote.database}")
            shutil.rmtree(self._folder)

    def _settle(self) -> None:
        before = None
        for _ in range(ROUNDS):
            owed: set[str] = set()
            for number, node in enumerate(self._nodes):
                reconciler = node.sync(allows_deletions=True)
                owed |= reconciler.owed - self._told(node)
                self._left_out[number] = set(reconciler.sync.disk.left_out)
            now = (self._third.update_seq(), *(self._files(node) for node in self._nodes))
            if now == before and not owed:
                return
            before = now
        raise AssertionError(f"no rest after {ROUNDS} rounds")

    def _check(self) -> None:
        entries = self._third.entries()
        disputed = {doc_id for doc_id, one in entries.items() if one.get("_conflicts")}
        leaves = {doc_id: self._third.leaves(one) for doc_id, one in entries.items()}
        kept = b"".join(leaf.content for doc_id in disputed for leaf in leaves[doc_id])
        for number, node in enumerate(self._nodes):
            files = self._files(node)
            told = self._told(node)
            kept += b"".join(leaves[doc_id][0].content for doc_id in told)
            live = [
                (normalise(some[0].path), some[0].content)
                for doc_id, some in leaves.items()
                if doc_id not in disputed | told and not some[0].is_deleted
            ]
            aside = {normalise(doc_id) for doc_id in disputed}
            agreed = [
                (normalise(path), content)
                for path, content in files.items()
                if normalise(path).lower() not in aside and path not in self._left_out[number]
            ]
            assert sorted(agreed) == sorted(live)
            reported = {one.doc_id: one for one in node.records.conflicts()}
            assert disputed <= set(reported)
            assert disputed >= {name for name, one in reported.items() if one.kept_as is None}
            assert {one.doc_id for one in node.records.quarantined()} == told
            kept += b"".join([*files.values(), *self._listed_trash(node)])
        lost = self._saved - self._given_up - tokens_in(kept)
        assert not lost

    # -- how it is done

    def _told(self, node: TestNode) -> set[str]:
        """Documents that cannot be files here, because of a twin or of a folder; and told so."""
        return {
            one.doc_id
            for one in node.records.quarantined()
            if "two Unicode forms" in one.message or "cannot be written, because" in one.message
        }

    def _sync(self, device: int, fault: Fault) -> None:
        with suppress(LivesyncBrake):
            self._sync_or_brake(device, fault)

    def _sync_or_brake(self, device: int, fault: Fault) -> None:
        node, (what, at, how) = self._nodes[device], fault
        if what == "none":
            node.sync()
        elif what == "crash":
            try:
                with crashing(at):
                    node.sync()
            except Crash:
                node.close()
                self._nodes[device] = self._open(str(device))
        elif what == "drop":
            with suppress(LivesyncUnreachable), dropping(at, is_heard=how):
                node.sync()
        elif what == "work":
            with meddling(at, lambda: self._do(how)):
                node.sync()
        else:
            with meddling(at, lambda: self._sync(1 - device, ("none", 0, None))):
                node.sync()

    def _do(self, act: Act) -> None:
        who, what, number, pick, style = act
        name = self._names[number]
        if who == THIRD:
            self._third_does(what, name, pick, style)
        else:
            self._user_does(self._nodes[who], what, name, pick, style)

    def _user_does(self, node: TestNode, what: str, name: str, pick: int, style: str) -> None:
        paths = sorted(self._files(node))
        path = paths[pick % len(paths)] if paths else None
        if what == "save":
            if self._has_room(node, name):
                self._save(node, self._spelled(node, name) or name, style)
        elif what == "swap":
            self._swap(node, style)
        elif path is None:
            return
        elif what == "edit":
            self._save(node, path, style)
        elif what == "delete":
            self._given_up |= tokens_in((node.root / path).read_bytes())
            (node.root / path).unlink()
        elif what == "rename" and not self._spelled(node, name) and self._has_room(node, name):
            (node.root / name).parent.mkdir(exist_ok=True)
            (node.root / path).rename(node.root / name)
        elif what == "respell":
            folder, slash, last = path.rpartition("/")
            (node.root / path).rename(node.root / f"{folder}{slash}{last.swapcase()}")
        elif what == "touch":
            self._date(node.root / path)

    def _third_does(self, what: str, name: str, back: int, style: str) -> None:
        """Change the database; `away` continues an older revision, `twin` does what others did."""
        third = self._third
        path, before = self._winner(name)
        if what == "deliver":
            third.deliver()
        elif what in ("delete all", "swap") or (
            name.startswith("Dir") and what in ("save", "late")
        ):
            self._third_does_much(what, style)
        elif what in ("save", "late"):
            after = self._edited(before, path, style)
            third.save(path, after, is_late=what == "late", is_timed=style != "same_size")
            self._given_up |= tokens_in(before) - tokens_in(after)
        elif not before:
            return
        elif what == "delete":
            third.delete(path)
            self._given_up |= tokens_in(before)
        elif what == "rename":
            self._third_renames(path, before, self._names[back + 2])
        elif what == "respell":
            third.save(path.swapcase(), before)
        elif what == "twin" and len(revs := third.history(path)) > 1:
            third.branch(path, before, revs[1])
        elif what == "away":
            revs = third.history(path)
            parent = third.revision(path, revs[min(back, len(revs) - 1)])
            after = self._edited(parent.content, path, style)
            third.branch(path, after, parent.rev)
            self._given_up |= tokens_in(parent.content) - tokens_in(after)

    def _swap(self, node: TestNode, style: str) -> None:
        """Put a folder in the place of the file `Dir`, or a file in the place of the folder."""
        place = node.root / "Dir"
        below = [place] if place.is_file() else sorted(place.rglob("*"))
        for file in below:
            if file.is_file():
                self._given_up |= tokens_in(file.read_bytes())
        if place.is_file():
            place.unlink()
            self._save(node, "Dir/b.md", style)
        elif place.is_dir():
            shutil.rmtree(place)
            self._save(node, "Dir", style)

    def _third_renames(self, path: str, before: bytes, new: str) -> None:
        if new.startswith("Dir") and self._names is ODD_NAMES:
            return
        if new.lower() != path.lower() and not self._winner(new)[1]:
            self._third.save(new, before)
            self._third.delete(path)

    def _third_does_much(self, what: str, style: str) -> None:
        if what != "delete all":
            self._third_swaps("Dir" if self._winner("Dir/b.md")[1] else "Dir/b.md", style)
            return
        for name in self._names:
            path, content = self._winner(name)
            if content:
                self._third.delete(path)
                self._given_up |= tokens_in(content)

    def _third_swaps(self, new: str, style: str) -> None:
        for old in ("Dir", "Dir/b.md"):
            path, content = self._winner(old)
            if content and old != new:
                self._third.delete(path)
                self._given_up |= tokens_in(content)
        path, before = self._winner(new)
        after = self._edited(before, path, style)
        self._third.save(path, after)
        self._given_up |= tokens_in(before) - tokens_in(after)

    def _has_room(self, node: TestNode, name: str) -> bool:
        folder = (node.root / name).parent
        return not (node.root / name).is_dir() and (folder.is_dir() or not folder.exists())

    def _open(self, name: str) -> TestNode:
        return TestNode(self._folder / name, self._remote, policy=self._manner)

    def _save(self, node: TestNode, path: str, style: str) -> None:
        file = node.root / path
        before = file.read_bytes() if file.exists() else b""
        after = self._edited(before, path, style)
        node.write(path, after)
        self._date(file)
        self._given_up |= tokens_in(before) - tokens_in(after)

    def _edited(self, before: bytes, path: str, style: str) -> bytes:
        self._count += 1
        token = f"<t{self._count:04}>".encode()
        self._saved.add(token)
        if path.lower().endswith(".canvas"):
            old = TOKEN.findall(before)[:2] if style in ("append", "top") else []
            named = [f'"{one.decode()}":1' for one in sorted({*old, token})]
            return ("{" + ",".join(named) + "}").encode()
        if style == "append":
            return before + b"tail " + token + b"\n"
        if style == "top":
            return b"top  " + token + b"\n" + before
        if style == "same_size" and (found := TOKEN.search(before)):
            return before.replace(found[0], token)
        return b"first\nwhole " + token + b"\nlast\n"

    def _date(self, file: Path) -> None:
        self._clock_ns += 7 * 10**9 + 1
        os.utime(file, ns=(self._clock_ns, self._clock_ns))

    def _files(self, node: TestNode) -> dict[str, bytes]:
        return {
            path: content
            for path, content in node.files().items()
            if not path.rpartition("/")[2].startswith(".")
        }

    def _spelled(self, node: TestNode, name: str) -> str | None:
        return next((path for path in self._files(node) if path.lower() == name.lower()), None)

    def _winner(self, name: str) -> tuple[str, bytes]:
        """The path and content of a file as the third client sees it; nothing if there is none."""
        entry = self._third.entries().get(name.lower())
        if entry is None or entry.get("deleted"):
            return name, b""
        leaf = self._third.leaf(entry)
        return leaf.path, leaf.content

    def _listed_trash(self, node: TestNode) -> list[bytes]:
        places = [Path(one.stored_as) for one in node.records.trash()]
        return [place.read_bytes() for place in places if place.exists()]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("policy", "examples", "names", "many"),
    [
        (Policy(), 120, NAMES, 10),
        (Policy(may_merge=False), 40, NAMES, 10),
        (Policy(keeps_conflicts_as_files=False), 60, NAMES, 10),
        (Policy(), 60, ODD_NAMES, 10),
        (Policy(), 40, NAMES, 1),
    ],
    ids=["merging", "conflict_files", "branches", "odd_names", "brake"],
)
def test_all_devices_agree_in_the_end_and_nothing_is_lost(
    policy: Policy,
    examples: int,
    names: tuple[str, ...],
    many: int,
    pouch: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A vault of a few files: the brake must not wait for ten.
    monkeypatch.setattr(decision, "_MAX_UNQUESTIONED_DELETIONS", many)
    template = tmp_path / "empty.db"
    Database(template).close()
    count = 0

    def network() -> Network:
        nonlocal count
        count += 1
        return Network(pouch, tmp_path / f"network-{count}", template, policy, names)

    run_state_machine_as_test(
        network,  # type: ignore[arg-type]  # anything that makes a machine will do
        settings=settings(
            max_examples=examples,
            stateful_step_count=6,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
