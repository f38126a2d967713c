import base64
import copy
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.livesync.vectors import VECTORS

from obsidian_rag.errors import LivesyncIncompatible
from obsidian_rag.livesync.codec.tweaks import Tweaks
from obsidian_rag.livesync.milestone import (
    NodeInfo,
    SaltVerdict,
    Verdict,
    VersionVerdict,
    accepting,
    created,
    fresh,
    is_registered,
    make_node_id,
    make_salt,
    preferred,
    registered,
    salt_of,
    salt_verdict,
    sync_parameters,
    verdict_of,
    version_document,
    version_verdict,
)

MILESTONES: list[dict[str, Any]] = VECTORS["milestone"]
MILESTONE: dict[str, Any] = MILESTONES[1]["input"]
INFO = NodeInfo("py-node", "vault", "1.0", "0.1-py", "12-abc", 1794771647725)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def _own(vector: dict[str, Any]) -> Tweaks:
    return Tweaks.from_preferred(vector["written"]["tweak_values"][vector["node"]])


def _info(vector: dict[str, Any]) -> NodeInfo:
    lines = dict(vector["written"]["node_info"][vector["node"]])
    return NodeInfo(last_connected_ms=lines.pop("last_connected"), **lines)


@pytest.mark.parametrize("vector", MILESTONES, ids=lambda vector: str(vector["label"]))
def test_the_verdict_is_that_of_livesync(vector: dict[str, Any]) -> None:
    result = vector["result"]
    name = result if isinstance(result, str) else result[0]
    assert verdict_of(vector["input"], vector["node"], _own(vector)) is Verdict[name]


@pytest.mark.parametrize("vector", MILESTONES, ids=lambda vector: str(vector["label"]))
def test_we_register_as_livesync_does(vector: dict[str, Any]) -> None:
    node, written = vector["node"], copy.deepcopy(vector["written"])
    milestone = vector["input"] or fresh(written["created"], node, _own(vector))
    before = copy.deepcopy(milestone)
    # Only that our own values are always those that all agreed on.
    written["tweak_values"][node] = written["tweak_values"]["PREFERRED"]
    assert registered(milestone, node, _info(vector)) == written
    assert milestone == before


@pytest.mark.parametrize("vector", MILESTONES[1:], ids=lambda vector: str(vector["label"]))
def test_a_device_with_the_preferred_values_never_mismatches(vector: dict[str, Any]) -> None:
    shared = preferred(vector["input"])
    assert shared is not None
    assert verdict_of(vector["input"], vector["node"], shared) is not Verdict.MISMATCHED
    assert shared.to_settings() == vector["input"]["tweak_values"]["PREFERRED"]


def test_registering_again_within_a_minute_changes_nothing() -> None:
    once = registered(MILESTONE, "node-B", INFO)
    assert is_registered(once, "node-B")
    assert not is_registered(MILESTONE, "node-B")

    def later(ms: int) -> NodeInfo:
        return NodeInfo("py-node", "vault", "1.0", "0.1-py", "12-abc", INFO.last_connected_ms + ms)

    assert registered(once, "node-B", later(60_000)) == once
    for ms in (60_001, -1):
        again: Any = registered(once, "node-B", later(ms))
        assert again["node_info"]["node-B"]["last_connected"] == INFO.last_connected_ms + ms
    moved = NodeInfo("py-node", "vault", "1.0", "0.1-py", "13-abc", INFO.last_connected_ms)
    assert registered(once, "node-B", moved) != once


def test_only_our_own_lines_change() -> None:
    full: dict[str, Any] = MILESTONE | {"locked": True, "cleaned": True, "future": {"a": [1]}}
    changed: dict[str, Any] = registered(full, "node-B", INFO)
    for part in ("node_chunk_info", "node_info", "tweak_values"):
        changed[part] = {key: value for key, value in changed[part].items() if key != "node-B"}
    assert changed == full


