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

A rename gives nothing up. The rule is weak in one place on purpose: a token that was copied (into
a conflict file, say) is given up when its reader removes one of the copies.
"""

import os
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from tests.livesync.faults import Crash, crashing, dropping, meddling
from tests.livesync.nodes import TestNode
from tests.livesync.pouch import Server
from tests.livesync.third import ThirdClient

from obsidian_rag.errors import LivesyncUnreachable
from obsidian_rag.livesync.settling import Manner
from obsidian_rag.store import Database

NAMES = ("a.md", "Dir/b.md", "c.canvas", "d.bin")
STYLES = ("whole", "append", "top", "same_size")
ROUNDS = 8
TOKEN = re.compile(rb"<t\d{4}>")

devices = st.sampled_from((0, 1))
names = st.sampled_from(NAMES)
styles = st.sampled_from(STYLES)
picks = st.integers(0, 7)


def tokens_in(content: bytes) -> set[bytes]:
    return set(TOKEN.findall(content))


class Network(RuleBasedStateMachine):
    """Two of our nodes and a third client around one database."""

    def __init__(self, server: Server, folder: Path, template: Path, manner: Manner) -> None:
        super().__init__()
        self._server = server
        self._folder = folder
        self._manner = manner
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
        # The database gets its papers.
        self._nodes[0].sync()

    # -- what users do, connected or not

    @rule(device=devices, name=names, style=styles)
    def save(self, device: int, name: str, style: str) -> None:
        node = self._nodes[device]
        path = self._spelled(node, name) or name
        self._save(node, path, style)

    @rule(device=devices, pick=picks, style=styles)
    def edit_any(self, device: int, pick: int, style: str) -> None:
        if path := self._picked(device, pick):
            self._save(self._nodes[device], path, style)

    @rule(device=devices, pick=picks)
    def delete(self, device: int, pick: int) -> None:
        if path := self._picked(device, pick):
            file = self._nodes[device].root / path
            self._given_up |= tokens_in(file.read_bytes())
            file.unlink()

    @rule(device=devices, pick=picks, name=names)
    def rename(self, device: int, pick: int, name: str) -> None:
        node, path = self._nodes[device], self._picked(device, pick)
        if path and self._spelled(node, name) is None:
            (node.root / name).parent.mkdir(exist_ok=True)
            (node.root / path).rename(node.root / name)

    @rule(device=devices, pick=picks)
    def respell(self, device: int, pick: int) -> None:
        if path := self._picked(device, pick):
            folder, slash, name = path.rpartition("/")
            root = self._nodes[device].root
            (root / path).rename(root / f"{folder}{slash}{name.swapcase()}")

    @rule(device=devices, pick=picks)
    def touch(self, device: int, pick: int) -> None:
        if path := self._picked(device, pick):
            self._date(self._nodes[device].root / path)

    # -- what the third client does

    @rule(name=names, style=styles, is_late=st.sampled_from((False, False, True)))
    def third_saves(self, name: str, style: str, is_late: bool) -> None:
        path, before = self._winner(name)
        after = self._edited(before, path, style)
        self._third.save(path, after, is_late=is_late, is_timed=style != "same_size")
        self._given_up |= tokens_in(before) - tokens_in(after)

    @rule(name=names)
    def third_deletes(self, name: str) -> None:
        path, before = self._winner(name)
        if before:
            self._third.delete(path)
            self._given_up |= tokens_in(before)

    @rule(name=names, new=names)
    def third_renames(self, name: str, new: str) -> None:
        path, before = self._winner(name)
        if before and not self._winner(new)[1] and name != new:
            self._third.save(new, before)
            self._third.delete(path)

    @rule(name=names)
    def third_respells(self, name: str) -> None:
        path, before = self._winner(name)
        if before:
            self._third.save(path.swapcase(), before)

    @rule(name=names, style=styles, back=st.integers(0, 2))
    def third_was_away(self, name: str, style: str, back: int) -> None:
        path, before = self._winner(name)
        if before:
            revs = self._third.history(path)
            parent = self._third.revision(path, revs[min(back, len(revs) - 1)])
            after = self._edited(parent.content, path, style)
            self._third.branch(path, after, parent.rev)
            self._given_up |= tokens_in(parent.content) - tokens_in(after)

    @rule()
    def third_delivers(self) -> None:
        self._third.deliver()

    # -- syncs, and what comes between

    @rule(device=devices)
    def sync(self, device: int) -> None:
        self._nodes[device].sync()

    @rule(device=devices, at=st.integers(1, 24))
    def crash(self, device: int, at: int) -> None:
        try:
            with crashing(at):
                self._nodes[device].sync()
        except Crash:
            self._nodes[device].close()
            self._nodes[device] = self._open(str(device))

    @rule(device=devices, at=st.integers(1, 16), is_heard=st.booleans())
    def drop(self, device: int, at: int, is_heard: bool) -> None:
        try:
            with dropping(at, is_heard=is_heard):
                self._nodes[device].sync()
        except LivesyncUnreachable:
            pass

    @rule(device=devices, at=st.integers(1, 24), pick=picks, style=styles)
    def edit_meanwhile(self, device: int, at: int, pick: int, style: str) -> None:
        with meddling(at, lambda: self.edit_any(device, pick, style)):
            self._nodes[device].sync()

    @rule(device=devices, at=st.integers(1, 24), pick=picks)
    def delete_meanwhile(self, device: int, at: int, pick: int) -> None:
        with meddling(at, lambda: self.delete(device, pick)):
            self._nodes[device].sync()

    @rule(device=devices, at=st.integers(1, 24), name=names, style=styles)
    def third_saves_meanwhile(self, device: int, at: int, name: str, style: str) -> None:
        with meddling(at, lambda: self.third_saves(name, style, False)):
            self._nodes[device].sync()

    @rule(device=devices, at=st.integers(1, 24))
    def other_syncs_meanwhile(self, device: int, at: int) -> None:
        with meddling(at, lambda: self.sync(1 - device)):
            self._nodes[device].sync()

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
            owed = [node.sync().owed for node in self._nodes]
            now = (self._third.update_seq(), *(self._files(node) for node in self._nodes))
            if now == before and not any(owed):
                return
            before = now
        raise AssertionError(f"no rest after {ROUNDS} rounds")

    def _check(self) -> None:
        entries = self._third.entries()
        disputed = {doc_id for doc_id, one in entries.items() if one.get("_conflicts")}
        leaves = {doc_id: self._third.leaves(one) for doc_id, one in entries.items()}
        live = {
            some[0].path: some[0].content
            for doc_id, some in leaves.items()
            if doc_id not in disputed and not some[0].is_deleted
        }
        kept = b"".join(leaf.content for doc_id in disputed for leaf in leaves[doc_id])
        for node in self._nodes:
            files = self._files(node)
            agreed = {path: files[path] for path in files if path.lower() not in disputed}
            assert agreed == live
            reported = {one.doc_id for one in node.records.conflicts() if one.kept_as is None}
            assert reported == disputed
            assert node.records.quarantined() == []
            kept += b"".join([*files.values(), *self._listed_trash(node)])
        lost = self._saved - self._given_up - tokens_in(kept)
        assert not lost

    # -- how it is done

    def _open(self, name: str) -> TestNode:
        return TestNode(self._folder / name, self._remote, manner=self._manner)

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

    def _picked(self, device: int, pick: int) -> str | None:
        paths = sorted(self._files(self._nodes[device]))
        return paths[pick % len(paths)] if paths else None

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


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("manner", "examples"),
    [(Manner(), 120), (Manner(may_merge=False), 40), (Manner(keeps_conflicts_as_files=False), 60)],
    ids=["merging", "conflict_files", "branches"],
)
def test_all_devices_agree_in_the_end_and_nothing_is_lost(
    manner: Manner, examples: int, pouch: Server, tmp_path: Path
) -> None:
    template = tmp_path / "empty.db"
    Database(template).close()
    count = 0

    def network() -> Network:
        nonlocal count
        count += 1
        return Network(pouch, tmp_path / f"network-{count}", template, manner)

    run_state_machine_as_test(
        network,  # type: ignore[arg-type]  # anything that makes a machine will do
        settings=settings(
            max_examples=examples,
            stateful_step_count=10,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
