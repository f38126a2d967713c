"""A cheap, conservative guess of how many tokens a text costs.

Counted in quarter tokens, so that the parts of a text add up exactly to the whole.
"""

import re

QUARTERS = 4

_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
# Hangul, kana, CJK and everything outside the basic plane (emoji, rare ideographs).
_WIDE = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    "\U00010000-\U0010ffff]+"
)


def quarter_tokens(text: str) -> int:
    """The cost of `text` in quarters of a token: ASCII 1, wide characters 4, others 2."""
    if text.isascii():
        return len(text)
    strange = "".join(_NON_ASCII.findall(text))
    wide = sum(map(len, _WIDE.findall(strange)))
    return len(text) + len(strange) + 2 * wide
