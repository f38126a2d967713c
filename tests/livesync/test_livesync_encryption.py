import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.livesync.vectors import VECTORS

from obsidian_rag.errors import LivesyncIncompatible, LivesyncPassphrase, LivesyncUnreadable
from obsidian_rag.livesync.codec.document_encryption import DocumentCipher, looks_encrypted
from obsidian_rag.livesync.codec.encryption import (
    decrypt,
    decrypt_with_own_salt,
    encrypt,
    from_base64,
    master_key,
    open_sealed,
)
from obsidian_rag.livesync.codec.legacy_encryption import LegacyCipher, is_encrypted, iterations
from obsidian_rag.livesync.codec.tweaks import Tweaks

E2EE: dict[str, list[Any]] = VECTORS["e2ee"]
SALT = bytes(range(32))
MASTER = master_key("test", SALT)
V1 = Tweaks(encrypt=True, e2ee_algorithm="")
V2 = Tweaks(encrypt=True)
FORCE_V1 = Tweaks(encrypt=True, e2ee_algorithm="forceV1")
CHUNK = {"_id": "h:+abc", "type": "leaf", "data": "text"}
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def _drawing(*parts: bytes) -> Callable[[int], bytes]:
    """Randomness that is known beforehand."""
    left = list(parts)

    def draw(size: int) -> bytes:
        assert len(left[0]) == size
        return left.pop(0)

    return draw


def _drawn(encrypted: str) -> list[bytes]:
    """What was drawn to encrypt a text, in our order."""
    if encrypted.startswith("%="):
        data = base64.b64decode(encrypted[2:])
        return [data[:12], data[12:44]]
    return [bytes.fromhex(encrypted[33:65]), bytes.fromhex(encrypted[1:33])]


def _tweaks(vector: dict[str, Any]) -> Tweaks:
    return Tweaks(
        encrypt=True,
        use_path_obfuscation=True,
        e2ee_algorithm=vector["E2EEAlgorithm"],
        use_dynamic_iteration_count=vector["useDynamicIterationCount"],
    )


def _cipher(tweaks: Tweaks, passphrase: str = "test") -> DocumentCipher:
    return DocumentCipher(tweaks, passphrase, SALT)


@pytest.mark.parametrize("vector", E2EE["iterations"])
def test_v1_hashes_as_often_as_livesync(vector: dict[str, Any]) -> None:
    count = iterations(vector["passphrase"], is_dynamic=vector["dynamic"])
    assert count == vector["iterations"]


@pytest.mark.parametrize("vector", E2EE["legacy"])
def test_every_old_form_of_livesync_is_read(vector: dict[str, Any]) -> None:
    cipher = LegacyCipher(vector["passphrase"], is_dynamic=vector.get("dynamic", False))
    assert cipher.decrypt(vector["cipher"]) == vector["plain"]


@pytest.mark.parametrize("vector", [each for each in E2EE["legacy"] if each["format"] == "%"])
def test_v1_is_written_as_livesync_writes_it(vector: dict[str, Any]) -> None:
    cipher = LegacyCipher(
        vector["passphrase"],
        is_dynamic=vector["dynamic"],
        draw=_drawing(*_drawn(vector["cipher"])),
    )
    assert cipher.encrypt(vector["plain"]) == vector["cipher"]
    assert is_encrypted(vector["cipher"])


@pytest.mark.parametrize("vector", E2EE["obfuscatePathV1"])
def test_v1_paths_are_the_same_on_every_device(vector: dict[str, Any]) -> None:
    cipher = LegacyCipher(vector["passphrase"], is_dynamic=vector["dynamic"])
    assert cipher.encrypt_path(vector["path"]) == vector["obfuscated"]
    assert cipher.decrypt(vector["obfuscated"]) == vector["path"]


@pytest.mark.parametrize("vector", E2EE["hkdf"])
def test_v2_is_read_and_written_as_livesync_does(vector: dict[str, Any]) -> None:
    master = master_key(vector["passphrase"], base64.b64decode(vector["pbkdf2salt_b64"]))
    assert decrypt(vector["cipher"], master) == vector["plain"]
    iv, salt = bytes.fromhex(vector["iv_hex"]), bytes.fromhex(vector["hkdfSalt_hex"])
    assert encrypt(vector["plain"], master, iv=iv, salt=salt) == vector["cipher"]


@pytest.mark.parametrize("vector", E2EE["ephemeral"])
def test_texts_with_their_own_salt_are_read(vector: dict[str, Any]) -> None:
    assert decrypt_with_own_salt(vector["cipher"], vector["passphrase"]) == vector["plain"]


