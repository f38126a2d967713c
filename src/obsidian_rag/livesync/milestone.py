"""How a database describes itself: whether we may take part, with which settings and salt.

Pure functions over three documents: the version, the milestone with devices, lock and settings, and
the parameters with the salt of the encryption. The last two have no conflict detection: we keep
every line of other devices as it was read. A new salt would make everything encrypted unreadable,
so one is made only where nothing is encrypted yet, and read back before its use.
"""

import base64
import secrets
import string
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from obsidian_rag.errors import LivesyncIncompatible
from obsidian_rag.livesync.codec import Tweaks

Document = Mapping[str, object]

VERSION_ID = "obsydian_livesync_version"
MILESTONE_NAME = "obsydian_livesync_milestone"
SYNC_PARAMETERS_NAME = "obsidian_livesync_sync_parameters"

_VERSION = 12
_READABLE_VERSIONS = (10, 11)
_CHUNK_MIN, _CHUNK_MAX, _CHUNK_CURRENT = 0, 2400, 2
_PREFERRED = "PREFERRED"
_CONNECTED_INTERVAL_MS = 60_000
_PROTOCOL = 2
_SALT_BYTES = 32


class Verdict(StrEnum):
    """What a milestone allows one device."""

    OK = "ok"
    LOCKED = "locked"  # but we are accepted: go on
    NODE_LOCKED = "node_locked"
    NODE_CLEANED = "node_cleaned"
    INCOMPATIBLE = "incompatible"
    MISMATCHED = "mismatched"


class VersionVerdict(StrEnum):
    """What a database's version allows."""

    OK = "ok"
    READ_ONLY = "read_only"  # old devices write to it
    CREATE = "create"  # the database is empty
    NEWER = "newer"
    UNKNOWN = "unknown"  # not a LiveSync database, or not one we understand


class SaltVerdict(StrEnum):
    """What to do about the salt of the encryption."""

    USE = "use"
    CREATE = "create"
    WAIT = "wait"  # another device is making one
    REFUSE = "refuse"  # a new one would make encrypted documents unreadable


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """How we appear in the list of devices."""

    device_name: str
    vault_name: str
    app_version: str
    plugin_version: str
    progress: str
    last_connected_ms: int


def make_node_id() -> str:
    """An id for this device, made once and kept."""
    return "".join(secrets.choice(string.digits + string.ascii_lowercase) for _ in range(10))


def version_verdict(version: Document | None, *, is_empty: bool) -> VersionVerdict:
    """What the version document, or its absence, allows; we never raise the version."""
    if version is None:
        return VersionVerdict.CREATE if is_empty else VersionVerdict.UNKNOWN
    number = version.get("version")
    if type(number) is not int:
        return VersionVerdict.UNKNOWN
    if number > _VERSION:
        return VersionVerdict.NEWER
    if number in _READABLE_VERSIONS:
        return VersionVerdict.READ_ONLY
    return VersionVerdict.OK if number == _VERSION else VersionVerdict.UNKNOWN


def version_document() -> dict[str, object]:
    """The version document of a new database."""
    return {"_id": VERSION_ID, "type": "versioninfo", "version": _VERSION}


def verdict_of(milestone: Document | None, node_id: str, own: Tweaks) -> Verdict:
    """What the milestone allows us; a malformed one is incompatible."""
    if milestone is None:
        return Verdict.OK
    try:
        accepted = _accepted_nodes(milestone)
        is_compatible = _chunks_fit(milestone, accepted, node_id)
        shared = preferred(milestone)
    except LivesyncIncompatible:
        return Verdict.INCOMPATIBLE
    if not is_compatible:
        return Verdict.INCOMPATIBLE
    if shared is not None and own.mismatches(shared):
        return Verdict.MISMATCHED
    if not milestone.get("locked"):
        return Verdict.OK
    if node_id in accepted:
        return Verdict.LOCKED
    return Verdict.NODE_CLEANED if milestone.get("cleaned") else Verdict.NODE_LOCKED


def preferred(milestone: Document) -> Tweaks | None:
    """The settings all devices agreed on.

    Raises:
        LivesyncIncompatible: they are malformed, or we cannot follow them.
    """
    values = _section(milestone, "tweak_values").get(_PREFERRED)
    if values is None:
        return None
    if not isinstance(values, Mapping):
        raise _malformed_error()
    return Tweaks.from_preferred(values)


def created(milestone: Document) -> int | None:
    """When this database was created; a new value means that it was rebuilt."""
    value = milestone.get("created")
    return value if type(value) is int else None


def fresh(created_ms: int, node_id: str, tweaks: Tweaks) -> dict[str, object]:
    """The milestone of a new database, with our settings as the preferred ones."""
    return {
        "_id": f"_local/{MILESTONE_NAME}",
        "type": "milestoneinfo",
        "created": created_ms,
        "locked": False,
        "accepted_nodes": [node_id],
        "node_chunk_info": {},
        "node_info": {},
        "tweak_values": {_PREFERRED: tweaks.to_settings()},
    }


