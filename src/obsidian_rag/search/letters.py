"""Count a question's words in the candidates, score them by letters, and correct typos.

The letters score is BM25 over words and groups of four letters, where the space before and after
a word counts as a letter. Groups find what a root cannot: compounds, names in another case,
endings of languages that we have no stemmer for, and typos. A word counts as three groups.
"""

import os.path
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from obsidian_rag.notes import MARKS, WORD
from obsidian_rag.search.keywords import bm25, idf, length_damping
from obsidian_rag.search.words import folded, is_unspaced, root, words_of
from obsidian_rag.store import Clause, Lookup

_MIN_CHARS = 4
# LanceDB refuses fuzzy search for longer words (its automaton is limited to 10,000 states).
_MAX_CHARS = 40
_TWO_EDITS_CHARS = 9
_SHORT_CHARS = 5
_MAX_CORRECTIONS = 3
_MAX_LENGTH_DIFFERENCE = 3
_MAX_CORRECTION_ROWS = 20
_NAME = re.compile(r"(?<=[^\s.!?:] )[^\W\d_a-z]\w*|\w*[a-z][A-Z]\w*|\w+_\w+")
# Only in English: German capitalises every noun.
_ENGLISH = re.compile(r"\b(?:the|an?|of|to|for|with|how|do|my|is|in|from|cannot)\b", re.IGNORECASE)
_GROUP_CHARS = 4
# In UTF-16; a group with characters beyond the first 65,536 has more.
_GROUP_BYTES = 2 * _GROUP_CHARS
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_PREFIX_CHARS = 3
_WORD_WEIGHT = 3.0
# More groups add little, and each costs a pass over every candidate.
_MAX_GROUPS = 160
_ASCII = bytes(
    byte if chr(byte).isalnum() or chr(byte) == "_" else 0x20 for byte in range(128)
).ljust(256)
_BEYOND_ASCII = _ASCII[:128] + bytes(range(128, 256))
_OTHER_SIGNS = re.compile(rf"[^\x00-\x7f\w{MARKS}]")
# Arabic attaches its article and some prepositions to the front of the word.
_ARABIC = re.compile("[\u0600-\u06ff]")
_ARABIC_PREFIX = "[^ ]{0,4}"
Counts = Mapping[int, Sequence[int]]
Places = Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Correction:
    """A question in the words of the vault; `is_slip` if one was misspelt, not just inflected."""

    text: str
    is_slip: bool


def correct_words(
    lookup: Lookup,
    text: str,
    having: Mapping[str, int],
    where: str | None,
    admits: Callable[[str, str], bool] | None = None,
) -> Correction | None:
    """Replace words that no passage has by similar ones from the vault; None if unchanged.

    The store stems English words. In other languages, a form that no passage has in text, names or
    code is replaced by one that a passage has. Misspelt words are replaced in every language.
    """
    changes: dict[str, str] = {}
    for word in [one for one, count in having.items() if not count][:_MAX_CORRECTIONS]:
        if _MIN_CHARS <= len(word) <= _MAX_CHARS and word.isalpha():
            likely = _find_likely(lookup, word, where, admits)
            if likely is not None:
                changes[word] = likely
    if not changes:
        return None
    right = WORD.sub(lambda found: changes.get(folded(found[0]), found[0]), text)
    return Correction(right, any(root(word) != root(likely) for word, likely in changes.items()))


def _find_likely(
    lookup: Lookup, word: str, where: str | None, admits: Callable[[str, str], bool] | None
) -> str | None:
    exact = [Clause(word, column) for column in ("names", "words_only")]
    if lookup.by_words(exact, where, 1):
        return None
    # The store's words are stemmed and this one is not: that alone may cost an edit.
    near = [Clause(word, column, 1.0, 2) for column in ("names", "chunk_text")]
    found = lookup.by_words(near, where, _MAX_CORRECTION_ROWS)
    rows = lookup.rows(sorted(found, key=lambda number: -found[number])[:_MAX_CORRECTION_ROWS])
    texts = (
        f"{row.names}\n{row.chunk_text}"
        for row in rows.values()
        if admits is None or admits(row.link_id, row.source_file)
    )
    return nearest_word(word, (one for text in texts for one in words_of(folded(text))))


def nearest_word(word: str, others: Iterable[str]) -> str | None:
    """Another form of the word, or one within one edit (two if the word is long)."""
    most = 2 if len(word) >= _TWO_EDITS_CHARS else 1
    counts = Counter(
        other
        for other in others
        if other[0] == word[0] and abs(len(other) - len(word)) <= _MAX_LENGTH_DIFFERENCE
    )
    ranked = (
        (0 if root(other) == root(word) else edits(word, other, most), -count, other)
        for other, count in counts.items()
    )
    likely = [
        (far, count, other)
        for far, count, other in ranked
        if far == 0 or (far <= most and (len(word) > _SHORT_CHARS or _is_slip(word, other)))
    ]
    return min(likely)[2] if likely else None


def _is_slip(word: str, other: str) -> bool:
    """Whether short words differ only by swapped or doubled letters."""
    return sorted(word) == sorted(other) or _collapse_repeats(word) == _collapse_repeats(other)


def _collapse_repeats(word: str) -> str:
    return re.sub(r"(.)\1+", r"\1", word)


