"""The lines of an ignore file, matched as LiveSync matches them.

This differs from Git: LiveSync matches each line with minimatch against the path from the ignore
file's folder. So `*.tmp` is for that folder alone and `**/*.tmp` for all below it, a line that
begins with `/` matches nothing, case is ignored, and the last matching line decides. What we
cannot match in the same way is refused, since guessing could send excluded files.
"""

import re
from collections.abc import Iterator, Sequence

from obsidian_rag.livesync.filters.js_regexp import NotSupported, code_units

# What JavaScript's `trim` removes.
_BLANK = "\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029"
_BLANK += "\u202f\u205f\u3000\ufeff"
_BRACES = re.compile(r"\{(?:(?!\{).)*\}")
_EXTENDED = re.compile(r"[?*+@!]\(")
_HARD_BRACES = re.compile(r"\\|\.\.|\$\{|\{\}")
_NOTHING = "(?!)"
_ALL_STARS = "*"
_MAX_PATTERNS = 1000


class IgnoreLines:
    """One ignore file."""

    def __init__(self, text: str) -> None:
        """Parse the lines.

        Raises:
            NotSupported: a line cannot be translated; the message has its number.
        """
        self._lines: list[_Line] = []
        for number, line in enumerate(re.split(r"\r?\n", text), start=1):
            pattern = line.strip(_BLANK)
            if not pattern or pattern.startswith("#"):
                continue
            try:
                self._lines.append(_Line(pattern))
            except NotSupported as error:
                raise NotSupported(f"line {number}: {error}") from None

    def accepts(self, path: str) -> bool | None:
        """Whether a path, relative to the file's folder, is synced; None if no line matches."""
        if "./" in path:
            return False  # a folder whose name ends with a dot: LiveSync never accepts it
        units = code_units(path, ignores_case=True)
        answer = None
        for line in self._lines:
            if line.is_folder and line.is_below(units):
                return False
            if line.matches(units):
                answer = line.is_exception
        return answer


class _Line:
    """One pattern."""

    def __init__(self, pattern: str) -> None:
        self.is_exception = pattern.startswith("!")
        self.is_folder = pattern.endswith("/")
        # Below a folder that a line names, later lines have no effect.
        self._below = _compile(f"{pattern}**" if self.is_folder else f"{pattern}/**")
        self._itself = _compile(pattern)

    def is_below(self, units: str) -> bool:
        return self._below.fullmatch(units) is not None

    def matches(self, units: str) -> bool:
        if self._itself.fullmatch(units) is not None:
            return True
        return not self.is_folder and self.is_below(units)


def _compile(pattern: str) -> re.Pattern[str]:
    glob = pattern.lstrip("!")
    if _EXTENDED.search(glob):
        raise NotSupported(f"'{pattern}' has a group in parentheses")
    options = [_path(_parts(one)) for one in _expand_braces(glob)]
    try:
        return re.compile("|".join(f"(?:{option})" for option in options), re.DOTALL)
    except (re.error, OverflowError, RecursionError) as error:
        raise NotSupported(f"'{pattern}' cannot be carried over to Python ({error})") from None


def _expand_braces(glob: str) -> list[str]:
    """The patterns that `a.{png,jpg}` expands to."""
    if not _BRACES.search(glob):
        return [glob]
    if _HARD_BRACES.search(glob) or glob.count("{") != glob.count("}"):
        raise NotSupported(f"'{glob}' has braces that are not a plain list")
    done: list[str] = []
    todo = [glob]
    while todo:
        one = todo.pop(0)
        if "{" not in one:
            done.append(one)
            continue
        todo += _expand_first_list(one)
        if len(todo) + len(done) > _MAX_PATTERNS:
            raise NotSupported(f"'{glob}' stands for too many patterns")
    return list(dict.fromkeys(done))


def _expand_first_list(glob: str) -> Iterator[str]:
    """The glob with each option of its first list in braces."""
    start = glob.index("{")
    depth, marks = 0, [start]
    for at in range(start, len(glob)):
        depth += {"{": 1, "}": -1}.get(glob[at], 0)
        if glob[at] == "," and depth == 1:
            marks.append(at)
        if depth == 0:
            marks.append(at)
            break
    if depth or len(marks) == 2 or "}" in glob[:start]:
        raise NotSupported(f"'{glob}' has braces that are not a plain list")
    for before, after in zip(marks, marks[1:], strict=False):
        yield glob[:start] + glob[before + 1 : after] + glob[marks[-1] + 1 :]


def _parts(glob: str) -> list[str]:
    parts: list[str] = []
    for part in re.split("/+", glob):
        before = parts[-1] if parts else ""
        if part == "**" and before == "**":
            continue
        if part == ".." and before not in ("", "..", ".", "**"):
            parts.pop()
            continue
        parts.append(part)
    return parts or [""]


def _path(parts: Sequence[str]) -> str:
    """Translate a path; no file has an empty part, so a pattern with one matches nothing."""
    if any(part in ("", ".", "..") for part in parts):
        return _NOTHING
    translated = ""
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        if part == "**":
            translated += ".+" if is_last else "(?:[^/]+/)*"
        else:
            translated += _name(part) + ("" if is_last else "/")
    return translated


def _name(part: str) -> str:
    """One name of a path."""
    if not part.strip(_ALL_STARS):
        return "[^/]+"
    units = code_units(part, ignores_case=True)
    translated, at = "", 0
    while at < len(units):
        unit = units[at]
        at += 1
        if unit == "*":
            translated += "[^/]*"
        elif unit == "?":
            translated += "[^/]"
        elif unit == "[":
            found, at = _set(part, units, at)
            translated += found
        elif unit == "\\" and at < len(units):
            translated += re.escape(units[at])
            at += 1
        else:
            translated += re.escape(unit)
    return translated


def _set(part: str, units: str, at: int) -> tuple[str, int]:
    """Translate a set such as `[a-c]`, and its end; an unclosed bracket is literal."""
    start = at + (units[at : at + 1] in ("!", "^"))
    end = units.find("]", start + 1)
    if end < 0:
        if "\\" in units[at:] or "[" in units[at:]:
            raise NotSupported(f"'{part}' has a bracket that is not closed")
        return re.escape("["), at
    inside = units[start:end]
    if "[" in inside or "\\" in inside:
        raise NotSupported(f"'{part}' has a set that is not plain")
    # Ranges apply to letters as written, not to their upper case.
    written = code_units(part, ignores_case=False)[start:end]
    members = _members(part, written)
    if not members:
        return _NOTHING, len(units)
    return f"[{'^/' if start > at else ''}{members}]", end + 1


def _members(part: str, written: str) -> str:
    codes: set[str] = set()
    at = 0
    while at < len(written):
        first, last = written[at], written[at]
        at += 1
        if written[at : at + 1] == "-" and at + 1 < len(written):
            last = written[at + 1]
            at += 2
        if not (first.isascii() and last.isascii()):
            raise NotSupported(f"'{part}' has a set with other letters than English ones")
        codes.update(chr(code) for code in range(ord(first), ord(last) + 1))
    return "".join(sorted({re.escape(code.upper()) for code in codes}))
