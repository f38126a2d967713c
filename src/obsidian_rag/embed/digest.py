"""A quick fingerprint of large weight files."""

from pathlib import Path

import xxhash

_END_BYTES = 1 << 20


def file_digest(file: Path) -> str:
    """Digest of a file's size, first and last megabyte: cheap even for gigabytes of weights."""
    size = file.stat().st_size
    digest = xxhash.xxh3_64(str(size).encode())
    with file.open("rb") as stream:
        digest.update(stream.read(_END_BYTES))
        stream.seek(max(_END_BYTES, size - _END_BYTES))
        digest.update(stream.read(_END_BYTES))
    return digest.hexdigest()
