"""End-to-end encryption V2: one slow key per database, and a fast derived key per text."""

import base64
import hashlib
import hmac
from functools import lru_cache

from obsidian_rag.errors import LivesyncPassphrase, LivesyncUnreadable

PREFIX = "%="
OWN_SALT_PREFIX = "%$"
IV_BYTES = 12
SALT_BYTES = 32
_ITERATIONS = 310_000
_KEY_BYTES = 32


@lru_cache(maxsize=16)
def master_key(passphrase: str, salt: bytes) -> bytes:
    """The key of a database; deriving it takes about a tenth of a second, once.

    Raises:
        LivesyncPassphrase: the passphrase is not valid text.
    """
    return hashlib.pbkdf2_hmac(
        "sha256", passphrase_bytes(passphrase), salt, _ITERATIONS, _KEY_BYTES
    )


def encrypt(text: str, master: bytes, *, iv: bytes, salt: bytes) -> str:
    """Encrypt a text; `iv` and `salt` must be fresh every time.

    Raises:
        LivesyncUnreadable: the text cannot be encoded as UTF-8.
    """
    sealed = seal(text_bytes(text), _text_key(master, salt), iv)
    return PREFIX + base64.b64encode(iv + salt + sealed).decode("ascii")


def decrypt(encrypted: str, master: bytes) -> str:
    """Undo `encrypt`.

    Raises:
        LivesyncPassphrase: another key encrypted it.
        LivesyncUnreadable: it is not text in this form.
    """
    return _open(from_base64(encrypted.removeprefix(PREFIX)), master)


def decrypt_with_own_salt(encrypted: str, passphrase: str) -> str:
    """Decrypt the form that contains its database's salt, as setup URIs do.

    Raises:
        LivesyncPassphrase: another passphrase encrypted it.
        LivesyncUnreadable: it is not text in this form.
    """
    data = from_base64(encrypted.removeprefix(OWN_SALT_PREFIX))
    salt, rest = data[:SALT_BYTES], data[SALT_BYTES:]
    return _open(rest, master_key(passphrase, salt))


def seal(data: bytes, key: bytes, iv: bytes) -> bytes:
    """Encrypt with AES-GCM, as every version of the encryption does."""
    # Imported here: it is a large library, and most vaults are not synced.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key).encrypt(iv, data, None)


def open_sealed(sealed: bytes, key: bytes, iv: bytes) -> str:
    """Undo `seal`.

    Raises:
        LivesyncPassphrase: another key sealed it.
        LivesyncUnreadable: the content is not text.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(key).decrypt(iv, sealed, None).decode("utf-8")
    except InvalidTag:
        raise LivesyncPassphrase(
            "The passphrase does not decrypt what is in the database.",
            "Check the passphrase; after a rebuild of the database, fetch it again.",
        ) from None
    except UnicodeDecodeError:
        raise LivesyncUnreadable("What was encrypted is not text.") from None


def from_base64(text: str) -> bytes:
    """Decode standard base64, strictly.

    Raises:
        LivesyncUnreadable: it is not valid.
    """
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise LivesyncUnreadable("What should be base64 is not.") from None


def text_bytes(text: str) -> bytes:
    """The text as UTF-8.

    Raises:
        LivesyncUnreadable: it has a lone surrogate.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise LivesyncUnreadable("A text has half a character in it.") from None


def passphrase_bytes(passphrase: str) -> bytes:
    """The passphrase as UTF-8.

    Raises:
        LivesyncPassphrase: it has a lone surrogate.
    """
    try:
        return text_bytes(passphrase)
    except LivesyncUnreadable:
        raise LivesyncPassphrase(
            "The passphrase is not valid text.", "Type it again, in a UTF-8 terminal."
        ) from None


def _open(data: bytes, master: bytes) -> str:
    iv, salt = data[:IV_BYTES], data[IV_BYTES : IV_BYTES + SALT_BYTES]
    sealed = data[IV_BYTES + SALT_BYTES :]
    if len(salt) < SALT_BYTES:
        raise LivesyncUnreadable("What should be encrypted is too short.")
    return open_sealed(sealed, _text_key(master, salt), iv)


def _text_key(master: bytes, salt: bytes) -> bytes:
    # HKDF (RFC 5869) without info, for exactly one block of output.
    extracted = hmac.digest(salt, master, "sha256")
    return hmac.digest(extracted, b"\x01", "sha256")