@pytest.mark.parametrize("vector", E2EE["docs"])
def test_whole_documents_are_read_and_written_as_livesync_does(vector: dict[str, Any]) -> None:
    encrypted, plain = vector["encrypted"], vector["plain"]
    salt = base64.b64decode(vector["pbkdf2salt_b64"])
    hidden = [
        encrypted.get("data"),
        *(kept["data"] for kept in encrypted.get("eden", {}).values()),
        encrypted.get("path", "").removeprefix("/\\:"),
    ]
    draws = [part for text in hidden if str(text).startswith("%") for part in _drawn(str(text))]
    cipher = DocumentCipher(_tweaks(vector), vector["passphrase"], salt, draw=_drawing(*draws, b""))
    assert cipher.encrypt(plain) == encrypted
    assert cipher.decrypt(encrypted) == plain
    assert looks_encrypted(encrypted) == (encrypted != plain)
    assert not looks_encrypted(plain)


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_v1_keeps_its_slow_key_and_never_its_iv(is_dynamic: bool) -> None:
    cipher = LegacyCipher("test", is_dynamic=is_dynamic)
    drawn = [_drawn(cipher.encrypt("text")) for _ in range(50)]
    assert len({salt for salt, _ in drawn}) == 1
    assert len({iv for _, iv in drawn}) == 50


def test_v2_draws_everything_anew() -> None:
    cipher = _cipher(V2)
    drawn = [_drawn(str(cipher.encrypt(CHUNK)["data"])) for _ in range(50)]
    assert len({iv for iv, _ in drawn}) == len({salt for _, salt in drawn}) == 50


def test_the_slow_keys_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    slow = hashlib.pbkdf2_hmac

    def counted(name: str, secret: bytes, salt: bytes, count: int, size: int) -> bytes:
        made.append(name)
        return slow(name, secret, salt, count, size)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", counted)
    old = E2EE["legacy"][0]
    legacy = LegacyCipher("never used before", is_dynamic=False)
    for use in (
        lambda: master_key("never used before", SALT),
        lambda: pytest.raises(LivesyncPassphrase, legacy.decrypt, old["cipher"]),
        lambda: legacy.encrypt_path("never used before"),
    ):
        use()
        assert made, "the key is a slow one"
        made.clear()
        use()
        assert made == []


@given(TEXT, st.sampled_from([V1, V2, FORCE_V1]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_what_is_encrypted_can_be_decrypted(text: str, tweaks: Tweaks, is_dynamic: bool) -> None:
    cipher = _cipher(replace(tweaks, use_dynamic_iteration_count=is_dynamic))
    chunk = CHUNK | {"data": text}
    encrypted = cipher.encrypt(chunk)
    assert encrypted["e_"] is True
    assert len(text) < 3 or text not in str(encrypted["data"])
    assert cipher.decrypt(encrypted) == chunk


@pytest.mark.parametrize("tweaks", [V1, V2, FORCE_V1])
def test_another_passphrase_is_told_from_damage(tweaks: Tweaks) -> None:
    encrypted = _cipher(tweaks).encrypt(CHUNK)
    with pytest.raises(LivesyncPassphrase):
        _cipher(tweaks, "Test").decrypt(encrypted)
    with pytest.raises(LivesyncUnreadable):
        _cipher(tweaks).decrypt(encrypted | {"data": str(encrypted["data"])[:-3]})


def test_another_salt_does_not_decrypt() -> None:
    encrypted = _cipher(V2).encrypt(CHUNK)
    with pytest.raises(LivesyncPassphrase):
        DocumentCipher(V2, "test", bytes(32)).decrypt(encrypted)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_changed_byte_is_noticed(data: st.DataObject) -> None:
    encrypted = encrypt("some text", MASTER, iv=bytes(12), salt=bytes(32))
    raw = bytearray(base64.b64decode(encrypted[2:]))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(LivesyncPassphrase):
        decrypt("%=" + base64.b64encode(raw).decode(), MASTER)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "%",
        "%=",
        "%=AAAA",
        "%=" + base64.b64encode(bytes(43)).decode(),
        "%=not base64",
        "%=日本",
        "%~",
        "%~00",
        "%" + "0" * 64,
        "%" + "g" * 64 + "AAAA",
        "%" + "0" * 64 + "A",
        "[]",
        '["","",""]',
        '["AAAA","00","00"]',
        "[" * 10_000,
        "plain text",
        "%$AAAA",
        "\ud800",
        "%=\ud800",
    ],
)
def test_what_is_in_no_known_form_is_unreadable(text: str) -> None:
    for tweaks in (V1, V2, FORCE_V1):
        with pytest.raises(LivesyncUnreadable):
            _cipher(tweaks).decrypt(CHUNK | {"data": text, "e_": True})
    with pytest.raises(LivesyncUnreadable):
        decrypt_with_own_salt(text, "test")


@pytest.mark.parametrize("data", [None, 1, True, ["a"], {"a": 1}])
def test_encrypted_data_that_is_no_text_is_unreadable(data: object) -> None:
    with pytest.raises(LivesyncUnreadable):
        _cipher(V2).decrypt(CHUNK | {"data": data, "e_": True})


def test_encrypted_bytes_that_are_no_text_are_unreadable() -> None:
    key, iv = bytes(32), bytes(12)
    with pytest.raises(LivesyncUnreadable):
        open_sealed(AESGCM(key).encrypt(iv, b"\xff\xfe", None), key, iv)


