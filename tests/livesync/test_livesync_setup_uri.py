import contextlib
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.livesync.vectors import VECTORS

from obsidian_rag.errors import (
    ConfigInvalid,
    InvalidArgument,
    LivesyncIncompatible,
    LivesyncPassphrase,
    ObsidianRagError,
)
from obsidian_rag.livesync.codec.legacy_encryption import LegacyCipher
from obsidian_rag.livesync.setup_uri import (
    DEFAULTS,
    Connection,
    decode_settings_qr,
    decode_setup_uri,
    parse_connection_string,
)

QR: dict[str, Any] = VECTORS["settingsQR"]
LIVESYNC_DEFAULTS: dict[str, Any] = VECTORS["defaults"]["DEFAULT_SETTINGS"]
SETTINGS = {
    "couchDB_URI": "https://couch.example.com",
    "couchDB_USER": "alice",
    "couchDB_PASSWORD": "p@ss:w/ord",
    "couchDB_DBNAME": "obsidiannotes",
}


def _setup_uri(plain: str) -> str:
    """A setup URI of the old form, which is quick to make."""
    encrypted = LegacyCipher("setup", is_dynamic=True).encrypt(plain)
    return f"obsidian://setuplivesync?settings={quote(encrypted, safe='')} "


@pytest.mark.parametrize("vector", VECTORS["setupURI"])
def test_setup_uris_of_livesync_are_read(vector: dict[str, Any]) -> None:
    settings = decode_setup_uri(vector["uri"], vector["passphrase"])
    assert settings == {key: vector["decoded"].get(key, DEFAULTS[key]) for key in DEFAULTS}


@pytest.mark.parametrize("vector", VECTORS["setupURI"])
def test_a_setup_uri_needs_its_passphrase(vector: dict[str, Any]) -> None:
    for passphrase in (None, "", "wrong", "\ud800"):
        with pytest.raises(LivesyncPassphrase):
            decode_setup_uri(vector["uri"], passphrase)


def test_what_a_setup_uri_leaves_out_has_livesyncs_default() -> None:
    for key, value in DEFAULTS.items():
        assert value == LIVESYNC_DEFAULTS.get(key, value), key
    assert set(DEFAULTS) - set(LIVESYNC_DEFAULTS) == {
        "handleFilenameCaseSensitive",
        "idDerivationVersion",
    }


def test_a_qr_code_of_livesync_is_read() -> None:
    settings = decode_setup_uri(QR["uri"], None)
    assert settings == settings | QR["decoded_subset"]
    assert decode_settings_qr(QR["data"]) == decode_settings_qr(quote(QR["data"]))
    assert set(settings) == set(DEFAULTS)


@pytest.mark.parametrize("key", sorted(set(QR["keyIndex"]) & set(DEFAULTS)))
def test_every_setting_we_use_has_its_place_in_a_qr_code(key: str) -> None:
    values = "n" * QR["keyIndex"][key] + "V6marked"
    assert decode_settings_qr(values) == {key: "marked"}


@pytest.mark.parametrize("encoded", QR["primitives"])
def test_every_kind_of_value_in_a_qr_code_is_read(encoded: str) -> None:
    expected = [None, None, True, False, 0, 1, -1, 1.5, "", "abc", "日本", ["a", 1], {"a": 1}]
    for place, key in (
        (0, "remoteType"),
        (2, "couchDB_URI"),
        (9, "passphrase"),
        (12, "batch_size"),
    ):
        found = decode_settings_qr(encoded).get(key)
        assert found == expected[place]
        assert type(found) is type(expected[place])


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        ("A1z", 35),
        ("A3-zz", -1295),
        ("B0210", 36),
        ("a31.5", 1.5),
        ("a51e+21", 10**21),
        ("a15", 5),
        ("E000011", 1),
        ("V2\U0001f600", "\U0001f600"),
        ("X001a", "a"),
        ("v4_A11", [1]),
        ("v1_", []),
        ("v2_u", [None]),
        ("v1^", {}),
        ("v5^V1at", {"a": True}),
        ("v4null", None),
    ],
)
def test_values_in_a_qr_code(encoded: str, value: object) -> None:
    assert decode_settings_qr(encoded).get("remoteType") == value


@pytest.mark.parametrize(
    "encoded",
    [
        "V",
        "V5abc",
        "Q1a",
        "V-1",
        "A1!",
        "A1 ",
        "A2_1",
        "A0",
        "a3nan",
        "a31_0",
        "v1{",
        "v2^V",
        "v4^V1a",
        "%ff",
        "V1\ud800",
        "W0003",
        "W-1",
        "W-3",
        "V1%ff",
        "v3_A1",
        "z00zzz" + "[" * 46655,
    ],
)
def test_a_damaged_qr_code_is_refused(encoded: str) -> None:
    with pytest.raises(InvalidArgument):
        decode_setup_uri(f"obsidian://setuplivesync?settingsQR={encoded}", None)


