"""What is not synced and why, in short: counts, and the first few names of each kind."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from obsidian_rag.errors import LivesyncTooLarge
from obsidian_rag.store import LivesyncRecords, Quarantined

_IGNORED = "ignored"
_MAX_PATHS_SHOWN = 5
_SET_ASIDE = "cannot be read or must not be applied (`obsidian-rag livesync check` says why)"
_SET_ASIDE_BY_CODE = {
    LivesyncTooLarge.code: "the server refuses it as too large (HTTP 413): raise its limits"
    " max_document_size and max_http_request_size, or a proxy's client_max_body_size"
}
# The walk's reasons, in words for the user.
_REASONS = {
    "symlink": "is a symlink",
    "unreadable": "cannot be read",
    "not_a_file": "is not a regular file",
    "cloud_placeholder": "is in the cloud, not on this disk",
    "unsafe_name": "has a name that is not safe",
    "not_utf8_name": "has a name that is not UTF-8",
}


class Kind(StrEnum):
    """Why something is not synced, by what the user can do about it."""

    LEFT_OUT = "left_out"  # a file of the vault that cannot be synced
    FILTERED = "filtered"  # excluded by the user's own filters
    SET_ASIDE = "set_aside"  # a document that waits
    ELSEWHERE = "elsewhere"  # synced, but some systems cannot write it


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Files that share one reason; `paths` has the first few of them."""

    kind: Kind
    reason: str
    count: int
    paths: tuple[str, ...]

    def fields(self) -> dict[str, object]:
        """The fields for JSON."""
        return {
            "kind": self.kind.value,
            "reason": self.reason,
            "count": self.count,
            "paths": list(self.paths),
        }


class IgnoredDocuments:
    """Documents that the filters keep out of the vault, by their paths.

    They are stored because the feed lists each change only once: when a filter is lifted, these
    documents must be synced.
    """

    def __init__(self, records: LivesyncRecords) -> None:
        self._records = records
        self._stored = records.get_fact(_IGNORED)
        self._paths: dict[str, str] = json.loads(self._stored or "{}")

    @property
    def paths(self) -> Iterable[str]:
        """Their paths."""
        return self._paths.values()

    def put(self, doc_id: str, path: str) -> None:
        """Add a document that the filters exclude."""
        self._paths[doc_id] = path

    def drop(self, doc_id: str) -> None:
        """Remove a document that the filters allow, or that is gone."""
        self._paths.pop(doc_id, None)

    def lifted(self, reason: Callable[[str], str | None]) -> list[str]:
        """The documents that no filter excludes any more."""
        return [doc_id for doc_id, path in self._paths.items() if reason(path) is None]

    def save(self) -> None:
        """Store the documents if they changed."""
        text = json.dumps(self._paths) if self._paths else None
        if text != self._stored:
            self._records.put_fact(_IGNORED, text)
            self._stored = text


def summarised(
    left_out: Mapping[str, str],
    filtered: Mapping[str, str],
    set_aside: Iterable[Quarantined],
    unwelcome: Mapping[str, str],
) -> tuple[LeftOut, ...]:
    """What is not synced, the largest groups of each kind first."""
    groups: dict[tuple[Kind, str], list[str]] = {}
    for path, reason in left_out.items():
        key = (Kind.LEFT_OUT, _REASONS.get(reason, reason))
        groups.setdefault(key, []).append(path or "the vault's folder")
    for path, reason in filtered.items():
        groups.setdefault((Kind.FILTERED, reason), []).append(path)
    for one in set_aside:
        reason = _SET_ASIDE_BY_CODE.get(one.code, _SET_ASIDE)
        groups.setdefault((Kind.SET_ASIDE, reason), []).append(one.path or one.doc_id)
    for path, reason in unwelcome.items():
        if path not in left_out:
            groups.setdefault((Kind.ELSEWHERE, reason), []).append(path)
    found = [
        LeftOut(kind, reason, len(paths), tuple(sorted(paths)[:_MAX_PATHS_SHOWN]))
        for (kind, reason), paths in groups.items()
    ]
    order = list(Kind)
    return tuple(sorted(found, key=lambda one: (order.index(one.kind), -one.count, one.reason)))
