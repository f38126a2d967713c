"""What is done about a document: every combination with its reason, and what must never be done."""

from dataclasses import dataclass, field, replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_rag.errors import LivesyncBrake
from obsidian_rag.livesync.decision import (
    Absent,
    Action,
    Conflicted,
    Deleted,
    Live,
    Local,
    NoDocument,
    Present,
    RemoteState,
    Tombstone,
    brake,
    decide,
)
from obsidian_rag.store import SyncedFile

PATH = "Notes/A.md"
NOTHING, RECORD, REBASE, FORGET = Action.NOTHING, Action.RECORD, Action.REBASE, Action.FORGET
FETCH, WRITE, RENAME, TRASH = Action.FETCH, Action.WRITE, Action.RENAME_LOCAL, Action.TRASH
PUSH, REVIVE, DELETE = Action.PUSH, Action.PUSH_REVIVED, Action.SOFT_DELETE
MERGE, REPORT, WARN = Action.MERGE_OR_CONFLICT, Action.REPORT_CONFLICT, Action.WARN_TOMBSTONE
SENDING = {PUSH, REVIVE, DELETE, MERGE}

LOCALS: dict[str, Local] = {
    "absent": Absent(),
    "synced": Present("synced", PATH),
    "ours": Present("ours", PATH),
    "theirs": Present("theirs", PATH),
}
REMOTES: dict[str, RemoteState] = {
    "none": NoDocument(),
    "live, rev 1": Live("1", PATH),
    "live, rev 2": Live("2", PATH),
    "live, rev 2, synced": Live("2", PATH, "synced"),
    "live, rev 2, theirs": Live("2", PATH, "theirs"),
    "deleted, rev 1": Deleted("1"),
    "deleted, rev 2": Deleted("2"),
    "soft tombstone, rev 1": Tombstone("1", was_soft_deleted=True),
    "soft tombstone, rev 2": Tombstone("2", was_soft_deleted=True),
    "bare tombstone, rev 1": Tombstone("1", was_soft_deleted=False),
    "bare tombstone, rev 2": Tombstone("2", was_soft_deleted=False),
    "conflict with rev 1": Conflicted("2", ("2", "1")),
    "conflict without rev 1": Conflicted("3", ("3", "2")),
}
KNOWN: dict[str, SyncedFile | None] = {
    "never": None,
    "synced, rev 1": SyncedFile("id", PATH, "1", "synced", 6, 0),
    "deleted, rev 1": SyncedFile("id", PATH, "1", None, 0, 0),
}
# (our record, the database): (no file, file as synced, file edited, file as theirs), and why.
Row = tuple[Action, Action, Action, Action, str]
TABLE: dict[tuple[str, str], Row] = {
    ("never", "none"): (NOTHING, PUSH, PUSH, PUSH, "a new file"),
    ("never", "live, rev 1"): (WRITE, FETCH, FETCH, FETCH, "a new document; is it this file?"),
    ("never", "live, rev 2"): (WRITE, FETCH, FETCH, FETCH, "the same"),
    ("never", "live, rev 2, synced"): (WRITE, RECORD, MERGE, MERGE, "equal, or both are kept"),
    ("never", "live, rev 2, theirs"): (WRITE, MERGE, MERGE, RECORD, "equal, or both are kept"),
    ("never", "deleted, rev 1"): (NOTHING, REVIVE, REVIVE, REVIVE, "unknown content is kept"),
    ("never", "deleted, rev 2"): (NOTHING, REVIVE, REVIVE, REVIVE, "unknown content is kept"),
    ("never", "soft tombstone, rev 1"): (NOTHING, REVIVE, REVIVE, REVIVE, "a new file there"),
    ("never", "soft tombstone, rev 2"): (NOTHING, REVIVE, REVIVE, REVIVE, "a new file there"),
    ("never", "bare tombstone, rev 1"): (NOTHING, REVIVE, REVIVE, REVIVE, "a new file there"),
    ("never", "bare tombstone, rev 2"): (NOTHING, REVIVE, REVIVE, REVIVE, "a new file there"),
    ("never", "conflict with rev 1"): (REPORT, REPORT, REPORT, REPORT, "not ours to decide"),
    ("never", "conflict without rev 1"): (REPORT, REPORT, REPORT, REPORT, "not ours to decide"),
    ("synced, rev 1", "none"): (FORGET, PUSH, PUSH, PUSH, "purged is not deleted"),
    ("synced, rev 1", "live, rev 1"): (DELETE, NOTHING, PUSH, PUSH, "only we have changed"),
    ("synced, rev 1", "live, rev 2"): (WRITE, WRITE, FETCH, FETCH, "edit wins over deletion"),
    ("synced, rev 1", "live, rev 2, synced"): (WRITE, RECORD, REBASE, REBASE, "nothing new there"),
    ("synced, rev 1", "live, rev 2, theirs"): (WRITE, WRITE, MERGE, RECORD, "both have changed"),
    ("synced, rev 1", "deleted, rev 1"): (RECORD, TRASH, REVIVE, REVIVE, "a record that errs"),
    ("synced, rev 1", "deleted, rev 2"): (RECORD, TRASH, REVIVE, REVIVE, "edit wins over deletion"),
    ("synced, rev 1", "soft tombstone, rev 1"): (RECORD, TRASH, REVIVE, REVIVE, "it was deleted"),
    ("synced, rev 1", "soft tombstone, rev 2"): (RECORD, TRASH, REVIVE, REVIVE, "it was deleted"),
    ("synced, rev 1", "bare tombstone, rev 1"): (RECORD, NOTHING, REVIVE, REVIVE, "warned before"),
    ("synced, rev 1", "bare tombstone, rev 2"): (RECORD, WARN, REVIVE, REVIVE, "nobody obeys it"),
    ("synced, rev 1", "conflict with rev 1"): (REPORT, REPORT, PUSH, PUSH, "on our own branch"),
    ("synced, rev 1", "conflict without rev 1"): (REPORT, REPORT, REPORT, REPORT, "no branch"),
    ("deleted, rev 1", "none"): (FORGET, PUSH, PUSH, PUSH, "a new file"),
    ("deleted, rev 1", "live, rev 1"): (WRITE, FETCH, FETCH, FETCH, "a record that errs"),
    ("deleted, rev 1", "live, rev 2"): (WRITE, FETCH, FETCH, FETCH, "it came back there"),
    ("deleted, rev 1", "live, rev 2, synced"): (WRITE, RECORD, MERGE, MERGE, "and here as well"),
    ("deleted, rev 1", "live, rev 2, theirs"): (WRITE, MERGE, MERGE, RECORD, "and here as well"),
    ("deleted, rev 1", "deleted, rev 1"): (NOTHING, REVIVE, REVIVE, REVIVE, "it came back here"),
    ("deleted, rev 1", "deleted, rev 2"): (RECORD, REVIVE, REVIVE, REVIVE, "deleted once more"),
    ("deleted, rev 1", "soft tombstone, rev 1"): (NOTHING, REVIVE, REVIVE, REVIVE, "expired"),
    ("deleted, rev 1", "soft tombstone, rev 2"): (RECORD, REVIVE, REVIVE, REVIVE, "expired"),
    ("deleted, rev 1", "bare tombstone, rev 1"): (NOTHING, REVIVE, REVIVE, REVIVE, "expired"),
    ("deleted, rev 1", "bare tombstone, rev 2"): (RECORD, REVIVE, REVIVE, REVIVE, "expired"),
    ("deleted, rev 1", "conflict with rev 1"): (REPORT, REPORT, REPORT, REPORT, "a dead branch"),
    ("deleted, rev 1", "conflict without rev 1"): (REPORT, REPORT, REPORT, REPORT, "no branch"),
}


