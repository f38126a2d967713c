"""Deletions that arrive: counted before one of them is carried out, and held if they are many.

Threat: a device whose disk failed, or whose vault was emptied by mistake, tells everybody to
delete everything, all at once or a few at a time. So deletions are the last thing that a sync does.
Those of a day are counted together, whatever was restarted meanwhile: what was carried out is
listed in the trash, what waits is written down. While deletions are held all else goes on, and
only the user says whether they are meant.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from obsidian_rag.livesync.decision import Action, brake_on_arrival
from obsidian_rag.store import LivesyncRecords, now

if TYPE_CHECKING:
    from obsidian_rag.errors import LivesyncBrake
    from obsidian_rag.livesync.case import Case
    from obsidian_rag.livesync.reconcile import Reconciler

_log = logging.getLogger(__name__)
DELETED, MOVED = "deleted on another device", "moved on another device"
_HELD = "held_deletions"
_ANSWER = "held_answer"
_ACCEPTED = "deletions_accepted"
_COUNTED_TOGETHER = timedelta(days=1)
_EVERYTHING = 100.0


class HeldAnswer(StrEnum):
    """What the user says about deletions that are held."""

    TAKE = "take"
    REFUSE = "refuse"


def held_deletions(records: LivesyncRecords) -> list[str]:
    """The documents whose deletion waits for the user."""
    return [str(doc_id) for doc_id in json.loads(records.get_fact(_HELD) or "[]")]


def answer_held(records: LivesyncRecords, answer: HeldAnswer) -> None:
    """Say whether the deletions that are held are meant; the next sync obeys.

    It is about these and no others: what arrives later is asked about again.
    """
    told = {"answer": answer.value, "ids": held_deletions(records)}
    records.put_fact(_ANSWER, json.dumps(told))


class Deletions:
    """The deletions that one reconciler came across, and those held before it."""

    def __init__(self, reconciler: "Reconciler", max_percent: float) -> None:
        self._reconciler = reconciler
        self._records = reconciler.records
        self._max_percent = max_percent
        self._is_sending_only = reconciler.is_sending_only
        self._held = set(held_deletions(self._records))
        self._found: set[str] = set()
        self._cleared: set[str] = set()
        self._moved: set[str] = set()
        # Content that came under a new name: what is deleted under another one was moved.
        self._arrived: Counter[str] = Counter()

    @property
    def is_answered(self) -> bool:
        """Whether the user has decided about what is held."""
        return bool(self._held) and self._records.get_fact(_ANSWER) is not None

    def may_act(self, case: "Case") -> bool:
        """Whether to do what was decided now; a deletion is remembered and comes last."""
        if case.action is not Action.TRASH:
            if not self._is_sending_only:
                self._found.discard(case.doc_id)
                self._held.discard(case.doc_id)
            return True
        if case.doc_id not in self._cleared:
            self._found.add(case.doc_id)
        return case.doc_id in self._cleared

    def arrived(self, content: str) -> None:
        """A file with this content came into the vault under a new name."""
        self._arrived[content] += 1

    def reason(self, case: "Case") -> str:
        """Why a file goes to the trash."""
        return MOVED if case.doc_id in self._moved else DELETED

    def clear(self) -> list[str]:
        """The documents to look at again: deletions that may be done now, or that are refused."""
        if self._is_sending_only:
            return []
        self._held |= self._found
        self._found = set()
        trouble: LivesyncBrake | None = None
        due: list[str] = []
        if self._held:
            self._note_moves()
            refused, taken = self._answered()
            for doc_id in refused:
                # A file that was never synced is sent, whatever the database says.
                self._records.forget(doc_id)
            rest = self._held - refused - taken
            if rest and (trouble := self._too_many(rest)) is None:
                taken |= rest
            self._cleared = taken
            due = sorted(refused | taken)
        self._tell(trouble)
        self._save()
        return due

    def finish(self, done: Iterable[str]) -> None:
        """What was due is done; what was found meanwhile waits for the next time."""
        is_answered = self._records.get_fact(_ANSWER) is not None
        is_meant = is_answered or self._max_percent >= _EVERYTHING
        self._held = (self._held - set(done)) | self._found
        self._save()
        if not self._reconciler.policy.is_dry:
            if self._cleared and is_meant:
                self._records.put_fact(_ACCEPTED, now())
            if is_answered:
                self._records.put_fact(_ANSWER, None)
        self._found, self._cleared = set(), set()

    def keep(self) -> None:
        """The sync is being stopped: what was found waits."""
        self._held |= self._found
        self._found = set()
        self._save()

    def _answered(self) -> tuple[set[str], set[str]]:
        """What the user has refused, and what they have said is meant."""
        told = json.loads(self._records.get_fact(_ANSWER) or "{}")
        ids = self._held.intersection(told.get("ids", ()))
        if self._reconciler.policy.is_dry or told.get("answer") not in tuple(HeldAnswer):
            return set(), set()
        return (ids, set()) if told["answer"] == HeldAnswer.REFUSE else (set(), ids)

    def _too_many(self, held: set[str]) -> "LivesyncBrake | None":
        waiting = len(held - self._moved)
        if not waiting:
            return None
        since = max(_day_before(now()), self._records.get_fact(_ACCEPTED) or "")
        done = sum(
            one.reason == DELETED and one.removed_at > since for one in self._records.trash()
        )
        known = self._records.count() + done
        return brake_on_arrival(known, done, waiting, self._max_percent)

    def _note_moves(self) -> None:
        for doc_id in sorted(self._held - self._moved):
            known = self._records.file(doc_id)
            content = known.content_hash if known is not None else None
            if content is not None and self._arrived[content] > 0:
                self._arrived[content] -= 1
                self._moved.add(doc_id)

    def _tell(self, trouble: "LivesyncBrake | None") -> None:
        before, self._reconciler.stats.brake = self._reconciler.stats.brake, trouble
        if trouble is not None and (before is None or before.message != trouble.message):
            _log.warning("%s", trouble.message)

    def _save(self) -> None:
        if self._reconciler.policy.is_dry:
            return
        told = json.dumps(sorted(self._held)) if self._held else None
        if told != self._records.get_fact(_HELD):
            self._records.put_fact(_HELD, told)


def _day_before(moment: str) -> str:
    before = datetime.fromisoformat(moment) - _COUNTED_TOGETHER
    return before.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
