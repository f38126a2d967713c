"""Which folders and files of a vault are read: the deny, allow and file-pattern settings.

Pure. Names are compared without case and Unicode composition, so that a deny list works the same
on every machine. If a rule can be read in two ways, the one that denies more wins.
"""

import fnmatch
import functools
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from obsidian_rag.config import IndexingSettings

_SPECIAL = re.compile(r"[*?\[/]")
_NOTHING = re.compile(r"(?!)")
# Folders whose access is cached; a vault with a folder per note has many.
_CACHED_FOLDERS = 16_384


class Access(IntEnum):
    """Whether a folder is walked, and its files read."""

    CLOSED = 0
    PASSAGE = 1  # on the way to an allowed folder: walked, but its own files are not read
    OPEN = 2


@dataclass(frozen=True)
class Rules:
    """What may be read. Deny wins over allow; hidden folders and files are never read.

    `deny_dirs`: a folder name matches at any depth, a path (with '/') from the root; both may be
    globs. `allow_dirs`: paths from the root, each part may be a glob; empty means everything.
    `file_patterns`: globs over the file name or, with '/', over the whole relative path.
    """

    file_patterns: tuple[str, ...] = IndexingSettings().file_patterns
    deny_dirs: tuple[str, ...] = ()
    allow_dirs: tuple[str, ...] = ()
    max_file_bytes: int = 10 * 1024 * 1024

    # Cached, because each `Rules` has its own cache of folders.
    @classmethod
    @functools.lru_cache(maxsize=8)
    def from_settings(cls, settings: IndexingSettings) -> "Rules":
        """The rules that the settings describe."""
        return cls(
            file_patterns=settings.file_patterns,
            deny_dirs=settings.deny_dirs,
            allow_dirs=settings.allow_dirs,
            max_file_bytes=int(settings.max_file_mb * 1024 * 1024),
        )

    def access(self, rel: str) -> Access:
        """The access to a folder (relative posix path, '' is the root)."""
        return self._access(rel.strip("/"))

    def admits_dir(self, rel: str) -> bool:
        """Whether a folder may be walked."""
        return self.access(rel) is not Access.CLOSED

    def admits_file(self, rel: str) -> bool:
        """Whether a file (relative posix path) may be read."""
        folder, _, name = rel.rpartition("/")
        return self.access(folder) is Access.OPEN and self.admits_name(folder, name)

    def admits_name(self, folder: str, name: str) -> bool:
        """Whether a file name matches the patterns, in a folder already known to be open."""
        if name[:1] == ".":
            return False
        if name.endswith(self._suffixes):
            return True
        plain = folded_path(name)
        if plain.endswith(self._suffixes) or self._names.match(plain):
            return True
        return self._paths is not _NOTHING and bool(
            self._paths.match(folded_path(f"{folder}/{name}" if folder else name))
        )

    def denies_dir(self, rel: str) -> bool:
        """Whether a folder, or one above it, is hidden or denied, ignoring the allow list."""
        return any(self._denies(path) for path in _paths_down_to(rel))

    def access_below(self, above: Access, rel: str) -> Access:
        """The access to a folder, given that of its parent."""
        if above is Access.CLOSED or self._denies(rel):
            return Access.CLOSED
        return above if above is Access.OPEN else self._match_allowed(rel)

    @functools.cached_property
    def root_access(self) -> Access:
        """The access to the vault's own top folder."""
        return self._match_allowed("") if self.allow_dirs else Access.OPEN

    @functools.cached_property
    def _access(self) -> Callable[[str], Access]:
        # The watcher and searches check the same folders again and again.
        return functools.lru_cache(maxsize=_CACHED_FOLDERS)(self._compute_access)

    def _compute_access(self, rel: str) -> Access:
        access = self.root_access
        for path in _paths_down_to(rel):
            access = self.access_below(access, path)
        return access

    def _denies(self, rel: str) -> bool:
        plain = folded_path(rel)
        name = plain.rpartition("/")[2]
        if name[:1] == "." or self._denied_names.match(name):
            return True
        return self._denied_paths is not _NOTHING and bool(self._denied_paths.match(plain))

    def _match_allowed(self, rel: str) -> Access:
        parts = folded_path(rel).split("/") if rel else []
        return max(
            (_match_entry(parts, entry) for entry in self._allow_entries), default=Access.CLOSED
        )

    @functools.cached_property
    def _suffixes(self) -> tuple[str, ...]:
        return tuple(p[1:] for p in self._file_entries if _is_suffix(p))

    @functools.cached_property
    def _names(self) -> re.Pattern[str]:
        return _names_regex(p for p in self._file_entries if not _is_suffix(p))

    @functools.cached_property
    def _paths(self) -> re.Pattern[str]:
        return _paths_regex(self._file_entries)

    @functools.cached_property
    def _file_entries(self) -> tuple[str, ...]:
        return tuple(_normalise(pattern) for pattern in self.file_patterns)

    @functools.cached_property
    def _denied_names(self) -> re.Pattern[str]:
        return _names_regex(self._deny_entries)

    @functools.cached_property
    def _denied_paths(self) -> re.Pattern[str]:
        return _paths_regex(self._deny_entries)

    @functools.cached_property
    def _deny_entries(self) -> tuple[str, ...]:
        return tuple(_strip_wildcard(_normalise(entry)) for entry in self.deny_dirs)

    @functools.cached_property
    def _allow_entries(self) -> tuple[tuple[re.Pattern[str], ...], ...]:
        entries = (_normalise(entry).lstrip("/").removesuffix("/**") for entry in self.allow_dirs)
        return tuple(_compile_parts(entry) for entry in entries if entry)


