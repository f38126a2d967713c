"""Which words of a question the candidates have, where together, and how alike by their letters.

Letters are BM25 over words and over groups of four letters, where the space before and behind a
word counts as a letter. Groups find what a root cannot: compounds, names in another case, endings
of languages that we have no stemmer for, and slips. A word counts as much as three groups.
"""

import os.path
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.notes import MARKS
from obsidian_rag.search.telling import rarity_of
from obsidian_rag.search.words import is_unspaced, root

_K1 = 1.2
_B = 0.75
_SIZE = 4
# Bytes of a group in UTF-16; one with letters beyond the first 65,536 has more.
_WHOLE = 2 * _SIZE
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_PREFIX = 3
_WORD_WEIGHT = 3.0
# Groups beyond that tell little, and each costs a look at every candidate.
_MOST_GROUPS = 160
_ASCII = bytes(
    byte if chr(byte).isalnum() or chr(byte) == "_" else 0x20 for byte in range(128)
).ljust(256)
_BEYOND_ASCII = _ASCII[:128] + bytes(range(128, 256))
_OTHER_SIGNS = re.compile(rf"[^\x00-\x7f\w{MARKS}]")
# Arabic has its article and some prepositions before the word, in one.
_ARABIC = re.compile("[\u0600-\u06ff]")
_BEFORE_ARABIC = "[^ ]{0,4}"

Counts = Mapping[int, Sequence[int]]
Places = Sequence[tuple[int, str]]


def spaced(plain: str) -> str:
    """A folded text with spaces for all that is not of a word, ready for the functions below."""
    if plain.isascii():
        return f" {plain.encode().translate(_ASCII).decode()} "
    # Most signs are ASCII even here, and bytes are quickly replaced.
    encoded = plain.encode(errors="surrogatepass").translate(_BEYOND_ASCII)
    return f" {' '.join(_OTHER_SIGNS.sub(' ', encoded.decode(errors='surrogatepass')).split())} "


def root_places(words: Sequence[str], texts: Mapping[int, str]) -> dict[int, Places]:
    """Where the roots of the words stand in each spaced text, from its beginning on."""
    forms, at_root = _forms(tuple(words))
    if forms is None:
        return dict.fromkeys(texts, ())
    return {
        number: [
            (match.start(), one)
            for match in forms.finditer(text)
            if (one := root(match[1])) in at_root
        ]
        for number, text in texts.items()
    }


def word_counts(
    words: Sequence[str], texts: Mapping[int, str], places: Mapping[int, Places] | None = None
) -> dict[int, list[int]]:
    """How often each of the words occurs in each spaced text, as itself or in another form.

    `places` is what `root_places` says of them, for those who have it already.
    """
    _, at_root = _forms(tuple(words))
    places = root_places(words, texts) if places is None else places
    pieces = [(at, word) for at, word in enumerate(words) if is_unspaced(word)]
    counts = {}
    for number, text in texts.items():
        found = [0] * len(words)
        for _, one in places[number]:
            for at in at_root[one]:
                found[at] += 1
        for at, piece in pieces:
            found[at] = text.count(piece)
        counts[number] = found
    return counts


@lru_cache(maxsize=16)
def _forms(words: tuple[str, ...]) -> tuple[re.Pattern[str] | None, dict[str, list[int]]]:
    """A pattern for what may be a form of a word, and the numbers of the words by their roots."""
    at_root: dict[str, list[int]] = {}
    for at, word in enumerate(words):
        if not is_unspaced(word):
            at_root.setdefault(root(word), []).append(at)
    starts = sorted({_start(words[at], form) for form, all_at in at_root.items() for at in all_at})
    return re.compile(f" ((?:{'|'.join(starts)})[^ ]*)") if starts else None, at_root


def letter_groups(words: Sequence[str]) -> tuple[str, ...]:
    """The groups of four letters in the words, each word between two spaces."""
    groups: dict[str, None] = {}
    for word in words:
        padded = word if is_unspaced(word) else f" {word} "
        for at in range(max(1, len(padded) - _SIZE + 1)):
            groups[padded[at : at + _SIZE]] = None
    return tuple(groups)[:_MOST_GROUPS]


def letter_scores(
    words: Sequence[str], texts: Mapping[int, str], counts: Counts | None = None
) -> dict[int, float]:
    """BM25 of a question's words and of their letters over the spaced texts of the candidates.

    `counts` is what `word_counts` says of them, for those who have it already.
    """
    groups = letter_groups(words)
    if not groups or not texts:
        return {}
    counts = word_counts(words, texts) if counts is None else counts
    found = np.hstack(
        (group_counts(groups, list(texts.values())), [counts[number] for number in texts])
    )
    rarity = np.array([rarity_of(len(texts), int(having)) for having in np.sum(found > 0, axis=0)])
    rarity[len(groups) :] *= _WORD_WEIGHT
    lengths = np.array([[len(text)] for text in texts.values()])
    damping = _K1 * (1 - _B + _B * lengths / np.mean(lengths))
    scores = (found * (_K1 + 1) / (found + damping)) @ rarity
    return dict(zip(texts, scores.tolist(), strict=True))


def group_counts(groups: Sequence[str], texts: Sequence[str]) -> NDArray[np.int64]:
    """How often each group occurs in each text: a row for each text, a column for each group.

    Four letters are one number of 64 bits, and all texts are one array of such numbers, which is
    much quicker than to look for each group in each text.
    """
    counts = np.zeros((len(texts), len(groups)), np.int64)
    codes = {}
    for at, group in enumerate(groups):
        if len(units := _units(group)) == _WHOLE:
            codes[int.from_bytes(units, "little")] = at
        else:
            counts[:, at] = [text.count(group) for text in texts]
    if not codes:
        return counts
    joined = [_units(text) for text in texts]
    ends = np.cumsum([len(units) for units in joined])
    whole = b"".join(joined) + bytes(_WHOLE)
    wanted = np.array(sorted(codes), "<u8")
    columns = np.array([codes[code] for code in sorted(codes)])
    is_likely = np.zeros(1 << 16, bool)
    is_likely[_short(wanted)] = True
    for offset in range(0, _WHOLE, 2):
        seen = np.frombuffer(whole, "<u8", (len(whole) - offset) // _WHOLE, offset)
        places = np.flatnonzero(is_likely[_short(seen)])
        nearest = np.searchsorted(wanted, seen[places]).clip(max=len(wanted) - 1)
        is_same = wanted[nearest] == seen[places]
        at = places[is_same] * _WHOLE + offset
        # Not one that begins in a text and ends in the next: a group has no two spaces in a row.
        rows = np.searchsorted(ends, at, side="right")
        np.add.at(counts, (rows, columns[nearest[is_same]]), 1)
    return counts


def _units(text: str) -> bytes:
    return text.encode("utf-16-le", errors="surrogatepass")


def _short(codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sixteen bits of each, by which next to all that is not wanted is told apart."""
    return (codes * _SPREAD) >> np.uint64(48)


def _start(word: str, form: str) -> str:
    """A pattern for how the forms of a word begin."""
    if _ARABIC.match(word):
        return _BEFORE_ARABIC + re.escape(form[:_PREFIX])
    return re.escape(os.path.commonprefix([word, form])[:_PREFIX] or word[:1])
