"""Which paths LiveSync's own filters exclude, the same in both directions.

Threat: a filter keeps private files on one machine. A pattern that is interpreted differently from
the user's other devices would send them. So a pattern that cannot be translated is refused by
name, and a file below an unreadable ignore file is excluded.
"""

from dataclasses import dataclass
from pathlib import Path

from obsidian_rag.errors import IndexerFailed, LivesyncIncompatible
from obsidian_rag.livesync.codec.path_ids import normalise
from obsidian_rag.livesync.codec.tweaks import Tweaks
from obsidian_rag.livesync.filters.ignore_lines import IgnoreLines
from obsidian_rag.livesync.filters.js_regexp import JsRegExp, NotSupported
from obsidian_rag.vault import read_ignore_file

ONLY = "syncOnlyRegEx"
IGNORE = "syncIgnoreRegEx"
_DELIMITER = "|[]|"
_NEGATED = "!!"


@dataclass(frozen=True, slots=True)
class FilterSettings:
    """The filters as LiveSync writes them; None means what the database's devices agreed on."""

    only: str = ""
    ignore: str = ""
    uses_ignore_files: bool | None = None
    ignore_files: str | None = None

    def fields(self) -> dict[str, str | bool | None]:
        """The filters under the names of the settings."""
        return {
            ONLY: self.only,
            IGNORE: self.ignore,
            "useIgnoreFiles": self.uses_ignore_files,
            "ignoreFiles": self.ignore_files,
        }


class _Pattern:
    """One regular expression of a list; the prefix `!!` negates it."""

    def __init__(self, source: str, *, ignores_case: bool) -> None:
        self._is_negated = source.startswith(_NEGATED)
        self._regexp = JsRegExp(source.removeprefix(_NEGATED), ignores_case=ignores_case)

    def test(self, path: str) -> bool:
        return self._regexp.test(path) != self._is_negated


class Filters:
    """The filters of one vault and one database."""

    def __init__(self, settings: FilterSettings, tweaks: Tweaks, root: Path) -> None:
        """Read the patterns; ignore files are read when they are needed.

        Raises:
            LivesyncIncompatible: a pattern cannot be translated; the setting is named.
        """
        ignores_case = not tweaks.handle_filename_case_sensitive
        self._only = _patterns(ONLY, settings.only, ignores_case=ignores_case)
        self._ignore = _patterns(IGNORE, settings.ignore, ignores_case=ignores_case)
        self._names = _ignore_file_names(settings, tweaks)
        self._root = root
        self._ignore_files: dict[str, IgnoreLines | str | None] = {}
        self._texts: dict[str, str | None] = {}
        # Whether an ignore file changed; its reader resets it.
        self.has_changed = False

    def refresh(self) -> None:
        """Read the ignore files again when needed: they may have changed."""
        self._ignore_files.clear()

    def reason(self, path: str) -> str | None:
        """Why a path takes no part, as the end of a sentence; None when it does."""
        path = normalise(path)
        if self._names and (reason := self._ignore_file_reason(path)):
            return reason
        if self._only and not any(pattern.test(path) for pattern in self._only):
            return f"does not match {ONLY}"
        if any(pattern.test(path) for pattern in self._ignore):
            return f"matches {IGNORE}"
        return None

    def _ignore_file_reason(self, path: str) -> str | None:
        """The reason from the nearest ignore file that matches the path."""
        folder = path.rpartition("/")[0]
        while True:
            for name in self._names:
                place = f"{folder}/{name}" if folder else name
                lines = self._lines(place)
                if isinstance(lines, str):
                    return lines
                inside = path[len(folder) + 1 :] if folder else path
                answer = lines.accepts(inside) if lines is not None else None
                if answer is not None:
                    return None if answer else f"is ignored by {place}"
            if not folder:
                return None
            folder = folder.rpartition("/")[0]

    def _lines(self, place: str) -> IgnoreLines | str | None:
        """An ignore file, or the reason why everything below it is excluded."""
        if place not in self._ignore_files:
            self._ignore_files[place] = self._load(place)
        return self._ignore_files[place]

    def _load(self, place: str) -> IgnoreLines | str | None:
        try:
            text = read_ignore_file(self._root, place)
        except IndexerFailed:
            return f"is below {place}, which cannot be read"
        self.has_changed |= self._texts.setdefault(place, text) != text
        self._texts[place] = text
        try:
            return IgnoreLines(text) if text is not None else None
        except NotSupported as error:
            raise LivesyncIncompatible(
                f"The ignore file '{place}' cannot be followed: {error}.",
                "Write the line more simply; LiveSync reads these lines as minimatch patterns.",
            ) from None


def check_filters(settings: FilterSettings, tweaks: Tweaks) -> None:
    """Check that the patterns can be translated."""
    Filters(settings, tweaks, Path())


def present_ignore_files(
    settings: FilterSettings, tweaks: Tweaks, root: Path | None
) -> tuple[str, ...]:
    """The ignore files that are in the vault's own folder now."""
    if root is None:
        return ()
    found = []
    for name in _ignore_file_names(settings, tweaks):
        try:
            is_there = read_ignore_file(root, name) is not None
        except IndexerFailed:
            is_there = True  # it excludes files even if it cannot be read
        if is_there:
            found.append(name)
    return tuple(found)


def _patterns(name: str, listed: str, *, ignores_case: bool) -> tuple[_Pattern, ...]:
    # As LiveSync does: remove spaces and line ends.
    sources = listed.replace("\n", "").replace(" ", "").split(_DELIMITER)
    try:
        return tuple(_Pattern(source, ignores_case=ignores_case) for source in sources if source)
    except NotSupported as error:
        raise LivesyncIncompatible(
            f"The setting '{name}' cannot be followed here: {error}.",
            f"Write the regular expression in '{name}' more simply, in LiveSync or with"
            f" `obsidian-rag config set livesync.{name}`.",
        ) from None


def _ignore_file_names(settings: FilterSettings, tweaks: Tweaks) -> tuple[str, ...]:
    shared = tweaks.raw.get("useIgnoreFiles") is True
    listed = tweaks.raw.get("ignoreFiles")
    if not (shared if settings.uses_ignore_files is None else settings.uses_ignore_files):
        return ()
    if settings.ignore_files is not None:
        listed = settings.ignore_files
    names = (listed if isinstance(listed, str) else ".gitignore").split(",")
    return tuple(name.strip() for name in names if name.strip())