@pytest.mark.parametrize("plain", ["text", "5", '["text"]', '"text', "[" * 100_000])
def test_the_list_form_holds_a_text_in_json(plain: str) -> None:
    cipher = LegacyCipher("test", is_dynamic=True)

    def in_a_list(text: str) -> str:
        encrypted = cipher.encrypt(text)
        return f'["{encrypted[65:]}","{encrypted[1:33]}","{encrypted[33:65]}"]'

    assert cipher.decrypt(in_a_list('"te\\u0078t"')) == "text"
    with pytest.raises(LivesyncUnreadable):
        cipher.decrypt(in_a_list(plain))


def test_half_characters_cannot_be_encrypted() -> None:
    for tweaks in (V1, V2):
        with pytest.raises(LivesyncUnreadable):
            _cipher(tweaks).encrypt(CHUNK | {"data": "a\ud800"})
        with pytest.raises(LivesyncPassphrase):
            _cipher(tweaks, "a\ud800")
    with pytest.raises(LivesyncUnreadable):
        LegacyCipher("test", is_dynamic=False).encrypt_path("\udfff")
    with pytest.raises(LivesyncPassphrase):
        master_key("\ud800", SALT)


def test_a_database_of_many_ages_is_read() -> None:
    old, new = _cipher(V1), _cipher(V2)
    dynamic = _cipher(replace(V1, use_dynamic_iteration_count=True))
    assert new.decrypt(old.encrypt(CHUNK)) == CHUNK
    assert old.decrypt(new.encrypt(CHUNK)) == CHUNK
    assert dynamic.decrypt(old.encrypt(CHUNK)) == CHUNK, "the setting is younger than the chunk"
    assert new.decrypt(CHUNK) == CHUNK, "written before encryption was turned on"
    times = {"ctime": 1, "mtime": 2, "size": 1, "children": ["h:+1"]}
    entry = {"_id": "f:1", "path": "a.md", "eden": {"h:+1": {"data": "x", "epoch": 1}}, **times}
    assert new.decrypt(old.encrypt(entry)) == entry
    assert old.decrypt(new.encrypt(entry)) == entry
    assert new.decrypt(entry) == entry


def test_eden_of_two_ages_is_put_together() -> None:
    old = _cipher(V1).encrypt({"_id": "a.md", "eden": {"h:+1": {"data": "x", "epoch": 1}}})
    new = _cipher(V2).encrypt({"_id": "a.md", "eden": {"h:+2": {"data": "y", "epoch": 1}}})
    assert isinstance(old["eden"], dict)
    assert isinstance(new["eden"], dict)
    both = _cipher(V2).decrypt({"_id": "a.md", "eden": old["eden"] | new["eden"]})
    assert both["eden"] == {
        "h:+1": {"data": "x", "epoch": 1},
        "h:+2": {"data": "y", "epoch": 1},
    }


def test_forced_v1_does_not_read_v2() -> None:
    with pytest.raises(LivesyncUnreadable):
        _cipher(FORCE_V1).decrypt(_cipher(V2).encrypt(CHUNK))


def test_a_chunk_that_was_encrypted_twice_can_be_opened() -> None:
    cipher = _cipher(V2)
    once = _cipher(V1).encrypt(CHUNK)["data"]
    found = cipher.decrypt(cipher.encrypt(CHUNK | {"data": once}))
    assert cipher.decrypt_again(str(found["data"])) == "text"
    assert cipher.decrypt_again("text") == "text"
    foreign = LegacyCipher("other", is_dynamic=False).encrypt("text")
    assert cipher.decrypt_again(foreign) == foreign


def test_v2_needs_the_salt_of_the_database() -> None:
    with pytest.raises(LivesyncIncompatible):
        DocumentCipher(V2, "test", None)
    old = DocumentCipher(V1, "test", None)
    assert old.decrypt(old.encrypt(CHUNK)) == CHUNK
    with pytest.raises(LivesyncPassphrase):
        old.decrypt(_cipher(V2).encrypt(CHUNK))


@pytest.mark.parametrize("hidden", ["[]", "1", "not JSON", "[" * 100_000, '{"a":' * 100_000])
def test_hidden_metadata_and_eden_that_are_no_objects_are_unreadable(hidden: str) -> None:
    sealed = _cipher(V2).encrypt(CHUNK | {"data": hidden})["data"]
    for document in (
        {"_id": "f:1", "path": f"/\\:{sealed}"},
        {"_id": "a.md", "eden": {"h:++encrypted-hkdf": {"data": sealed}}},
    ):
        with pytest.raises(LivesyncUnreadable):
            _cipher(V2).decrypt(document)


def test_hidden_metadata_changes_nothing_but_metadata() -> None:
    sealed = _cipher(V2).encrypt(CHUNK | {"data": '{"path":"a.md","_id":"b.md","type":"leaf"}'})
    document = {"_id": "f:1", "type": "plain", "path": f"/\\:{sealed['data']}"}
    assert _cipher(V2).decrypt(document) == document | {"path": "a.md"}


def test_only_standard_base64_is_taken() -> None:
    assert from_base64("AAE=") == b"\0\1"
    for text in ("AAE", "AA E=", "AAE=\n", "_-==", "é"):
        with pytest.raises(LivesyncUnreadable):
            from_base64(text)