def test_the_table_has_every_combination() -> None:
    assert set(TABLE) == set(product(KNOWN, REMOTES))


@pytest.mark.parametrize(("known", "remote"), TABLE)
def test_each_combination_has_its_action(known: str, remote: str) -> None:
    *expected, reason = TABLE[known, remote]
    found = [decide(local, REMOTES[remote], KNOWN[known]) for local in LOCALS.values()]
    assert found == expected, reason


@pytest.mark.parametrize(("known", "remote"), TABLE)
def test_read_only_sends_nothing_and_takes_the_rest_alike(known: str, remote: str) -> None:
    for local in LOCALS.values():
        normal = decide(local, REMOTES[remote], KNOWN[known])
        found = decide(local, REMOTES[remote], KNOWN[known], is_read_only=True)
        if normal not in SENDING:
            assert found is normal
        elif normal is MERGE or "conflict" in remote:
            assert found is REPORT
        else:
            assert found is NOTHING


OLD, NEW, OTHER = "Notes/a.md", "Notes/A.md", "notes/A.md"


@pytest.mark.parametrize(
    ("ours", "theirs", "synced", "rev", "content", "action", "reason"),
    [
        (OLD, NEW, OLD, "2", "synced", RENAME, "they renamed it"),
        (OLD, NEW, OLD, "2", "theirs", RENAME, "they renamed and edited it: first the name"),
        (OLD, NEW, OLD, "2", None, RENAME, "the name is known before the content"),
        (NEW, NEW, OLD, "2", "theirs", WRITE, "both renamed it alike"),
        (OLD, NEW, OTHER, "2", "synced", RENAME, "both renamed it: theirs is what others see"),
        (NEW, OLD, OLD, "1", None, PUSH, "we renamed it"),
        (NEW, OLD, OLD, "2", "synced", RECORD, "we renamed it; the push comes with the next look"),
        (NEW, OLD, OLD, "2", "theirs", WRITE, "we renamed it, they edited it: no name is lost"),
        (OLD, NEW, OLD, "1", None, NOTHING, "a disk that cannot spell it so was recorded as it is"),
        (NEW, NEW, OLD, "1", None, NOTHING, "they agree, whatever the record says"),
    ],
)
def test_a_path_in_another_case_is_followed_or_sent(
    ours: str,
    theirs: str,
    synced: str,
    rev: str,
    content: str | None,
    action: Action,
    reason: str,
) -> None:
    known = SyncedFile("id", synced, "1", "synced", 6, 0)
    assert decide(Present("synced", ours), Live(rev, theirs, content), known) is action, reason


