"""The terms of a text: words of any script, folded, stemmed where the language is English."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import Stemmer
from numpy.typing import NDArray

from obsidian_rag.notes import UNSPACED, WORD, folded

LINE_END = "\n"
# In place of a term's number: a word that says nothing, and the end of a line.
MUTE, NEXT_LINE = 0, 1
_TOKEN = re.compile(rf"{WORD.pattern}|\n")
# The bytes of plain text: letters in lower case and digits, ends of lines, and blanks.
_ASCII = bytes(
    byte if chr(byte).isalnum() or byte == 0x0A else 0x20 for byte in bytes(range(128)).lower()
).ljust(256)
_LINE_MARK = "\x01"
# Signs that English texts are typed with: without them most are plain.
_TYPED = re.compile(
    "[\u00a0\u00a1\u00a7\u00a9\u00ab-\u00ae\u00b0\u00b1\u00b6\u00b7\u00bb\u00bf\u00d7\u00f7"
    "\u2000-\u206f\u2190-\u23ff\u2500-\u2775\u2794-\u2bff\U0001f300-\U0001faff]+"
)
_FENCE = re.compile(
    r"^[ \t>]*(```+(?=[^`\n]*$)|~~~+).*?(?:^[ \t>]*\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
# What a reader does not see as words: code, addresses, tags of HTML, the target beside a label.
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
_STOP = frozenset(
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
_FOREIGN = frozenset(
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
_ENOUGH_FOREIGN = 0.03


def prose(text: str) -> str:
    """Markdown as a reader hears it, with the same lines: no code, no addresses, no markup."""
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(lambda found: LINE_END * found[0].count(LINE_END), text)
    text = _MARKUP.sub(lambda found: f" {found[1] or ''} ", text)
    # Most addresses went with their links: looking for the others costs more than all the rest.
    return _ADDRESS.sub(" ", text) if "://" in text else text


class Speller:
    """Turns words into terms and numbers those; one per run, because most words come again."""

    def __init__(self) -> None:
        self.terms = ["", LINE_END]
        # For each term a word that was read as it, for people.
        self.words = ["", LINE_END]
        self._numbers = {"": MUTE, LINE_END: NEXT_LINE}
        self._english = _Spelling(self, _english_stemmer())
        self._other = _Spelling(self, None)

    def read(self, text: str) -> NDArray[np.int32]:
        """The terms of a text in their order, as positions in `terms`."""
        words = _words(text)
        return np.fromiter(self._read(words), np.int32, len(words))

    def name(self, text: str) -> list[int]:
        """The same of a title or a question, without mute words and ends of lines."""
        return [number for number in self._read(_words(text)) if number > NEXT_LINE]

    def _read(self, words: Sequence[str]) -> Iterator[int]:
        spelling = self._english if is_english(words) else self._other
        return map(spelling.__getitem__, words)

    def number(self, term: str, word: str) -> int:
        """The position of a term, which is added if it is new."""
        number = self._numbers.setdefault(term, len(self.terms))
        if number == len(self.terms):
            self.terms.append(term)
            self.words.append(word)
        return number


class _Spelling(dict[str, int]):
    """Word to the number of its term, made when first asked for."""

    def __init__(self, speller: Speller, stemmer: Any) -> None:
        super().__init__({LINE_END: NEXT_LINE, _LINE_MARK: NEXT_LINE})
        self._speller = speller
        self._stemmer = stemmer

    def __missing__(self, word: str) -> int:
        term = word
        if word in _STOP or (len(word) < 2 and word.isascii()):
            term = ""
        elif self._stemmer is not None and word.isascii():
            term = self._stemmer.stemWord(word)
        self[word] = self._speller.number(term, word)
        return self[word]


def is_english(words: Sequence[str]) -> bool:
    """Whether English stems fit: unless common words of another language prevail."""
    foreign = sum(map(_FOREIGN.__contains__, words))
    if foreign <= _ENOUGH_FOREIGN * len(words):
        return True
    return sum(map(_STOP.__contains__, words)) >= foreign


def letter_groups(text: str, size: int) -> list[str]:
    """The groups of `size` letters in a title or summary, each once, blanks as one space."""
    plain = " ".join(folded(text).split())
    if len(plain) <= size:
        return [plain] if plain else []
    return list(dict.fromkeys(plain[at : at + size] for at in range(len(plain) - size + 1)))


def _words(text: str) -> list[str]:
    if not text.isascii():
        text = _TYPED.sub(" ", text)
    if text.isascii():
        words = text.encode().translate(_ASCII).replace(b"\n", f" {_LINE_MARK} ".encode())
        return words.decode().split()
    plain = folded(text)
    if _UNSPACED.search(plain):
        plain = _UNSPACED.sub(_paired, plain)
    return _TOKEN.findall(plain.replace("_", " "))


def _paired(run: re.Match[str]) -> str:
    letters = run[0]
    pairs = [letters[at : at + 2] for at in range(len(letters) - 1)] or [letters]
    return f" {' '.join(pairs)} "


def _english_stemmer() -> Any:
    return Stemmer.Stemmer("porter")
