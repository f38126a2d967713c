"""Which paths LiveSync's own filters leave out, the same on the way in and on the way out.

Threat: a filter keeps private files on one machine. A pattern that is read in another way than the
user's other devices read it would send them. So what cannot be carried over is refused by name,
and a file below an ignore file that cannot be read is left out.
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
    """The filters as LiveSync writes them; None is as the database's devices agreed."""

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
    """One regular expression of a list; `!!` before it turns it round."""

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
            LivesyncIncompatible: a pattern cannot be carried over; the setting is named.
        """
        ignores_case = not tweaks.handle_filename_case_sensitive
        self._only = _patterns(ONLY, settings.only, ignores_case=ignores_case)
        self._ignore = _patterns(IGNORE, settings.ignore, ignores_case=ignores_case)
        self._names = _ignore_file_names(settings, tweaks)
        self._root = root
        self._read: dict[str, IgnoreLines | str | None] = {}
        self._texts: dict[str, str | None] = {}
        # Whether an ignore file is another one than before; for the reader of that to reset.
        self.has_changed = False

    def refresh(self) -> None:
        """Ignore files may have changed."""
        self._read.clear()

    def reason(self, path: str) -> str | None:
        """Why a path takes no part, as the end of a sentence; None when it does.

        Raises:
            LivesyncIncompatible: a line of an ignore file cannot be carried over.
        """
        path = normalise(path)
        if self._names and (reason := self._by_ignore_files(path)):
            return reason
        if self._only and not any(pattern.test(path) for pattern in self._only):
            return f"does not match {ONLY}"
        if any(pattern.test(path) for pattern in self._ignore):
            return f"matches {IGNORE}"
        return None

    def _by_ignore_files(self, path: str) -> str | None:
        """The nearest ignore file that says something about the path decides."""
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
        """An ignore file; a text says why everything below is left out."""
        if place not in self._read:
            self._read[place] = self._load(place)
        return self._read[place]

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
    """Look whether the patterns can be carried over.

    Raises:
        LivesyncIncompatible: one cannot; the setting is named.
    """
    Filters(settings, tweaks, Path())


def _patterns(name: str, listed: str, *, ignores_case: bool) -> tuple[_Pattern, ...]:
    # As LiveSync does: spaces and line ends are no part of a pattern.
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
