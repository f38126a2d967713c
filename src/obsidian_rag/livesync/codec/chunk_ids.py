"""The id of a chunk: a digest of its content, computed as on the other devices.

Equal ids let devices share chunks. A wrong id would only cost space.
"""

import array
import base64
import functools
import hashlib
import sys

import xxhash

from obsidian_rag.livesync.codec.path_ids import CHUNK_PREFIX, ENCRYPTED_CHUNK_PREFIX

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_MASK = 0xFFFFFFFF
# LiveSync's own constants: the prefix of a passphrase, and the seeds of its hashes.
_PASSPHRASE_SALT = "a83hrf7f\u0003y7sa8g31"
_PASSPHRASE_SEED = 0x12345678
_MIX_SEED = 1


class ChunkIds:
    """Computes chunk ids with one algorithm; with a passphrase, those of encrypted chunks."""

    def __init__(self, hash_alg: str, passphrase: str | None) -> None:
        self._algorithm = _ALGORITHMS.get(hash_alg, _xxhash32)
        self._prefix = CHUNK_PREFIX if passphrase is None else ENCRYPTED_CHUNK_PREFIX
        self._passphrase = None if passphrase is None else HashedPassphrase(passphrase)

    def id_of(self, piece: str) -> str:
        """The id of a chunk with this content, before compression and encryption."""
        return self._prefix + self._algorithm(piece, self._passphrase)


class HashedPassphrase:
    """The hash of a part of the passphrase that goes into chunk ids."""

    __slots__ = ("number", "text")

    def __init__(self, passphrase: str) -> None:
        raw = passphrase.encode("utf-16-le")
        units_used = len(raw) // 2 * 3 // 4
        # The cut may leave half a character; only its code units are hashed.
        beginning = raw[: units_used * 2].decode("utf-16-le", "surrogatepass")
        salted = _PASSPHRASE_SALT + beginning
        self.text = mix(salted)
        self.number = mixed_hash(salted, _PASSPHRASE_SEED)[0]


def length16(text: str) -> int:
    """The length of a text as JavaScript counts it: in UTF-16 code units."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def mix(text: str) -> str:
    """LiveSync's pure-JavaScript hash: both halves of `mixed_hash`, as text."""
    murmur, fnv = mixed_hash(f"{length16(text)}{text}", _MIX_SEED)
    return _base36(murmur) + _base36(fnv)


def mixed_hash(text: str, seed: int) -> tuple[int, int]:
    """A Murmur3-like and an FNV-1a hash over the UTF-16 code units of a text."""
    units = array.array("H", text.encode("utf-16-le", "surrogatepass"))
    if sys.byteorder == "big":
        units.byteswap()
    murmur, fnv = seed, 0x811C9DC5
    for unit in units:
        fnv = (fnv ^ unit) * 0x01000193 & _MASK
        murmur = _rotate(murmur & _MASK ^ _scramble(unit), 13) * 5 + 0xE6546B64
    return _finish(murmur & _MASK ^ len(units)), fnv


# A piece has few different code units (base64: 65), so the slow part is done once for each.
@functools.lru_cache(maxsize=1 << 16)
def _scramble(unit: int) -> int:
    turned = _rotate(unit * 0xCC9E2D51 & _MASK, 15)
    signed = turned - (1 << 32) if turned >> 31 else turned
    # JavaScript multiplies in floating point here; the rounding is part of the hash.
    return int(float(signed) * float(0x1B873593)) & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


def _finish(value: int) -> int:
    value = (value ^ value >> 16) * 0x85EBCA6B & _MASK
    value = (value ^ value >> 13) * 0xC2B2AE35 & _MASK
    return value ^ value >> 16


def _base36(number: int) -> str:
    if number < 0:
        return "-" + _base36(-number)
    digits = ""
    while number >= 36:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return _DIGITS[number] + digits


def _hash_input(piece: str, passphrase: HashedPassphrase | None) -> bytes:
    secret = "" if passphrase is None else f"{passphrase.text}-"
    return f"{piece}-{secret}{length16(piece)}".encode()


def _xxhash64(piece: str, passphrase: HashedPassphrase | None) -> str:
    return _base36(xxhash.xxh64_intdigest(_hash_input(piece, passphrase)))


def _xxhash32(piece: str, passphrase: HashedPassphrase | None) -> str:
    return _base36(xxhash.xxh32_intdigest(_hash_input(piece, passphrase)))


def _legacy(piece: str, passphrase: HashedPassphrase | None) -> str:
    number = xxhash.xxh32_intdigest(piece.encode()) ^ length16(piece)
    if passphrase is not None:
        number ^= passphrase.number
    return _base36(number - (1 << 32) if number >> 31 else number)


def _mixed_purejs(piece: str, passphrase: HashedPassphrase | None) -> str:
    if passphrase is None:
        return mix(f"{piece}-{length16(piece)}")
    return mix(f"{piece}{passphrase.text}{length16(piece)}")


def _sha1(piece: str, passphrase: HashedPassphrase | None) -> str:
    digest = hashlib.sha1(_hash_input(piece, passphrase), usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


_ALGORITHMS = {
    "xxhash64": _xxhash64,
    "xxhash32": _xxhash32,
    "": _legacy,
    "mixed-purejs": _mixed_purejs,
    "sha1": _sha1,
}
