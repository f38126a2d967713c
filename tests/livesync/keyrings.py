"""Keyrings for tests: one in memory, one that is locked, and the certainty that there is none."""

from collections.abc import Iterator

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail
from keyring.errors import KeyringLocked, PasswordDeleteError


class MemoryKeyring(KeyringBackend):
    """A real keyring, as far as anybody can tell."""

    priority = 5

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # keyring has no types there
        self.kept: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError

    def _check(self) -> None:
        if self.is_locked:
            raise KeyringLocked("locked")


@pytest.fixture
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No keyring, here and in every process that is started: the developer's own is left alone."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())  # type: ignore[no-untyped-call]  # as above
    yield
    keyring.set_keyring(before)


@pytest.fixture
def memory_keyring(no_keyring: None) -> MemoryKeyring:
    """A keyring of this process."""
    made = MemoryKeyring()
    keyring.set_keyring(made)
    return made