def test_an_unknown_file_takes_the_spelling_of_its_document() -> None:
    assert decide(Present("a", OLD), Live("1", NEW, "a"), None) is RENAME
    assert decide(Present("a", NEW), Live("1", NEW, "a"), None) is RECORD


def test_an_edited_file_is_renamed_before_its_base_moves() -> None:
    known = SyncedFile("id", OLD, "1", "synced", 6, 0)
    assert decide(Present("ours", OLD), Live("2", NEW, "synced"), known) is RENAME
    assert decide(Present("ours", NEW), Live("2", NEW, "synced"), known) is REBASE


CONTENTS = st.sampled_from("abc")
REVS = st.sampled_from("123")
PATHS = st.sampled_from([OLD, NEW])
locals_ = st.one_of(st.builds(Absent), st.builds(Present, CONTENTS, PATHS))
remotes = st.one_of(
    st.builds(NoDocument),
    st.builds(Live, REVS, PATHS, st.none() | CONTENTS),
    st.builds(Deleted, REVS),
    st.builds(Tombstone, REVS, st.booleans()),
    st.builds(Conflicted, REVS, st.lists(REVS, min_size=2, unique=True).map(tuple)),
)
records = st.none() | st.builds(
    SyncedFile, st.just("id"), PATHS, REVS, st.none() | CONTENTS, st.just(1), st.just(0)
)