def test_without_preferred_values_we_set_none() -> None:
    empty = MILESTONE | {"tweak_values": {}}
    assert preferred(empty) is None
    assert registered(empty, "node-B", INFO)["tweak_values"] == {}
    assert verdict_of(empty, "node-B", Tweaks(encrypt=True)) is Verdict.OK


def test_a_new_database_follows_our_settings() -> None:
    tweaks = Tweaks(encrypt=True, custom_chunk_size=60)
    milestone = fresh(5, "node-A", tweaks)
    assert preferred(milestone) == tweaks
    assert created(milestone) == 5
    assert verdict_of(milestone, "node-A", tweaks) is Verdict.OK


def test_accepting_adds_us_once_and_does_not_unlock() -> None:
    locked = MILESTONE | {"locked": True}
    own = preferred(locked)
    assert own is not None
    accepted = accepting(locked, "node-B")
    assert accepted == locked | {"accepted_nodes": ["node-A", "node-B"]}
    assert accepting(accepted, "node-B") == accepted
    assert verdict_of(locked, "node-B", own) is Verdict.NODE_LOCKED
    assert verdict_of(accepted, "node-B", own) is Verdict.LOCKED
    assert MILESTONE["accepted_nodes"] == ["node-A"]


def test_a_lock_without_a_list_of_accepted_devices_keeps_us_out() -> None:
    locked = {key: value for key, value in MILESTONE.items() if key != "accepted_nodes"}
    own = preferred(locked)
    assert own is not None
    assert verdict_of(locked | {"locked": True}, "node-B", own) is Verdict.NODE_LOCKED


def test_compatibility_is_judged_before_settings_and_locks() -> None:
    odd = MILESTONE | {
        "locked": True,
        "accepted_nodes": ["node-C"],
        "node_chunk_info": {"node-C": {"min": 2401, "max": 3000}},
    }
    assert verdict_of(odd, "node-B", Tweaks(encrypt=True)) is Verdict.INCOMPATIBLE
    odd["node_chunk_info"] = {"node-C": {"min": 2400, "max": 3000}}
    assert verdict_of(odd, "node-B", Tweaks(encrypt=True)) is Verdict.MISMATCHED


@pytest.mark.parametrize(
    ("accepted", "verdict"),
    [
        (["new"], Verdict.INCOMPATIBLE),
        (["silent", "new"], Verdict.INCOMPATIBLE),
        (["new", "silent"], Verdict.OK),  # as LiveSync judges: who is silent is judged anew
        (["node-B"], Verdict.OK),  # what we said of ourselves before does not count
    ],
)
def test_the_chunks_of_accepted_devices_are_judged(accepted: list[str], verdict: Verdict) -> None:
    new = {"min": 3000, "max": 4000, "current": 3000}
    milestone = MILESTONE | {
        "accepted_nodes": accepted,
        "node_chunk_info": {"new": new, "node-B": new},
    }
    own = preferred(milestone)
    assert own is not None
    assert verdict_of(milestone, "node-B", own) is verdict


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("accepted_nodes", "node-A"),
        ("accepted_nodes", [1]),
        ("node_chunk_info", []),
        ("node_chunk_info", {"node-A": 5}),
        ("node_chunk_info", {"node-A": {"min": 0}}),
        ("node_chunk_info", {"node-A": {"min": float("nan"), "max": 1}}),
        ("tweak_values", "x"),
        ("tweak_values", {"PREFERRED": []}),
        ("tweak_values", {"PREFERRED": {"encrypt": "yes"}}),
        ("tweak_values", {"PREFERRED": {"idDerivationVersion": 1}}),
    ],
)
def test_a_malformed_milestone_is_incompatible(part: str, value: object) -> None:
    assert verdict_of(MILESTONE | {part: value}, "node-B", Tweaks()) is Verdict.INCOMPATIBLE


