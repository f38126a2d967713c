"""Nodes of a network for tests: each with a vault, a database of records and a trash of its own."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.folders import files_below, write_notes

from obsidian_rag.livesync.codec.tweaks import Tweaks
from obsidian_rag.livesync.couchdb.couch import Couch
from obsidian_rag.livesync.couchdb.remote import Remote
from obsidian_rag.livesync.node import Node, Plan
from obsidian_rag.livesync.reconcile import Reconciler
from obsidian_rag.livesync.site import Direction, Site
from obsidian_rag.livesync.sync import Policy
from obsidian_rag.store import Database, LivesyncRecords


class TestNode:
    """A device: its files, and the node that syncs them."""

    __test__ = False

    def __init__(
        self,
        home: Path,
        remote: Remote,
        *,
        passphrase: str | None = None,
        tweaks: Tweaks | None = None,
        policy: Policy | None = None,
        filters: Any = None,
    ) -> None:
        self.home = home
        self.root = home / "vault"
        self.root.mkdir(parents=True, exist_ok=True)
        self.remote = remote
        self.passphrase = passphrase
        self.tweaks = tweaks if tweaks is not None else Tweaks()
        self.filters = filters
        self.policy = replace(policy or Policy(), trash=home / "trash")
        self.database = Database(home / "state.db")
        self.records = LivesyncRecords(self.database, remote.key)
        self.couch = Couch(remote)

    def node(
        self,
        *,
        direction: Direction = Direction.BOTH,
        is_read_only: bool = False,
        allows_deletions: bool = False,
    ) -> Node:
        """The node, as a new process would make it."""
        plan = Plan(
            Site(self.remote, self.root, self.passphrase, self.tweaks),
            replace(
                self.policy,
                direction=direction,
                max_deleted_percent=100.0 if allows_deletions else 20.0,
            ),
            is_read_only=is_read_only,
        )
        if self.filters is not None:
            plan = replace(plan, filters=self.filters)
        return Node(plan, self.couch, self.records)

    def sync(self, **options: object) -> Reconciler:
        """Make both sides agree once."""
        return self.node(**options).sync_once()  # type: ignore[arg-type]

    def write(self, path: str, content: str | bytes) -> None:
        """Save a file, as an editor does."""
        write_notes(self.root, {path: content})

    def files(self) -> dict[str, bytes]:
        """Every file of the vault."""
        return files_below(self.root)

    def trashed(self) -> list[bytes]:
        """What the trash holds."""
        folder = self.home / "trash"
        return [file.read_bytes() for file in folder.iterdir()] if folder.is_dir() else []

    def close(self) -> None:
        """Let go of everything."""
        self.couch.close()
        self.database.close()


MakeNode = Callable[..., TestNode]


def sync(*nodes: TestNode) -> None:
    """One after the other."""
    for node in nodes:
        node.sync()


def changed_apart(
    make_node: MakeNode, ours: str, theirs: str, *, name: str = "n.md", **options: Any
) -> tuple[TestNode, TestNode]:
    """Two devices that each changed a note which both had; the first has sent its change."""
    one, two = make_node("one", **options), make_node("two", **options)
    one.write(name, "a\n")
    sync(one, two)
    one.write(name, ours)
    two.write(name, theirs)
    one.sync()
    return one, two