def test_a_qr_code_cannot_nest_for_ever() -> None:
    def nested(depth: int) -> str:
        encoded = "t"
        for _ in range(depth):
            inner = f"_{encoded}"
            digits = _base_36(len(inner))
            encoded = f"{'vwxyz'[len(digits) - 1]}{digits}{inner}"
        return encoded

    assert decode_settings_qr(nested(8)) == {"remoteType": [[[[[[[[True]]]]]]]]}
    for depth in (9, 3000):
        with pytest.raises(InvalidArgument):
            decode_settings_qr(nested(depth))


def _base_36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


@given(st.text())
def test_any_text_is_a_qr_code_or_refused(encoded: str) -> None:
    with contextlib.suppress(InvalidArgument):
        assert set(decode_settings_qr(encoded)) <= set(DEFAULTS)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "https://example.com",
        "obsidian://setuplivesync",
        "obsidian://setuplivesync?settings",
        "obsidian://open?settings=%25%24AAAA",
        "obsidian://setuplivesync?settings=",
        "obsidian://setuplivesync?settings=%25%24AAAA",
        "obsidian://setuplivesync?settings=plain",
        "obsidian://setuplivesync?settings=%25%3DAAAA",
    ],
)
def test_anything_but_a_setup_uri_is_refused(uri: str) -> None:
    with pytest.raises(InvalidArgument):
        decode_setup_uri(uri, "setup")


@pytest.mark.parametrize("plain", ["", "[]", "not JSON", "[" * 100_000, "1" * 5000])
def test_a_setup_uri_without_settings_is_refused(plain: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        decode_setup_uri(_setup_uri(plain), "setup")
    assert caught.value.__cause__ is None


def test_a_setup_uri_gives_only_what_we_use() -> None:
    uri = _setup_uri(json.dumps(SETTINGS | {"P2P_passphrase": "secret", "encrypt": None}))
    assert decode_setup_uri(f"\n {uri}\n", "setup") == dict(DEFAULTS) | SETTINGS


@pytest.mark.parametrize("vector", VECTORS["connectionString"])
def test_connection_strings_of_livesync_are_read(vector: dict[str, Any]) -> None:
    expected = dict(vector["parsed"]["settings"])
    del expected["useRequestAPI"]  # of no use outside Obsidian
    assert parse_connection_string(vector["uri"]) == expected


def test_a_connection_string_can_say_everything() -> None:
    found = parse_connection_string(
        "sls+http://%C3%A4:%25@[::1]:5984/?db=notes&headers=A%3A+b%0AC%3A+d&useJWT=true"
        "&jwtAlg=ES256&jwtKey=key&jwtKid=kid&jwtSub=sub&jwtExp=7"
    )
    assert found == {
        "couchDB_URI": "http://[::1]:5984",
        "couchDB_USER": "ä",
        "couchDB_PASSWORD": "%",
        "couchDB_DBNAME": "notes",
        "couchDB_CustomHeaders": "A: b\nC: d",
        "useJWT": True,
        "jwtAlgorithm": "ES256",
        "jwtKey": "key",
        "jwtKid": "kid",
        "jwtSub": "sub",
        "jwtExpDuration": 7,
    }


@pytest.mark.parametrize("uri", ["sls+s3://a:b@host/?bucket=x", "sls+p2p://room", "sls+://x"])
def test_a_connection_to_something_else_is_refused(uri: str) -> None:
    with pytest.raises(LivesyncIncompatible):
        parse_connection_string(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "https://host/?db=x",
        "sls+https",
        "sls+https:",
        "sls+https://",
        "sls+https://[x/",
        "sls+https://host:x/",
    ],
)
def test_anything_but_a_connection_string_is_refused(uri: str) -> None:
    with pytest.raises(InvalidArgument):
        parse_connection_string(uri)


@given(st.text().map("sls+https://".__add__) | st.text())
def test_any_text_is_a_connection_string_or_refused(uri: str) -> None:
    try:
        parse_connection_string(uri)
    except (InvalidArgument, LivesyncIncompatible) as error:
        assert len(uri) < 12 or uri not in error.message


def test_a_connection_has_all_it_needs() -> None:
    connection = Connection.from_settings(
        SETTINGS
        | {"encrypt": True, "passphrase": "phrase", "customChunkSize": 60}
        | {"couchDB_CustomHeaders": "CF-Id: one\nCF-Secret: two: three\n"}
    )
    remote = connection.remote
    assert (remote.url, remote.database) == ("https://couch.example.com", "obsidiannotes")
    assert (remote.user, remote.password) == ("alice", "p@ss:w/ord")
    assert remote.headers == {"CF-Id": "one", "CF-Secret": "two: three"}
    assert remote.jwt is None
    assert connection.passphrase == "phrase"
    assert connection.tweaks.encrypt
    assert connection.tweaks.custom_chunk_size == 60


