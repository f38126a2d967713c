"""Follows the config file in a long-running process, and changes it on request.

Checking the file is cheap enough to do before every answer.

Threat: a user who makes the settings stricter relies on them at once. So nothing here waits for a
file system event: every check compares the file itself with the one last read.
"""

import threading
import time
from collections.abc import Mapping
from pathlib import Path

from obsidian_rag.config.edit import change_values
from obsidian_rag.config.settings import Config, save
from obsidian_rag.data_folder import parse_file, read_file
from obsidian_rag.errors import ConfigInvalid, InvalidArgument

__all__ = ["SettingsFile"]

# A file younger than this may be written again within the same timestamp: some file systems store
# whole seconds.
_MIN_FILE_AGE_NS = 2_500_000_000
_KEEPS_LAST_GOOD = "The last good settings stay in use until the file is fixed."

_Stamp = tuple[int, int, int, int, int]


class SettingsFile:
    """The current settings, or the last good ones and what is wrong with the file."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.trouble: ConfigInvalid | None = None
        # The values at start of the settings that a running daemon cannot change.
        self.started_with: dict[str, object] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._stamp: _Stamp | None = None
        self._content: bytes | None = None
        self._is_read = False
        self._had_file = False

    @property
    def restart_needed(self) -> list[str]:
        """Changed settings that take effect only after a restart."""
        return self.config.restart_needed(self.started_with)

    @property
    def restart_trouble(self) -> ConfigInvalid | None:
        """The error that changed settings need a restart of the daemon, if any do."""
        if not (names := self.restart_needed):
            return None
        return ConfigInvalid(
            f"Changed, but not in effect yet: {', '.join(names)}.",
            "Run `obsidian-rag serve --detach` to restart the daemon.",
        )

    def change(self, changes: Mapping[str, object]) -> None:
        """Write settings to the file by dotted name, all or none; None restores the default.

        Raises:
            InvalidArgument: a name or a value is wrong; nothing is written.
            ConfigInvalid: the file cannot be used as it is.
        """
        # Of two concurrent changes, the second to write would undo the first.
        with self._writing:
            tree = read_file(self.config.file)
            change_values(tree, changes)
            try:
                save(tree, self.config.file)
            except ConfigInvalid as error:
                raise InvalidArgument(error.message, error.suggestion) from error

    def look(self) -> bool:
        """Check the file; whether `config` or `trouble` has changed since the last check."""
        with self._lock:
            stamp = _read_stamp(self.config.file)
            if self._is_read and stamp == self._stamp and stamp is not None:
                return False
            content = _read_content(self.config.file)
            is_settled = stamp is not None and time.time_ns() - max(stamp[:2]) > _MIN_FILE_AGE_NS
            self._stamp = stamp if is_settled else None
            if self._is_read and content == self._content:
                return False
            self._is_read, self._content = True, content
            return self._apply(content)

    def _apply(self, content: bytes | None) -> bool:
        before, trouble_before = self.config, self.trouble
        try:
            self.config = self._load(content)
            self.trouble = None
            self._had_file = content is not None
        except ConfigInvalid as error:
            self.trouble = ConfigInvalid(error.message, _KEEPS_LAST_GOOD)
        if self.config.settings == before.settings:
            self.config = before
        is_news = (self.trouble and self.trouble.body) != (trouble_before and trouble_before.body)
        return is_news or self.config is not before

    def _load(self, content: bytes | None) -> Config:
        file = self.config.file
        if content is None and self._had_file:
            raise ConfigInvalid(f"{file} is gone or cannot be read.", "")
        config = self.config.renewed(parse_file(content, file) if content is not None else {})
        if self.config.has_vault and not config.has_vault:
            raise ConfigInvalid(f"{file} no longer names a vault.", "")
        return config


def _read_stamp(file: Path) -> _Stamp | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


def _read_content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None
