from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.livesync.vectors import VECTORS

from obsidian_rag.errors import LivesyncIncompatible, LivesyncPassphrase
from obsidian_rag.livesync.codec.tweaks import RECOMMENDED, Tweaks

DEFAULTS: dict[str, Any] = VECTORS["defaults"]
TEMPLATE: dict[str, Any] = DEFAULTS["TweakValuesTemplate"]
SHOULD_MATCH: dict[str, Any] = DEFAULTS["TweakValuesShouldMatchedTemplate"]


def test_our_defaults_are_those_of_livesync() -> None:
    published = {key: value for key, value in TEMPLATE.items() if key != "tweakModified"}
    assert Tweaks().to_settings() == published
    assert Tweaks.from_settings(DEFAULTS["DEFAULT_SETTINGS"]) == Tweaks()
    assert Tweaks.from_preferred({}) == Tweaks()


@pytest.mark.parametrize("preset", ["DEFAULT_SETTINGS", "PREFERRED_SETTING_SELF_HOSTED"])
def test_settings_come_back_unchanged(preset: str) -> None:
    settings = DEFAULTS["DEFAULT_SETTINGS"] | DEFAULTS[preset]
    tweaks = Tweaks.from_settings(settings)
    assert tweaks.to_settings() == {
        key: value for key, value in settings.items() if key in TEMPLATE
    }
    assert tweaks.custom_chunk_size == settings["customChunkSize"]


def _other(value: object) -> object:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else "other"


@pytest.mark.parametrize("key", sorted(SHOULD_MATCH))
def test_every_setting_that_should_match_is_compared(key: str) -> None:
    changed = Tweaks.from_preferred(TEMPLATE | {key: _other(TEMPLATE[key])})
    assert changed != Tweaks()
    assert changed.mismatches(Tweaks()) == Tweaks().mismatches(changed) == (key,)


@pytest.mark.parametrize("key", sorted(set(TEMPLATE) - set(SHOULD_MATCH)))
def test_no_other_setting_is_compared(key: str) -> None:
    changed = Tweaks.from_preferred(TEMPLATE | {key: _other(TEMPLATE[key])})
    assert changed.mismatches(Tweaks()) == ()


def test_what_a_device_never_heard_of_is_not_compared() -> None:
    old = Tweaks.from_preferred({"encrypt": True})
    ours = Tweaks(encrypt=True, use_eden=True, custom_chunk_size=60)
    assert old.mismatches(ours) == ours.mismatches(old) == ()
    assert old.mismatches(Tweaks()) == ("encrypt",)


def test_settings_that_came_later_had_one_value_before() -> None:
    assert Tweaks.from_preferred({"a": 1}).mismatches(Tweaks(e2ee_algorithm="")) == (
        "E2EEAlgorithm",
    )


def test_preferred_values_are_kept_to_the_letter() -> None:
    values = {"encrypt": True, "customChunkSize": 60.0, "newSetting": {"a": [1]}, "hashAlg": None}
    tweaks = Tweaks.from_preferred(values)
    assert tweaks.to_settings() == values
    assert tweaks.custom_chunk_size == 60
    assert tweaks.hash_alg == "xxhash64"
    assert replace(tweaks, encrypt=False).to_settings() == values | {"encrypt": False}


def test_of_a_devices_settings_only_tweaks_are_kept() -> None:
    tweaks = Tweaks.from_settings({"passphrase": "secret", "couchDB_PASSWORD": "secret"})
    assert "secret" not in str(tweaks.to_settings())
    assert "secret" not in repr(tweaks)
    assert set(tweaks.raw) == set()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("encrypt", "true"),
        ("encrypt", 1),
        ("hashAlg", 5),
        ("customChunkSize", "60"),
        ("customChunkSize", True),
        ("customChunkSize", float("nan")),
        ("minimumChunkSize", float("inf")),
        ("E2EEAlgorithm", ["v2"]),
    ],
)
def test_a_value_of_another_kind_is_refused(key: str, value: object) -> None:
    with pytest.raises(LivesyncIncompatible):
        Tweaks.from_preferred({key: value})


@pytest.mark.parametrize("version", [1, "1", True, [0]])
def test_ids_made_in_another_way_are_refused(version: object) -> None:
    assert Tweaks.from_preferred({"idDerivationVersion": 0}) == Tweaks()
    for read in (Tweaks.from_preferred, Tweaks.from_settings):
        with pytest.raises(LivesyncIncompatible):
            read({"idDerivationVersion": version})


@pytest.mark.parametrize("algorithm", ["v2", "", "forceV1"])
def test_every_known_encryption_is_supported(algorithm: str) -> None:
    tweaks = Tweaks(encrypt=True, use_path_obfuscation=True, e2ee_algorithm=algorithm)
    tweaks.check_supported("secret")
    for missing in (None, ""):
        with pytest.raises(LivesyncPassphrase):
            tweaks.check_supported(missing)


def test_what_we_could_not_write_is_refused() -> None:
    Tweaks(e2ee_algorithm="v3").check_supported(None)  # nothing is encrypted
    with pytest.raises(LivesyncIncompatible):
        Tweaks(encrypt=True, e2ee_algorithm="v3").check_supported("secret")
    with pytest.raises(LivesyncIncompatible):
        Tweaks(use_path_obfuscation=True).check_supported("secret")


@given(
    st.dictionaries(st.sampled_from([*TEMPLATE, "other"]), st.none() | st.booleans() | st.text())
)
def test_any_values_are_read_or_refused(values: dict[str, object]) -> None:
    try:
        tweaks = Tweaks.from_preferred(values)
    except LivesyncIncompatible:
        return
    assert tweaks.to_settings() == (values or Tweaks().to_settings())


def test_every_field_has_a_name_in_livesync() -> None:
    ours = {each.name for each in fields(Tweaks)} - {"raw"}
    assert len(ours) + len(RECOMMENDED) == len(TEMPLATE) - 1