def has_unknown_name(text: str, having: Mapping[str, int]) -> bool:
    """Whether a question contains a name that no passage has."""
    if not _ENGLISH.search(text):
        return False
    names = {folded(name) for name in _NAME.findall(text)}
    return any(having.get(name) == 0 for name in names)


def edits(one: str, other: str, most: int) -> int:
    """Edit distance, counting swapped neighbours as one; above `most`, any larger number."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, another in enumerate(other, 1):
            cost = min(row[-1] + 1, before[j] + 1, before[j - 1] + (letter != another))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == another:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]


def blank_signs(plain: str) -> str:
    """A folded text with everything but words replaced by spaces, for the functions below."""
    if plain.isascii():
        return f" {plain.encode().translate(_ASCII).decode()} "
    # Most punctuation is ASCII even here, and translating bytes is fast.
    encoded = plain.encode(errors="surrogatepass").translate(_BEYOND_ASCII)
    return f" {' '.join(_OTHER_SIGNS.sub(' ', encoded.decode(errors='surrogatepass')).split())} "


def root_places(words: Sequence[str], texts: Mapping[int, str]) -> dict[int, Places]:
    """The positions of the words' roots in each spaced text, in order."""
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
    """How often each word occurs in each spaced text, in any form.

    `places` is the result of `root_places`, if the caller has it already.
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
    """A pattern for possible forms of the words, and the words' indexes by root."""
    at_root: dict[str, list[int]] = {}
    for at, word in enumerate(words):
        if not is_unspaced(word):
            at_root.setdefault(root(word), []).append(at)
    starts = sorted(
        {_prefix_pattern(words[at], form) for form, all_at in at_root.items() for at in all_at}
    )
    return re.compile(f" ((?:{'|'.join(starts)})[^ ]*)") if starts else None, at_root


def letter_groups(words: Sequence[str]) -> tuple[str, ...]:
    """The four-letter groups of the words, each word between two spaces."""
    groups: dict[str, None] = {}
    for word in words:
        padded = word if is_unspaced(word) else f" {word} "
        for at in range(max(1, len(padded) - _GROUP_CHARS + 1)):
            groups[padded[at : at + _GROUP_CHARS]] = None
    return tuple(groups)[:_MAX_GROUPS]


def letter_scores(
    words: Sequence[str], texts: Mapping[int, str], counts: Counts | None = None
) -> dict[int, float]:
    """BM25 of a question's words and letter groups over the spaced texts of the candidates.

    `counts` is the result of `word_counts`, if the caller has it already.
    """
    groups = letter_groups(words)
    if not groups or not texts:
        return {}
    counts = word_counts(words, texts) if counts is None else counts
    found = np.hstack(
        (group_counts(groups, list(texts.values())), [counts[number] for number in texts])
    )
    weights = np.array([idf(len(texts), int(having)) for having in np.sum(found > 0, axis=0)])
    weights[len(groups) :] *= _WORD_WEIGHT
    lengths = np.array([[len(text)] for text in texts.values()])
    scores = bm25(found, length_damping(lengths, float(np.mean(lengths)))) @ weights
    return dict(zip(texts, scores.tolist(), strict=True))


def group_counts(groups: Sequence[str], texts: Sequence[str]) -> NDArray[np.int64]:
    """How often each group occurs in each text: a row per text, a column per group.

    Four letters fit in one 64-bit number, and all texts together are one array of such numbers:
    much faster than searching each text for each group.
    """
    counts = np.zeros((len(texts), len(groups)), np.int64)
    codes = {}
    for at, group in enumerate(groups):
        if len(units := _units(group)) == _GROUP_BYTES:
            codes[int.from_bytes(units, "little")] = at
        else:
            counts[:, at] = [text.count(group) for text in texts]
    if not codes:
        return counts
    joined = [_units(text) for text in texts]
    ends = np.cumsum([len(units) for units in joined])
    whole = b"".join(joined) + bytes(_GROUP_BYTES)
    wanted = np.array(sorted(codes), "<u8")
    columns = np.array([codes[code] for code in sorted(codes)])
    is_likely = np.zeros(1 << 16, bool)
    is_likely[_hash16(wanted)] = True
    for offset in range(0, _GROUP_BYTES, 2):
        seen = np.frombuffer(whole, "<u8", (len(whole) - offset) // _GROUP_BYTES, offset)
        places = np.flatnonzero(is_likely[_hash16(seen)])
        nearest = np.searchsorted(wanted, seen[places]).clip(max=len(wanted) - 1)
        is_same = wanted[nearest] == seen[places]
        at = places[is_same] * _GROUP_BYTES + offset
        # No match spans two texts: a group never has two spaces in a row.
        rows = np.searchsorted(ends, at, side="right")
        np.add.at(counts, (rows, columns[nearest[is_same]]), 1)
    return counts


def _units(text: str) -> bytes:
    return text.encode("utf-16-le", errors="surrogatepass")


def _hash16(codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 16-bit hash of each code: rules out nearly all groups that are not wanted."""
    return (codes * _HASH_FACTOR) >> np.uint64(48)


def _prefix_pattern(word: str, form: str) -> str:
    """A pattern for the beginning of a word's forms."""
    if _ARABIC.match(word):
        return _ARABIC_PREFIX + re.escape(form[:_PREFIX_CHARS])
    return re.escape(os.path.commonprefix([word, form])[:_PREFIX_CHARS] or word[:1])
