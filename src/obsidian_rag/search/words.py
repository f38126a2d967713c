"""The words of a question: folded for comparison, without the ones that say nothing.

Three views of the same words. The store gets them as they are written and takes them apart by
itself. Coverage compares roots of whole words. Scripts without spaces have no words that we could
tell, so their sentences are cut into overlapping pieces of two letters, each with its marks.
"""

import itertools
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

import Stemmer

from obsidian_rag import notes
from obsidian_rag.notes import MARKS, UNSPACED, WORD
from obsidian_rag.search.filler import FILLER, KOREAN_ENDING, UNSPACED_TALK, talk

_SHORT = 3
_MOST_PAIRED = 10
_RUN = re.compile(f"[{UNSPACED}]+|[^{UNSPACED}]+")
_HAS_UNSPACED = re.compile(f"[{UNSPACED}]")
# A letter of these scripts with its vowels and tones, and with the letter that is written below it.
_LETTER = re.compile(
    ".(?:[\u17d2\u1039].|[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e"
    "\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u109a-\u109d"
    "\u17b4-\u17d3\u17dd\u3099\u309a])*"
)
_HANGUL = re.compile("[\uac00-\ud7a3]")
# Pieces of Japanese that are grammar: kana alone, and a particle beside another letter.
_GRAMMAR = re.compile("[\u3041-\u309f]+|[のはがをにでともへや].|.[のはがをにでともへや]")
# A token whose inner signs the store does not break it at: don't, l'été, a.tar.gz, 1.2.3.
_JOINED = re.compile(rf"[\w{MARKS}]+(?:['’.,:·_][\w{MARKS}]+)+")
_ENDING = re.compile("(?:ern|en|em|es|as|os|e|s|a|o|i|n)$")
_STEMMERS = (
    ("\u0370", "\u0400", "greek"),
    ("\u0400", "\u0530", "russian"),
    ("\u0530", "\u0590", "armenian"),
    ("\u0600", "\u0700", "arabic"),
    ("\u0900", "\u0980", "hindi"),
    ("\u0b80", "\u0c00", "tamil"),
)


@lru_cache(maxsize=4096)
def folded(text: str) -> str:
    """Lower case without accents; the passages of one question come again with the next."""
    return notes.folded(text)


def words_of(plain: str) -> list[str]:
    """The words of a folded text in their order; pieces where its script has no spaces."""
    words = WORD.findall(plain)
    if plain.isascii() or not _HAS_UNSPACED.search(plain):
        return words
    return [piece for word in words for piece in _pieces(word)]


def word_set(text: str) -> frozenset[str]:
    """The whole folded words of a text."""
    return frozenset(words_of(folded(text)))


@lru_cache(maxsize=1 << 15)
def root(word: str) -> str:
    """What the forms of a folded word have in common; the same of a root."""
    if _HANGUL.match(word):
        return KOREAN_ENDING.sub("", word) or word
    if len(word) <= _SHORT or word.isdigit():
        return word
    if word.isascii():
        stemmed: str = _stemmer("english").stemWord(word)
        return _ENDING.sub("", stemmed) if len(stemmed) > _SHORT + 1 else stemmed
    for first, last, language in _STEMMERS:
        if first <= word[0] < last:
            return str(_stemmer(language).stemWord(word)) or word
    return word


def question_words(text: str) -> tuple[str, ...]:
    """The folded words of a question that carry meaning; all of them if none does."""
    plain = folded(text)
    words = tuple(dict.fromkeys(words_of(plain)))
    said = UNSPACED_TALK.sub(" ", talk().sub(" ", " ".join(WORD.findall(plain))))
    telling = tuple(dict.fromkeys(filter(_is_telling, words_of(said))))
    return telling or tuple(filter(_is_telling, words)) or words


def has_telling(text: str) -> bool:
    """Whether a question has words that carry meaning."""
    return any(map(_is_telling, question_words(text)))


def word_query(text: str, *, is_command: bool = False) -> str:
    """The question for word search: no words that say nothing, and neighbours as one word too.

    "mental health" then finds #mentalhealth, and a compound is found by its parts. What the store
    keeps as one word is asked for as it is written too: `a.tar.gz`, `l'été`. In a command every
    word tells something, flags too.
    """
    words = WORD.findall(text)
    told = word_set(text) if is_command else frozenset(question_words(text))
    telling = [word for word in words if not told.isdisjoint(words_of(folded(word)))]
    pairs = [
        first + second
        for first, second in itertools.pairwise(telling[:_MOST_PAIRED])
        if len(first) > 2 and len(second) > 2 and not _HAS_UNSPACED.search(first + second)
    ]
    joined = [one for one in _JOINED.findall(text) if not told.isdisjoint(words_of(folded(one)))]
    return " ".join((*telling, *joined, *pairs) if telling else words)


def is_unspaced(word: str) -> bool:
    """Whether a word is of a script without spaces, and so a piece of what was written."""
    return not word.isascii() and _HAS_UNSPACED.match(word) is not None


def matched(words: tuple[str, ...], text: str) -> tuple[str, ...]:
    """The words that occur in folded `text`, themselves or in another form.

    Pieces that follow each other in the question and in the text are one word again.
    """
    there = frozenset(map(root, words_of(text)))
    found: list[str] = []
    for word in words:
        if root(word) not in there:
            continue
        if found and _HAS_UNSPACED.match(word) and (longer := _joined(found[-1], word)) in text:
            found[-1] = longer
        else:
            found.append(word)
    return tuple(found)


def matched_terms(terms: Iterable[str], text: str) -> tuple[str, ...]:
    """Those of a question's terms that occur in a text."""
    return matched(tuple(terms), folded(text))


def has_phrase(text: str, phrase: str) -> bool:
    """Whether the words of a phrase stand in a text one after the other, each of them whole.

    Without spaces only what stands between two signs is whole: a phrase must not spell out a text.
    """
    wanted = WORD.findall(folded(phrase))
    return f" {' '.join(wanted)} " in f" {' '.join(WORD.findall(folded(text)))} "


def stem(word: str) -> str:
    """The part of a word that its other forms share, roughly."""
    return word if len(word) <= _SHORT + 1 else word[: max(_SHORT + 1, len(word) - 2)]


def _is_telling(word: str) -> bool:
    if _HANGUL.match(word) and root(word) in FILLER:
        return False
    return word not in FILLER and not _GRAMMAR.fullmatch(word)


def _pieces(word: str) -> list[str]:
    """A word of any script, cut into pairs of letters where there are no spaces."""
    pieces: list[str] = []
    for run in _RUN.findall(word):
        if not _HAS_UNSPACED.match(run):
            pieces.append(run)
            continue
        letters = _LETTER.findall(run)
        pairs = [first + second for first, second in itertools.pairwise(letters)]
        pieces += pairs or letters
    return pieces


def _joined(first: str, second: str) -> str:
    """Two pieces that share a letter, as one."""
    shared = _LETTER.findall(second)[0]
    return first + second[len(shared) :] if first.endswith(shared) else f"{first}\n{second}"


@cache
def _stemmer(language: str) -> Any:
    return Stemmer.Stemmer(language)