def test_a_connection_can_sign_tokens() -> None:
    jwt = {"useJWT": True, "jwtAlgorithm": "HS256", "jwtKey": "a2V5", "jwtSub": "me"}
    found = Connection.from_settings(SETTINGS | jwt | {"jwtExpDuration": 7}).remote.jwt
    assert found is not None
    assert (found.algorithm, found.key, found.subject) == ("HS256", "a2V5", "me")
    assert (found.key_id, found.lifetime_s) == (None, 7 * 60)
    for odd in (0, -1, "5", 10**9):
        found = Connection.from_settings(SETTINGS | jwt | {"jwtExpDuration": odd}).remote.jwt
        assert found is not None
        assert found.lifetime_s == 5 * 60


def test_no_secret_is_ever_shown() -> None:
    secrets = {
        "couchDB_PASSWORD": "SECRET",
        "passphrase": "SECRET",
        "couchDB_CustomHeaders": "X: SECRET",
        "jwtKey": "SECRET",
    }
    connection = Connection.from_settings(
        SETTINGS | secrets | {"useJWT": True, "jwtAlgorithm": "HS256", "encrypt": True}
    )
    assert "SECRET" not in repr(connection)
    assert "SECRET" not in str(connection)
    inside = Connection.from_settings(SETTINGS | {"couchDB_URI": "https://a:SECRET@host:1/x/"})
    assert "SECRET" not in repr(inside)
    assert (inside.remote.url, inside.remote.user) == ("https://host:1/x", "alice")


def test_a_login_inside_the_address_is_used() -> None:
    remote = Connection.from_settings(
        {"couchDB_URI": "https://%C3%A4:b%20c@Host", "couchDB_DBNAME": "notes"}
    ).remote
    assert (remote.url, remote.user, remote.password) == ("https://host", "ä", "b c")
    nobody = Connection.from_settings({"couchDB_URI": "http://h", "couchDB_DBNAME": "n"}).remote
    assert (nobody.user, nobody.password) == (None, None)


def test_the_active_one_of_several_connections_is_used() -> None:
    several = {
        "remoteConfigurations": {
            "one": {"uri": "sls+https://a:b@one.example.com/?db=first"},
            "two": {"uri": "sls+https://c:d@two.example.com/?db=second"},
            "three": {"uri": "sls+s3://c:d@three.example.com/?bucket=third"},
        }
    }
    remote = Connection.from_settings(several | {"activeConfigurationId": "two"}).remote
    assert (remote.url, remote.database) == ("https://two.example.com", "second")
    assert (remote.user, remote.password) == ("c", "d")
    plain = Connection.from_settings(SETTINGS | several | {"activeConfigurationId": "two"}).remote
    assert plain.database == "obsidiannotes", "the plain settings repeat the active connection"
    with pytest.raises(LivesyncIncompatible):
        Connection.from_settings(several | {"activeConfigurationId": "three"})
    odd: object
    for odd in ("four", "", None, ["one"], {}):
        with pytest.raises(InvalidArgument):
            Connection.from_settings(several | {"activeConfigurationId": odd})


@pytest.mark.parametrize("kind", ["MINIO", "ONLY_P2P", "WEBDAV"])
def test_other_servers_are_refused(kind: str) -> None:
    with pytest.raises(LivesyncIncompatible):
        Connection.from_settings(SETTINGS | {"remoteType": kind})


@pytest.mark.parametrize(
    "changed",
    [
        {"couchDB_URI": ""},
        {"couchDB_URI": "ftp://host"},
        {"couchDB_URI": "https://"},
        {"couchDB_URI": "https://host:port"},
        {"couchDB_URI": "https://[host"},
        {"couchDB_URI": 5},
        {"couchDB_DBNAME": ""},
        {"couchDB_DBNAME": ["notes"]},
        {"couchDB_USER": True},
        {"couchDB_CustomHeaders": "SECRET"},
        {"couchDB_CustomHeaders": "A b: SECRET"},
        {"passphrase": 5},
        {"remoteType": 5},
    ],
)
def test_settings_that_cannot_be_used_are_refused(changed: dict[str, object]) -> None:
    with pytest.raises((ConfigInvalid, InvalidArgument)) as caught:
        Connection.from_settings(SETTINGS | changed)
    assert "SECRET" not in caught.value.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted(DEFAULTS)), JSON))
def test_any_settings_are_used_or_refused(settings: dict[str, object]) -> None:
    try:
        connection = Connection.from_settings(SETTINGS | settings)
    except ObsidianRagError:
        return
    assert connection.remote.url.startswith("http")
