"""Incoming deletions: counted before any is carried out, and held if there are too many.

Threat: a device whose disk failed, or whose vault was emptied by mistake, makes all others
delete everything, all at once or a few at a time. So deletions are the last step of a sync.
Those of one day are counted together, even across restarts: those carried out are listed in the
trash, those waiting are stored. While deletions are held all else goes on, and only the user can
confirm them.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

from obsidian_rag.errors import LivesyncBrake
from obsidian_rag.livesync.decision import Action, brake_on_arrival
from obsidian_rag.livesync.sync import Case, Sync
from obsidian_rag.store import LivesyncRecords, now

_log = logging.getLogger(__name__)
DELETED, MOVED = "deleted on another device", "moved on another device"
_HELD = "held_deletions"
_ANSWER = "held_answer"
_ACCEPTED = "deletions_accepted"
_COUNTING_PERIOD = timedelta(days=1)
_NO_LIMIT_PERCENT = 100.0


class HeldAnswer(StrEnum):
    """The user's answer about held deletions."""

    TAKE = "take"
    REFUSE = "refuse"


def held_deletions(records: LivesyncRecords) -> list[str]:
    """The documents whose deletion waits for the user."""
    return [str(doc_id) for doc_id in json.loads(records.get_fact(_HELD) or "[]")]


def answer_held(records: LivesyncRecords, answer: HeldAnswer) -> None:
    """Record whether the held deletions are intended; the next sync acts on it.

    The answer covers only these: the user is asked again about later ones.
    """
    stored = {"answer": answer.value, "ids": held_deletions(records)}
    records.put_fact(_ANSWER, json.dumps(stored))


class Deletions:
    """The deletions found in this run, and those held from earlier runs."""

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        self._records = sync.records
        self._held = set(held_deletions(self._records))
        self._found: set[str] = set()
        self._cleared: set[str] = set()
        self._moved: set[str] = set()
        # Content that arrived under a new name: its deletion elsewhere is a move.
        self._arrived: Counter[str] = Counter()

    @property
    def is_answered(self) -> bool:
        """Whether the user has answered about the held deletions."""
        return bool(self._held) and self._records.get_fact(_ANSWER) is not None

    def may_act(self, case: Case) -> bool:
        """Whether to act now; a deletion is noted and comes last."""
        if case.action is not Action.TRASH:
            if not self._sync.is_sending_only:
                self._found.discard(case.doc_id)
                self._held.discard(case.doc_id)
            return True
        if case.doc_id not in self._cleared:
            self._found.add(case.doc_id)
        return case.doc_id in self._cleared

    def note_arrival(self, content: str) -> None:
        """Note a file with this content that arrived under a new name."""
        self._arrived[content] += 1

    def reason(self, case: Case) -> str:
        """Why a file goes to the trash."""
        return MOVED if case.doc_id in self._moved else DELETED

    def clear(self) -> list[str]:
        """Decide about the deletions; return the documents to look at again, allowed or refused."""
        if self._sync.is_sending_only:
            return []
        self._held |= self._found
        self._found = set()
        trouble: LivesyncBrake | None = None
        due: list[str] = []
        if self._held:
            self._note_moves()
            refused, taken = self._load_answer()
            for doc_id in refused:
                # Without a record, the file is sent again as a new one.
                self._records.forget(doc_id)
            rest = self._held - refused - taken
            if rest and (trouble := self._brake_if_too_many(rest)) is None:
                taken |= rest
            self._cleared = taken
            due = sorted(refused | taken)
        self._report(trouble)
        self._save()
        return due

    def finish(self, done: Iterable[str]) -> None:
        """Note that the due deletions are done; those found meanwhile wait for the next sync."""
        is_answered = self._records.get_fact(_ANSWER) is not None
        is_meant = is_answered or self._sync.policy.max_deleted_percent >= _NO_LIMIT_PERCENT
        self._held = (self._held - set(done)) | self._found
        self._save()
        if not self._sync.policy.is_dry:
            if self._cleared and is_meant:
                self._records.put_fact(_ACCEPTED, now())
            if is_answered:
                self._records.put_fact(_ANSWER, None)
        self._found, self._cleared = set(), set()

    def keep(self) -> None:
        """Store the deletions found, because the sync is being stopped."""
        self._held |= self._found
        self._found = set()
        self._save()

    def _load_answer(self) -> tuple[set[str], set[str]]:
        """The deletions that the user refused, and those they confirmed."""
        stored = json.loads(self._records.get_fact(_ANSWER) or "{}")
        ids = self._held.intersection(stored.get("ids", ()))
        if self._sync.policy.is_dry or stored.get("answer") not in tuple(HeldAnswer):
            return set(), set()
        return (ids, set()) if stored["answer"] == HeldAnswer.REFUSE else (set(), ids)

    def _brake_if_too_many(self, held: set[str]) -> LivesyncBrake | None:
        waiting = len(held - self._moved)
        if not waiting:
            return None
        since = max(_day_before(now()), self._records.get_fact(_ACCEPTED) or "")
        done = sum(
            one.reason == DELETED and one.removed_at > since for one in self._records.trash()
        )
        known = self._records.count() + done
        return brake_on_arrival(known, done, waiting, self._sync.policy.max_deleted_percent)

    def _note_moves(self) -> None:
        for doc_id in sorted(self._held - self._moved):
            known = self._records.file(doc_id)
            content = known.content_hash if known is not None else None
            if content is not None and self._arrived[content] > 0:
                self._arrived[content] -= 1
                self._moved.add(doc_id)

    def _report(self, trouble: LivesyncBrake | None) -> None:
        before, self._sync.state.brake = self._sync.state.brake, trouble
        if trouble is not None and (before is None or before.message != trouble.message):
            _log.warning("%s", trouble.message)

    def _save(self) -> None:
        if self._sync.policy.is_dry:
            return
        stored = json.dumps(sorted(self._held)) if self._held else None
        if stored != self._records.get_fact(_HELD):
            self._records.put_fact(_HELD, stored)


def _day_before(moment: str) -> str:
    before = datetime.fromisoformat(moment) - _COUNTING_PERIOD
    return before.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