@settings(max_examples=1000, derandomize=True, deadline=None)
@given(locals_, remotes, records, st.booleans())
def test_no_action_touches_content_that_is_not_known_to_be_safe(
    local: Local, remote: RemoteState, known: SyncedFile | None, is_read_only: bool
) -> None:
    action = decide(local, remote, known, is_read_only=is_read_only)
    content = local.content_hash if isinstance(local, Present) else None
    synced = known.content_hash if known else None
    if action is WRITE:
        assert isinstance(remote, Live)
        assert content is None or content == synced
    elif action is TRASH:
        assert content is not None
        assert content == synced
    elif action is RECORD:
        # Recorded as synced means: may be overwritten. So it must be there, too.
        assert content == (remote.content_hash if isinstance(remote, Live) else None)
    elif action in (PUSH, DELETE) and not isinstance(remote, NoDocument):
        # A child of what our file came from, and only where that is still a leaf.
        assert known is not None
        leaves = remote.leaves if isinstance(remote, Conflicted) else (remote.rev,)
        assert known.rev in leaves
        assert synced is not None
    if isinstance(remote, Conflicted):
        assert action in (PUSH, REPORT)


@dataclass
class World:
    """One file, one document and our record of both; actions are done as executors do them."""

    local: str | None = None
    # Leaves of the document: revision → (kind, content).
    leaves: dict[int, tuple[str, str]] = field(default_factory=dict)
    known: SyncedFile | None = None
    beside: set[str] = field(default_factory=set)
    trash: set[str] = field(default_factory=set)
    is_fetched: bool = False
    is_read_only: bool = False
    last_rev: int = 0

    def happen(self, event: str, content: str) -> None:
        """Somebody else does something, here or there."""
        winner = max(self.living(), default=max(self.leaves, default=None))
        match event:
            case "edit here":
                self.local = content
            case "delete here":
                self.local = None
            case "edit there":
                self._grow(winner, "live", content)
            case "branch there":
                self._grow(None, "live", content)
            case "delete there" if winner is not None:
                self._grow(winner, "deleted", self.leaves[winner][1])
            case "tombstone there" if winner is not None:
                self._grow(winner, *GONE)
            case "expire there" if winner is not None:
                self._grow(winner, "soft tombstone", "")
            case "settle there" if len(self.living()) > 1:
                self._grow(max(self.living()) if content == "a" else min(self.living()), *GONE)
            case "purge there":
                self.leaves.clear()
        self.is_fetched = False

    def look(self, is_crashing: bool) -> Action:
        """Decide and do one thing; a crash comes before it is recorded."""
        before, remote = self.local, self.remote()
        local = Absent() if self.local is None else Present(self.local, PATH)
        action = decide(local, remote, self.known, is_read_only=self.is_read_only)
        recorded = self._do(action, remote)
        assert before is None or before in self._kept(), f"{action} lost {before}"
        if not is_crashing:
            self.known = recorded
        return action

    def living(self) -> list[int]:
        return [rev for rev, (kind, _) in self.leaves.items() if "tombstone" not in kind]

    def remote(self) -> RemoteState:
        living = self.living()
        if not self.leaves:
            return NoDocument()
        if len(living) > 1:
            return Conflicted(str(max(living)), tuple(map(str, living)))
        rev = max(living, default=max(self.leaves))
        kind, content = self.leaves[rev]
        if "tombstone" in kind:
            return Tombstone(str(rev), kind == "soft tombstone")
        if kind == "deleted":
            return Deleted(str(rev))
        return Live(str(rev), PATH, content if self.is_fetched else None)

    def _kept(self) -> set[str | None]:
        there = {content for kind, content in self.leaves.values() if kind == "live"}
        synced = self.known.content_hash if self.known else None
        return {self.local, synced, *there, *self.beside, *self.trash}

    def _do(self, action: Action, remote: RemoteState) -> SyncedFile | None:
        rev = getattr(remote, "rev", None)
        match action:
            case Action.RECORD:
                return self._record(rev, self.local)
            case Action.REBASE | Action.WARN_TOMBSTONE:
                assert self.known is not None
                return replace(self.known, rev=str(rev))
            case Action.FORGET:
                return None
            case Action.FETCH:
                self.is_fetched = True
            case Action.WRITE | Action.MERGE_OR_CONFLICT:
                if action is MERGE and self.local is not None:
                    self.beside.add(self.local)
                self.local = self.leaves[int(str(rev))][1]
                return self._record(rev, self.local)
            case Action.TRASH:
                assert self.local is not None
                self.trash.add(self.local)
                self.local = None
                return self._record(rev, None)
            case Action.PUSH | Action.PUSH_REVIVED | Action.SOFT_DELETE:
                return self._send(action, remote)
        return self.known

    def _send(self, action: Action, remote: RemoteState) -> SyncedFile:
        assert not self.is_read_only
        parent = None if self.known is None else self.known.rev
        if action is REVIVE:
            parent = getattr(remote, "rev", None)
        elif isinstance(remote, NoDocument):
            parent = None
        if action is DELETE:
            assert self.known is not None
            kind, content = self.leaves[int(str(parent))]
            assert (kind, content) == ("live", self.known.content_hash), "deleted unseen content"
            return self._record(self._grow(int(str(parent)), "deleted", content), None)
        assert self.local is not None
        grown = self._grow(None if parent is None else int(parent), "live", self.local)
        return self._record(grown, self.local)

    def _grow(self, parent: int | None, kind: str, content: str) -> int:
        if parent is not None:
            del self.leaves[parent]
        self.last_rev += 1
        self.leaves[self.last_rev] = (kind, content)
        return self.last_rev

    def _record(self, rev: object, content: str | None) -> SyncedFile:
        return SyncedFile("id", PATH, str(rev), content, 1, 0)