def registered(milestone: Document, node_id: str, info: NodeInfo) -> dict[str, object]:
    """The milestone with our own lines in it; equal to the given one if nothing changed."""
    chunks, nodes = _section(milestone, "node_chunk_info"), _section(milestone, "node_info")
    tweaks = _section(milestone, "tweak_values")
    ours = {"min": _CHUNK_MIN, "max": _CHUNK_MAX, "current": _CHUNK_CURRENT}
    changed = dict(milestone)
    changed["node_chunk_info"] = chunks | {node_id: ours}
    changed["node_info"] = nodes | {node_id: _node_lines(nodes.get(node_id), info)}
    if _PREFERRED in tweaks:
        changed["tweak_values"] = tweaks | {node_id: tweaks[_PREFERRED]}
    return changed


def is_registered(milestone: Document, node_id: str) -> bool:
    """Whether the list of devices contains us."""
    return node_id in _section(milestone, "node_info")


def accepting(milestone: Document, node_id: str) -> dict[str, object]:
    """The milestone of a locked database with us among the accepted devices."""
    accepted = _accepted_nodes(milestone)
    if node_id not in accepted:
        accepted.append(node_id)
    return {**milestone, "accepted_nodes": accepted}


def salt_of(parameters: Document | None) -> bytes | None:
    """The salt of the encryption; None until a device has set it."""
    if parameters is None or not parameters.get("pbkdf2salt"):
        return None
    text, protocol = parameters["pbkdf2salt"], parameters.get("protocolVersion")
    try:
        salt = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        salt = b""
    if len(salt) != _SALT_BYTES or (isinstance(protocol, int | float) and protocol > _PROTOCOL):
        raise LivesyncIncompatible(
            "The database's salt is for an encryption we do not know.",
            "Look for a newer obsidian-rag.",
        )
    return salt


def salt_verdict(parameters: Document | None, *, has_encrypted: bool) -> SaltVerdict:
    """Whether a salt may be made: never for a database with encrypted documents."""
    if salt_of(parameters) is not None:
        return SaltVerdict.USE
    if has_encrypted:
        return SaltVerdict.REFUSE
    # Devices write these parameters twice, first without a salt.
    return SaltVerdict.CREATE if parameters is None else SaltVerdict.WAIT


def sync_parameters(salt: bytes) -> dict[str, object]:
    """The document that holds a salt."""
    return {
        "_id": f"_local/{SYNC_PARAMETERS_NAME}",
        "type": "sync-parameters",
        "protocolVersion": _PROTOCOL,
        "pbkdf2salt": base64.b64encode(salt).decode("ascii"),
    }


def make_salt() -> bytes:
    """A salt, for a database with none and nothing encrypted."""
    return secrets.token_bytes(_SALT_BYTES)


def _chunks_fit(milestone: Document, accepted: list[str], node_id: str) -> bool:
    """Whether the ranges of chunk versions of all accepted devices overlap with ours."""
    known = _section(milestone, "node_chunk_info")
    low, high = float(_CHUNK_MIN), float(_CHUNK_MAX)
    for node in accepted:
        if node == node_id:
            continue
        if node not in known:
            low = high = 0.0  # as LiveSync does: a missing version counts as the first
            continue
        lines = known[node]
        if not isinstance(lines, Mapping):
            raise _malformed_error()
        low, high = max(low, _number(lines, "min")), min(high, _number(lines, "max"))
    return low <= high


def _node_lines(before: object, info: NodeInfo) -> dict[str, object]:
    known = dict(before) if isinstance(before, Mapping) else {}
    last = known.get("last_connected")
    is_recent = (
        isinstance(last, int) and 0 <= info.last_connected_ms - last <= _CONNECTED_INTERVAL_MS
    )
    lines = asdict(info)
    now = lines.pop("last_connected_ms")
    return known | lines | {"last_connected": last if is_recent else now}


def _accepted_nodes(milestone: Document) -> list[str]:
    nodes = milestone.get("accepted_nodes")
    if nodes is None:
        return []
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        raise _malformed_error()
    return list(nodes)


def _section(milestone: Document, key: str) -> dict[str, object]:
    value = milestone.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _malformed_error()
    return dict(value)


def _number(lines: Mapping[str, object], key: str) -> float:
    value = lines.get(key)
    if not isinstance(value, int | float) or value != value // 1:
        raise _malformed_error()
    return value


def _malformed_error() -> LivesyncIncompatible:
    return LivesyncIncompatible(
        "The database's list of devices cannot be understood.",
        "Repair it with LiveSync on another device, or look for a newer obsidian-rag.",
    )
