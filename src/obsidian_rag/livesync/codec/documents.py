"""Convert a file to and from LiveSync's documents: one entry and the chunks it names."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from obsidian_rag.errors import LivesyncPassphrase, LivesyncUnreadable
from obsidian_rag.livesync.codec.chunk_ids import ChunkIds
from obsidian_rag.livesync.codec.compression import compress, expand
from obsidian_rag.livesync.codec.contents import join_pieces, pieces_of
from obsidian_rag.livesync.codec.document_encryption import (
    Document,
    DocumentCipher,
    looks_encrypted,
)
from obsidian_rag.livesync.codec.encryption import text_bytes
from obsidian_rag.livesync.codec.entries import BINARY, TEXT, Entry, read_entry, read_text
from obsidian_rag.livesync.codec.path_ids import forms_of, is_text, normalise, path_to_id
from obsidian_rag.livesync.codec.tweaks import Tweaks

_CHUNK = "leaf"


class MissingChunks(LivesyncUnreadable):
    """Chunks of a file are missing; they may still arrive."""

    def __init__(self, path: str, ids: tuple[str, ...]) -> None:
        super().__init__(
            f"{len(ids)} chunks of {path!r} are missing.",
            "They may still be on their way; else save the file again on a device that has it.",
        )
        self.ids = ids


@dataclass(frozen=True, slots=True)
class Encoded:
    """A file as documents: chunks must be written first, the entry last."""

    entry: dict[str, object]
    chunks: list[dict[str, object]]


class Codec:
    """Converts between files and documents for one database."""

    def __init__(self, tweaks: Tweaks, passphrase: str | None, salt: bytes | None) -> None:
        """Follow the settings of a database.

        Raises:
            LivesyncIncompatible: we do not support them, or the salt is missing.
            LivesyncPassphrase: the database is encrypted, and the passphrase is missing.
        """
        tweaks.check_supported(passphrase)
        secret = passphrase if tweaks.encrypt else None
        self._tweaks = tweaks
        self._cipher = DocumentCipher(tweaks, secret, salt) if secret else None
        self._chunk_ids = ChunkIds(tweaks.hash_alg, secret)
        self._hides_paths_with = secret if tweaks.use_path_obfuscation else None

    def path_to_id(self, path: str) -> str:
        """The id of a file's entry.

        Raises:
            LivesyncUnreadable: the path is not valid text.
        """
        return self.id_as_spelled(normalise(path))

    def id_as_spelled(self, path: str) -> str:
        """The id that a client gives a file if it does not compose the name.

        Raises:
            LivesyncUnreadable: the path is not valid text.
        """
        text_bytes(path)
        return path_to_id(
            path,
            is_case_sensitive=self._tweaks.handle_filename_case_sensitive,
            obfuscation_passphrase=self._hides_paths_with,
        )

    def encode(
        self, path: str, data: bytes, *, ctime_ms: int, mtime_ms: int, doc_id: str | None = None
    ) -> Encoded:
        """The documents of a file, encrypted and compressed as the settings say.

        `doc_id` is the id of an existing entry for the path, which may be decomposed.

        Raises:
            LivesyncUnreadable: LiveSync stores such files as UTF-8 text, and this one is not.
        """
        path = self._form_for_id(path, doc_id)
        pieces = pieces_of(path, data, self._tweaks)
        ids = [self._chunk_ids.id_of(piece) for piece in pieces]
        entry: dict[str, object] = {
            "_id": self.id_as_spelled(path),
            "path": path,
            "type": TEXT if is_text(path) else BINARY,
            "ctime": ctime_ms,
            "mtime": mtime_ms,
            "size": len(data),
            "children": ids,
            "eden": {},
        }
        chunks = dict(zip(ids, pieces, strict=True))
        return Encoded(
            self._encrypt(entry),
            [self._make_chunk(*id_and_piece) for id_and_piece in chunks.items()],
        )

    def deleted(self, document: Document, *, mtime_ms: int) -> dict[str, object]:
        """The entry, marked as deleted; all its other fields stay.

        Raises:
            LivesyncUnreadable: it is malformed.
            LivesyncPassphrase: it cannot be decrypted.
        """
        opened = self._decrypt(document)
        read_entry(opened)
        # The server adds fields of its own, and accepts only these two back.
        kept = {
            key: value
            for key, value in opened.items()
            if key in ("_id", "_rev") or not key.startswith("_")
        }
        changed = self._encrypt(kept | {"deleted": True, "mtime": mtime_ms})
        if document.get("e_") is True:
            changed |= {"data": document["data"], "e_": True}
        return changed

    def open_entry(self, document: Document) -> Entry:
        """Decrypt and check an entry.

        Raises:
            LivesyncUnreadable: it is malformed, or its id does not belong to its path.
            LivesyncPassphrase: it cannot be decrypted.
        """
        entry = read_entry(self._decrypt(document))
        if entry.id not in (self.path_to_id(entry.path), self.id_as_spelled(entry.path)):
            raise LivesyncUnreadable(
                f"The document {entry.id!r} names a path that is not its own.",
                "Save the file again on a device that has it.",
            )
        return entry

    def _form_for_id(self, path: str, doc_id: str | None) -> str:
        """The Unicode form of a path that has the given id, else Obsidian's form."""
        if doc_id is None or doc_id == self.path_to_id(path):
            return normalise(path)
        forms = forms_of(path)
        return next((form for form in forms if self.id_as_spelled(form) == doc_id), normalise(path))

    def assemble(self, entry: Entry, chunks: Mapping[str, Document]) -> bytes:
        """The bytes of a file.

        Raises:
            MissingChunks: chunks are not among those given.
            LivesyncUnreadable: they do not make up the file that the entry describes.
            LivesyncPassphrase: a chunk cannot be decrypted.
        """
        missing = dict.fromkeys(
            child
            for child in entry.children
            if child not in entry.eden and not _is_there(chunks.get(child))
        )
        if missing:
            raise MissingChunks(entry.path, tuple(missing))
        try:
            return join_pieces(entry, lambda child: expand(self._data(entry, chunks, child)))
        except LivesyncUnreadable:
            if self._cipher is None:
                raise
            cipher = self._cipher
        # Some chunks are encrypted twice: see `decrypt_again`.
        return join_pieces(
            entry, lambda child: expand(cipher.decrypt_again(self._data(entry, chunks, child)))
        )

    def check_passphrase(self, documents: Iterable[Document]) -> None:
        """Try the passphrase on encrypted documents until one opens.

        Raises:
            LivesyncPassphrase: some are encrypted, and it opens none of them.
        """
        failure: LivesyncPassphrase | None = None
        for document in filter(looks_encrypted, documents):
            try:
                self._decrypt(document)
            except LivesyncPassphrase as error:
                failure = error
            except LivesyncUnreadable:
                continue
            else:
                return
        if failure is not None:
            raise failure

    def _make_chunk(self, chunk_id: str, piece: str) -> dict[str, object]:
        data = compress(piece) if self._tweaks.enable_compression else piece
        return self._encrypt({"_id": chunk_id, "type": _CHUNK, "data": data})

    def _data(self, entry: Entry, chunks: Mapping[str, Document], chunk_id: str) -> str:
        """The decrypted data of a chunk."""
        if chunk_id in entry.eden:
            return entry.eden[chunk_id]
        chunk = self._decrypt(chunks[chunk_id])
        data = chunk.get("data")
        if chunk.get("type") != _CHUNK or not isinstance(data, str):
            raise LivesyncUnreadable(f"The chunk {chunk_id!r} is malformed.")
        if read_text(chunk, "_id") != chunk_id:
            raise LivesyncUnreadable(f"The chunk {chunk_id!r} is another.")
        return data

    def _encrypt(self, document: dict[str, object]) -> dict[str, object]:
        return self._cipher.encrypt(document) if self._cipher else document

    def _decrypt(self, document: Document) -> dict[str, object]:
        if self._cipher:
            return self._cipher.decrypt(document)
        if looks_encrypted(document):
            raise LivesyncPassphrase(
                "A document is encrypted, though the database's settings say that none is.",
                "Turn on end-to-end encryption here with its passphrase, or rebuild the database.",
            )
        return dict(document)


def _is_there(chunk: Document | None) -> bool:
    return chunk is not None and chunk.get("_deleted") is not True
