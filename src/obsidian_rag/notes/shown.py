"""A chunk as its note shows it: the embedded text, with the code that is not embedded in its place.

A chunk stores its code apart from its text, in `words_only`. So that nothing is stored twice, it
also stores a layout: three numbers for every code block, in the order of `words_only`. These are
its place in the text, its length in characters, and flags:

    BEGINS     its first line is the text after the opening fence: the language
    ONLY_CODE  the chunk has no text of its own, only a label in place of it
"""

import re
from collections.abc import Sequence

BEGINS = 1
ONLY_CODE = 2
NUMBERS = 3
# The length of two fences and their line ends.
FENCES_CHARS = 9

_TICKS = re.compile("`{3,}")
_FENCE = re.compile(r"(`{3,})(.*)")
_MAX_FENCE_CHARS = 40
CUT_CHARS = 2 * _MAX_FENCE_CHARS + 6


def shown_text(text: str, words_only: str, layout: Sequence[int]) -> str:
    """The text of a chunk with its code; properties, which follow the code, are not shown."""
    if not layout:
        return text
    if layout[2] & ONLY_CODE:
        text = ""
    parts: list[str] = []
    done = read = 0
    blocks = zip(layout[::NUMBERS], layout[1::NUMBERS], layout[2::NUMBERS], strict=True)
    for place, length, kind in blocks:
        _append_part(parts, text[done:place])
        _append_part(parts, fence(words_only[read : read + length], begins=bool(kind & BEGINS)))
        done, read = place, read + length + 1
    _append_part(parts, text[done:])
    return "".join(parts)


def shown_chars(text: str, layout: Sequence[int]) -> int:
    """The maximum length of the shown text, if the code contains no fences."""
    return len(text) + sum(layout[1::NUMBERS]) + FENCES_CHARS * (len(layout) // NUMBERS)


def fence(code: str, *, begins: bool) -> str:
    """Code between fences longer than any inside it."""
    info, _, rest = code.partition("\n") if begins else ("", "", code)
    longest = max(map(len, _TICKS.findall(code)), default=2)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{info}\n{rest}\n{ticks}" if rest else f"{ticks}{info}\n{ticks}"


def cut_shown(text: str, start: int, end: int) -> str:
    """Part of a shown text, with "…" for what is left out, and all fences closed.

    The result is up to CUT_CHARS longer than the part.
    """
    opened = _open_fence(text[:start])[:_MAX_FENCE_CHARS] if start else ""
    before = f"…\n{opened}\n" if opened else "…" if start else ""
    left = _open_fence(before + text[start:end])[:_MAX_FENCE_CHARS] if end < len(text) else ""
    after = f"…\n{_leading_ticks(left)}" if left else "…" if end < len(text) else ""
    return before + text[start:end] + after


def _open_fence(text: str) -> str:
    """The line that opens a fence that is not closed; empty if there is none."""
    opened = ""
    for line in text.split("\n") if "```" in text else ():
        found = _FENCE.fullmatch(line)
        if found is None:
            continue
        if not opened:
            opened = line
        elif not found[2] and len(found[1]) >= len(_leading_ticks(opened)):
            opened = ""
    return opened


def _leading_ticks(fence: str) -> str:
    return fence[: len(fence) - len(fence.lstrip("`"))]


def _append_part(parts: list[str], part: str) -> None:
    if part:
        if parts and not part.startswith("\n"):
            parts.append("\n")
        parts.append(part)
