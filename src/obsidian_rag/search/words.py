"""The words of a question: folded for comparison, without the ones that say nothing."""

import itertools
import re
import unicodedata
from functools import lru_cache

_WORD = re.compile(r"\w+")
# Short texts are questions: what matters is that the list is safe, not that it is complete.
_STOP = frozenset(
    _WORD.findall(
        """
        a about after all also am an and any are as at be been before being but by can could d did
        do does doing don during each ever few for from had has have having he her here hers him his
        how i if in into is it its just ll m me more most my no nor not now of off on once only or
        other our out over own re s same she should so some such t than that the their them then
        there these they this those through to too under until up ve very was we were what when
        where which while who whom why will with would you your
        """
    )
)
_SHORT = 3
_MOST_PAIRED = 10


@lru_cache(maxsize=4096)
def folded(text: str) -> str:
    """Lower case without accents, so that `Café` and `cafe` are one word."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in plain if not unicodedata.combining(c)))


def question_words(text: str) -> tuple[str, ...]:
    """The folded words of a question that carry meaning; all of them if none does."""
    words = tuple(dict.fromkeys(_WORD.findall(folded(text))))
    telling = tuple(word for word in words if word not in _STOP)
    return telling or words


def word_query(text: str) -> str:
    """The question for word search: no words that say nothing, and neighbours as one word too.

    "mental health" then finds #mentalhealth, and a compound is found by its parts.
    """
    words = _WORD.findall(text)
    telling = [word for word in words if word.lower() not in _STOP]
    pairs = [
        first + second
        for first, second in itertools.pairwise(telling[:_MOST_PAIRED])
        if len(first) > 2 and len(second) > 2
    ]
    return " ".join((*telling, *pairs) if telling else words)


def letter_groups(words: tuple[str, ...]) -> tuple[str, ...]:
    """Groups of three letters within the words: what inflected forms and compounds share."""
    groups: dict[str, None] = {}
    for word in words:
        if len(word) <= _SHORT:
            groups[word] = None
        else:
            groups.update((word[at : at + 3], None) for at in range(len(word) - 2))
    return tuple(groups)


def matched(words: tuple[str, ...], text: str) -> tuple[str, ...]:
    """The words that occur in folded `text`, themselves or in another form."""
    return tuple(word for word in words if stem(word) in text)


def stem(word: str) -> str:
    """The part of a word that its other forms share, roughly."""
    return word if len(word) <= _SHORT + 1 else word[: max(_SHORT + 1, len(word) - 2)]
