"""Which words of a question the candidates have, and how alike they are by their letters.

Letters are BM25 over words and over groups of four letters, where the space before and behind a
word counts as a letter. Groups find what a root cannot: compounds, names in another case, endings
of languages that we have no stemmer for, and slips. A word counts as much as three groups.
"""

import os.path
import re
from collections.abc import Mapping, Sequence

from obsidian_rag.notes import MARKS
from obsidian_rag.search.telling import rarity_of
from obsidian_rag.search.words import is_unspaced, root

_K1 = 1.2
_B = 0.75
_SIZE = 4
_PREFIX = 3
_WORD_WEIGHT = 3.0
# Groups beyond that tell little, and each costs a look at every candidate.
_MOST_GROUPS = 160
_ASCII = bytes(
    byte if chr(byte).isalnum() or chr(byte) == "_" else 0x20 for byte in range(128)
).ljust(256)
_BETWEEN_WORDS = re.compile(rf"[^\w{MARKS}]+")
# Arabic has its article and some prepositions before the word, in one.
_ARABIC = re.compile("[\u0600-\u06ff]")
_BEFORE_ARABIC = "[^ ]{0,4}"

Counts = Mapping[int, Sequence[int]]


def spaced(plain: str) -> str:
    """A folded text with spaces for all that is not of a word, ready for the functions below."""
    if plain.isascii():
        return f" {plain.encode().translate(_ASCII).decode()} "
    return f" {_BETWEEN_WORDS.sub(' ', plain)} "


def word_counts(words: Sequence[str], texts: Mapping[int, str]) -> dict[int, list[int]]:
    """How often each of the words occurs in each spaced text, as itself or in another form."""
    places: dict[str, list[int]] = {}
    for at, word in enumerate(words):
        if not is_unspaced(word):
            places.setdefault(root(word), []).append(at)
    starts = sorted({_start(words[at], form) for form, all_at in places.items() for at in all_at})
    forms = re.compile(f" ((?:{'|'.join(starts)})[^ ]*)") if starts else None
    pieces = [(at, word) for at, word in enumerate(words) if is_unspaced(word)]
    counts = {}
    for number, text in texts.items():
        found = [0] * len(words)
        for form in forms.findall(text) if forms else ():
            for at in places.get(root(form), ()):
                found[at] += 1
        for at, piece in pieces:
            found[at] = text.count(piece)
        counts[number] = found
    return counts


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
    found = {number: [*map(text.count, groups), *counts[number]] for number, text in texts.items()}
    weights = [1.0] * len(groups) + [_WORD_WEIGHT] * len(words)
    rarity = [
        weight * rarity_of(len(texts), sum(map(bool, column)))
        for weight, column in zip(weights, zip(*found.values(), strict=True), strict=True)
    ]
    mean = sum(map(len, texts.values())) / len(texts)
    scores = {}
    for number, row in found.items():
        damping = _K1 * (1 - _B + _B * len(texts[number]) / mean)
        scores[number] = sum(
            weight * count * (_K1 + 1) / (count + damping)
            for count, weight in zip(row, rarity, strict=True)
            if count
        )
    return scores


def missing_words(words: Sequence[str], counts: Counts) -> tuple[str, ...]:
    """The words that no candidate has in any form: wrong letters are forgiven in these alone.

    A candidate list is cut short, so ask the store for the exact word before forgiving.
    """
    return tuple(
        word
        for at, word in enumerate(words)
        if not is_unspaced(word) and not any(found[at] for found in counts.values())
    )


def _start(word: str, form: str) -> str:
    """A pattern for how the forms of a word begin."""
    if _ARABIC.match(word):
        return _BEFORE_ARABIC + re.escape(form[:_PREFIX])
    return re.escape(os.path.commonprefix([word, form])[:_PREFIX] or word[:1])
