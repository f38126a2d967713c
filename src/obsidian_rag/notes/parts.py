"""The parts of a long passage that get a meaning vector of their own.

A vector of a long passage says what all of it is about, and nothing of the one sentence that was
asked for. Parts are measured in letters, so that scripts without spaces have them too.
"""

import re

# Shorter passages are one part: their own vector says it all.
_LEAST = 800
_PART = 550
# How far from an even cut a better place is looked for, the best kind first.
_REACH = 120
_PLACES = (re.compile(r"\n+"), re.compile(r"(?<=[.!?。！？])\s*"), re.compile(r"\s+"))


def text_parts(text: str, head_chars: int) -> list[str]:
    """The parts of an embedded text, each behind its head: title and headings; none if it is short.

    `head_chars` is how long the head is. Nothing of the text is left out.
    """
    head, body = text[:head_chars], text[head_chars:]
    if len(body) < _LEAST:
        return []
    count = max(2, round(len(body) / _PART))
    ends = [_place(body, len(body) * number // count) for number in range(1, count)]
    starts = [0, *ends]
    parts = [body[start:end] for start, end in zip(starts, [*ends, len(body)], strict=True)]
    return [head + part for part in parts if part.strip()]


def _place(body: str, wanted: int) -> int:
    """The place nearest to `wanted` where a line, a sentence or a word ends."""
    first = wanted - _REACH
    near = body[first : wanted + _REACH]
    for kind in _PLACES:
        found = [match.end() for match in kind.finditer(near) if 0 < match.end() < len(near)]
        if found:
            return first + min(found, key=lambda at: abs(at - _REACH))
    return wanted
