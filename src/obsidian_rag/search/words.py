"""The words of a question: folded for comparison, without stop words.

The store gets words as they are written and tokenizes them itself. Coverage compares the roots of
whole words. We cannot segment scripts without spaces, so their sentences are cut into overlapping
pairs of letters, each letter with its marks.
"""

import itertools
import re
import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import Stemmer

from obsidian_rag import notes
from obsidian_rag.notes import LETTERS, MARKS, UNSPACED, WORD

# What people say around a question; the file explains its tables.
_FILLER: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("filler.toml").read_text(encoding="utf-8")
)
_STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split()) for language, words in _FILLER["stop_words"].items()
}
_ALL_STOP_WORDS = frozenset().union(*_STOP_WORDS.values())
# Words that only English has, and words that only its Latin neighbours have.
_NEIGHBOURS = frozenset().union(
    *(_STOP_WORDS[one] for one in ("german", "french", "spanish", "italian", "portuguese", "dutch"))
)
_ONLY_ENGLISH = _STOP_WORDS["english"] - _NEIGHBOURS
_ONLY_NEIGHBOURS = _NEIGHBOURS - _STOP_WORDS["english"]
_UNSPACED_FILLER = re.compile("|".join(" ".join(_FILLER["unspaced"].values()).split()))
_KOREAN_ENDING = re.compile(f"(?:{'|'.join(_FILLER['endings']['korean'].split())})$")
_LATIN = re.compile("[a-zA-Z\u00c0-\u024f]")
_SHORT_CHARS = 3
_MAX_PAIRED_WORDS = 10
_RUN = re.compile(f"[{UNSPACED}]+|[^{UNSPACED}]+")
_HAS_UNSPACED = re.compile(f"[{UNSPACED}]")
# A letter of these scripts with its vowels, tones and the letter written below it.
_LETTER = re.compile(
    ".(?:[\u17d2\u1039].|[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e"
    "\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u109a-\u109d"
    "\u17b4-\u17d3\u17dd\u3099\u309a])*"
)
_HANGUL = re.compile("[\uac00-\ud7a3]")
# Pieces of Japanese that are only grammar: all kana, or a particle next to another letter.
_GRAMMAR = re.compile("[\u3041-\u309f]+|[のはがをにでともへや].|.[のはがをにでともへや]")
# A token that the store does not split at its inner punctuation: don't, l'été, a.tar.gz, 1.2.3.
_COMPOUND_TOKEN = re.compile(rf"[\w{MARKS}]+(?:['’.,:·_][\w{MARKS}]+)+")
_ENDING = re.compile("(?:ern|en|em|es|as|os|e|s|a|o|i|n)$")
_STEMMERS = (
    ("\u0370", "\u0400", "greek"),
    ("\u0400", "\u0530", "russian"),
    ("\u0530", "\u0590", "armenian"),
    ("\u0600", "\u0700", "arabic"),
    ("\u0900", "\u0980", "hindi"),
    ("\u0b80", "\u0c00", "tamil"),
)


@dataclass(frozen=True, slots=True)
class Wording:
    """A question's text, and what follows from its words.

    `words` are all of them, folded; `keywords` those that are not filler. `is_english` means that
    it may be English, `is_latin` that most of its letters are Latin.
    """

    text: str
    words: Sequence[str]
    keywords: tuple[str, ...]
    is_english: bool
    is_latin: bool

    @classmethod
    def of(cls, text: str) -> "Wording":
        """Read a text; one without words has no keywords."""
        words = words_of(folded(text))
        letters = sum(map(len, LETTERS.findall(text)))
        return cls(
            text,
            words,
            question_words(text),
            is_english(words),
            letters == 0 or 2 * len(_LATIN.findall(text)) > letters,
        )


def is_english(words: Collection[str]) -> bool:
    """Whether a question may be English: not if it has more function words of other languages."""
    return sum(one in _ONLY_NEIGHBOURS for one in words) <= sum(
        one in _ONLY_ENGLISH for one in words
    )


@lru_cache(maxsize=4096)
def folded(text: str) -> str:
    """Lower case without accents; cached, as successive questions share many passages."""
    return notes.folded(text)


def words_of(plain: str) -> list[str]:
    """The words of a folded text in order; letter pairs where its script has no spaces."""
    words = WORD.findall(plain)
    if plain.isascii() or not _HAS_UNSPACED.search(plain):
        return words
    return [piece for word in words for piece in _cut(word)]


def word_set(text: str) -> frozenset[str]:
    """The whole folded words of a text."""
    return frozenset(words_of(folded(text)))