# Everything that is not hidden, for LiveSync.
EVERY_FILE = Rules(file_patterns=("*",), max_file_bytes=sys.maxsize)


def folded_path(name: str) -> str:
    """The key under which two spellings of a path are equal, on a disk that ignores case."""
    if name.isascii():
        return name.casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _paths_down_to(rel: str) -> Iterator[str]:
    end = rel.find("/")
    while end != -1:
        yield rel[:end]
        end = rel.find("/", end + 1)
    if rel:
        yield rel


def _normalise(entry: str) -> str:
    """Normalise './a/', 'a\\b' and '**/a'; a blank entry becomes '' and matches nothing."""
    plain = folded_path(entry.strip().replace("\\", "/"))
    if plain.strip("/") in (".", ""):
        return "." if plain else ""
    plain = plain.removeprefix("./").rstrip("/")
    # A bare name already matches in any folder.
    return plain.removeprefix("**/") if plain.count("/") == 1 else plain


def _strip_wildcard(entry: str) -> str:
    # Denying everything in a folder denies the folder itself.
    return entry.removesuffix("/**").removesuffix("/*") or entry


def _is_suffix(pattern: str) -> bool:
    return pattern.startswith("*") and not _SPECIAL.search(pattern[1:])


def _names_regex(entries: Iterable[str]) -> re.Pattern[str]:
    return _join_patterns(_translate(entry) for entry in entries if entry and "/" not in entry)


def _paths_regex(entries: Iterable[str]) -> re.Pattern[str]:
    return _join_patterns(_translate_path(entry) for entry in entries if "/" in entry)


def _translate(entry: str) -> str:
    # A folder may be named '[Archive]': match the literal name as well as the glob.
    literal = f"|{re.escape(entry)}\\Z" if "[" in entry else ""
    return f"(?:{fnmatch.translate(entry)}{literal})"


def _translate_path(entry: str) -> str:
    """'*' also matches '/', '**/' also matches no folder, a leading '/' is the root."""
    floating = "(?:.*/)?" if entry.startswith("**/") else ""
    rest = entry.removeprefix("**/").lstrip("/")
    return f"{floating}(?:{_translate(rest)}|{_translate(rest.replace('/**/', '/'))})"


def _join_patterns(patterns: Iterable[str]) -> re.Pattern[str]:
    joined = "|".join(patterns)
    return re.compile(joined, re.DOTALL) if joined else _NOTHING


def _compile_parts(entry: str) -> tuple[re.Pattern[str], ...]:
    if entry == ".":
        return ()
    return tuple(re.compile(_translate(part)) for part in entry.split("/"))


def _match_entry(parts: list[str], entry: tuple[re.Pattern[str], ...]) -> Access:
    if not all(pattern.match(part) for part, pattern in zip(parts, entry, strict=False)):
        return Access.CLOSED
    return Access.OPEN if len(parts) >= len(entry) else Access.PASSAGE