GONE = ("tombstone", "")
EVENTS = [
    "edit here",
    "delete here",
    "edit there",
    "branch there",
    "settle there",
    "delete there",
    "tombstone there",
    "expire there",
    "purge there",
    "look",
    "look",
    "look and crash",
]


@settings(max_examples=1500, derandomize=True, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(EVENTS), CONTENTS), max_size=25),
    st.booleans(),
)
def test_whatever_happens_nothing_is_lost_and_looking_comes_to_an_end(
    events: list[tuple[str, str]], is_read_only: bool
) -> None:
    world = World(is_read_only=is_read_only)
    for event, content in events:
        if event.startswith("look"):
            world.look(is_crashing=event != "look")
        else:
            world.happen(event, content)
    actions = [world.look(is_crashing=False) for _ in range(6)]
    assert actions[-1] in (NOTHING, REPORT), actions
    if actions[-1] is NOTHING and not is_read_only:
        match world.remote():
            case Live(rev=rev):
                assert world.local == world.leaves[int(rev)][1]
            case NoDocument() | Deleted():
                assert world.local is None
            case Tombstone(was_soft_deleted=True):
                assert world.local is None


@pytest.mark.parametrize(
    ("known", "missing"),
    [
        (0, 0),
        (3, 0),
        (3, 1),
        (3, 3),
        (10, 10),
        (1000, 11),
        (100, 20),
        (55, 11),
        (1_000_000, 200_000),
    ],
)
def test_ordinary_deletions_pass_the_brake(known: int, missing: int) -> None:
    brake(known, missing, root_ok=True, max_percent=20)


@pytest.mark.parametrize(("known", "missing"), [(11, 11), (54, 11), (100, 21), (100_000, 20_001)])
def test_a_mass_deletion_is_stopped_with_its_numbers(known: int, missing: int) -> None:
    with pytest.raises(LivesyncBrake) as caught:
        brake(known, missing, root_ok=True, max_percent=20)
    assert f"{missing} of {known}" in caught.value.message
    assert "20 %" in caught.value.message
    assert "--allow-deletions" in caught.value.suggestion


def test_a_user_who_means_it_can_release_the_brake() -> None:
    brake(100, 100, root_ok=True, max_percent=100)


@pytest.mark.parametrize("known", [1, 3, 5000])
def test_a_missing_or_empty_vault_is_never_a_deletion(known: int) -> None:
    with pytest.raises(LivesyncBrake) as caught:
        brake(known, known, root_ok=False, max_percent=100)
    assert f"{known} synced file" in caught.value.message
    assert caught.value.suggestion


def test_a_new_vault_may_be_empty() -> None:
    brake(0, 0, root_ok=False, max_percent=20)
