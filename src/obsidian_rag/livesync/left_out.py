"""What is not synced and why, in a few words: counts, and the first few names of each kind."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from obsidian_rag.store import LivesyncRecords

_IGNORED = "ignored"
_FEW = 5
_SET_ASIDE = "cannot be read or must not be applied (`obsidian-rag livesync check` says why)"
# What a walk calls things.
_WORDS = {
    "symlink": "is a symlink",
    "unreadable": "cannot be read",
    "not_a_file": "is not a regular file",
    "cloud_placeholder": "is in the cloud, not on this disk",
    "unsafe_name": "has a name that is not safe",
    "not_utf8_name": "has a name that is not UTF-8",
}


class Kind(StrEnum):
    """Why something is not synced, as far as it matters to the user."""

    LEFT_OUT = "left_out"  # a file of the vault that cannot be synced
    FILTERED = "filtered"  # the user's own filters keep it back
    SET_ASIDE = "set_aside"  # a document that waits
    ELSEWHERE = "elsewhere"  # synced, but some systems cannot write it


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Files that have one reason in common; `paths` has the first few of them."""

    kind: Kind
    reason: str
    count: int
    paths: tuple[str, ...]

    def fields(self) -> dict[str, object]:
        """The same for programs."""
        return {
            "kind": self.kind.value,
            "reason": self.reason,
            "count": self.count,
            "paths": list(self.paths),
        }


class IgnoredDocuments:
    """Documents that the filters keep out of the vault, by their paths.

    They are remembered because the feed of changes tells of each only once: when a filter is
    lifted, they are due.
    """

    def __init__(self, records: LivesyncRecords) -> None:
        self._records = records
        self._stored = records.get_fact(_IGNORED)
        self._paths: dict[str, str] = json.loads(self._stored or "{}")

    @property
    def paths(self) -> Iterable[str]:
        """The paths of all of them."""
        return self._paths.values()

    def put(self, doc_id: str, path: str) -> None:
        """The filters keep this document out."""
        self._paths[doc_id] = path

    def drop(self, doc_id: str) -> None:
        """The filters have nothing against this document, or it is gone."""
        self._paths.pop(doc_id, None)

    def lifted(self, reason: Callable[[str], str | None]) -> list[str]:
        """The documents that no filter keeps out any more."""
        return [doc_id for doc_id, path in self._paths.items() if reason(path) is None]

    def save(self) -> None:
        """Write down what has changed."""
        text = json.dumps(self._paths) if self._paths else None
        if text != self._stored:
            self._records.put_fact(_IGNORED, text)
            self._stored = text


def summarised(
    left_out: Mapping[str, str],
    filtered: Mapping[str, str],
    set_aside: Iterable[str],
    unwelcome: Mapping[str, str],
) -> tuple[LeftOut, ...]:
    """What is not synced, the largest groups of each kind first."""
    groups: dict[tuple[Kind, str], list[str]] = {}
    for path, reason in left_out.items():
        key = (Kind.LEFT_OUT, _WORDS.get(reason, reason))
        groups.setdefault(key, []).append(path or "the vault's folder")
    for path, reason in filtered.items():
        groups.setdefault((Kind.FILTERED, reason), []).append(path)
    for path in set_aside:
        groups.setdefault((Kind.SET_ASIDE, _SET_ASIDE), []).append(path)
    for path, reason in unwelcome.items():
        if path not in left_out:
            groups.setdefault((Kind.ELSEWHERE, reason), []).append(path)
    found = [
        LeftOut(kind, reason, len(paths), tuple(sorted(paths)[:_FEW]))
        for (kind, reason), paths in groups.items()
    ]
    order = list(Kind)
    return tuple(sorted(found, key=lambda one: (order.index(one.kind), -one.count, one.reason)))
