"""The terms of a text: words of any script, folded, and stemmed if the text is English."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import Stemmer
from numpy.typing import NDArray

from obsidian_rag.notes import UNSPACED, WORD, folded

LINE_END = "\n"
# Special term numbers: a stop word, and the end of a line.
MUTE, NEXT_LINE = 0, 1
_TOKEN = re.compile(rf"{WORD.pattern}|\n")
# Maps ASCII bytes to lower-case letters, digits, line ends and blanks.
_ASCII = bytes(
    byte if chr(byte).isalnum() or byte == 0x0A else 0x20 for byte in bytes(range(128)).lower()
).ljust(256)
_LINE_MARK = "\x01"
# Typographic signs in English texts: without them most are ASCII.
_TYPOGRAPHY = re.compile(
    "[\u00a0\u00a1\u00a7\u00a9\u00ab-\u00ae\u00b0\u00b1\u00b6\u00b7\u00bb\u00bf\u00d7\u00f7"
    "\u2000-\u206f\u2190-\u23ff\u2500-\u2775\u2794-\u2bff\U0001f300-\U0001faff]+"
)
_FENCE = re.compile(
    r"^[ \t>]*(```+(?=[^`\n]*$)|~~~+).*?(?:^[ \t>]*\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
# Markup that is not prose: HTML tags, embeds, images, the target beside a label.
_MARKUP = re.compile(
    r"""
      <[^<>\n]+>
    | !\[\[[^\[\]\n]*\]\]
    | !\[[^\[\]\n]*\]\([^()\n]*\)
    | \[\[(?:[^\[\]|\n]*\|)?([^\[\]\n]*)\]\]
    | \]\([^()\n]*\)
    """,
    re.VERBOSE,
)
_ADDRESS = re.compile(r"(?:https?|ftp|file|obsidian)://[^\s<>()]+")
# Scripts that put no space between words are cut into pairs of letters.
_UNSPACED = re.compile(f"[{UNSPACED}]+")
_STOP_WORDS = frozenset(
    _TOKEN.findall(
        """
    a about above after again against all also am an and any are aren as at be because been before
    being below between both but by can cannot could couldn d did didn do does doesn doing don down
    during each else etc ever every few for from further get gets got had hadn has hasn have haven
    having he hence her here hers herself him himself his how however i if in into is isn it its
    itself just ll m many may me might more most much must mustn my myself no nor not now of off on
    once one only onto or other ought our ours ourselves out over own per quite re really s same
    say says shall shan she should shouldn since so some such t than that the their theirs them
    themselves then there therefore these they this those though through thus to too under until up
    upon us use used uses using ve very via was wasn we were weren what when where whether which
    while who whom whose why will with within without won would wouldn yet you your yours yourself
    yourselves
    """
    )
) - {LINE_END}
# Common words of other languages that use our letters; a text with more of them is not English.
_FOREIGN_WORDS = frozenset(
    _TOKEN.findall(
        """
    aber auch auf aus bei das dass dem den der des die durch ein eine einem einen einer fur hat ich
    ist mit nach nicht noch nur oder sich sie sind uber und von vor war wenn werden wie wird zu zum
    zur au aux avec ce ces cette dans elle est et etre il ils je la le les leur mais ou par pas plus
    pour que qui sont sur une vous como con del el en es esta este los las lo mas muy para pero por
    porque se sin son su sus una uno che da della delle di gli il nel non per piu sono ao com dos em
    mais na nao nos os pela pelo seu sua uma aan dat de deze dit een en het ik naar niet ook van
    voor wat wordt zijn
    """
    )
) - {LINE_END}
_MAX_FOREIGN_SHARE = 0.03


def prose(text: str) -> str:
    """The prose of a Markdown text on the same lines: no code, no URLs, no markup."""
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(lambda found: LINE_END * found[0].count(LINE_END), text)
    text = _MARKUP.sub(lambda found: f" {found[1] or ''} ", text)
    # Most URLs went with their links; searching for the others costs more than everything else.
    return _ADDRESS.sub(" ", text) if "://" in text else text


class Vocabulary:
    """Turns words into numbered terms; one per run, because most words repeat."""

    def __init__(self) -> None:
        self.terms = ["", LINE_END]
        # For each term one of its words, for display.
        self.words = ["", LINE_END]
        self._numbers = {"": MUTE, LINE_END: NEXT_LINE}
        self._english = _TermNumbers(self, _english_stemmer())
        self._other = _TermNumbers(self, None)

    def read(self, text: str) -> NDArray[np.int32]:
        """The terms of a text in order, as positions in `terms`."""
        words = _split_words(text)
        return np.fromiter(self._read(words), np.int32, len(words))

    def name(self, text: str) -> list[int]:
        """The terms of a title or query, without stop words and line ends."""
        return [number for number in self._read(_split_words(text)) if number > NEXT_LINE]

    def _read(self, words: Sequence[str]) -> Iterator[int]:
        spelling = self._english if is_english(words) else self._other
        return map(spelling.__getitem__, words)

    def number(self, term: str, word: str) -> int:
        """The position of a term; a new one is added."""
        number = self._numbers.setdefault(term, len(self.terms))
        if number == len(self.terms):
            self.terms.append(term)
            self.words.append(word)
        return number


class _TermNumbers(dict[str, int]):
    """Maps a word to the number of its term; filled on first use."""

    def __init__(self, vocabulary: Vocabulary, stemmer: Any) -> None:
        super().__init__({LINE_END: NEXT_LINE, _LINE_MARK: NEXT_LINE})
        self._vocabulary = vocabulary
        self._stemmer = stemmer

    def __missing__(self, word: str) -> int:
        term = word
        if word in _STOP_WORDS or (len(word) < 2 and word.isascii()):
            term = ""
        elif self._stemmer is not None and word.isascii():
            term = self._stemmer.stemWord(word)
        self[word] = self._vocabulary.number(term, word)
        return self[word]


def is_english(words: Sequence[str]) -> bool:
    """Whether to use English stems: yes unless common words of another language prevail."""
    foreign = sum(map(_FOREIGN_WORDS.__contains__, words))
    if foreign <= _MAX_FOREIGN_SHARE * len(words):
        return True
    return sum(map(_STOP_WORDS.__contains__, words)) >= foreign


def ngrams(text: str, size: int) -> list[str]:
    """The distinct character n-grams of a title or summary; blanks count as one space."""
    plain = " ".join(folded(text).split())
    if len(plain) <= size:
        return [plain] if plain else []
    return list(dict.fromkeys(plain[at : at + size] for at in range(len(plain) - size + 1)))


def count_shared_ngrams(groups: Sequence[str], text: str, size: int) -> int:
    """How many of these n-grams occur in a text."""
    plain = " ".join(folded(text).split())
    if len(plain) <= size:
        return groups.count(plain)
    return sum(len(group) == size and group in plain for group in groups)


def _split_words(text: str) -> list[str]:
    if not text.isascii():
        text = _TYPOGRAPHY.sub(" ", text)
    if text.isascii():
        words = text.encode().translate(_ASCII).replace(b"\n", f" {_LINE_MARK} ".encode())
        return words.decode().split()
    plain = folded(text)
    if _UNSPACED.search(plain):
        plain = _UNSPACED.sub(_letter_pairs, plain)
    return _TOKEN.findall(plain.replace("_", " "))


def _letter_pairs(run: re.Match[str]) -> str:
    letters = run[0]
    pairs = [letters[at : at + 2] for at in range(len(letters) - 1)] or [letters]
    return f" {' '.join(pairs)} "


def _english_stemmer() -> Any:
    return Stemmer.Stemmer("porter")