@given(
    st.dictionaries(
        st.sampled_from(
            ["accepted_nodes", "node_chunk_info", "node_info", "tweak_values", "locked", "created"]
        ),
        JSON | st.dictionaries(st.sampled_from(["node-A", "PREFERRED"]), JSON),
    )
)
def test_any_milestone_is_understood_or_refused(parts: dict[str, object]) -> None:
    milestone = MILESTONE | parts
    assert verdict_of(milestone, "node-B", Tweaks()) in Verdict
    created(milestone)
    for change in (
        lambda: registered(milestone, "node-B", INFO),
        lambda: accepting(milestone, "node-B"),
        lambda: preferred(milestone),
    ):
        try:
            change()
        except LivesyncIncompatible:
            continue


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        (12, VersionVerdict.OK),
        (11, VersionVerdict.READ_ONLY),
        (10, VersionVerdict.READ_ONLY),
        (9, VersionVerdict.UNKNOWN),
        (0, VersionVerdict.UNKNOWN),
        (13, VersionVerdict.NEWER),
        (10**400, VersionVerdict.NEWER),
        ("12", VersionVerdict.UNKNOWN),
        (True, VersionVerdict.UNKNOWN),
        (None, VersionVerdict.UNKNOWN),
    ],
)
@pytest.mark.parametrize("is_empty", [False, True])
def test_the_version_decides_what_we_may(
    version: object, verdict: VersionVerdict, is_empty: bool
) -> None:
    assert version_verdict({"version": version}, is_empty=is_empty) is verdict


def test_a_version_is_made_only_for_an_empty_database() -> None:
    assert version_verdict(None, is_empty=True) is VersionVerdict.CREATE
    assert version_verdict(None, is_empty=False) is VersionVerdict.UNKNOWN
    assert version_verdict(version_document(), is_empty=False) is VersionVerdict.OK
    assert version_document() == {
        "_id": "obsydian_livesync_version",
        "type": "versioninfo",
        "version": 12,
    }


def test_node_ids_are_ten_letters_and_digits() -> None:
    ids = {make_node_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(re.fullmatch("[0-9a-z]{10}", each) for each in ids)


def test_a_salt_is_read_as_it_was_written() -> None:
    salt = make_salt()
    assert len(salt) == 32
    assert salt != make_salt()
    assert salt_of(sync_parameters(salt)) == salt
    assert sync_parameters(bytes(32)) == {
        "_id": "_local/obsidian_livesync_sync_parameters",
        "type": "sync-parameters",
        "protocolVersion": 2,
        "pbkdf2salt": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    }


@pytest.mark.parametrize(
    "changed",
    [
        {"pbkdf2salt": "not base64"},
        {"pbkdf2salt": True},
        {"pbkdf2salt": ["AAAA"]},
        {"pbkdf2salt": base64.b64encode(bytes(31)).decode()},
        {"protocolVersion": 3},
    ],
)
def test_a_salt_we_cannot_use_is_never_replaced(changed: dict[str, object]) -> None:
    for has_encrypted in (False, True):
        with pytest.raises(LivesyncIncompatible):
            salt_verdict(sync_parameters(bytes(32)) | changed, has_encrypted=has_encrypted)


@pytest.mark.parametrize(
    ("parameters", "has_encrypted", "verdict"),
    [
        (sync_parameters(bytes(32)), False, SaltVerdict.USE),
        (sync_parameters(bytes(32)), True, SaltVerdict.USE),
        (None, False, SaltVerdict.CREATE),
        (None, True, SaltVerdict.REFUSE),
        ({"protocolVersion": 1}, False, SaltVerdict.WAIT),
        ({"protocolVersion": 1, "pbkdf2salt": ""}, False, SaltVerdict.WAIT),
        ({"protocolVersion": 1}, True, SaltVerdict.REFUSE),
    ],
)
def test_a_salt_is_made_only_where_nothing_needs_another(
    parameters: dict[str, object] | None, has_encrypted: bool, verdict: SaltVerdict
) -> None:
    assert salt_verdict(parameters, has_encrypted=has_encrypted) is verdict
