"""Read the settings in a LiveSync QR code: values in a fixed order, each with its length.

They are not encrypted, so whatever is wrong with them is said without quoting them.
"""

import json
import re
from collections.abc import Iterator
from urllib.parse import unquote

from obsidian_rag.errors import InvalidArgument

# The places of the settings we use.
_PLACES = {
    0: "remoteType",
    1: "useCustomRequestHandler",
    2: "couchDB_URI",
    3: "couchDB_USER",
    4: "couchDB_PASSWORD",
    5: "couchDB_DBNAME",
    6: "minimumChunkSize",
    7: "longLineThreshold",
    8: "encrypt",
    9: "passphrase",
    10: "usePathObfuscation",
    12: "batch_size",
    13: "batches_limit",
    21: "customChunkSize",
    22: "readChunksOnline",
    24: "useDynamicIterationCount",
    26: "useTimeouts",
    28: "hashCacheMaxCount",
    29: "hashCacheMaxAmount",
    30: "concurrencyOfReadChunksOnline",
    31: "minimumIntervalOfReadChunksOnline",
    32: "hashAlg",
    33: "enableCompression",
    39: "useEden",
    40: "maxChunksInEden",
    41: "maxTotalLengthInEden",
    42: "maxAgeInEden",
    44: "handleFilenameCaseSensitive",
    48: "useSegmenter",
    66: "syncMaxSizeInMB",
    67: "useIgnoreFiles",
    68: "ignoreFiles",
    69: "syncOnlyRegEx",
    70: "syncIgnoreRegEx",
    80: "syncInternalFiles",
    86: "usePluginSync",
    93: "usePluginSyncV2",
    102: "enableChunkSplitterV2",
    133: "couchDB_CustomHeaders",
    134: "useJWT",
    135: "jwtAlgorithm",
    136: "jwtKey",
    137: "jwtKid",
    138: "jwtSub",
    139: "jwtExpDuration",
    146: "chunkSplitterVersion",
    147: "E2EEAlgorithm",
    157: "remoteConfigurations",
    158: "activeConfigurationId",
}
_CONSTANTS: dict[str, object] = {"u": None, "n": None, "t": True, "f": False}
# Five letters for each kind: the first has one digit of length, the last has five.
_KINDS = {"A": "base 36", "a": "decimal", "V": "text", "v": "structure"}
_LETTERS = {
    chr(ord(first) + digits - 1): (kind, digits)
    for first, kind in _KINDS.items()
    for digits in range(1, 6)
}
_BASE_36 = re.compile(r"-?[0-9a-z]+")
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
_MAX_DEPTH = 8


def decode_settings_qr(encoded: str) -> dict[str, object]:
    """The settings in the part of a QR code's address after `settingsQR=`.

    Raises:
        InvalidArgument: it is not in that form.
    """
    try:
        values = list(_values(unquote(encoded, errors="strict"), depth=0))
    except (ValueError, RecursionError):
        raise InvalidArgument(
            "The settings of this QR code cannot be read.",
            "Copy the whole address, or use a setup URI.",
        ) from None
    return {
        key: values[place]
        for place, key in _PLACES.items()
        if place < len(values) and values[place] is not None
    }


def _values(encoded: str, *, depth: int) -> Iterator[object]:
    """Every value in turn; lengths count UTF-16 units, two bytes each."""
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    data = encoded.encode("utf-16-le")
    at = 0

    def take(units: int) -> str:
        nonlocal at
        if not 0 <= 2 * units <= len(data) - at:
            raise ValueError("the end is missing")
        part = data[at : at + 2 * units]
        at += 2 * units
        return part.decode("utf-16-le")

    while at < len(data):
        letter = take(1)
        if letter in _CONSTANTS:
            yield _CONSTANTS[letter]
        else:
            kind, digits = _LETTERS.get(letter, ("", 0))
            yield _value(kind, take(_base_36(take(digits))), depth)


def _value(kind: str, text: str, depth: int) -> object:
    match kind:
        case "text":
            return text
        case "base 36":
            return _base_36(text)
        case "decimal" if _DECIMAL.fullmatch(text):
            number = float(text)
            return int(number) if number.is_integer() else number
        case "structure" if text.startswith("_"):
            return list(_values(text[1:], depth=depth + 1))
        case "structure" if text.startswith("^"):
            parts = list(_values(text[1:], depth=depth + 1))
            return dict(zip(map(str, parts[::2]), parts[1::2], strict=True))
        case "structure":
            return json.loads(text)
    raise ValueError("unknown letter")


def _base_36(text: str) -> int:
    if not _BASE_36.fullmatch(text):
        raise ValueError("no number")
    return int(text, 36)
