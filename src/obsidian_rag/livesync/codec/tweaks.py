"""The settings that every device of one LiveSync database must share."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from obsidian_rag.errors import LivesyncIncompatible, LivesyncPassphrase

V2 = "v2"
FORCE_V1 = "forceV1"
_MB = 1024 * 1024
_ALGORITHMS = {V2, "", FORCE_V1}

# Our names, LiveSync's names.
_SHOULD_MATCH = {
    "encrypt": "encrypt",
    "use_path_obfuscation": "usePathObfuscation",
    "e2ee_algorithm": "E2EEAlgorithm",
    "use_dynamic_iteration_count": "useDynamicIterationCount",
    "handle_filename_case_sensitive": "handleFilenameCaseSensitive",
    "hash_alg": "hashAlg",
    "chunk_splitter_version": "chunkSplitterVersion",
    "custom_chunk_size": "customChunkSize",
    "minimum_chunk_size": "minimumChunkSize",
    "enable_compression": "enableCompression",
    "long_line_threshold": "longLineThreshold",
    "use_eden": "useEden",
    "max_chunks_in_eden": "maxChunksInEden",
    "max_total_length_in_eden": "maxTotalLengthInEden",
    "max_age_in_eden": "maxAgeInEden",
    "enable_chunk_splitter_v2": "enableChunkSplitterV2",
    "use_plugin_sync_v2": "usePluginSyncV2",
    "use_segmenter": "useSegmenter",
}
_MAX_SIZE = "sync_max_size_in_mb"
_NAMES = _SHOULD_MATCH | {_MAX_SIZE: "syncMaxSizeInMB"}
# Settings whose defaults apply to devices that are older than them.
_ASSUMED_KNOWN = {"E2EEAlgorithm", "chunkSplitterVersion", "usePluginSyncV2"}

# Also published in a new database, with LiveSync's defaults.
RECOMMENDED: Mapping[str, object] = MappingProxyType(
    {
        "useIgnoreFiles": False,
        "useCustomRequestHandler": False,
        "batch_size": 25,
        "batches_limit": 25,
        "useTimeouts": False,
        "readChunksOnline": True,
        "hashCacheMaxCount": 300,
        "hashCacheMaxAmount": 50,
        "concurrencyOfReadChunksOnline": 40,
        "minimumIntervalOfReadChunksOnline": 50,
        "ignoreFiles": ".gitignore",
    }
)


class NotEncrypted(LivesyncPassphrase):
    """A passphrase was given for a database that is not encrypted."""


@dataclass(frozen=True, slots=True)
class Tweaks:
    """The settings that must match, and the raw values, to be written back unchanged."""

    encrypt: bool = False
    use_path_obfuscation: bool = False
    e2ee_algorithm: str = V2
    use_dynamic_iteration_count: bool = False
    handle_filename_case_sensitive: bool = False
    hash_alg: str = "xxhash64"
    chunk_splitter_version: str = "v3-rabin-karp"
    custom_chunk_size: int = 0
    minimum_chunk_size: int = 20
    enable_compression: bool = False
    long_line_threshold: int = 250
    use_eden: bool = False
    max_chunks_in_eden: int = 10
    max_total_length_in_eden: int = 1024
    max_age_in_eden: int = 10
    enable_chunk_splitter_v2: bool = False
    use_plugin_sync_v2: bool = False
    use_segmenter: bool = False
    sync_max_size_in_mb: float = 50
    raw: Mapping[str, object] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def for_new_database(cls) -> "Tweaks":
        """Settings that a current device with default settings accepts.

        Devices assume that a database without the setting is older than per-file customization
        sync; a new device has it turned on, and refuses a database that differs.
        """
        return cls(use_plugin_sync_v2=True)

    @classmethod
    def from_preferred(cls, values: Mapping[str, object]) -> "Tweaks":
        """Read the values that a database publishes; unknown keys are kept.

        Raises:
            LivesyncIncompatible: a value is of another kind than we know.
        """
        return _parse(values, values)

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> "Tweaks":
        """Read a device's settings and keep nothing else of them: they hold secrets.

        Raises:
            LivesyncIncompatible: a value is of another kind than we know.
        """
        published = {*_NAMES.values(), *RECOMMENDED}
        return _parse(
            settings,
            {
                key: value
                for key, value in settings.items()
                if key in published and value is not None
            },
        )

    def to_settings(self) -> dict[str, object]:
        """The values under LiveSync's names, as they were found unless we changed them."""
        found = _values(self.raw)
        settings = dict(self.raw) if self.raw else dict(RECOMMENDED)
        for name, key in _NAMES.items():
            value = getattr(self, name)
            if not self.raw or value != found.get(name, _DEFAULTS[name]):
                settings[key] = value
        return settings

    @property
    def max_bytes(self) -> int:
        """The size of the largest file that the devices sync; LiveSync's 0 means any."""
        most = int(self.sync_max_size_in_mb * _MB)
        return most if most > 0 else sys.maxsize

    def mismatches(self, other: "Tweaks") -> tuple[str, ...]:
        """The settings that should match and do not; those unknown to one side are skipped."""
        ours, theirs = self._known_keys(), other._known_keys()
        return tuple(
            key
            for name, key in _SHOULD_MATCH.items()
            if key in ours and key in theirs and getattr(self, name) != getattr(other, name)
        )

    def check_supported(self, passphrase: str | None) -> None:
        """Refuse settings that we could not follow when writing.

        Raises:
            LivesyncIncompatible: we do not support the combination.
            LivesyncPassphrase: the database is encrypted, and there is no passphrase.
        """
        if self.use_path_obfuscation and not self.encrypt:
            raise LivesyncIncompatible(
                "The database hides paths but does not encrypt.",
                "Turn on end-to-end encryption in LiveSync, or turn off property encryption.",
            )
        if self.encrypt and self.e2ee_algorithm not in _ALGORITHMS:
            raise LivesyncIncompatible(
                "The database is encrypted in a way we do not know.", _UPDATE_HINT
            )
        if self.encrypt and not passphrase:
            raise LivesyncPassphrase(
                "The database is encrypted, and no passphrase is set.",
                "Run `obsidian-rag livesync setup` and give the passphrase of your devices.",
            )

    def check_encrypted(self, passphrase: str | None) -> None:
        """Refuse to write unencrypted what the user wants encrypted.

        A passphrase shows that they do. A database rebuilt without encryption, by mistake or by
        the server's operator, must not change that silently.

        Raises:
            NotEncrypted: there is a passphrase, and the database is not encrypted.
        """
        if passphrase and not self.encrypt:
            raise NotEncrypted(
                "The database is not encrypted, but a passphrase was given.",
                "Turn on end-to-end encryption in LiveSync on your devices. If the notes may lie"
                " on the server unencrypted, say so with --no-encrypt: `obsidian-rag livesync"
                " setup --no-encrypt` forgets the passphrase.",
            )

    def _known_keys(self) -> set[str]:
        return _ASSUMED_KNOWN | {
            key for key, value in self.to_settings().items() if value is not None
        }


_UPDATE_HINT = "Look for a newer obsidian-rag."
_DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(Tweaks)}


def _parse(settings: Mapping[str, object], raw: Mapping[str, object]) -> Tweaks:
    # Newer devices can agree on other ids; with ours as well, every note would exist twice.
    if settings.get("idDerivationVersion") not in (None, 0):
        raise LivesyncIncompatible(
            "The devices of this database make ids in a way we do not know.", _UPDATE_HINT
        )
    return Tweaks(**_values(settings), raw=MappingProxyType(dict(raw)))


def _values(settings: Mapping[str, object]) -> dict[str, Any]:
    """The values of our fields that are set, each checked against its default's type."""
    found = {}
    for name, key in _NAMES.items():
        value = settings.get(key)
        if value is None:
            continue
        wanted: type[object] = type(_DEFAULTS[name])
        if name == _MAX_SIZE and isinstance(value, float) and math.isfinite(value):
            wanted = float  # keep fractions: half a megabyte is not 0
        elif wanted is int and isinstance(value, float) and math.isfinite(value):
            value = int(value)
        if type(value) is not wanted:
            raise LivesyncIncompatible(
                f"The setting '{key}' has a value we do not know.", _UPDATE_HINT
            )
        found[name] = value
    return found
