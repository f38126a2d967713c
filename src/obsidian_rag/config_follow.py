"""Follows the config file of a process that stays, and changes it on request.

A look is cheap enough to take before every answer.

Threat: a user who makes the settings stricter counts on them at once. So nothing here waits for
an event of the file system: every look compares the file itself with the one last read.
"""

import threading
import time
from collections.abc import Mapping
from pathlib import Path

from obsidian_rag.config import Config, parse_file, read_file, save
from obsidian_rag.config_edit import change_values
from obsidian_rag.errors import ConfigInvalid, InvalidArgument

__all__ = ["SettingsFile"]

# Until then a second write may leave the same times behind; some file systems keep whole seconds.
_SETTLED_NS = 2_500_000_000
_KEPT = "The last good settings stay in use until the file is fixed."

_Stamp = tuple[int, int, int, int, int]


class SettingsFile:
    """The settings as the file says now, or the last good ones and what is wrong with the file."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.trouble: ConfigInvalid | None = None
        # What a daemon cannot change about itself, as it was at its start.
        self.started_with: dict[str, object] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._stamp: _Stamp | None = None
        self._content: bytes | None = None
        self._is_read = False
        self._had_file = False

    @property
    def restart_needed(self) -> list[str]:
        """Changed settings that this process can only take up by a new start."""
        return self.config.restart_needed(self.started_with)

    @property
    def restart_trouble(self) -> ConfigInvalid | None:
        """That a daemon is not as the settings say, because it must be started anew."""
        if not (names := self.restart_needed):
            return None
        return ConfigInvalid(
            f"Changed, but not in effect yet: {', '.join(names)}.",
            "Run `obsidian-rag serve --detach` to restart the daemon.",
        )

    def change(self, changes: Mapping[str, object]) -> None:
        """Write settings to the file, all or none, by dotted names; None is the default.

        Raises:
            InvalidArgument: a name or a value is wrong; nothing is written.
            ConfigInvalid: the file cannot be used as it is.
        """
        # Two changes at once would each write the file without the other's.
        with self._writing:
            tree = read_file(self.config.file)
            change_values(tree, changes)
            try:
                save(tree, self.config.file)
            except ConfigInvalid as error:
                raise InvalidArgument(error.message, error.suggestion) from error

    def look(self) -> bool:
        """Whether `config` or `trouble` has changed since the last look."""
        with self._lock:
            stamp = _stamp(self.config.file)
            if self._is_read and stamp == self._stamp and stamp is not None:
                return False
            content = _content(self.config.file)
            is_settled = stamp is not None and time.time_ns() - max(stamp[:2]) > _SETTLED_NS
            self._stamp = stamp if is_settled else None
            if self._is_read and content == self._content:
                return False
            self._is_read, self._content = True, content
            return self._take(content)

    def _take(self, content: bytes | None) -> bool:
        before, trouble_before = self.config, self.trouble
        try:
            self.config = self._renewed(content)
            self.trouble = None
            self._had_file = content is not None
        except ConfigInvalid as error:
            self.trouble = ConfigInvalid(error.message, _KEPT)
        if self.config.settings == before.settings:
            self.config = before
        is_news = (self.trouble and self.trouble.body) != (trouble_before and trouble_before.body)
        return is_news or self.config is not before

    def _renewed(self, content: bytes | None) -> Config:
        file = self.config.file
        if content is None and self._had_file:
            raise ConfigInvalid(f"{file} is gone or cannot be read.", "")
        config = self.config.renewed(parse_file(content, file) if content is not None else {})
        if self.config.has_vault and not config.has_vault:
            raise ConfigInvalid(f"{file} no longer names a vault.", "")
        return config


def _stamp(file: Path) -> _Stamp | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None
