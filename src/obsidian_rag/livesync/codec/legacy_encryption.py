"""End-to-end encryption V1: reads three forms, and writes the one still in use."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable
from functools import lru_cache

from obsidian_rag.errors import LivesyncPassphrase, LivesyncUnreadable
from obsidian_rag.livesync.codec.encryption import (
    from_base64,
    open_sealed,
    passphrase_bytes,
    seal,
    text_bytes,
)

_STATIC_ITERATIONS = 100_000
_IV_BYTES = 16
_SALT_BYTES = 16
_KEY_BYTES = 32
_FIXED_SALT_SEED = b"fancySyncForYou!"
_HEX_32 = "([0-9a-fA-F]{32})"
_BASE64 = "([A-Za-z0-9+/]+={0,2})"
_PERCENT = re.compile(f"%{_HEX_32}{_HEX_32}{_BASE64}")
_TILDE = re.compile(f"%~([0-9a-fA-F]{{24}}){_BASE64}")
_LIST = re.compile(rf'\["{_BASE64}","{_HEX_32}","{_HEX_32}"\]')


class LegacyCipher:
    """Encrypts with one passphrase: one salt, as keys are slow, and a fresh IV each time."""

    def __init__(
        self,
        passphrase: str,
        *,
        is_dynamic: bool,
        draw: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._secret = passphrase_bytes(passphrase)
        self._iterations = iterations(passphrase, is_dynamic=is_dynamic)
        self._draw = draw
        self._salt: bytes | None = None

    def encrypt(self, text: str) -> str:
        """Encrypt a text.

        Raises:
            LivesyncUnreadable: it cannot be encoded as UTF-8.
        """
        # Two threads may both draw a salt: either is fine.
        salt = self._salt or self._draw(_SALT_BYTES)
        self._salt = salt
        return self._encrypt(text_bytes(text), self._draw(_IV_BYTES), salt)

    def encrypt_path(self, path: str) -> str:
        """Encrypt a path deterministically.

        Raises:
            LivesyncUnreadable: it cannot be encoded as UTF-8.
        """
        data = text_bytes(path)
        digest = hashlib.sha256(data + self._secret).digest()
        return self._encrypt(data, digest[_SALT_BYTES:], digest[:_SALT_BYTES])

    def decrypt(self, encrypted: str) -> str:
        """Decrypt any of the three forms.

        Raises:
            LivesyncPassphrase: another passphrase encrypted it.
            LivesyncUnreadable: it is in none of the forms.
        """
        if found := _PERCENT.fullmatch(encrypted):
            iv, salt, sealed = found.groups()
            return self._open_with_salt(sealed, iv, salt)
        if found := _TILDE.fullmatch(encrypted):
            iv, sealed = found.groups()
            key = _fixed_salt_key(self._secret)
            return open_sealed(from_base64(sealed), key, bytes.fromhex(iv))
        if found := _LIST.fullmatch(encrypted):
            sealed, iv, salt = found.groups()
            return _json_text(self._open_with_salt(sealed, iv, salt))
        raise LivesyncUnreadable("What should be encrypted is not.")

    def _encrypt(self, data: bytes, iv: bytes, salt: bytes) -> str:
        key = _key(self._secret, salt, self._iterations)
        sealed = seal(data, key, iv)
        return f"%{iv.hex()}{salt.hex()}{base64.b64encode(sealed).decode('ascii')}"

    def _open_with_salt(self, sealed: str, iv_hex: str, salt_hex: str) -> str:
        data, iv, salt = from_base64(sealed), bytes.fromhex(iv_hex), bytes.fromhex(salt_hex)
        try:
            return open_sealed(data, _key(self._secret, salt, self._iterations), iv)
        except LivesyncPassphrase:
            # A document may be older than the database's setting.
            if self._iterations == _STATIC_ITERATIONS:
                raise
        return open_sealed(data, _key(self._secret, salt, _STATIC_ITERATIONS), iv)


def is_encrypted(text: str) -> bool:
    """Whether a text has the form that is still in use."""
    return _PERCENT.fullmatch(text) is not None


def iterations(passphrase: str, *, is_dynamic: bool) -> int:
    """V1's iteration count; the dynamic one is lower for a long passphrase."""
    if not is_dynamic:
        return _STATIC_ITERATIONS
    missing = 15 - len(passphrase.encode("utf-16-le")) // 2
    return max(missing, 0) * 1000 + 121 - missing


@lru_cache(maxsize=8192)
def _key(secret: bytes, salt: bytes, count: int) -> bytes:
    digest = hashlib.sha256(secret).digest()
    return hashlib.pbkdf2_hmac("sha256", digest, salt, count, _KEY_BYTES)


@lru_cache(maxsize=16)
def _fixed_salt_key(secret: bytes) -> bytes:
    salt = hashlib.sha256(secret + _FIXED_SALT_SEED).digest()[:_SALT_BYTES]
    return hashlib.pbkdf2_hmac("sha256", secret, salt, _STATIC_ITERATIONS, _KEY_BYTES)


def _json_text(text: str) -> str:
    try:
        value = json.loads(text) if text.startswith('"') else None
    except ValueError:
        value = None
    if not isinstance(value, str):
        raise LivesyncUnreadable("What was encrypted is not text.")
    return value
