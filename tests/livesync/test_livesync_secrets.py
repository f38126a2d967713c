"""Secrets come back as they were given, are for their owner only, and are never shown."""

import json
import logging
import os
import stat
from pathlib import Path

import keyring
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyring.backends import chainer, fail, null
from tests.livesync.keyrings import MemoryKeyring

from obsidian_rag.errors import ConfigInvalid
from obsidian_rag.livesync.couchdb.remote import Jwt
from obsidian_rag.livesync.secrets import SECRETS_FILE, Place, Secrets, SecretStore

JWT = Jwt("HS256", "a2V5LW9mLXRva2Vucw==", "alice", "kid", 120)
SECRETS = Secrets("pass-w0rd", "päss phrase", {"CF-Access-Client-Secret": "header-secret"}, JWT)
SHOWN_NEVER = ("pass-w0rd", "päss phrase", "header-secret", JWT.key)


@pytest.fixture
def folder(home: Path) -> Path:
    home.mkdir(mode=0o700)
    return home


@pytest.mark.usefixtures("no_keyring")
def test_without_a_keyring_secrets_are_in_a_file_for_their_owner_only(folder: Path) -> None:
    os.umask(0)
    assert SecretStore(folder).put("remote", SECRETS) is Place.FILE
    file = folder / SECRETS_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SecretStore(folder).get("remote") == SECRETS
    assert [one.name for one in folder.iterdir()] == [SECRETS_FILE]


def test_with_a_keyring_no_secret_is_on_the_disk(
    folder: Path, memory_keyring: MemoryKeyring
) -> None:
    assert SecretStore(folder).put("remote", SECRETS) is Place.KEYRING
    assert len(memory_keyring.kept) == 1
    written = "".join(file.read_text() for file in folder.iterdir())
    assert [secret for secret in SHOWN_NEVER if secret in written] == []
    assert SecretStore(folder).get("remote") == SECRETS


@pytest.mark.parametrize("kind", [fail.Keyring, null.Keyring, chainer.ChainerBackend])
@pytest.mark.usefixtures("no_keyring")
def test_what_only_looks_like_a_keyring_does_not_count(
    folder: Path, kind: type[fail.Keyring]
) -> None:
    keyring.set_keyring(kind())
    assert SecretStore(folder).put("remote", SECRETS) is Place.FILE
    assert SecretStore(folder).get("remote") == SECRETS


def test_a_secret_goes_to_the_file_if_the_keyring_refuses_it(
    folder: Path, memory_keyring: MemoryKeyring
) -> None:
    memory_keyring.is_locked = True
    assert SecretStore(folder).put("remote", SECRETS) is Place.FILE
    assert SecretStore(folder).get("remote") == SECRETS


def test_a_keyring_that_forgets_does_not_count(
    folder: Path, memory_keyring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No mock of ours: some keyrings really take everything and keep nothing.
    monkeypatch.setattr(MemoryKeyring, "set_password", lambda *_: None)
    assert SecretStore(folder).put("remote", SECRETS) is Place.FILE
    assert memory_keyring.kept == {}


def test_a_locked_keyring_is_reported_with_the_next_step(
    folder: Path, memory_keyring: MemoryKeyring
) -> None:
    SecretStore(folder).put("remote", SECRETS)
    memory_keyring.is_locked = True
    with pytest.raises(ConfigInvalid) as caught:
        SecretStore(folder).get("remote")
    assert "--no-keyring" in caught.value.suggestion
    keyring.set_keyring(fail.Keyring())  # type: ignore[no-untyped-call]  # keyring has no types
    with pytest.raises(ConfigInvalid):
        SecretStore(folder).get("remote")


def test_the_file_can_be_asked_for_and_then_leaves_nothing_in_the_keyring(
    folder: Path, memory_keyring: MemoryKeyring
) -> None:
    store = SecretStore(folder)
    store.put("remote", SECRETS)
    assert store.put("remote", SECRETS, may_use_keyring=False) is Place.FILE
    assert memory_keyring.kept == {}
    assert store.get("remote") == SECRETS


def test_databases_do_not_share_secrets(folder: Path, memory_keyring: MemoryKeyring) -> None:
    store = SecretStore(folder)
    store.put("one", Secrets(password="1"))
    store.put("two", Secrets(password="2"), may_use_keyring=False)
    assert (store.get("one"), store.get("two")) == (Secrets(password="1"), Secrets(password="2"))
    assert store.get("three") is None
    store.forget("one")
    store.forget("three")
    assert (store.get("one"), store.get("two")) == (None, Secrets(password="2"))
    assert memory_keyring.kept == {}


def test_the_keyring_is_not_opened_without_a_stored_secret(
    folder: Path, memory_keyring: MemoryKeyring
) -> None:
    memory_keyring.is_locked = True
    assert SecretStore(folder).get("remote") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"remote": 5}',
        '{"remote": {}}',
        '{"remote": {"password": 1, "passphrase": null, "headers": {}, "jwt": null}}',
        '{"remote": {"password": null, "passphrase": null, "headers": [], "jwt": null}}',
        '{"remote": {"password": null, "passphrase": null, "headers": {}, "jwt": {"x": 1}}}',
    ],
)
def test_a_damaged_file_is_reported_without_quoting_it(folder: Path, text: str) -> None:
    (folder / SECRETS_FILE).write_text(text)
    with pytest.raises(ConfigInvalid) as caught:
        SecretStore(folder).get("remote")
    assert caught.value.suggestion


def test_a_damaged_keyring_entry_is_reported(folder: Path, memory_keyring: MemoryKeyring) -> None:
    SecretStore(folder).put("remote", SECRETS)
    (place,) = memory_keyring.kept
    for text in ("pass-w0rd", "[]"):
        memory_keyring.kept[place] = text
        with pytest.raises(ConfigInvalid) as caught:
            SecretStore(folder).get("remote")
        assert text not in caught.value.message


@pytest.mark.usefixtures("no_keyring")
def test_an_unreadable_file_is_reported(folder: Path) -> None:
    (folder / SECRETS_FILE).mkdir()
    with pytest.raises(ConfigInvalid):
        SecretStore(folder).get("remote")


def test_no_secret_is_shown_or_logged(
    folder: Path, memory_keyring: MemoryKeyring, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = SecretStore(folder)
    store.put("remote", SECRETS)
    shown = f"{SECRETS!r} {SECRETS} {store!r} {store.get('remote')!r} {caplog.text}"
    assert [secret for secret in SHOWN_NEVER if secret in shown] == []


TEXT = st.text() | st.none()


@given(TEXT, TEXT, st.dictionaries(st.text(), st.text()))
def test_whatever_was_kept_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    password: str | None,
    passphrase: str | None,
    headers: dict[str, str],
) -> None:
    folder = tmp_path_factory.mktemp("secrets")
    given_secrets = Secrets(password, passphrase, headers)
    SecretStore(folder).put("remote", given_secrets, may_use_keyring=False)
    assert SecretStore(folder).get("remote") == given_secrets
    json.loads((folder / SECRETS_FILE).read_text())