@lru_cache(maxsize=1 << 15)
def root(word: str) -> str:
    """The common root of a folded word's forms; a root is its own root."""
    if _HANGUL.match(word):
        return _KOREAN_ENDING.sub("", word) or word
    if len(word) <= _SHORT_CHARS or word.isdigit():
        return word
    if word.isascii():
        stemmed: str = _stemmer("english").stemWord(word)
        return _ENDING.sub("", stemmed) if len(stemmed) > _SHORT_CHARS + 1 else stemmed
    for first, last, language in _STEMMERS:
        if first <= word[0] < last:
            return str(_stemmer(language).stemWord(word)) or word
    return word


@lru_cache(maxsize=256)
def question_words(text: str) -> tuple[str, ...]:
    """The folded keywords of a question; all its words if it has no keywords."""
    plain = folded(text)
    words = tuple(dict.fromkeys(words_of(plain)))
    core = _UNSPACED_FILLER.sub(" ", _phrases().sub(" ", " ".join(WORD.findall(plain))))
    keywords = tuple(dict.fromkeys(filter(_is_keyword, words_of(core))))
    return keywords or tuple(filter(_is_keyword, words)) or words


def has_keywords(text: str) -> bool:
    """Whether a question has any keywords."""
    return any(map(_is_keyword, question_words(text)))


def word_query(text: str, *, is_command: bool = False) -> str:
    """The question for word search: its keywords, and neighbouring ones joined as one word too.

    "mental health" then finds #mentalhealth, and a compound is found by its parts. Tokens that the
    store keeps whole, such as `a.tar.gz` or `l'été`, are added as written. In a command every word
    is a keyword, flags too.
    """
    words = WORD.findall(text)
    keys = word_set(text) if is_command else frozenset(question_words(text))
    keywords = [word for word in words if not keys.isdisjoint(words_of(folded(word)))]
    pairs = [
        first + second
        for first, second in itertools.pairwise(keywords[:_MAX_PAIRED_WORDS])
        if len(first) > 2 and len(second) > 2 and not _HAS_UNSPACED.search(first + second)
    ]
    whole = [
        one for one in _COMPOUND_TOKEN.findall(text) if not keys.isdisjoint(words_of(folded(one)))
    ]
    return " ".join((*keywords, *whole, *pairs) if keywords else words)


def is_unspaced(word: str) -> bool:
    """Whether a word is a letter pair from a script without spaces."""
    return not word.isascii() and _HAS_UNSPACED.match(word) is not None


def words_in(words: tuple[str, ...], text: str) -> tuple[str, ...]:
    """The words that occur in folded `text` in any form.

    Overlapping letter pairs that occur together in the text are merged into one word again.
    """
    there = frozenset(map(root, words_of(text)))
    found: list[str] = []
    for word in words:
        if root(word) not in there:
            continue
        if (
            found
            and _HAS_UNSPACED.match(word)
            and (longer := _merge_pieces(found[-1], word)) in text
        ):
            found[-1] = longer
        else:
            found.append(word)
    return tuple(found)


def matched_terms(terms: Iterable[str], text: str) -> tuple[str, ...]:
    """The terms of a question that occur in a text."""
    return words_in(tuple(terms), folded(text))


def has_phrase(text: str, phrase: str) -> bool:
    """Whether a text has the words of a phrase in sequence, each as a whole word.

    In scripts without spaces a word is everything between two punctuation marks: phrases must not
    be usable to spell out a withheld text.
    """
    wanted = WORD.findall(folded(phrase))
    return f" {' '.join(wanted)} " in f" {' '.join(WORD.findall(folded(text)))} "


def stem(word: str) -> str:
    """A rough stem, by length alone."""
    return word if len(word) <= _SHORT_CHARS + 1 else word[: max(_SHORT_CHARS + 1, len(word) - 2)]


def _is_keyword(word: str) -> bool:
    if _HANGUL.match(word) and root(word) in _ALL_STOP_WORDS:
        return False
    return word not in _ALL_STOP_WORDS and not _GRAMMAR.fullmatch(word)


@cache
def _phrases() -> re.Pattern[str]:
    """Matches phrases around a question; compiled on first use, which takes milliseconds."""
    return re.compile(rf"\b(?:{'|'.join(itertools.chain(*_FILLER['phrases'].values()))})\b")


def _cut(word: str) -> list[str]:
    """A word of any script, cut into letter pairs where its script has no spaces."""
    pieces: list[str] = []
    for run in _RUN.findall(word):
        if not _HAS_UNSPACED.match(run):
            pieces.append(run)
            continue
        letters = _LETTER.findall(run)
        pairs = [first + second for first, second in itertools.pairwise(letters)]
        pieces += pairs or letters
    return pieces


def _merge_pieces(first: str, second: str) -> str:
    """Two letter pairs that share a letter, as one piece."""
    shared = _LETTER.findall(second)[0]
    return first + second[len(shared) :] if first.endswith(shared) else f"{first}\n{second}"


@cache
def _stemmer(language: str) -> Any:
    return Stemmer.Stemmer(language)
