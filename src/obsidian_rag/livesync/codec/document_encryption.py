"""Encrypt and decrypt whole documents: chunk data, hidden paths and metadata, and eden.

The id shows what is encrypted: `h:+…` and `syncinfo` hold encrypted data, `f:…` hide their path.
Reading accepts every form, as old devices leave old forms behind.
"""

import json
import os
from collections.abc import Callable, Mapping

from obsidian_rag.errors import LivesyncIncompatible, LivesyncPassphrase, LivesyncUnreadable
from obsidian_rag.livesync.codec import encryption
from obsidian_rag.livesync.codec.legacy_encryption import LegacyCipher, is_encrypted
from obsidian_rag.livesync.codec.path_ids import ENCRYPTED_CHUNK_PREFIX, OBFUSCATED_PREFIX
from obsidian_rag.livesync.codec.tweaks import FORCE_V1, V2, Tweaks

Document = Mapping[str, object]

_SYNC_INFO = "syncinfo"
_METADATA_PREFIX = "/\\:"
_METADATA = ("path", "mtime", "ctime", "size", "children")
_EDEN_V1 = "h:++encrypted"
_EDEN_V2 = "h:++encrypted-hkdf"
_EDEN_EPOCH = 999999


class DocumentCipher:
    """Encrypts and decrypts the documents of one database."""

    def __init__(
        self,
        tweaks: Tweaks,
        passphrase: str,
        salt: bytes | None,
        *,
        draw: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Check the settings; keys are derived later, with the first document.

        Raises:
            LivesyncIncompatible: V2 needs the database's salt to write, and there is none.
            LivesyncPassphrase: the passphrase is not valid text.
        """
        encryption.passphrase_bytes(passphrase)
        self._writes_v2 = tweaks.e2ee_algorithm == V2
        self._reads_v2 = tweaks.e2ee_algorithm != FORCE_V1
        if self._writes_v2 and salt is None:
            raise LivesyncIncompatible(
                "The database has no salt for its encryption.",
                "Open it once with LiveSync on another device, which makes one.",
            )
        self._passphrase = passphrase
        self._salt = salt
        self._draw = draw
        self._legacy = LegacyCipher(
            passphrase, is_dynamic=tweaks.use_dynamic_iteration_count, draw=draw
        )

    def encrypt(self, document: Document) -> dict[str, object]:
        """The document, encrypted as the database's settings say.

        Raises:
            LivesyncUnreadable: it has text that cannot be encoded.
        """
        doc_id = str(document["_id"])
        found = dict(document)
        if doc_id.startswith(ENCRYPTED_CHUNK_PREFIX) or doc_id == _SYNC_INFO:
            found |= {"data": self._encrypt(str(document["data"])), "e_": True}
        if "eden" in found:
            found["eden"] = self._encrypt_eden(found["eden"])
        if doc_id.startswith(OBFUSCATED_PREFIX):
            found |= self._hide_path(document)
        return found

    def decrypt(self, document: Document) -> dict[str, object]:
        """The decrypted document, whichever device wrote it.

        Raises:
            LivesyncPassphrase: it was encrypted with another passphrase or salt.
            LivesyncUnreadable: it is malformed.
        """
        found = dict(document)
        if found.get("e_") is True:
            found["data"] = self._decrypt(_text(found.get("data")))
            del found["e_"]
        if str(found.get("_id")).startswith(OBFUSCATED_PREFIX):
            found |= self._reveal_path(_text(found.get("path")))
        if isinstance(eden := found.get("eden"), Mapping):
            found["eden"] = self._decrypt_eden(eden)
        return found

    def decrypt_again(self, text: str) -> str:
        """Decrypt a decrypted text once more if it is still encrypted.

        Some versions of LiveSync encrypt an old chunk a second time when they rewrite it.
        """
        if not is_encrypted(text):
            return text
        try:
            return self._legacy.decrypt(text)
        except (LivesyncPassphrase, LivesyncUnreadable):
            return text

    def _encrypt(self, text: str) -> str:
        if not self._writes_v2:
            return self._legacy.encrypt(text)
        iv, salt = self._draw(encryption.IV_BYTES), self._draw(encryption.SALT_BYTES)
        return encryption.encrypt(text, self._master_key(), iv=iv, salt=salt)

    def _decrypt(self, text: str) -> str:
        if self._reads_v2 and text.startswith(encryption.PREFIX):
            return encryption.decrypt(text, self._master_key())
        return self._legacy.decrypt(text)

    def _master_key(self) -> bytes:
        if self._salt is None:
            raise LivesyncPassphrase(
                "The database has no salt for its encryption.",
                "Open it once with LiveSync on another device, which makes one.",
            )
        return encryption.master_key(self._passphrase, self._salt)

    def _hide_path(self, document: Document) -> dict[str, object]:
        path = str(document["path"])
        if not self._writes_v2:
            return {"path": self._legacy.encrypt_path(path)}
        metadata = {key: document[key] for key in _METADATA if key in document}
        hidden: dict[str, object] = {"mtime": 0, "ctime": 0, "size": 0}
        if "children" in document:
            hidden["children"] = []
        return hidden | {"path": _METADATA_PREFIX + self._encrypt(_json(metadata))}

    def _reveal_path(self, path: str) -> dict[str, object]:
        if self._reads_v2 and path.startswith(_METADATA_PREFIX):
            metadata = _parse_object(self._decrypt(path.removeprefix(_METADATA_PREFIX)))
            return {key: metadata[key] for key in _METADATA if key in metadata}
        return {"path": self._legacy.decrypt(path)} if is_encrypted(path) else {}

    def _encrypt_eden(self, eden: object) -> object:
        if self._writes_v2 and not eden:
            return eden
        key = _EDEN_V2 if self._writes_v2 else _EDEN_V1
        return {key: {"data": self._encrypt(_json(eden)), "epoch": _EDEN_EPOCH}}

    def _decrypt_eden(self, eden: Mapping[str, object]) -> dict[str, object]:
        kinds = [key for key in (_EDEN_V1, _EDEN_V2) if key in eden]
        if not kinds:
            return dict(eden)
        opened: dict[str, object] = {}
        for key in kinds:
            kept = eden[key]
            data = kept.get("data") if isinstance(kept, Mapping) else None
            opened |= _parse_object(self._decrypt(_text(data)))
        return opened


def looks_encrypted(document: Document) -> bool:
    """Whether a document needs the passphrase to be read."""
    if document.get("e_") is True:
        return True
    path, eden = document.get("path"), document.get("eden")
    if isinstance(path, str) and str(document.get("_id")).startswith(OBFUSCATED_PREFIX):
        return path.startswith(_METADATA_PREFIX) or is_encrypted(path)
    return isinstance(eden, Mapping) and (_EDEN_V1 in eden or _EDEN_V2 in eden)


def needs_salt(document: Document) -> bool:
    """Whether a document's encryption (V2) needs the salt of its database."""
    return any(
        isinstance(value, str)
        and value.removeprefix(_METADATA_PREFIX).startswith(encryption.PREFIX)
        for value in (document.get("data"), document.get("path"))
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise LivesyncUnreadable("What should be text in a document is not.")
    return value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _parse_object(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise LivesyncUnreadable("What was encrypted is not part of a document.")
    return value
