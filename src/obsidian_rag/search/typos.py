"""Words that nobody wrote: slips that are put right, and names of what no note is about."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from obsidian_rag.notes import WORD
from obsidian_rag.search.words import folded, root, words_of
from obsidian_rag.store import Clause, Lookup

_SHORTEST = 4
# LanceDB refuses to look for near matches of longer words (an automaton of 10,000 states).
_LONGEST = 40
_LONG = 9
_SHORT = 5
_MOST = 3
_LONGER = 3
_LOOKED_AT = 20


@dataclass(frozen=True, slots=True)
class Corrected:
    """A question in the words of the vault; `is_slip` if one was misspelt, not only inflected."""

    text: str
    is_slip: bool


def corrected(
    lookup: Lookup,
    text: str,
    having: Mapping[str, int],
    where: str | None,
    admits: Callable[[str, str], bool] | None = None,
) -> Corrected | None:
    """The question with words that no passage has put right; None if there is nothing to do.

    The store knows the forms of English words. Of other languages, a form that no passage has, in
    text, names or code, is replaced by one that a passage has; and so is a word with a slip in it.
    """
    changes: dict[str, str] = {}
    for word in [one for one, count in having.items() if not count][:_MOST]:
        if _SHORTEST <= len(word) <= _LONGEST and word.isalpha():
            likely = _likely(lookup, word, where, admits)
            if likely is not None:
                changes[word] = likely
    if not changes:
        return None
    right = WORD.sub(lambda found: changes.get(folded(found[0]), found[0]), text)
    return Corrected(right, any(root(word) != root(likely) for word, likely in changes.items()))


def _likely(
    lookup: Lookup, word: str, where: str | None, admits: Callable[[str, str], bool] | None
) -> str | None:
    exact = [Clause(word, column) for column in ("names", "words_only")]
    if lookup.by_words(exact, where, 1):
        return None
    # The store's words are stemmed and this one is not, which costs a letter by itself.
    near = [Clause(word, column, 1.0, 2) for column in ("names", "chunk_text")]
    found = lookup.by_words(near, where, _LOOKED_AT)
    rows = lookup.rows(sorted(found, key=lambda number: -found[number])[:_LOOKED_AT])
    texts = (
        f"{row.names}\n{row.chunk_text}"
        for row in rows.values()
        if admits is None or admits(row.link_id, row.source_file)
    )
    return nearest_word(word, (one for text in texts for one in words_of(folded(text))))


def nearest_word(word: str, others: Iterable[str]) -> str | None:
    """Another form of the word, or one with few changes: one in a short word, two in a long one."""
    most = 2 if len(word) >= _LONG else 1
    counts = Counter(
        other for other in others if other[0] == word[0] and abs(len(other) - len(word)) <= _LONGER
    )
    ranked = (
        (0 if root(other) == root(word) else edits(word, other, most), -count, other)
        for other, count in counts.items()
    )
    likely = [
        (far, count, other)
        for far, count, other in ranked
        if far == 0 or (far <= most and (len(word) > _SHORT or _is_slip(word, other)))
    ]
    return min(likely)[2] if likely else None


def _is_slip(word: str, other: str) -> bool:
    """Whether short words differ only by swapped letters, or by a letter written twice."""
    return sorted(word) == sorted(other) or _single(word) == _single(other)


def _single(word: str) -> str:
    return re.sub(r"(.)\1+", r"\1", word)


_NAME = re.compile(r"(?<=[^\s.!?:] )[^\W\d_a-z]\w*|\w*[a-z][A-Z]\w*|\w+_\w+")
# German writes every noun like a name.
_ENGLISH = re.compile(r"\b(?:the|an?|of|to|for|with|how|do|my|is|in|from|cannot)\b", re.IGNORECASE)


def has_unknown_name(text: str, having: Mapping[str, int]) -> bool:
    """Whether a question calls something by a name that no passage has."""
    if not _ENGLISH.search(text):
        return False
    names = {folded(name) for name in _NAME.findall(text)}
    return any(having.get(name) == 0 for name in names)


def edits(one: str, other: str, most: int) -> int:
    """Letters added, left out, replaced or swapped with their neighbour; beyond `most`, more."""
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
